"""Gradient flows of one structure to given times, advanced together by one compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import finite_positive, integer_at_least
from mesascope.objectives import Engine, Objective, Task, objective_of

from ._flow import LONGEST_SEGMENT, SEGMENT_BYTES, Flow, SavedPath, masked_gradient, outcome_of, segment
from ._outcome import Outcome
from ._parameters import Mask, mask_vector, real_vector
from ._rest import curvature, smallest_matrix

Model = TypeVar("Model", bound=eqx.Module)


def gradient_flows(
    models: Sequence[Model],
    processes: Sequence[Any],
    tasks: Sequence[Task],
    times: Sequence[float],
    *,
    engine: Engine | None = None,
    mask: Mask | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-12,
    max_steps: int = 200_000,
    saves: int = 512,
) -> list[Flow[Model]]:
    """Solve n gradient flows θ' = −∇L(θ), each on data of its own and to a time of its own, by one vectorized program.

    Every flow takes steps of its own size, as `gradient_flow` would: to the tolerance of the solver the ends are the same. The
    last bits depend on how many flows there are, as sums are vectorized, and all wait for the one that needs the most steps.
    Nothing is tightened on the way, which only a flow to rest needs.

    Args:
        models: the n starts.
        processes: what generates the data of each; the objectives need one structure, as of one kind of law in one dimension.
        tasks: horizon and weights of the context lengths, or number of examples, of each.
        times: n flow times > 0.
        engine: how the expectations are computed; `ExactMoments()` by default.
        mask: entries whose gradient is masked (see `Mask`).
        solver: any diffrax solver; `diffrax.Tsit5()` by default.
        rtol: relative local error allowed per step; the absolute one is that of `gradient_flow`.
        max_steps: limit on the steps of each, accepted and rejected.
        saves: how many points of each path to keep at most.

    Returns:
        The n flows; one that diverges, or does not get there within max_steps, says so by itself.

    Raises:
        ValueError: there is none, the numbers of arguments differ, or two flows are of different structure; as for
            `gradient_flow` otherwise.
        KeyboardInterrupt: Ctrl-C; nothing is kept.
    """
    counts = {len(models), len(processes), len(tasks), len(times)}
    if len(counts) != 1 or counts == {0}:
        raise ValueError(
            "models, processes, tasks, times: must be equally many, at least one, got "
            f"{len(models)}, {len(processes)}, {len(tasks)} and {len(times)}"
        )
    limits = np.array([finite_positive(f"times[{i}]", time) for i, time in enumerate(times)], float)
    finite_positive("rtol", rtol)
    integer_at_least("max_steps", max_steps, 1)
    integer_at_least("saves", saves, 2)
    objectives = [
        objective_of(model, process, task, engine)
        for model, process, task in zip(models, processes, tasks, strict=True)
    ]
    together = _stacked("objectives", objectives)
    _stacked("models", models)
    allowed = mask_vector(models[0], mask)
    atol = np.array([1e-3 * rtol * smallest_matrix(model) for model in models])
    starts = np.stack([np.asarray(real_vector(model)[0]) for model in models])
    lanes, stepper = [_Lane(start, saves) for start in starts], solver or diffrax.Tsit5()
    longest = max(1, min(LONGEST_SEGMENT, SEGMENT_BYTES // (8 * starts.size)))
    rates = np.asarray(_rates(together, models[0], jnp.asarray(starts), allowed))
    steps = np.divide(0.01, rates, out=np.ones_like(rates), where=rates > 0)
    taken = 0
    while any(going := [lane.result is None for lane in lanes]):
        # flows that have ended stand still: from where they are to where they are
        begin = np.array([lane.path.end for lane in lanes])
        end = np.where(going, limits, begin)
        numbers = np.stack([begin, end, steps, np.full_like(end, -1), np.full_like(end, rtol), atol], axis=1)
        length = min(longest, max_steps - taken)
        taken += length  # by every flow that goes on
        starts = np.stack([lane.path.last for lane in lanes])
        where = jnp.asarray(starts), allowed, jnp.asarray(numbers)
        solved = _segments(together, models[0], *where, stepper, length)
        *parts, last, codes, accepted, rejected = jax.device_get(solved)
        steps = np.where(going, last, 1.0)
        for lane, *part in zip(lanes, *parts, codes, accepted, rejected, strict=True):
            if lane.result is None:
                lane.advance(*part, exhausted=taken >= max_steps)
    return [
        lane.flow(model, objective) for lane, model, objective in zip(lanes, models, objectives, strict=True)
    ]


class _Lane:
    """One of the flows."""

    def __init__(self, start: np.ndarray, saves: int) -> None:
        self.path = SavedPath(start, saves)
        self.result: Outcome | None = None
        self._norm = np.inf
        self._stats = {"steps": 0, "rejected": 0}

    def advance(
        self,
        times: np.ndarray,
        points: np.ndarray,
        norm: float,
        code: int,
        accepted: int,
        rejected: int,
        *,
        exhausted: bool,
    ) -> None:
        """Take down a segment."""
        self.path.extend(times, points)
        self._norm = float(norm)
        self._stats["steps"] += int(accepted)
        self._stats["rejected"] += int(rejected)
        self.result = outcome_of(int(code), self._norm, self.path.last, exhausted)

    def flow(self, model: Model, objective: Objective) -> Flow[Model]:
        """The flow, which has ended."""
        _, rebuild = real_vector(model)
        path, result = self.path, self.result or Outcome.STEP_LIMIT
        trajectory = rebuild(path.points())
        return Flow(rebuild(path.last), path.times(), trajectory, self._norm, result, self._stats, objective)


def _stacked(name: str, values: Sequence[Any]) -> Any:
    """Modules of one structure as one, its arrays stacked along a first axis.

    Raises:
        ValueError: names the first that is of another structure.
    """
    parts = [eqx.partition(value, eqx.is_array) for value in values]
    shapes = [jax.tree.map(lambda array: (np.shape(array), str(array.dtype)), one) for one, _ in parts]
    for i, (_, static) in enumerate(parts):
        if shapes[i] != shapes[0] or not eqx.tree_equal(static, parts[0][1]):
            raise ValueError(
                f"{name}[{i}]: is of another structure than the first; solve it by gradient_flow"
            )
    arrays = jax.tree.map(lambda *some: jnp.asarray(np.stack(some)), *[one for one, _ in parts])
    return eqx.combine(arrays, parts[0][1])


@eqx.filter_jit
def _rates(objectives: Objective, model: eqx.Module, starts: Array, allowed: Array) -> Array:
    """The fastest rate of every flow, shape (n,)."""
    _, rebuild = real_vector(model)
    arrays, static = eqx.partition(objectives, eqx.is_array)

    def one(own: Any, start: Array) -> Array:
        return curvature(masked_gradient(eqx.combine(own, static), rebuild, allowed), start)

    return jax.vmap(one)(arrays, starts)


@eqx.filter_jit
def _segments(
    objectives: Objective,
    model: eqx.Module,
    starts: Array,
    allowed: Array,
    numbers: Array,
    solver: diffrax.AbstractSolver,
    length: int,
) -> tuple[Array, ...]:
    """A segment of every flow, stacked."""
    arrays, static = eqx.partition(objectives, eqx.is_array)

    def one(own: Any, start: Array, numbers_of: Array) -> tuple[Array, ...]:
        return segment(eqx.combine(own, static), model, start, allowed, numbers_of, solver, length)

    return jax.vmap(one)(arrays, starts, numbers)
