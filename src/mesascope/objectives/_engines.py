"""Engines: methods to compute the expectation in a population objective. JAX is imported when one is used."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field

from mesascope.core import require_x64
from mesascope.specs import Component, Count, Seed, SpecError, integer, kind, one_of

if TYPE_CHECKING:
    from mesascope.models import Normalizer
    from mesascope.processes import (
        DiagonalUnitary,
        FewShot,
        NextToken,
        PromptMixture,
        SymbolProcess,
        TrainingSet,
    )

    from ._engine import Objective
    from ._enumeration import EnumeratedObjective
    from ._exact import ExactObjective
    from ._finite import FiniteObjective
    from ._mixed import MixedObjective
    from ._monte_carlo import SampledObjective
    from ._regression import RegressionObjective
    from ._regression_tasks import Regression
    from ._sample_losses import Task

_MAX_ENUMERATED = 20_000_000


class Engine(Component, family="engine"):
    """A method to compute expectations over a process; `objective` prepares it for one process and task."""

    def check(self, dim: int, horizon: int) -> None:
        """Refuse unsupported sizes, in a validator; by default accept all."""

    @abc.abstractmethod
    def objective(self, process: Any, task: Any, normalizer: Normalizer = "t-1") -> Objective:
        """Return the objective of this process and task, prepared once and cached.

        Raises:
            TypeError: for a process that this engine does not support; the message gives an engine that does.
            ValueError: for a law without the moments in the loss.
        """


@kind("exact-moments")
class ExactMoments(Engine):
    """Exact expectations from moments of order 1 … 6 of the initial token.

    Supports linear attention (one layer, any weights, heads and normalizer) on `DiagonalUnitary` with any law
    that has six finite moments: planning takes milliseconds for any horizon, and every evaluation is O(d³). Supports one
    layer of `prompt_linear_transformer` on `LinearRegression` with Gaussian inputs and any number of examples, and on a
    `TaskPool` of it, too: once prepared, in a time that does not depend on the number of tasks. There it also supports
    steps of `preconditioned_linear_transformer` and `step_size_transformer`, up to three, layers times loops, or up to 48 with
    a multiple of Σ⁻¹ as the metric, for inputs with a fixed covariance. All this on `InWeightsRegression` as well, and on a
    `PromptMixture` of such processes.
    """

    def objective(
        self,
        process: DiagonalUnitary | Regression | PromptMixture,
        task: NextToken | FewShot,
        normalizer: Normalizer = "t-1",
    ) -> ExactObjective | RegressionObjective | MixedObjective:
        """Return the exact objective, prepared once for every (law, dim, task, normalizer) and cached."""
        from mesascope.models import check_normalizer
        from mesascope.processes import DiagonalUnitary, FewShot, NextToken, PromptMixture

        from ._exact import exact_objective
        from ._mixed import MixedObjective
        from ._regression import regression_objective
        from ._regression_tasks import Regression

        require_x64("ExactMoments")
        if isinstance(process, Regression) and isinstance(task, FewShot):
            return regression_objective(process, task)
        if isinstance(process, PromptMixture) and isinstance(task, FewShot):
            shares, parts = zip(*process.parts, strict=True)
            return MixedObjective(
                tuple(self.objective(one, task, normalizer) for one in parts), np.array(shares)
            )
        if not isinstance(process, DiagonalUnitary) or not isinstance(task, NextToken):
            raise TypeError(
                "ExactMoments supports NextToken on DiagonalUnitary, and FewShot on LinearRegression, its TaskPool, "
                "InWeightsRegression and mixtures of them, not "
                f"{type(task).__name__} on {type(process).__name__}; use MonteCarlo ('monte-carlo' in a SPEC)"
            )
        return exact_objective(process.law, process.dim, task, check_normalizer(normalizer))


@kind("enumeration")
class Enumeration(Engine):
    """Exact expectations by enumeration: 3T roots of unity × Gauss nodes per coordinate, for small dim and horizon.

    The integrand is a trigonometric polynomial of degree below 3T in every λ_j and a polynomial of degree 6
    in x_1, so that the sum is exact. It uses only the definition of the loss and is meant for checks of
    `ExactMoments`, which is much faster.

    On a `TrainingSet` it is the mean over all prompts, and on `Urns`, `MarkovChains` and their pools the sum over all $S^T$
    sequences of symbols, at most 2²⁰, with exact probabilities; both for every model that does not see what
    it is to predict: models of your own on symbols are tried, and refused where they look ahead.
    """

    def check(self, dim: int, horizon: int) -> None:
        """Refuse sizes with too many sequences; there are at least (3T)^d of horizon T."""
        if dim > 16 or (3 * horizon) ** dim > _MAX_ENUMERATED:
            raise SpecError(
                f"enumeration would list more than {_MAX_ENUMERATED:.0e} sequences for dim {dim} and "
                f"horizon {horizon}; use 'exact-moments', or smaller ones",
                "engine",
            )

    def objective(
        self,
        process: DiagonalUnitary | TrainingSet | SymbolProcess,
        task: NextToken | FewShot,
        normalizer: Normalizer = "t-1",
    ) -> EnumeratedObjective | FiniteObjective:
        """Return the objective of this process and task, with the normalizer of the model.

        Raises:
            TypeError: for another process, or a task of another kind of data.
            ValueError: the grid has more than 2·10⁷ points, there are more than 2²⁰ sequences of symbols, or 64-bit mode is
                off.
        """
        from mesascope.processes import DiagonalUnitary, FewShot, NextToken, SymbolProcess, TrainingSet

        from ._enumeration import enumerated_objective
        from ._finite import objective_on_a_set, objective_on_all_sequences

        require_x64("Enumeration")
        if isinstance(process, TrainingSet) and isinstance(task, FewShot):
            return objective_on_a_set(process, task)
        if isinstance(process, SymbolProcess) and isinstance(task, NextToken):
            return objective_on_all_sequences(process, task)
        if not isinstance(process, DiagonalUnitary) or not isinstance(task, NextToken):
            raise TypeError(
                "Enumeration supports NextToken on DiagonalUnitary and symbols, and FewShot on a TrainingSet, not "
                f"{type(task).__name__} on {type(process).__name__}; use MonteCarlo ('monte-carlo' in a SPEC)"
            )
        return enumerated_objective(process.law, process.dim, task)


@kind("monte-carlo")
class MonteCarlo(Engine):
    """Expectations as means over sampled sequences or prompts.

    Supports every process with a sampler and every model with `predictions`. The same seed gives the same
    sequences, so that differences between models have little noise (common random numbers). The estimate of the standard
    error needs moments of order 12: for laws with fewer moments (Student-t with df ≤ 12) it is too small.

    Args:
        samples: number of sequences, 2 … 10⁸.
        seed: seed of the sample.
        batch: sequences in memory at the same time; by default 500, or the number that fits into 2 GiB.
        precision: "float32" or "float64"; by default JAX's default float type.
    """

    samples: Annotated[int, BeforeValidator(integer), Field(ge=2, le=10**8)] = 10_000
    seed: Seed = 0
    batch: Count | None = None
    precision: Literal["float32", "float64"] | None = None

    def check(self, dim: int, horizon: int) -> None:
        """Refuse batches that need more than 2 GiB."""
        limit = _max_batch(dim, horizon)
        size = f"of {horizon} tokens in dimension {dim}"
        if not limit:
            raise SpecError(
                f"even one sequence {size} needs more than 2 GiB; use 'exact-moments', or a smaller dim or horizon",
                "engine",
            )
        if self.batch and min(self.batch, self.samples) > limit:
            what = f"{self.batch} sequences {size} need more than 2 GiB; give at most {limit}"
            raise SpecError(what, "engine", "batch")

    def objective(self, process: Any, task: Task, normalizer: Normalizer = "t-1") -> SampledObjective:
        """Return the sampled objective, with the normalizer of the model."""
        import jax.numpy as jnp

        from mesascope.core import named_key

        from ._monte_carlo import SampledObjective
        from ._sample_losses import check_task, refuse_large_batches, task_length

        if self.precision == "float64":
            require_x64("MonteCarlo(precision='float64')")
        check_task(process, task)
        limit = _max_batch(getattr(process, "dim", 1), task_length(task))
        batch = min(self.batch or max(1, min(500, limit)), self.samples)
        refuse_large_batches(process, task, batch)
        key = named_key(self.seed, "monte-carlo")
        precision = self.precision or jnp.zeros(()).dtype.name
        return SampledObjective(process, task, key, self.samples, batch, precision)


def _max_batch(dim: int, horizon: int) -> int:
    """Return the number of sequences that fit into 2 GiB: a gradient takes about 128 bytes per token × dim × (dim + 4)."""
    return 2**24 // (horizon * dim * (dim + 4))


EngineField: TypeAlias = Annotated[Engine, *one_of("engine")]
"""An engine, or the table that specifies one."""
