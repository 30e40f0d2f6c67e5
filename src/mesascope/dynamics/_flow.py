"""Gradient flow θ' = −∇L(θ): where training goes, solved as an ordinary differential equation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Progress, below_one, finite_positive, integer_at_least, shows_progress
from mesascope.objectives import Engine, Objective, Task, losses, objective_of
from mesascope.records import Figure, Printed

from ._integrate import (
    AT_TIME,
    FAILED,
    STEADY,
    Bounds,
    Segment,
    checked_solver,
    checked_until,
    integrate,
    masked_gradient,
)
from ._outcome import Outcome
from ._parameters import Mask, mask_vector, real_vector, refuse_weights_too_small
from ._rodas4 import Rodas4
from ._saved_path import describe_path, draw_path, products_along
from ._steady_state import Survey, survey

Model = TypeVar("Model", bound=eqx.Module)
SEGMENT_BYTES = 2**25
LONGEST_SEGMENT = 2048
_SHARPEST = 1e-4
_IMPLICIT = 512  # weights whose Jacobian is cheap
_COARSE = 1e-8  # local errors near the end of a flow
_ENDS = {STEADY: Outcome.CONVERGED, AT_TIME: Outcome.FINISHED}


class Flow(Printed, eqx.Module, Generic[Model]):
    """A solved gradient flow; `ms.plot` draws it.

    Attributes:
        model: the model at the end.
        times: flow time of every saved point, shape (n,), from 0 on.
        trajectory: a model whose weights carry the saved points on their first axis, shape (n, …).
        gradient_norm: ‖∇L‖₂ at the end, over the entries that are not masked.
        result: how the flow ended; `result.message` names the remedy where one is needed.
        stats: accepted and rejected solver steps.
        task: which predictions count in the loss.
    """

    model: Model
    times: np.ndarray
    trajectory: Model
    gradient_norm: float
    result: Outcome
    stats: dict[str, int]
    objective: Objective
    task: Task

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
        return losses(self.objective, self.trajectory)

    @property
    def products(self) -> np.ndarray:
        """a_j b_j of linear attention at every saved point, shape (n, d); AttributeError for other models."""
        return products_along(self)

    def figure(self) -> Figure:
        """The loss and, for linear attention, the products, until both are settled."""
        return draw_path(self, "flow time", self.times)

    def _explained(self) -> tuple[str, str]:
        return "meaning", self.result.message

    def _printed(self) -> tuple[str, dict[str, str]]:
        return describe_path(self, f"time {self.time:.6g}")


@shows_progress
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
    progress: Callable[[Progress], None] | None = None,
) -> Flow[Model]:
    """Solve θ' = −∇L(θ) from the weights of `model`, for a given time or until the gradient vanishes.

    The flow is in a steady state when ‖∂L/∂W‖ ≤ 2 · tolerance · N_W for every weight matrix W (norms are largest
    entries). N_W is the change of ∂L/∂W, to first order, under random changes of all matrices by up to their own norms,
    the largest of eight: a test in units of the landscape, for data of every scale and matrices of any sizes. It is first
    made where ‖∂L/∂W‖ ≤ tolerance · λ · ‖W‖ for all W, λ being the largest curvature at the start. The largest entry of
    ∂L/∂W decides: entries of W that are small, or change slowly, may still change relative to their own size. A saddle is
    a steady state too, for a flow that starts exactly on it. Near a stiff minimum the errors of an explicit solver keep
    the gradient above any bound: when a whole segment of steps towards a steady state does not bring it down, rtol and
    atol are tightened a hundredfold; when that does not help either, up to 512 weights go on with `Rodas4` and local
    errors of 1e-8, if no solver was given.

    Args:
        model: the start, e.g. `LinearAttention.diagonal(5, 0.1, 0.1)`.
        process: what generates the sequences, or prompts.
        task: horizon and weights of the context lengths, or number of examples.
        engine: how the expectation is computed; `ExactMoments()` by default.
        until: flow time > 0, or `"steady-state"`.
        mask: entries whose gradient is masked (see `Mask`).
        solver: any explicit or implicit diffrax solver; `diffrax.Tsit5()` by default. For flows that rest at saddles for long,
            `Rodas4()` with rtol = 1e-6 takes hundreds of steps instead of tens of thousands.
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
    rtol = below_one("rtol", rtol)
    if atol is not None:
        atol = float(finite_positive("atol", atol))
    given, solver = solver, checked_solver(solver, diffrax.Tsit5())
    tolerance = below_one("tolerance", tolerance)
    integer_at_least("max_steps", max_steps, 1)
    integer_at_least("saves", saves, 2)
    objective = objective_of(model, process, task, engine)
    refuse_weights_too_small(model)
    allowed = mask_vector(model, mask)
    start = np.asarray(real_vector(model)[0], jnp.result_type(float))  # also from weights in low precision
    path, sharpness = Path(start, saves), 1.0
    rows = segment_rows(start.size)
    here = None
    try:
        here = jax.device_get(_survey(objective, model, start, allowed))
        slope, steep, step = here.slope, here.steepness, here.first_step
        rates = np.full_like(here.rates, here.rate)
        if atol is None:
            atol = here.atol(rtol)
        while not path.ended:
            bound = tolerance * rates if limit == math.inf else np.full_like(rates, -1.0)
            bounds = Bounds(path.end, limit, step, bound, rtol * sharpness, atol * sharpness)
            bounds = Bounds(*map(np.asarray, bounds))
            left = np.asarray(min(rows, max_steps - path.taken))
            solved = _segment(objective, model, path.last, allowed, bounds, slope, steep, solver, left, rows)
            solved, before = jax.device_get(solved), path.gradient_norm
            path.extend(solved, max_steps)
            slope, steep, step = solved.slope, np.full_like(rates, np.inf), path.last_step or step
            if limit == math.inf and path.gradient_norm > before / 2:
                if sharpness > _SHARPEST:
                    sharpness /= 100
                elif given is None and start.size <= _IMPLICIT:
                    solver, sharpness = Rodas4(), max(1.0, _COARSE / rtol)
            if path.result is Outcome.CONVERGED:
                # the landscape may be flatter here than where it was surveyed: steady in its own units counts
                here = jax.device_get(_survey(objective, model, path.last, allowed))
                rates = here.rates
                if (here.steepness > 2 * tolerance * rates).any():
                    path.result = None
            if progress is not None:
                progress(
                    Progress(path.steps, values={"flow time": path.end, "gradient norm": path.gradient_norm})
                )
    except KeyboardInterrupt:
        path.result = Outcome.INTERRUPTED
        if not path.taken:  # interrupted before the end of the first segment, which gives the gradient
            here = _survey(objective, model, start, allowed) if here is None else here
            path.gradient_norm = _norm(here.slope)
    return path.flow(model, objective, task)


