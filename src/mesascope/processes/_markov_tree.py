"""Discrete sequences with a latent causal graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import equinox as eqx
import numpy as np

from ..core import finite_positive, integer_at_least, split_keys
from ..specs import Number, show_number
from ._process import SequenceProcess

if TYPE_CHECKING:
    from jaxtyping import Array, Int, PRNGKeyArray

_SMALLEST_ALPHA, _LARGEST_ALPHA = 1e-30, 1e30  # single precision ends at 1e-38 and 3e38


class MarkovTree(SequenceProcess):
    r"""Sequences of symbols in which every position depends on one earlier position, the same in all sequences.

    For every sequence a transition matrix $\pi$ is drawn, its $S$ rows independent and Dirichlet($\alpha, \dots,
    \alpha$). Position $i < T$ takes $s_i \sim \pi(s_{p(i)}, \cdot)$ if it has a parent $p(i) < i$, and $s_i \sim
    \mu_\pi$, the stationary distribution of $\pi$, if it has none. The last symbol of the context, $s_T$, is
    uniform and independent, and what is to be predicted is $s_{T+1} \sim \pi(s_T, \cdot)$ (nichani2024).

    Args:
        parents: for each of the $T \ge 2$ positions of the context the index of its parent, counted from 0, or
            `None` for a root. The last position must be `None`: its symbol is uniform.
        states: the number $S \ge 2$ of symbols.
        alpha: the parameter $\alpha > 0$ of the Dirichlet prior (0.1 in the paper).

    Attributes:
        dim: $S$, the dimension of the symbols as one-hot vectors.

    Raises:
        TypeError: a parameter of the wrong type.
        ValueError: fewer than 2 positions, a parent that does not come before its child, a parent of the last
            position, `states` below 2, or `alpha` not between 1e-30 and 1e30 (its
            logarithm and gamma variates have to fit into single precision).
    """

    parents: tuple[int | None, ...] = eqx.field(static=True)
    states: int = eqx.field(static=True)
    alpha: Number = eqx.field(static=True)
    dim: int = eqx.field(static=True, repr=False)  # follows from the others

    def __init__(self, parents: Sequence[int | None], states: int, alpha: Number | str):
        self.parents = _checked_parents(parents)
        self.states = integer_at_least("MarkovTree states", states, 2)
        self.alpha = _checked_alpha(alpha)
        self.dim = self.states

    @classmethod
    def chain(cls, length: int, states: int, alpha: Number | str) -> Self:
        """Return the process of Markov chains: the parent of every position is the one before it.

        Args:
            length: the context length T ≥ 2.
            states: the number of symbols.
            alpha: the parameter of the Dirichlet prior.
        """
        length = integer_at_least("MarkovTree length", length, 2)
        return cls((None, *range(length - 2), None), states, alpha)

    @classmethod
    def random(cls, length: int, states: int, alpha: Number | str, seed: int) -> Self:
        """Return a process whose graph is random: each parent uniform among none and all earlier positions.

        Args:
            length: the context length T ≥ 2.
            states: the number of symbols.
            alpha: the parameter of the Dirichlet prior.
            seed: of the graph, ≥ 0.
        """
        length = integer_at_least("MarkovTree length", length, 2)
        generator = np.random.default_rng(integer_at_least("MarkovTree seed", seed, 0))
        drawn = [int(generator.integers(-1, i)) for i in range(length - 1)]
        return cls((*(None if parent < 0 else parent for parent in drawn), None), states, alpha)

    @property
    def vocabulary(self) -> int:
        """The number of symbols."""
        return self.states

    @property
    def horizon(self) -> int:
        """The number of symbols in a sequence: T of the context and the one to be predicted."""
        return len(self.parents) + 1

    def adjacency(self) -> np.ndarray:
        """Return the graph, shape (T, T): entry (i, j) is 1 if j is the parent of i, else 0."""
        matrix = np.zeros((len(self.parents), len(self.parents)))
        for child, parent in enumerate(self.parents):
            if parent is not None:
                matrix[child, parent] = 1.0
        return matrix

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Int[Array, "batch horizon"]:
        """Draw independent sequences of symbols 0 … S − 1 as int32, shape `(batch, horizon)`.

        Raises:
            ValueError: `horizon` is not the number of positions and one more.
        """
        if integer_at_least("horizon", horizon, 1) != self.horizon:
            raise ValueError(
                f"horizon must be {self.horizon}, the {len(self.parents)} positions of the graph and the target, "
                f"got {horizon}"
            )
        return self.traced().sample(key, horizon, batch)

    def traced(self) -> TracedMarkovTree:
        """Return the same process with its graph as an array: those of one size share compiled programs."""
        return TracedMarkovTree(self)

    def describe(self) -> str:
        """Return e.g. `MarkovTree(T=20, states=10, alpha=0.1)`."""
        return f"MarkovTree(T={len(self.parents)}, states={self.states}, alpha={show_number(self.alpha)})"


class TracedMarkovTree(SequenceProcess):
    """What `MarkovTree.traced` gives: it draws the same sequences, but is no value that could be hashed or compared.

    Attributes:
        sources: for every symbol of a sequence what it follows: a position, T + 1 for the stationary distribution, T + 2 for
            the uniform one.
        alpha: as in `MarkovTree`.
        dim: S.
    """

    sources: Int[Array, " horizon"]
    alpha: float = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __init__(self, process: MarkovTree):
        import jax.numpy as jnp

        positions = len(process.parents)
        root, uniform = process.horizon, process.horizon + 1
        sources = [root if parent is None else parent for parent in process.parents]
        sources[-1:] = [uniform, positions - 1]
        self.sources = jnp.array(sources, jnp.int32)
        self.alpha, self.dim = float(process.alpha), process.states

    @property
    def vocabulary(self) -> int:
        """The number of symbols."""
        return self.dim

    @property
    def horizon(self) -> int:
        """The number of symbols in a sequence."""
        return len(self.sources)

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Int[Array, "batch horizon"]:
        """As `MarkovTree.sample`."""
        keys = split_keys(key, integer_at_least("batch", batch, 1))
        return _sequences(keys, self.sources, self.dim, self.alpha)

    def describe(self) -> str:
        """Return e.g. `traced MarkovTree(T=20, states=10, alpha=0.1)`."""
        return f"traced MarkovTree(T={self.horizon - 1}, states={self.dim}, alpha={show_number(self.alpha)})"


@partial(jax.jit, static_argnums=2)
def _sequences(
    keys: PRNGKeyArray, sources: Int[Array, " horizon"], states: int, alpha: float
) -> Int[Array, "batch horizon"]:
    """One sequence a key."""
    import jax
    import jax.numpy as jnp

    from ._draws import stationary_distribution

    horizon = len(sources)

    def sequence(key: PRNGKeyArray) -> Int[Array, " horizon"]:
        transition_key, symbol_key = jax.random.split(key)
        transitions = jax.random.dirichlet(transition_key, jnp.full(states, alpha), (states,))
        # Two virtual symbols, S and S + 1, have the rows that roots and the last symbol of the context are drawn
        # from, and two virtual positions beyond the sequence hold them.
        rows = jnp.vstack([transitions, stationary_distribution(transitions), jnp.full(states, 1 / states)])
        bounds = jnp.cumsum(rows, axis=1)[:, :-1]

        def draw(
            symbols: Int[Array, " positions"], step: tuple[Array, Array, Array]
        ) -> tuple[Int[Array, " positions"], None]:
            place, source, share = step
            symbol = jnp.sum(bounds[symbols[source]] <= share, dtype=jnp.int32)
            return symbols.at[place].set(symbol), None

        shares = jax.random.uniform(symbol_key, (horizon,), rows.dtype)
        start = jnp.array([0] * horizon + [states, states + 1], jnp.int32)
        return jax.lax.scan(draw, start, (jnp.arange(horizon), sources, shares))[0][:horizon]

    return jax.vmap(sequence)(keys)


def _checked_alpha(alpha: Number | str) -> Number:
    value = finite_positive("MarkovTree alpha", alpha)
    if not _SMALLEST_ALPHA <= value <= _LARGEST_ALPHA:
        raise ValueError(f"MarkovTree alpha must lie between 1e-30 and 1e30, got {float(value):g}")
    return value


def _checked_parents(parents: Any) -> tuple[int | None, ...]:
    if isinstance(parents, str) or not isinstance(parents, Sequence):
        raise TypeError(f"MarkovTree parents must list an index or None for each position, got {parents!r}")
    if len(parents) < 2:
        raise ValueError(f"MarkovTree parents must list at least 2 positions, got {len(parents)}")
    checked: list[int | None] = []
    for child, parent in enumerate(parents):
        if parent is not None:
            parent = integer_at_least(f"MarkovTree parents[{child}]", parent, 0)
            if parent >= child:
                raise ValueError(
                    f"MarkovTree parents[{child}] must be an earlier position, below {child}, got {parent}"
                )
        checked.append(parent)
    if checked[-1] is not None:
        raise ValueError(
            f"MarkovTree parents[{len(checked) - 1}] must be a root (None): the last symbol of the context is uniform"
        )
    return tuple(checked)
