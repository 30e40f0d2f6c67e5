"""Gradient flows of one structure to given times, advanced together by one compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import diffrax
import equinox as eqx
import jax
import numpy as np
from jax import Array

from mesascope.core import below_one, finite_positive, integer_at_least
from mesascope.objectives import Engine, Objective, Task, objective_of

from ._flow import Flow, Path, segment, segment_rows
from ._integrate import Bounds, Segment, checked_solver, masked_gradient
from ._parameters import Mask, by_structure, mask_vector, real_vector, refuse_weights_too_small, stacked
from ._steady_state import Survey, survey

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
    """Solve n gradient flows θ' = −∇L(θ), each with its own data and end time, by one vectorized program.

    Every flow takes steps of its own size, as `gradient_flow` would: to the tolerance of the solver the ends are the same. The
    last bits depend on how many flows there are, as sums are vectorized, and all wait for the one that needs the most steps.
    Nothing is tightened on the way, which only a flow to a steady state needs.

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
    rtol = below_one("rtol", rtol)
    integer_at_least("max_steps", max_steps, 1)
    integer_at_least("saves", saves, 2)
    objectives = [
        objective_of(model, process, task, engine)
        for model, process, task in zip(models, processes, tasks, strict=True)
    ]
    for model in models:
        refuse_weights_too_small(model)
    together = _stacked("objectives", objectives)
    _stacked("models", models)
    allowed = mask_vector(models[0], mask)
    solver = checked_solver(solver, diffrax.Tsit5())
    paths = [Path(np.asarray(real_vector(model)[0]), saves) for model in models]
    points = np.stack([path.last for path in paths])
    rows = segment_rows(points.size)
    begin = jax.device_get(_surveys(together, models[0], points, allowed))
    slopes, steeps, steps = begin.slope, begin.steepness, begin.first_step
    while any(going := [not path.ended for path in paths]):
        # flows that have ended get an empty interval of time
        now = np.array([path.end for path in paths])
        ends = np.where(going, limits, now)
        bounds = Bounds(now, ends, steps, np.full_like(now, -1), np.full_like(now, rtol), begin.atol(rtol))
        left = np.array([min(rows, max_steps - path.taken) for path in paths])
        points = np.stack([path.last for path in paths])
        lanes = points, bounds, slopes, steeps, left
        solved = jax.device_get(_segments(together, models[0], allowed, lanes, solver, rows))
        slopes = solved.slope
        for i, path in enumerate(paths):
            if not path.ended:
                path.extend(jax.tree.map(lambda all_, i=i: all_[i], solved), max_steps)
        steps = np.array([path.last_step or step for path, step in zip(paths, steps, strict=True)])
    return [
        path.flow(model, objective, task)
        for path, model, objective, task in zip(paths, models, objectives, tasks, strict=True)
    ]


def _stacked(name: str, values: Sequence[Any]) -> Any:
    """Stack modules of equal structure.

    Raises:
        ValueError: names the first that is of another structure.
    """
    _, *others = by_structure(values)
    if others:
        raise ValueError(
            f"{name}[{others[0][0]}]: is of another structure than the first; solve it by gradient_flow"
        )
    return stacked(values)


@eqx.filter_jit
def _surveys(objectives: Objective, model: eqx.Module, vectors: Any, allowed: Array) -> Survey:
    """The landscape around the start of every flow, stacked."""
    _, rebuild = real_vector(model)
    arrays, static = eqx.partition(objectives, eqx.is_array)

    def one(own: Any, vector: Array) -> Survey:
        return survey(masked_gradient(eqx.combine(own, static), rebuild, allowed), rebuild, vector)

    return jax.vmap(one)(arrays, vectors)


@eqx.filter_jit
def _segments(
    objectives: Objective,
    model: eqx.Module,
    allowed: Array,
    lanes: tuple[Any, ...],
    solver: diffrax.AbstractSolver,
    rows: int,
) -> Segment:
    """A segment of every flow, stacked."""
    arrays, static = eqx.partition(objectives, eqx.is_array)

    def one(own: Any, start: Array, *more: Any) -> Segment:
        bounds, slope, steep, left = more
        whole = eqx.combine(own, static)
        return segment(whole, model, start, allowed, bounds, slope, steep, solver, left, rows)

    return jax.vmap(one)(arrays, *lanes)
