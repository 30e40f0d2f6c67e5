"""Engines: how the expectation in a population objective is computed. No jax is imported before one is used."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from mesascope.core import require_x64
from mesascope.specs import Component, Count, Seed, integer, kind, one_of, wrong

if TYPE_CHECKING:
    from mesascope.models import Normalizer
    from mesascope.processes import DiagonalUnitary, FewShot, LinearRegression, NextToken

    from ._engine import Objective
    from ._enumeration import EnumeratedObjective
    from ._exact import ExactObjective
    from ._monte_carlo import SampledObjective
    from ._regression import RegressionObjective
    from ._sample_losses import Task

_MAX_ENUMERATED = 20_000_000


class Engine(Component, family="engine"):
    """A way to compute expectations over the process; `objective` prepares it for one process and task."""

    def check(self, dim: int, horizon: int) -> None:
        """Refuse sizes that it cannot treat, in a validator; by default none."""

    @abc.abstractmethod
    def objective(self, process: Any, task: Any, normalizer: Normalizer = "t-1") -> Objective:
        """The objective of this process and task, prepared once and cached.

        Raises:
            TypeError: for a process that this engine cannot treat; the message names an engine that can.
            ValueError: for a law without the moments that the loss needs.
        """


@kind("exact-moments")
class ExactMoments(Engine):
    """Exact expectations from moments of order 1 … 6 of the initial token.

    Treats linear attention (one layer, any weights, heads and normalizer) on `DiagonalUnitary` with any law
    that has six finite moments: planning takes milliseconds whatever the horizon; every evaluation is O(d³). And one
    layer of `prompt_linear_transformer` on `LinearRegression` with Gaussian inputs, whatever the number of examples.
    """

    def objective(
        self,
        process: DiagonalUnitary | LinearRegression,
        task: NextToken | FewShot,
        normalizer: Normalizer = "t-1",
    ) -> ExactObjective | RegressionObjective:
        """The exact objective; prepared once for every (law, dim, task, normalizer) and cached."""
        from mesascope.models import check_normalizer
        from mesascope.processes import DiagonalUnitary, FewShot, LinearRegression, NextToken

        from ._exact import exact_objective
        from ._regression import regression_objective

        require_x64("ExactMoments")
        if isinstance(process, LinearRegression) and isinstance(task, FewShot):
            return regression_objective(process, task)
        if not isinstance(process, DiagonalUnitary) or not isinstance(task, NextToken):
            raise TypeError(
                "ExactMoments treats NextToken on DiagonalUnitary, and FewShot on LinearRegression, not "
                f"{type(task).__name__} on {type(process).__name__}; use MonteCarlo"
            )
        return exact_objective(process.law, process.dim, task, check_normalizer(normalizer))


@kind("enumeration")
class Enumeration(Engine):
    """Exact expectations by listing: 3T roots of unity × Gauss nodes per coordinate; small dim and horizon.

    The integrand is a trigonometric polynomial of degree below 3T in every λ_j and a polynomial of degree 6
    in x_1, so that the sum is exact. It uses only the definition of the loss; it exists to check
    `ExactMoments`, which replaces it everywhere else.
    """

    def check(self, dim: int, horizon: int) -> None:
        """Refuse sizes whose list of sequences is too long: (3 horizon)^dim is the least possible length."""
        if dim > 16 or (3 * horizon) ** dim > _MAX_ENUMERATED:
            raise wrong(
                f"enumeration would list more than {_MAX_ENUMERATED:.0e} sequences for dim {dim} and "
                f"horizon {horizon}; use 'exact-moments', or smaller ones",
                "engine",
            )

    def objective(
        self, process: DiagonalUnitary, task: NextToken, normalizer: Normalizer = "t-1"
    ) -> EnumeratedObjective:
        """The objective of this process and task; the normalizer is the model's own.

        Raises:
            TypeError: for a process other than `DiagonalUnitary`.
            ValueError: when the grid would have more than 2·10⁷ points, or 64-bit mode is off.
        """
        from mesascope.processes import DiagonalUnitary

        from ._enumeration import enumerated_objective

        require_x64("Enumeration")
        if not isinstance(process, DiagonalUnitary):
            raise TypeError(
                f"Enumeration treats DiagonalUnitary only, not {type(process).__name__}; use MonteCarlo"
            )
        return enumerated_objective(process.law, process.dim, task)


@kind("monte-carlo")
class MonteCarlo(Engine):
    """Expectations as means over sampled sequences or prompts.

    The standard error is itself estimated from moments of order 12: with fewer (Student-t laws with df ≤ 12) it comes out
    too small.

    Treats every process with a sampler and every model with `predictions`. The same seed gives the same
    sequences, so that differences between models are not drowned in noise (common random numbers).

    Args:
        samples: number of sequences, 2 … 10⁸.
        seed: seed of the sample.
        batch: sequences held in memory at once; by default 500, or as many as 2 GiB hold.
        precision: "float32" or "float64"; by default JAX's own default float type.
    """

    samples: Annotated[int, BeforeValidator(integer), Field(ge=2, le=10**8)] = 10_000
    seed: Seed = 0
    batch: Count | None = None
    precision: Literal["float32", "float64"] | None = None

    def check(self, dim: int, horizon: int) -> None:
        """Refuse batches that need more than 2 GiB."""
        most = _most_sequences(dim, horizon)
        size = f"of {horizon} tokens in dimension {dim}"
        if not most:
            raise wrong(
                f"even one sequence {size} needs more than 2 GiB; use 'exact-moments', or a smaller dim or horizon",
                "engine",
            )
        if self.batch and min(self.batch, self.samples) > most:
            what = f"{self.batch} sequences {size} need more than 2 GiB; give at most {most}"
            raise wrong(what, "engine", "batch")

    def objective(self, process: Any, task: Task, normalizer: Normalizer = "t-1") -> SampledObjective:
        """The sampled objective; the normalizer is the model's own."""
        import jax.numpy as jnp

        from mesascope.core import named_key

        from ._monte_carlo import SampledObjective
        from ._sample_losses import check_task, refuse_large_batches, task_length

        if self.precision == "float64":
            require_x64("MonteCarlo(precision='float64')")
        check_task(process, task)
        most = _most_sequences(getattr(process, "dim", 1), task_length(task))
        batch = min(self.batch or max(1, min(500, most)), self.samples)
        refuse_large_batches(process, task, batch)
        key = named_key(self.seed, "monte-carlo")
        precision = self.precision or jnp.zeros(()).dtype.name
        return SampledObjective(process, task, key, self.samples, batch, precision)


def _most_sequences(dim: int, horizon: int) -> int:
    """How many sequences 2 GiB hold: a gradient takes about 128 bytes for each token × dim × (dim + 4)."""
    return 2**24 // (horizon * dim * (dim + 4))


EngineField: TypeAlias = Annotated[Engine, *one_of("engine")]
"""An engine, or the table that specifies one."""
