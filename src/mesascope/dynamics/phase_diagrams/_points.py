"""The points of a phase diagram: what is solved at each, and which of them share a compiled program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import integer_at_least
from mesascope.models import LinearAttentionModel, normalizer_values
from mesascope.objectives import Engine, Objective, objective_of
from mesascope.processes import NextToken

from .._parameters import real_vector, refuse_weights_not_finite
from ._axes import PhaseAxis, words


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
        normalizer = f"{words(self.start.normalizer)} {self._normalizers(judged)}"
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
def said_of(place: str) -> Iterator[None]:
    """Errors inside begin with the place in the diagram."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"make, at {place}: {error}") from error


def made_rows(make: Make, grid: tuple[PhaseAxis, PhaseAxis], key: Array) -> list[list[PhasePoint]]:
    """The points of the grid, one row for each value of the first axis.

    Raises:
        TypeError, ValueError: `make` raises them, or returns something else than a point; says for which values.
    """
    first, second = grid
    rows = []
    for row, value in enumerate(first.values):
        points = []
        for column, other in enumerate(second.values):
            with said_of(place_of(grid, row, column)):
                points.append(_checked(make(value, other, key)))
        rows.append(points)
    return rows


def place_of(grid: tuple[PhaseAxis, PhaseAxis], row: int, column: int) -> str:
    """The values of both axes at a point."""
    pairs = zip(grid, (row, column), strict=True)
    return ", ".join(f"{axis.name} = {axis.coordinates[n]}" for axis, n in pairs)


def _checked(made: Any) -> PhasePoint:
    if not isinstance(made, tuple) or not 3 <= len(made) <= 4:
        raise TypeError(f"must return (start, process, task) or a PhasePoint, got {made!r}")
    point = PhasePoint(*made)
    if not isinstance(point.start, LinearAttentionModel):
        raise TypeError(
            f"the start must be linear attention, such as LinearAttention.diagonal(3, 0.1, 0.1), got {point.start!r}"
        )
    refuse_weights_not_finite(point.start)
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


def by_structure(problems: list[Problem]) -> list[list[int]]:
    """Which problems differ in numbers only: their places, group by group."""
    groups: dict[Any, list[int]] = {}
    for place, problem in enumerate(problems):
        leaves, structure = jax.tree.flatten(problem)
        kinds = tuple((leaf.shape, str(leaf.dtype)) if hasattr(leaf, "dtype") else leaf for leaf in leaves)
        groups.setdefault((structure, kinds), []).append(place)
    return list(groups.values())


def stacked(problems: list[Problem]) -> Problem:
    """Problems of one structure as one, its arrays stacked along a first axis."""
    first, *others = problems
    return jax.tree.map(_stack, first, *others)


def _stack(*leaves: Any) -> Any:
    if not hasattr(leaves[0], "dtype"):
        return leaves[0]
    if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        return jnp.stack(leaves)
    return np.stack([np.asarray(leaf) for leaf in leaves])


def checked_workers(workers: int | None, rows: int, cores: int) -> int:
    """How many rows are solved at a time."""
    wanted = cores if workers is None else integer_at_least("workers", workers, 1)
    return max(1, min(wanted, rows))
