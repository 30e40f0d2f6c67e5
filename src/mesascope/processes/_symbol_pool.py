"""Sequences of symbols whose tasks are those of a finite pool."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from ..specs import Count, Seed, SpecError, SpecTypeError, as_list, checked_at, kind, one_of, real, rows
from ._draw_once import require_room
from ._empirical import FileField
from ._pool import Pool
from ._probabilities import SUM_TOLERANCE
from ._samples import Samples
from ._symbol_process import SymbolProcess

if TYPE_CHECKING:
    from jaxtyping import Array, Int, PRNGKeyArray

_TOGETHER = 2**22  # symbols of sequences, for each of some tasks, whose probabilities are computed at once


def _probabilities(value: Any) -> Samples | None:
    """Return arrays, and lists of rows or of matrices, as samples."""
    if value is None or isinstance(value, Samples):
        return value
    array = np.asarray(value) if hasattr(value, "dtype") else np.array(_rows_or_matrices(value))
    if array.dtype.kind not in "iuf":
        raise SpecTypeError(f"must be real numbers, got an array of {array.dtype}")
    if array.ndim not in (2, 3) or array.size == 0:
        raise SpecError(f"must have shape (K, S) or (K, S, S), got {array.shape}")
    require_room(f"{len(array)} tasks", 8 * array.size)
    if where := _first(~np.isfinite(array)):
        raise SpecError(f"must be finite, got {array[where]}; remove the task", *where)
    return Samples(array)


def _first(wrong: np.ndarray) -> tuple[int, ...]:
    """Return the place of the first true entry; empty if there is none."""
    return tuple(map(int, np.argwhere(wrong)[0])) if wrong.any() else ()


def _rows_or_matrices(value: Any) -> list[Any] | tuple[Any, ...]:
    given = as_list(value)
    lists = list | tuple
    first = given[0] if isinstance(given, lists) and given else None
    if not (isinstance(first, lists) and first and isinstance(first[0], lists)):
        return rows(given, real)
    matrices = [checked_at(lambda one: rows(one, real), one, i) for i, one in enumerate(given)]
    sizes = [(len(one), len(one[0])) for one in matrices]
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            raise SpecError(f"has shape {size}, but task 0 has {sizes[0]}; give all tasks one shape", i)
    return matrices


@kind("symbol-pool", process={"kind": "urns", "symbols": 3}, tasks=16)
class SymbolPool(Pool, SymbolProcess):
    r"""Sequences of another process of symbols whose tasks are drawn from a pool of $K$ tasks, each with probability $1/K$.

    The pool is drawn once from the prior of the process, with a seed of its own, or is given. Symbols are new in every
    sequence. Sequences with new tasks are those of `pool.process` (wurgaft2025). `table` has the tasks.

    Args:
        process: a `SymbolProcess`: `MarkovChains`, `Urns`, or one of your own.
        tasks: the number $K \ge 1$ of tasks, drawn with `seed`.
        seed: the seed of the pool, ≥ 0.
        probabilities: instead of `tasks`, their probabilities, $p_1 \dots p_K$ of urns, shape `(K, S)`, or the transition
            matrices $\pi_1 \dots \pi_K$ of Markov chains, shape `(K, S, S)`; rows have the sum 1 up to 1e-12.
        file: instead of `tasks`, a .npy or .csv file of them; the rows of matrices may stand below each other, shape
            `(K S, S)`. In a specification a relative path starts at its folder.
    """

    given: ClassVar[str] = "probabilities"
    file_axes: ClassVar[int] = 3

    process: Annotated[SymbolProcess, *one_of("process")]
    tasks: Count | None = None
    seed: Seed = 0
    probabilities: Annotated[
        Samples | None,
        PlainValidator(_probabilities),
        PlainSerializer(lambda given: given and given.tolist()),
    ] = None
    file: FileField = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._check_process(SymbolProcess, "markov-chains or urns")
        source = self._take_source()
        if self.probabilities is not None:
            self._check_probabilities(source)

    def _check_probabilities(self, path: str) -> None:
        if self.task_shape is None:
            raise SpecError("are of urns and Markov chains; give tasks for another process", path)
        if path == "file":
            self._stack_rows()
        shape, wanted = self.probabilities.shape, self.task_shape  # type: ignore[union-attr]
        if shape[1:] != wanted:
            form = f"(K, {', '.join(map(str, wanted))})"
            what = "the probabilities" if len(wanted) == 1 else "the transition matrix"
            raise SpecError(f"must have shape {form}, {what} of each task, got {shape}", path)
        if where := _first(self.table < 0):
            raise SpecError(f"must not be negative, got {self.table[where]:g}", path, *where)
        totals = self.table.sum(-1)
        if where := _first(abs(totals - 1) > SUM_TOLERANCE):
            what = f"must sum to 1, not {totals[where]:.15g}; divide the row by its sum, in double precision"
            raise SpecError(what, path, *where)

    def _stack_rows(self) -> None:
        """Read the rows of all matrices, one below the other, as matrices."""
        rows, size = self.probabilities.table, self.symbols  # type: ignore[union-attr]
        if len(self.task_shape or ()) == 2 and rows.shape[1] == size and len(rows) % size == 0:
            object.__setattr__(self, "probabilities", Samples(rows.reshape(-1, size, size)))

    @property
    def symbols(self) -> int:
        """The number of symbols S."""
        return int(self.process.symbols)

    @property
    def task_shape(self) -> tuple[int, ...] | None:
        """The shape of one task, if it is given by probabilities."""
        return self.process.task_shape

    @property
    def _given_shape(self) -> tuple[int, ...]:
        return (self.size, *(self.task_shape or ()))

    @property
    def probabilities_of_tasks(self) -> np.ndarray | None:
        """The probabilities of all tasks with which `identify` compares models, shape (K, S) or (K, S, S).

        None for other tasks, and for more than `max_compared`.
        """
        given = self.task_shape is not None and self.size <= self.max_compared
        return np.asarray(self.table) if given else None

    def sequences_of(self, key: PRNGKeyArray, tasks: Any, horizon: int) -> Int[Array, "batch horizon"]:
        """Draw one sequence for each task, as the process does."""
        return self.process.sequences_of(key, tasks, horizon)

    def probabilities_of(self, sequences: np.ndarray) -> np.ndarray | None:
        """Return the probability of each of the sequences, shape (n, T) → (n,): the mean over the pool; None if unknown."""
        import jax

        found, together = np.zeros(len(sequences)), max(1, _TOGETHER // max(1, sequences.size))
        for start in range(0, self.size, together):
            tasks = jax.tree.map(lambda array, at=start: np.asarray(array[at : at + together]), self.table)
            given = self.process.probabilities_given(sequences, tasks)
            if given is None:
                return None
            found += given.sum(0)
        return found / self.size
