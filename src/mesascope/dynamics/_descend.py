"""Full-batch gradient descent θ ← θ − η ∇L(θ): the paper's own training loop, on any engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Progress, finite_positive, integer_at_least, shows_progress
from mesascope.objectives import Engine, Objective, objective_of
from mesascope.processes import NextToken
from mesascope.records import Figure, Printed

from ._integrate import masked_gradient
from ._outcome import Outcome
from ._parameters import Mask, mask_vector, real_vector
from ._saved_path import describe_path, draw_path, products_along

Model = TypeVar("Model", bound=eqx.Module)


class Descent(Printed, eqx.Module, Generic[Model]):
    """A finished gradient descent; `ms.plot` draws it.

    Attributes:
        model: the model at the end.
        steps: number of steps taken at every saved point, shape (n,), from 0 on.
        trajectory: a model whose weights carry the saved points on their first axis.
        loss: the objective at the saved points, shape (n,).
        standard_error: of the loss, shape (n,); 0 for exact engines.
        gradient_norm: ‖∇L‖₂ at the end, over the entries that are not masked.
        result: how it ended; `result.message` names the remedy where one is needed.
        task: which predictions count in the loss.
    """

    model: Model
    steps: np.ndarray
    trajectory: Model
    loss: np.ndarray
    standard_error: np.ndarray
    gradient_norm: float
    result: Outcome
    task: NextToken

    @property
    def converged(self) -> bool:
        """Always False: descent ends after the steps asked for; look at `gradient_norm`."""
        return self.result is Outcome.CONVERGED

    @property
    def products(self) -> np.ndarray:
        """a_j b_j of linear attention at every saved point, shape (n, d); AttributeError for other models."""
        return products_along(self)

    def figure(self) -> Figure:
        """The loss and, for linear attention, the products, until both are settled."""
        return draw_path(self, "step", self.steps)

    def _explained(self) -> tuple[str, str]:
        return "meaning", self.result.message

    def _printed(self) -> tuple[str, dict[str, str]]:
        return describe_path(self, f"step {self.steps[-1]}")


@shows_progress
def descend(
    model: Model,
    process: Any,
    task: NextToken,
    *,
    learning_rate: float,
    steps: int,
    engine: Engine | None = None,
    mask: Mask | None = None,
    saves: int = 256,
    progress: Callable[[Progress], None] | None = None,
) -> Descent[Model]:
    """Take `steps` steps θ ← θ − η ∇L(θ).

    With `MonteCarlo(samples=10_000)` every step uses the same sequences, as in the paper's experiments; with
    `ExactMoments()` it is the same descent without sampling error.

    Args:
        model: the start.
        process: what generates the sequences.
        task: horizon and weights of the context lengths.
        learning_rate: η > 0, for the loss summed (not averaged) over context lengths.
        steps: number of steps ≥ 1.
        engine: how the expectation is computed; `ExactMoments()` by default.
        mask: entries whose gradient is masked (see `Mask`).
        saves: how many points of the path to keep at most, at least 2; evenly spaced, first and last included.
        progress: called at every saved point; KeyboardInterrupt keeps what was computed.

    Raises:
        ValueError, TypeError: for bad settings, or from the engine.

    Source: zheng2024, section 6 (simulations).
    """
    rate = float(finite_positive("learning_rate", learning_rate))
    integer_at_least("steps", steps, 1)
    integer_at_least("saves", saves, 2)
    objective = objective_of(model, process, task, engine)
    allowed = mask_vector(model, mask)
    vector, rebuild = real_vector(model)
    stops = np.unique(np.linspace(0, steps, min(saves, steps + 1)).astype(int))
    points = [np.asarray(vector)]
    values: list[float] = []
    errors: list[float] = []
    result, taken = Outcome.FINISHED, 0
    try:
        for stop in stops[1:]:
            vector, value, error = _steps(
                objective, model, vector, allowed, jnp.asarray(rate), jnp.asarray(stop - taken)
            )
            values, errors = [*values, float(value)], [*errors, float(error)]
            taken = int(stop)
            if not bool(jnp.isfinite(vector).all() & jnp.isfinite(value)):
                result = Outcome.DIVERGED  # the last finite point stays the end
                break
            points.append(np.asarray(vector))
            if progress is not None:
                progress(Progress(taken, steps, values={"loss": values[-1]}))
    except KeyboardInterrupt:
        result = Outcome.INTERRUPTED
    last, last_error, norm = (float(x) for x in _end(objective, model, jnp.asarray(points[-1]), allowed))
    return Descent(
        rebuild(points[-1]),
        stops[: len(points)],
        rebuild(np.stack(points)),
        np.array([*values[: len(points) - 1], last]),
        np.array([*errors[: len(points) - 1], last_error]),
        norm,
        result,
        task,
    )


@eqx.filter_jit
def _steps(
    objective: Objective, model: eqx.Module, vector: Array, allowed: Array, rate: Array, count: Array
) -> tuple[Array, Array, Array]:
    """The vector after `count` steps, and the loss with its standard error before them."""
    _, rebuild = real_vector(model)

    def loss(values: Array) -> tuple[Array, Array]:
        estimate = objective(rebuild(values))
        return estimate.value, estimate.standard_error

    def step(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        values, value, error = carry
        (now, now_error), gradient = jax.value_and_grad(loss, has_aux=True)(values)
        first = i == 0
        return (
            values - rate * allowed * gradient,
            jnp.where(first, now, value),
            jnp.where(first, now_error, error),
        )

    shape = jax.eval_shape(loss, vector)
    start = (vector, *(jnp.zeros(one.shape, one.dtype) for one in shape))
    return jax.lax.fori_loop(0, count, step, start)


@eqx.filter_jit
def _end(
    objective: Objective, model: eqx.Module, vector: Array, allowed: Array
) -> tuple[Array, Array, Array]:
    _, rebuild = real_vector(model)
    last = objective(rebuild(vector))
    return (
        last.value,
        last.standard_error,
        jnp.linalg.norm(masked_gradient(objective, rebuild, allowed)(vector)),
    )