class Path:
    """A flow while it is solved: its result and its saved points; of too many points every second one is dropped."""

    def __init__(self, first: np.ndarray, saves: int):
        self._times, self._points, self._saves = [0.0], [first], saves
        self._stride = 1
        self.end, self.last, self.last_step = 0.0, first, 0.0
        self.steps, self.rejected = 0, 0
        self.gradient_norm = math.inf
        self.result: Outcome | None = None

    @property
    def ended(self) -> bool:
        """Whether there is a result."""
        return self.result is not None

    @property
    def taken(self) -> int:
        """Solver steps, accepted and rejected."""
        return self.steps + self.rejected

    def extend(self, segment: Segment, max_steps: int) -> None:
        """Add a segment; `result` is how the flow ended with it, None if it continues."""
        count = int(segment.accepted)
        for time, point in zip(*(record[:count] for record in segment.records), strict=True):
            if not np.isfinite(time):
                break
            self.steps += 1
            self._add(float(time), point)
        self.rejected += int(segment.rejected)
        self.gradient_norm = _norm(segment.slope)
        self.result = self._outcome(int(segment.code), max_steps)

    def _add(self, time: float, point: np.ndarray) -> None:
        self.end, self.last, self.last_step = time, point, time - self.end
        if self.steps % self._stride == 0:
            self._times.append(time)
            self._points.append(point)
        if len(self._times) >= self._saves:
            self._times, self._points = self._times[::2], self._points[::2]
            self._stride *= 2

    def _outcome(self, code: int, max_steps: int) -> Outcome | None:
        if code == FAILED or not (math.isfinite(self.gradient_norm) and np.isfinite(self.last).all()):
            return Outcome.DIVERGED
        if code in _ENDS:
            return _ENDS[code]
        return Outcome.STEP_LIMIT if self.taken >= max_steps else None

    def flow(self, model: Model, objective: Objective, task: Task) -> Flow[Model]:
        """The flow, which has ended."""
        _, rebuild = real_vector(model)
        times, points = self._times, self._points
        if times[-1] != self.end:
            times, points = [*times, self.end], [*points, self.last]
        return Flow(
            rebuild(self.last),
            np.array(times),
            rebuild(np.stack(points)),
            self.gradient_norm,
            self.result or Outcome.STEP_LIMIT,
            {"steps": self.steps, "rejected": self.rejected},
            objective,
            task,
        )


def segment_rows(size: int) -> int:
    """The number of points, of `size` numbers each, that a segment records."""
    return max(1, min(LONGEST_SEGMENT, SEGMENT_BYTES // (8 * size)))


@eqx.filter_jit
def _survey(objective: Objective, model: eqx.Module, vector: Any, allowed: Array) -> Survey:
    _, rebuild = real_vector(model)
    return survey(masked_gradient(objective, rebuild, allowed), rebuild, vector)


def segment(
    objective: Objective,
    model: eqx.Module,
    start: Any,
    allowed: Array,
    bounds: Bounds,
    slope: Any,
    steep: Any,
    solver: diffrax.AbstractSolver,
    max_steps: Any,
    rows: int,
) -> Segment:
    """At most `max_steps` steps from `start`; records are times and points."""
    _, rebuild = real_vector(model)
    gradient = masked_gradient(objective, rebuild, allowed)
    return integrate(
        gradient,
        rebuild,
        start,
        slope,
        steep,
        bounds,
        solver,
        max_steps,
        record=lambda time, point, slope: (time, point),
        rows=rows,
    )


_segment = eqx.filter_jit(segment)


def _norm(slope: Any) -> float:
    """Return ‖∇L‖₂, infinite where its square exceeds double precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.norm(slope))
