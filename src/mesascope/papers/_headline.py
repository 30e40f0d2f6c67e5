"""What the abstract of a paper announces, and which claims check it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Headline:
    """One result that the abstract of a paper announces.

    Attributes:
        says: the result, in one sentence of ours.
        claims: names of the claims that check it, without the paper.
        rest: what of it none of them checks, and why; needed where there are no claims.

    Raises:
        ValueError: there is neither a claim nor a reason.
    """

    says: str
    claims: tuple[str, ...] = ()
    rest: str = ""

    def __post_init__(self) -> None:
        if not (self.claims or self.rest):
            raise ValueError(f"headline {self.says!r}: name the claims that check it, or say why none does")
