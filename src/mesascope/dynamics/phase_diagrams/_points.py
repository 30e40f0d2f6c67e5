"""Axes and points of a phase diagram: what is solved at each point, and which points share a compiled program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Number
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import Array

from mesascope.core import finite_number, integer_at_least
from mesascope.models import LinearAttentionModel, normalizer_values
from mesascope.objectives import Engine, Objective, objective_of
from mesascope.processes import NextToken
from mesascope.specs import show

from .._parameters import real_vector, refuse_weights_not_finite, refuse_weights_too_small


@dataclass(frozen=True)
class PhaseAxis:
    """One axis.

    Attributes:
        name: of the dimension.
        values: what `make` receives.
        coordinates: the values, if all are numbers; otherwise a word for each.
    """

    name: str
    values: tuple[Any, ...]
    coordinates: np.ndarray


def checked_axes(axes: Any, taken: Sequence[str]) -> tuple[PhaseAxis, PhaseAxis]:
    """The two axes of a mapping from names to values.

    Raises:
        TypeError: for something that is not such a mapping.
        ValueError: for another number of axes, a name that is taken, and an axis without values, with one twice, or with a
            number that is not finite.
    """
    if not isinstance(axes, Mapping) or not all(isinstance(name, str) for name in axes):
        raise TypeError(
            f"axes: must be a mapping from names to values, such as {{'scale': [0.1, 1.0], 'horizon': [10, 20]}}, "
            f"got {show(axes)}"
        )
    if len(axes) != 2:
        raise ValueError(f"axes: a phase diagram has two, got {len(axes)}: {', '.join(axes) or 'none'}")
    first, second = (_axis(name, values, taken) for name, values in axes.items())
    return first, second


def _axis(name: str, values: Any, taken: Sequence[str]) -> PhaseAxis:
    if not name:
        raise ValueError("axes: a name is empty; name each axis")
    if name in taken:
        raise ValueError(f"axes: {show(name)} is the name of a result; choose another name")
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise TypeError(f"axes: {name} must be a sequence of values, got {show(values)}")
    given = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if not given:
        raise ValueError(f"axes: {name} has no values; give at least one")
    numeric = all(isinstance(value, Number) and not isinstance(value, bool) for value in given)
    if numeric:
        coordinates = np.array([float(finite_number(f"axes: {name}", value)) for value in given])
        if all(isinstance(value, int) for value in given):
            coordinates = np.array(given)
    else:
        coordinates = np.array([label(value) for value in given])
    if len(set(coordinates.tolist())) < len(given):
        twice = next(c for c in coordinates.tolist() if coordinates.tolist().count(c) > 1)
        raise ValueError(f"axes: {name} has {show(twice)} twice; give every value once")
    return PhaseAxis(name, given, coordinates)


def label(value: Any) -> str:
    """The description of a value, the same in every process."""
    if hasattr(value, "describe"):
        return str(value.describe())
    return str(getattr(value, "__qualname__", value))


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
        """The description of everything but the weights, the same in every process."""
        judged = self.test if isinstance(self.test, tuple) else (self.test,)
        normalizer = f"{label(self.start.normalizer)} {self._normalizers(judged)}"
        kind = f"{type(self.start).__name__}(dim={self.start.dim}, normalizer={normalizer})"
        parts = (kind, repr(self.process), repr(self.task), *(repr(part) for part in judged))
        return "; ".join(parts)

    def _normalizers(self, judged: tuple[Any, ...]) -> str:
        """A digest of ρ_t: functions of one name, or without one, can be different."""
        tasks = (part for part in (self.task, *judged) if isinstance(part, NextToken))
        lengths = np.arange(2, max(task.horizon for task in tasks))
        return hashlib.sha256(normalizer_values(self.start.normalizer, lengths).tobytes()).hexdigest()[:16]


Make = Callable[[Any, Any, Array], Any]


def starts(points: Sequence[PhasePoint]) -> np.ndarray:
    """The weights at all starts, NaN where others have more of them, shape (points, weights)."""
    vectors = [np.asarray(real_vector(point.start)[0], float) for point in points]
    longest = max(map(len, vectors))
    return np.stack([np.pad(one, (0, longest - len(one)), constant_values=np.nan) for one in vectors])


@contextmanager
def errors_at(place: str) -> Iterator[None]:
    """Begin errors of the block with the place in the diagram."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"make, at {place}: {error}") from error


def build_rows(make: Make, grid: tuple[PhaseAxis, PhaseAxis], key: Array) -> list[list[PhasePoint]]:
    """The points of the grid, one row for each value of the first axis.

    Raises:
        TypeError, ValueError: `make` raises them, or returns something else than a point; says for which values.
    """
    first, second = grid
    rows = []
    for row, value in enumerate(first.values):
        points = []
        for column, other in enumerate(second.values):
            with errors_at(place_of(grid, row, column)):
                points.append(_checked(make(value, other, key)))
        rows.append(points)
    return rows


def place_of(grid: tuple[PhaseAxis, PhaseAxis], row: int, column: int) -> str:
    """The values of both axes at a point."""
    pairs = zip(grid, (row, column), strict=True)
    return ", ".join(f"{axis.name} = {axis.coordinates[n]}" for axis, n in pairs)


def _checked(made: Any) -> PhasePoint:
    if not isinstance(made, tuple) or not 3 <= len(made) <= 4:
        raise TypeError(f"must return (start, process, task) or a PhasePoint, got {show(made)}")
    point = PhasePoint(*made)
    if not isinstance(point.start, LinearAttentionModel):
        raise TypeError(
            f"the start must be linear attention, such as LinearAttention.diagonal(3, 0.1, 0.1), got {show(point.start)}"
        )
    refuse_weights_not_finite(point.start)
    refuse_weights_too_small(point.start)
    # as arrays of numpy: every look at one of jax's is compiled or dispatched on its own
    point = point._replace(
        start=jax.tree.map(lambda leaf: np.asarray(leaf) if eqx.is_array(leaf) else leaf, point.start)
    )
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


def checked_workers(workers: int | None, rows: int, cores: int) -> int:
    """The number of rows that are solved at the same time."""
    wanted = cores if workers is None else integer_at_least("workers", workers, 1)
    return max(1, min(wanted, rows))
