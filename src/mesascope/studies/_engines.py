"""Specifications of engines: how the expectation in the loss is computed."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from mesascope.specs import Seed, Spec, kinds, wrong

if TYPE_CHECKING:
    from mesascope.objectives import Engine

_MOST_ENUMERATED = 20_000_000


class ExactMomentsSpec(Spec):
    """Exact expectations from moments; the default."""

    kind: Literal["exact-moments"] = "exact-moments"

    def check(self, dim: int, horizon: int) -> None:
        """Accept every size: the cost does not grow with the horizon."""

    def build(self, dim: int, horizon: int) -> "Engine":
        """Return the engine."""
        from mesascope.objectives import ExactMoments

        return ExactMoments()


class EnumerationSpec(Spec):
    """Exact expectations by listing, for small dim and horizon."""

    kind: Literal["enumeration"] = "enumeration"

    def check(self, dim: int, horizon: int) -> None:
        """Refuse sizes whose list of sequences is too long.

        Raises:
            PydanticCustomError: (3 horizon)^dim, the least possible length, exceeds 2·10⁷.
        """
        if dim > 16 or (3 * horizon) ** dim > _MOST_ENUMERATED:
            raise wrong(
                f"enumeration would list more than {_MOST_ENUMERATED:.0e} sequences for dim {dim} and "
                f"horizon {horizon}; use 'exact-moments', or smaller ones",
                "engine",
            )

    def build(self, dim: int, horizon: int) -> "Engine":
        """Return the engine."""
        from mesascope.objectives import Enumeration

        return Enumeration()


class MonteCarloSpec(Spec):
    """Means over sampled sequences.

    Attributes:
        samples: number of sequences, 2 … 10⁸.
        seed: seed of the sample.
        batch: sequences held in memory at once; by default 500, or as many as 2 GiB hold.
    """

    kind: Literal["monte-carlo"] = "monte-carlo"
    samples: Annotated[int, Field(strict=True, ge=2, le=10**8)] = 10_000
    seed: Seed = 0
    batch: Annotated[int, Field(strict=True, ge=1, le=10**8)] | None = None

    def check(self, dim: int, horizon: int) -> None:
        """Refuse batches that need more than 2 GiB.

        Raises:
            PydanticCustomError: batch × horizon × dim × (dim + 4) exceeds 2²⁴.
        """
        most = _most_sequences(dim, horizon)
        if not most:
            raise wrong(
                f"even one sequence of {horizon} tokens in dimension {dim} needs more than 2 GiB; "
                "use 'exact-moments', or a smaller dim or horizon",
                "engine",
            )
        if self.batch and min(self.batch, self.samples) > most:
            raise wrong(
                f"{self.batch} sequences of {horizon} tokens in dimension {dim} need more than 2 GiB; "
                f"give at most {most}",
                "engine",
                "batch",
            )

    def build(self, dim: int, horizon: int) -> "Engine":
        """Return the engine."""
        from mesascope.objectives import MonteCarlo

        return MonteCarlo(self.samples, self.seed, self.batch or min(500, _most_sequences(dim, horizon)))


def _most_sequences(dim: int, horizon: int) -> int:
    """How many sequences 2 GiB hold: a gradient takes about 128 bytes for each token × dim × (dim + 4)."""
    return 2**24 // (horizon * dim * (dim + 4))


EngineSpec: TypeAlias = Annotated[
    ExactMomentsSpec | EnumerationSpec | MonteCarloSpec,
    Field(discriminator="kind"),
    kinds("exact-moments", "enumeration", "monte-carlo"),
]
"""An engine, told apart by `kind`; a string stands for an engine with its defaults."""
