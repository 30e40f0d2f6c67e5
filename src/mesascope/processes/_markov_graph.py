"""Discrete sequences with a latent causal graph in which a position has several parents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from ..core import integer_at_least
from ..specs import (
    Number,
    SpecError,
    SpecTypeError,
    as_list,
    checked_at,
    in_file_form,
    integer,
    kind,
    show,
    show_number,
)
from ._alphabet import Concentration, Symbols
from ._symbol_process import SymbolProcess, urn_probabilities

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int, PRNGKeyArray

_MAX_ROWS = 2**20  # rows of probabilities of one sequence
_MAX_POSITIONS = 2**12
ParentSets: TypeAlias = tuple[tuple[int, ...], ...]
"""The indices of the parents for each position of a sequence; none for a root."""


def _graph(value: Any) -> ParentSets:
    given = as_list(value)
    if not isinstance(given, list | tuple):
        raise SpecTypeError(f"must be a list that gives the parents of every position, got {show(given)}")
    if not 3 <= len(given) <= _MAX_POSITIONS:
        raise SpecError(f"must list 3 to {_MAX_POSITIONS} positions, got {len(given)}")
    return tuple(checked_at(partial(_parents, child=i), parents, i) for i, parents in enumerate(given))


def _parents(value: Any, child: int) -> tuple[int, ...]:
    given = as_list(value)
    if not isinstance(given, list | tuple):
        raise SpecTypeError(f"must be a list of earlier positions, empty for a root, got {show(given)}")
    parents = tuple(checked_at(integer, parent, k) for k, parent in enumerate(given))
    if child == 0 and parents:
        raise SpecError("must be empty, since nothing is before position 0")
    for k, parent in enumerate(parents):
        if not 0 <= parent < child:
            raise SpecError(f"must be an earlier position, 0 to {child - 1}, got {parent}", k)
    if len(set(parents)) < len(parents):
        raise SpecError(f"must be different positions, got {show(list(parents))}")
    return parents


@kind("markov-graph", parents=[[], [], [0, 1], [1, 2], [2, 3]])
class MarkovGraph(SymbolProcess):
    r"""Sequences of symbols in which every position depends on several earlier positions, the same in all sequences.

    For every sequence and every number $k \ge 1$ of parents that occurs, a table $\pi_k$ is drawn, its $S^k$ rows independent
    and Dirichlet($\alpha, \dots, \alpha$). Position $i$ with the parents $p_1(i), \dots, p_k(i)$ takes
    $s_i \sim \pi_k(s_{p_1(i)}, \dots, s_{p_k(i)}, \cdot)$; roots, which have none, are uniform. With
    $p(i) = (i - 2, i - 1)$ these are Markov chains of order 2.

    Args:
        parents: for each position of a sequence, the last included, the list of its parents, counted from 0, in the order in
            which the table reads them; empty for a root. Sequences of a smaller horizon are the beginnings of these.
        symbols: the number $S$ of symbols; all tables together have at most 2²⁰ rows.
        concentration: the parameter $\alpha$ of the Dirichlet prior (0.1 in the paper), between 1e-30 and 1e30.

    Source: nichani2024 (the authors' `problems.py`, `InContextDAG`).
    """

    parents: Annotated[ParentSets, PlainValidator(_graph), PlainSerializer(in_file_form)]
    symbols: Symbols = 3
    concentration: Concentration = 1

    def __post_init__(self) -> None:
        most = max(map(len, self.parents))
        if self.symbols**most > _MAX_ROWS or self.rows > _MAX_ROWS:
            raise SpecError(
                f"{most} parents of {self.symbols} symbols have more than {_MAX_ROWS} rows; take fewer of either",
                "parents",
            )

    @classmethod
    def chain(cls, horizon: int, symbols: int, concentration: Number | str, order: int) -> Self:
        """Return Markov chains of an order ≥ 1: sequences of `horizon` symbols, the first `order` of them roots."""
        length, order = integer_at_least("horizon", horizon, 3), integer_at_least("order", order, 1)
        if length > _MAX_POSITIONS:
            raise ValueError(f"horizon: must be at most {_MAX_POSITIONS}, got {length}")
        if order >= length:
            raise ValueError(
                f"order: must be below the horizon {length}, or nothing has parents, got {order}"
            )
        graph = tuple(tuple(range(i - order, i)) if i >= order else () for i in range(length))
        return cls(graph, symbols, concentration)

    @property
    def positions(self) -> int:
        """The largest number of symbols in a sequence."""
        return len(self.parents)

    @property
    def rows(self) -> int:
        """The number of rows of all tables, one after another."""
        return sum(self.symbols**count for count in self._counts())

    @property
    def task_numbers(self) -> int:
        """The numbers in one task."""
        return self.rows * self.symbols

    def adjacency(self) -> np.ndarray:
        """Return the graph, shape (positions, positions): entry (i, j) is 1 if j is a parent of i, else 0."""
        matrix = np.zeros((self.positions, self.positions))
        for child, parents in enumerate(self.parents):
            matrix[child, list(parents)] = 1.0
        return matrix

    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Float[Array, "count rows S"]:
        """Draw independent tables, those of more parents after those of fewer, shape `(count, rows, S)`."""
        from ._symbol_draws import dirichlet

        return dirichlet(key, float(self.concentration), self.symbols, (count, self.rows))

    def sequences_of(
        self, key: PRNGKeyArray, tasks: Float[Array, "batch rows S"], horizon: int
    ) -> Int[Array, "batch horizon"]:
        """Draw one sequence for each task.

        Raises:
            ValueError: the graph has fewer positions than `horizon`.
        """
        from ._symbol_draws import graph_symbols

        return graph_symbols(key, tasks, *self._reading(horizon))

    def probabilities_of(self, sequences: np.ndarray) -> np.ndarray:
        """Return the probability of each of the sequences, shape (n, T) → (n,): what follows each row is an urn."""
        rows = self._rows_of(sequences)
        roots = [not parents for parents in self.parents[: sequences.shape[1]]]
        drawn, rows = np.delete(sequences, roots, 1), np.delete(rows, roots, 1)
        found = urn_probabilities(drawn, rows, self.symbols, float(self.concentration))
        return found / float(self.symbols) ** sum(roots)

    def probabilities_given(self, sequences: np.ndarray, tasks: np.ndarray) -> np.ndarray:
        """Return the probability of each of the sequences (n, T) given each of the tables (count, rows, S) → (count, n).

        Raises:
            ValueError: the graph has fewer than T positions.
        """
        uniform = np.full((len(tasks), 1, self.symbols), 1 / self.symbols)
        tables, rows = np.concatenate([uniform, tasks], 1), self._rows_of(sequences)
        found = np.ones((len(tasks), len(sequences)))
        for row, symbol in zip(rows.T, sequences.T, strict=True):
            found *= tables[:, row, symbol]
        return found

    def describe(self) -> str:
        """Return e.g. `MarkovGraph(positions=20, symbols=3, concentration=0.1)`."""
        values = f"symbols={self.symbols}, concentration={show_number(self.concentration)}"
        return f"MarkovGraph(positions={self.positions}, {values})"

    def _counts(self) -> list[int]:
        """The numbers of parents that occur, but for 0."""
        return sorted({len(parents) for parents in self.parents} - {0})

    def _rows_of(self, sequences: np.ndarray) -> np.ndarray:
        """The row from which every symbol is drawn, counted from 1, 0 for roots: shape (n, T) → (n, T)."""
        places, weights, first = self._reading(sequences.shape[1])
        return np.asarray(first + np.sum(sequences[:, places] * weights, -1))

    def _reading(self, horizon: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where position i reads its row, counted from 1: first_i + Σ_k weights_ik s_{places_ik}; that is 0 for a root.

        Raises:
            ValueError: the graph has fewer positions than `horizon`.
        """
        if horizon > self.positions:
            raise ValueError(
                f"horizon: the graph lists {self.positions} positions, got {horizon}; take fewer, or list more parents"
            )
        counts, size = self._counts(), self.symbols
        begins = dict(zip(counts, np.cumsum([1, *(size**count for count in counts)]).tolist(), strict=False))
        most = max(counts, default=0)
        places, weights = (np.zeros((self.positions, most), int) for _ in range(2))
        for i, parents in enumerate(self.parents):
            places[i, : len(parents)] = parents
            weights[i, : len(parents)] = size ** np.arange(len(parents))[::-1]
        first = np.array([begins.get(len(parents), 0) for parents in self.parents])
        return places[:horizon], weights[:horizon], first[:horizon]
