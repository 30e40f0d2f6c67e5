"""The points of a phase diagram: what is solved at each, and which of them share a compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import Array

from mesascope.core import integer_at_least
from mesascope.models import LinearAttentionModel
from mesascope.objectives import Engine, Objective, objective_of
from mesascope.processes import NextToken

from ._parameters import real_vector, refuse_weights_not_finite
from ._phase_axes import PhaseAxis, words


class PhasePoint(NamedTuple):
    """What `make` of a phase diagram returns for one pair of values; a tuple (start, process, task) will do.

    Attributes:
        start: the weights from which the flow starts.
        process: what generates the sequences.
        task: horizon and weights of the context lengths.
        test: what the end is judged by: another task, such as `NextToken.last(100)`, or a pair (process, task); None: nothing.
    """

    start: Any
    process: Any
    task: NextToken
    test: Any = None

    def describe(self) -> str:
        """All but the weights, in words that are the same in every process."""
        judged = self.test if isinstance(self.test, tuple) else (self.test,)
        normalizer = words(self.start.normalizer)
        kind = f"{type(self.start).__name__}(dim={self.start.dim}, normalizer={normalizer})"
        parts = (kind, repr(self.process), repr(self.task), *(repr(part) for part in judged))
        return "; ".join(parts)

    def size(self) -> tuple[float, float]:
        """Norm and sum of the weights at the start."""
        vector = np.asarray(real_vector(self.start)[0], float)
        return float(np.linalg.norm(vector)), float(vector.sum())


Make = Callable[[Any, Any, Array], Any]


def made_row(make: Make, axes: tuple[PhaseAxis, PhaseAxis], row: int, key: Array) -> list[PhasePoint]:
    """The points at one value of the first axis.

    Raises:
        TypeError, ValueError: `make` returns something else than a point; says for which values.
    """
    first, second = axes
    value = first.values[row]
    points = []
    for other in second.values:
        place = f"at {first.name} = {words(value)}, {second.name} = {words(other)}"
        try:
            points.append(_checked(make(value, other, key)))
        except (TypeError, ValueError) as error:
            raise type(error)(f"make, {place}: {error}") from error
    return points


def _checked(made: Any) -> PhasePoint:
    if not isinstance(made, tuple) or not 3 <= len(made) <= 4:
        raise TypeError(f"must return (start, process, task) or a PhasePoint, got {made!r}")
    point = PhasePoint(*made)
    if not isinstance(point.start, LinearAttentionModel):
        raise TypeError(
            f"the start must be linear attention, such as LinearAttention.diagonal(3, 0.1, 0.1), got {point.start!r}"
        )
    refuse_weights_not_finite(point.start)
    process = point.test[0] if isinstance(point.test, tuple) else point.process
    for what, its in (("process", point.process), ("process of the test", process)):
        if getattr(its, "dim", point.start.dim) != point.start.dim:
            raise ValueError(
                f"the start has dim {point.start.dim}, the {what} dim {its.dim}; make them equal"
            )
    return point


class Problem(NamedTuple):
    """What is solved at a point, as data."""

    objective: Objective
    test: Objective | None
    start: eqx.Module


def problem_of(point: PhasePoint, engine: Engine | None) -> Problem:
    """The objectives of a point.

    Raises:
        TypeError, ValueError: from the engine.
    """
    objective = objective_of(point.start, point.process, point.task, engine)
    if point.test is None:
        return Problem(objective, None, point.start)
    process, task = point.test if isinstance(point.test, tuple) else (point.process, point.test)
    return Problem(objective, objective_of(point.start, process, task, engine), point.start)


def by_structure(problems: list[Problem]) -> list[list[int]]:
    """Which problems differ in numbers only: their places, group by group."""
    groups: dict[Any, list[int]] = {}
    for place, problem in enumerate(problems):
        leaves, structure = jax.tree.flatten(problem)
        kinds = tuple(
            (np.shape(leaf), np.result_type(leaf)) if eqx.is_array_like(leaf) else leaf for leaf in leaves
        )
        groups.setdefault((structure, kinds), []).append(place)
    return list(groups.values())


def stacked(problems: list[Problem]) -> Problem:
    """Problems of one structure as one, its arrays stacked along a first axis."""
    first, *_ = problems
    return jax.tree.map(
        lambda *leaves: (
            np.stack([np.asarray(leaf) for leaf in leaves]) if eqx.is_array(leaves[0]) else leaves[0]
        ),
        first,
        *problems[1:],
    )


def checked_workers(workers: int | None, rows: int, cores: int) -> int:
    """How many rows are solved at a time."""
    wanted = cores if workers is None else integer_at_least("workers", workers, 1)
    return max(1, min(wanted, rows))
