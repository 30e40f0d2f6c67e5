"""Which papers there are, and finding their claims by name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from mesascope.specs import nearest, show

from ._claim import Claim, Difference
from ._headline import Headline

PAPERS = tuple(
    sorted(name for _, name, _ in iter_modules([str(Path(__file__).parent)]) if not name.startswith("_"))
)
"""Bib keys of the papers with claims: every public module of this package, each with a tuple `CLAIMS`."""


def claims(*selection: str) -> tuple[Claim, ...]:
    """Claims by paper (`"zheng2024"`) or by id (`"zheng2024/theorem-4.1"`); all of them without arguments.

    Raises:
        ValueError: for a paper or claim that does not exist; the message names the nearest one.
    """
    chosen: dict[str, Claim] = {}
    for wanted in selection or PAPERS:
        for claim in _named(wanted):
            chosen[claim.id] = claim
    return tuple(chosen.values())


def differences(paper: str) -> tuple[Difference, ...]:
    """What differs from the setting of a paper, as its module `DIFFERENCES` says."""
    found: tuple[Difference, ...] = import_module(f"{__package__}.{paper}").DIFFERENCES
    return found


def headlines(paper: str) -> tuple[Headline, ...]:
    """What the abstract of a paper announces, as its module `HEADLINES` says."""
    found: tuple[Headline, ...] = import_module(f"{__package__}.{paper}").HEADLINES
    return found


def _named(wanted: str) -> tuple[Claim, ...]:
    if not isinstance(wanted, str):
        raise TypeError(
            f"claims are named by strings such as 'zheng2024' or 'zheng2024/theorem-4.1', got {show(wanted)}"
        )
    paper, slash, _ = wanted.partition("/")
    if paper not in PAPERS:
        near = _nearest(paper, PAPERS) or _of_that_name(wanted)
        raise ValueError(f"paper {show(paper)} is unknown{near}; papers: {', '.join(PAPERS)}")
    found: tuple[Claim, ...] = import_module(f"{__package__}.{paper}").CLAIMS
    if not slash:
        return found
    matching = tuple(claim for claim in found if claim.id == wanted)
    if not matching:
        known = [claim.id for claim in found]
        raise ValueError(
            f"claim {show(wanted)} is unknown{_nearest(wanted, known)}; `mesascope claims {paper}` lists them"
        )
    return matching


def _nearest(wrong: str, known: tuple[str, ...] | list[str]) -> str:
    near = nearest(wrong.lower(), known, 0.4)
    return f" (did you mean {near!r}?)" if near else ""


def _of_that_name(wanted: str) -> str:
    """A hint at the claim of this name, which was given without its paper."""
    names = {claim.id.partition("/")[2]: claim.id for claim in claims()}
    near = nearest(wanted.lower(), names, 0.8)
    return f" (did you mean {names[near]!r}?)" if near else ""
