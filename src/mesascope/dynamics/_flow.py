"""Gradient flow θ' = −∇L(θ): where training goes, solved as an ordinary differential equation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import finite_positive, integer_at_least
from mesascope.objectives import Engine, Objective, Task, losses, objective_of

from ._outcome import Outcome
from ._parameters import Mask, mask_vector, real_vector
from ._rest import curvature, matrix_sizes, rest_event, smallest_matrix

Model = TypeVar("Model", bound=eqx.Module)
SEGMENT_BYTES = 2**25
LONGEST_SEGMENT = 2048
_SHARPEST = 1e-4


class Flow(eqx.Module, Generic[Model]):
    """A solved gradient flow.

    Attributes:
        model: the model at the end.
        times: flow time of every saved point, shape (n,), from 0 on.
        trajectory: a model whose weights carry the saved points on their first axis, shape (n, …).
        gradient_norm: ‖∇L‖₂ at the end, over the entries that are not masked.
        result: how the flow ended; `result.message` names the remedy where one is needed.
        stats: accepted and rejected solver steps.
    """

    model: Model
    times: np.ndarray
    trajectory: Model
    gradient_norm: float
    result: Outcome
    stats: dict[str, int]
    objective: Objective

    @property
    def converged(self) -> bool:
        """Whether the gradient fell below the tolerance."""
        return self.result is Outcome.CONVERGED

    @property
    def time(self) -> float:
        """Flow time at the end."""
        return float(self.times[-1])

    @property
    def loss(self) -> np.ndarray:
        """The objective at every saved point, shape (n,), computed when asked for."""
        return np.asarray(losses(self.objective, self.trajectory))


class FlowProgress(NamedTuple):
    """What a progress callback receives between segments.

    Attributes:
        time: flow time.
        steps: accepted steps.
        gradient_norm: ‖∇L‖.
        bound: the flow rests when ‖∂L/∂W‖/‖W‖ is below this for every matrix; negative when it runs for a given time.
    """

    time: float
    steps: int
    gradient_norm: float
    bound: float


def gradient_flow(
    model: Model,
    process: Any,
    task: Task,
    *,
    engine: Engine | None = None,
    until: float | str = "steady-state",
    mask: Mask | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-12,
    atol: float | None = None,
    tolerance: float = 1e-11,
    max_steps: int = 200_000,
    saves: int = 512,
    progress: Callable[[FlowProgress], None] | None = None,
) -> Flow[Model]:
    """Solve θ' = −∇L(θ) from the weights of `model`, for a given time or until the gradient vanishes.

    The flow is at rest when ‖∂L/∂W‖ ≤ tolerance · λ · ‖W‖ for every weight matrix W, λ being the largest curvature
    (norms are largest entries): a test in units of the landscape, the same for data of every scale. A saddle is at
    rest too, for a flow that starts exactly on it. Near a stiff minimum the errors of an explicit solver keep the
    gradient above any bound: when a whole segment of steps of a flow to rest does not bring it down, rtol and atol are
    tightened a hundredfold.

    Args:
        model: the start, e.g. `LinearAttention.diagonal(5, 0.1, 0.1)`.
        process: what generates the sequences, or prompts.
        task: horizon and weights of the context lengths, or number of examples.
        engine: how the expectation is computed; `ExactMoments()` by default.
        until: flow time > 0, or `"steady-state"`.
        mask: entries whose gradient is masked (see `Mask`).
        solver: any explicit or implicit diffrax solver; `diffrax.Tsit5()` by default.
        rtol: relative local error allowed per step, to begin with.
        atol: absolute local error allowed per step, to begin with; by default a thousandth of rtol times the
            largest entry of the smallest starting matrix.
        tolerance: of the steady state.
        max_steps: limit on solver steps, accepted and rejected.
        saves: how many points of the path to keep at most (first and last included), at least 2.
        progress: called between segments of at most 2048 steps; raising KeyboardInterrupt ends the flow and keeps what
            was computed.

    Raises:
        ValueError: for bad settings; TypeError, ValueError: from the engine.

    Source: zheng2024, section 3 (gradient flow, equation (5)).
    """
    limit = checked_until(until)
    finite_positive("rtol", rtol)
    if atol is not None:
        finite_positive("atol", atol)
    if solver is not None and not isinstance(solver, diffrax.AbstractSolver):
        raise TypeError(f"solver: must be a diffrax solver such as diffrax.Tsit5(), got {solver!r}")
    finite_positive("tolerance", tolerance)
    integer_at_least("max_steps", max_steps, 1)
    integer_at_least("saves", saves, 2)
    objective = objective_of(model, process, task, engine)
    allowed = mask_vector(model, mask)
    vector, rebuild = real_vector(model)
    if atol is None:
        atol = 1e-3 * rtol * smallest_matrix(model)
    longest = max(1, min(LONGEST_SEGMENT, SEGMENT_BYTES // (8 * vector.size)))
    path = SavedPath(np.asarray(vector), saves)
    stats = {"steps": 0, "rejected": 0}
    start, stepper, sharpness = jnp.asarray(vector), solver or diffrax.Tsit5(), 1.0
    norm, result = math.inf, None
    try:
        rate = float(_rate(objective, model, start, allowed))
        step = 0.01 / rate if rate > 0 else 1.0
        while result is None:
            bound = tolerance * rate if limit == math.inf else -1.0
            numbers = (path.end, limit, step, bound, rtol * sharpness, atol * sharpness)
            length = min(longest, max_steps - sum(stats.values()))
            solved = _segment(objective, model, start, allowed, jnp.asarray(numbers, float), stepper, length)
            before = norm
            times, points, norm, step, code, accepted, rejected = jax.device_get(solved)
            stats = {"steps": stats["steps"] + int(accepted), "rejected": stats["rejected"] + int(rejected)}
            path.extend(times, points)
            start = jnp.asarray(path.last)
            if limit == math.inf and norm > before / 2 and sharpness > _SHARPEST:
                sharpness /= 100
            result = outcome_of(int(code), float(norm), path.last, sum(stats.values()) >= max_steps)
            if result is Outcome.CONVERGED:
                # the landscape may be flatter here than where the flow came from: rest in its own units counts
                rate = float(_rate(objective, model, start, allowed))
                slopes, weights = _sizes(objective, model, start, allowed)
                if np.any(np.asarray(slopes) > 2 * tolerance * rate * np.asarray(weights)):
                    result = None
            if progress is not None:
                progress(FlowProgress(path.end, stats["steps"], float(norm), bound))
    except KeyboardInterrupt:
        result = Outcome.INTERRUPTED
        if not stats["steps"]:  # before the first segment had ended, which tells its gradient
            norm = float(_norm(objective, model, start, allowed))
    trajectory = rebuild(path.points())
    return Flow(rebuild(path.last), path.times(), trajectory, float(norm), result, stats, objective)


class SavedPath:
    """Saved points of a path of unknown length: when there are too many, every second one is dropped."""

    def __init__(self, first: np.ndarray, most: int):
        self._times, self._points, self._most = [0.0], [first], most
        self._stride, self._seen = 1, 0
        self.end, self.last = 0.0, first

    def extend(self, times: np.ndarray, points: np.ndarray) -> None:
        """Add the steps of a segment; what is not finite stands for steps that were not taken."""
        for time, point in zip(times, points, strict=True):
            if not np.isfinite(time):
                break
            self._seen += 1
            self.end, self.last = float(time), point
            if self._seen % self._stride == 0:
                self._times.append(self.end)
                self._points.append(point)
            if len(self._times) >= self._most:
                self._times, self._points = self._times[::2], self._points[::2]
                self._stride *= 2

    def times(self) -> np.ndarray:
        """Times of the saved points, shape (n,)."""
        return np.array([*self._times, self.end] if self._times[-1] != self.end else self._times)

    def points(self) -> np.ndarray:
        """The saved points, first and last included, shape (n, …)."""
        return np.stack([*self._points, self.last] if self._times[-1] != self.end else self._points)


_RUNNING, _AT_REST, _AT_TIME, _FAILED = range(4)


def outcome_of(code: int, norm: float, last: np.ndarray, exhausted: bool) -> Outcome | None:
    """How a flow has ended with a segment; None where it goes on."""
    if code == _FAILED or not (math.isfinite(norm) and np.isfinite(last).all()):
        return Outcome.DIVERGED
    if code == _AT_REST:
        return Outcome.CONVERGED
    if code == _AT_TIME:
        return Outcome.FINISHED
    return Outcome.STEP_LIMIT if exhausted else None


def checked_until(until: float | str) -> float:
    if until == "steady-state":
        return math.inf
    if isinstance(until, str):
        raise ValueError(f"until: {until!r} is unknown; give a flow time or 'steady-state'")
    return float(finite_positive("until", until))


def masked_gradient(
    objective: Objective, rebuild: Callable[[Array], eqx.Module], allowed: Array
) -> Callable[[Array], Array]:
    """∇L in real coordinates, zero where masked."""
    return lambda vector: allowed * jax.grad(lambda v: objective(rebuild(v)).value)(vector)


@eqx.filter_jit
def _rate(objective: Objective, model: eqx.Module, vector: Array, allowed: Array) -> Array:
    """The fastest rate of the flow at `vector`."""
    _, rebuild = real_vector(model)
    return curvature(masked_gradient(objective, rebuild, allowed), vector)


@eqx.filter_jit
def _norm(objective: Objective, model: eqx.Module, vector: Array, allowed: Array) -> Array:
    """‖∇L‖₂."""
    _, rebuild = real_vector(model)
    return jnp.linalg.norm(masked_gradient(objective, rebuild, allowed)(vector))


@eqx.filter_jit
def _sizes(objective: Objective, model: eqx.Module, vector: Array, allowed: Array) -> tuple[Array, Array]:
    """Sizes of the gradient and of the weights, matrix by matrix."""
    _, rebuild = real_vector(model)
    slope = masked_gradient(objective, rebuild, allowed)(vector)
    return matrix_sizes(rebuild(slope)), matrix_sizes(rebuild(vector))


def segment(
    objective: Objective,
    model: eqx.Module,
    start: Array,
    allowed: Array,
    numbers: Array,
    solver: diffrax.AbstractSolver,
    length: int,
) -> tuple[Array, ...]:
    """At most `length` steps: times, points, last gradient norm and step size, code, accepted and rejected."""
    begin, end, step, bound, rtol, atol = numbers
    _, rebuild = real_vector(model)
    gradient = jax.jit(masked_gradient(objective, rebuild, allowed))  # traced once for all of its uses below
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: -gradient(y)),
        solver,
        begin,
        end,
        step,
        start,
        saveat=diffrax.SaveAt(steps=True),
        stepsize_controller=diffrax.PIDController(rtol, atol),
        max_steps=length,
        event=diffrax.Event(rest_event(gradient, rebuild, bound)),
        adjoint=diffrax.ForwardMode(),  # loops that keep nothing for a way back are traced in half the time
        throw=False,
    )
    accepted = solution.stats["num_accepted_steps"]
    last = jnp.maximum(accepted - 1, 0)
    norm = jnp.linalg.norm(
        gradient(jnp.where(accepted > 0, solution.ys[last], start))
    )  # at rest from the start
    before = jnp.where(accepted > 1, solution.ts[jnp.maximum(last - 1, 0)], begin)
    result = solution.result
    code = jnp.select(
        [
            result == diffrax.RESULTS.event_occurred,
            result == diffrax.RESULTS.successful,
            result == diffrax.RESULTS.max_steps_reached,
        ],
        [_AT_REST, _AT_TIME, _RUNNING],
        _FAILED,
    )
    rejected = solution.stats["num_rejected_steps"]
    return solution.ts, solution.ys, norm, solution.ts[last] - before, code, accepted, rejected


_segment = eqx.filter_jit(segment)
