"""Discrete sequences with a latent causal graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from ..core import integer_at_least
from ..specs import (
    Data,
    Number,
    Seed,
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
from ._process import SequenceProcess

if TYPE_CHECKING:
    from jaxtyping import Array, Int, PRNGKeyArray

    from ._traced import TracedMarkovTree

_GRAPHS = ("chain", "random")
MAX_POSITIONS = 2**16  # a graph lists every position
Graph: TypeAlias = tuple[int | None, ...]
"""The index of the parent for each position of the context, None for a root."""


def _parents(value: Any) -> str | Graph:
    given = as_list(value)
    if isinstance(given, str) and given in _GRAPHS:
        return given
    if not isinstance(given, list | tuple):
        raise SpecTypeError(
            f"must be 'chain', 'random', or a list of positions and 'root', got {show(given)}"
        )
    if len(given) < 2:
        raise SpecError(f"must list at least 2 positions, got {len(given)}")
    graph = tuple(checked_at(_parent, one, i) for i, one in enumerate(given))
    for child, parent in enumerate(graph):
        if parent is not None and parent >= child:
            raise SpecError(f"must be an earlier position, below {child}, got {parent}", child)
    if graph[-1] is not None:
        raise SpecError("must be a root: the last symbol of the context is uniform", len(graph) - 1)
    return graph


def _parent(value: Any) -> int | None:
    if value is None or value == "root":
        return None
    parent = integer(value)
    if parent < 0:
        raise SpecError(f"must be an earlier position, counted from 0, or 'root', got {show(value)}")
    return parent


@kind("markov-tree", parents="chain", states=3, alpha=0.5)
class MarkovTree(SequenceProcess):
    r"""Sequences of symbols in which every position depends on one earlier position, the same in all sequences.

    For every sequence a transition matrix $\pi$ is drawn, its $S$ rows independent and Dirichlet($\alpha, \dots,
    \alpha$). Position $i < T$ takes $s_i \sim \pi(s_{p(i)}, \cdot)$ if it has a parent $p(i) < i$, and $s_i \sim
    \mu_\pi$, the stationary distribution of $\pi$, if it is a root. The last symbol of the context, $s_T$, is
    uniform and independent, and the symbol to be predicted is $s_{T+1} \sim \pi(s_T, \cdot)$ (nichani2024).

    Args:
        parents: for each of the $T \ge 2$ positions of the context the index of its parent, counted from 0, or
            `None` (in specifications also "root") for a root. The last position must be a root: its symbol is uniform.
            Or "chain", where the parent is the previous position, or "random", a graph drawn with `seed`; both allow
            sequences of any length.
        states: the number $S \ge 2$ of symbols.
        alpha: the parameter $\alpha > 0$ of the Dirichlet prior (0.1 in the paper), between 1e-30 and 1e30: its logarithm
            and gamma variates must be representable in single precision.
        seed: the seed of a random graph, by default 0.

    Attributes:
        dim: $S$, the dimension of the one-hot vectors of the symbols.
    """

    data: ClassVar[Data] = "symbols"

    parents: Annotated[str | Graph, PlainValidator(_parents), PlainSerializer(in_file_form)]
    states: Symbols
    alpha: Concentration
    seed: Seed | None = None

    def __post_init__(self) -> None:
        if self.seed is not None and self.parents != "random":
            raise SpecError("is used only with parents = 'random'; remove it or change parents", "seed")

    @property
    def dim(self) -> int:
        """The number of symbols S."""
        return self.states

    @classmethod
    def chain(cls, length: int, states: int, alpha: Number | str) -> Self:
        """Return the process of Markov chains with a context of T = `length` ≥ 2 symbols."""
        return cls("chain", states, alpha).of_horizon(integer_at_least("length", length, 2) + 1)

    @classmethod
    def random(cls, length: int, states: int, alpha: Number | str, seed: int) -> Self:
        """Return a process with a random graph: each parent is uniform among "root" and all earlier positions.

        Args:
            length: the context length T ≥ 2.
            states: the number of symbols.
            alpha: the parameter of the Dirichlet prior.
            seed: the seed of the graph, ≥ 0.
        """
        return cls("random", states, alpha, seed).of_horizon(integer_at_least("length", length, 2) + 1)

    def of_horizon(self, horizon: int) -> Self:
        """Return the process with the graph of sequences of `horizon` symbols.

        Raises:
            ValueError: the graph is given and has another size.
        """
        length = horizon - 1
        if not isinstance(self.parents, str):
            if len(self.parents) != length:
                raise ValueError(
                    f"parents lists {len(self.parents)} positions, expected horizon − 1 = {length}; change one of them"
                )
            return self
        if length > MAX_POSITIONS:
            raise ValueError(
                f"horizon must be at most {MAX_POSITIONS + 1}: the graph lists every position, got {horizon}"
            )
        if self.parents == "chain":
            return self._with((None, *range(length - 2), None))
        generator = np.random.default_rng(self.seed or 0)
        drawn = [int(generator.integers(-1, i)) for i in range(length - 1)]
        graph = (*(None if parent < 0 else parent for parent in drawn), None)
        return self._with(graph)

    def _with(self, graph: Graph) -> Self:
        return type(self)(graph, self.states, self.alpha)

    @property
    def graph(self) -> Graph:
        """The parents of all positions.

        Raises:
            ValueError: the process is that of sequences of any length, which has no single graph.
        """
        if isinstance(self.parents, str):
            raise ValueError(f"a {self.parents} of any length has no graph; take `of_horizon(horizon)`")
        return self.parents

    @property
    def vocabulary(self) -> int:
        """The number of symbols."""
        return self.states

    @property
    def horizon(self) -> int:
        """The number of symbols in a sequence: T of the context and the predicted one."""
        return len(self.graph) + 1

    def adjacency(self) -> np.ndarray:
        """Return the graph, shape (T, T): entry (i, j) is 1 if j is the parent of i, else 0."""
        matrix = np.zeros((len(self.graph), len(self.graph)))
        for child, parent in enumerate(self.graph):
            if parent is not None:
                matrix[child, parent] = 1.0
        return matrix

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Int[Array, "batch horizon"]:
        """Draw independent sequences of symbols 0 … S − 1 as int32, shape `(batch, horizon)`.

        Raises:
            ValueError: the graph is given and `horizon` is not its number of positions plus one.
        """
        return self.of_horizon(integer_at_least("horizon", horizon, 1)).traced().sample(key, horizon, batch)

    def traced(self) -> TracedMarkovTree:
        """Return the same process with its graph as an array: graphs of equal size share compiled programs."""
        from ._traced import TracedMarkovTree

        return TracedMarkovTree(self.graph, self.states, float(self.alpha))

    def describe(self) -> str:
        """Return e.g. `MarkovTree(T=20, states=10, alpha=0.1)`."""
        graph = self.parents if isinstance(self.parents, str) else f"T={len(self.parents)}"
        return f"MarkovTree({graph}, states={self.states}, alpha={show_number(self.alpha)})"
