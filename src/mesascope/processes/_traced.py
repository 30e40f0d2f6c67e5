"""Functions and processes whose parameters are arrays: arrays of equal size share compiled programs; imports JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..core import integer_at_least, split_keys
from ..specs import Data, show_number
from ._draws import einsum, standard_normal, stationary_distribution
from ._process import SequenceProcess, Target


class TracedFeatures(Target, eqx.Module):
    """The result of `RandomFeatures.traced`: the same functions, but not hashable or comparable.

    Attributes:
        vectors: the v_k as columns.
    """

    vectors: Float[Array, "dim features"]

    def draw(self, key: PRNGKeyArray, dim: int, count: int) -> Float[Array, "count features"]:
        """Draw weights, shape `(count, features)`."""
        features = self.vectors.shape[1]
        return (2 / features) ** 0.5 * standard_normal(key, (count, features))

    def values(
        self, functions: Float[Array, "batch features"], x: Float[Array, "batch n dim"]
    ) -> Float[Array, "batch n"]:
        """Return one combination of the features for every row of inputs, shape `(batch, n)`."""
        return einsum("bnk,bk->bn", self.feature_values(x), functions)

    def feature_values(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch features"]:
        r"""Return $\mathrm{relu}(v_k^\top x)$, shape `(…, features)`."""
        return jax.nn.relu(einsum("...j,jk->...k", x, self.vectors))

    def describe(self) -> str:
        """Return e.g. `traced RandomFeatures(features=100)`."""
        return f"traced RandomFeatures(features={self.vectors.shape[1]})"


class TracedMarkovTree(SequenceProcess, eqx.Module):
    """The result of `MarkovTree.traced`: the same sequences, but not hashable or comparable.

    Attributes:
        sources: for every symbol of a sequence the position of its parent; T + 1 means the stationary distribution, T + 2
            the uniform distribution.
        alpha: as in `MarkovTree`.
        dim: the number of symbols S.
    """

    data: ClassVar[Data] = "symbols"

    sources: Int[Array, " horizon"]
    alpha: float = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __init__(self, parents: Sequence[int | None], states: int, alpha: float):
        positions = len(parents)
        sources = [positions + 1 if parent is None else parent for parent in parents]
        sources[-1:] = [positions + 2, positions - 1]
        self.sources = jnp.array(sources, jnp.int32)
        self.alpha, self.dim = alpha, states

    @property
    def vocabulary(self) -> int:
        """The number of symbols."""
        return self.dim

    @property
    def horizon(self) -> int:
        """The number of symbols in a sequence."""
        return len(self.sources)

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Int[Array, "batch horizon"]:
        """Draw the same sequences as `MarkovTree.sample`."""
        keys = split_keys(key, integer_at_least("batch", batch, 1))
        return _sequences(keys, self.sources, self.dim, self.alpha)

    def describe(self) -> str:
        """Return e.g. `traced MarkovTree(T=20, states=10, alpha=0.1)`."""
        return f"traced MarkovTree(T={self.horizon - 1}, states={self.dim}, alpha={show_number(self.alpha)})"


@partial(jax.jit, static_argnums=2)
def _sequences(
    keys: PRNGKeyArray, sources: Int[Array, " horizon"], states: int, alpha: float
) -> Int[Array, "batch horizon"]:
    """Return one sequence per key."""
    horizon = len(sources)

    def sequence(key: PRNGKeyArray) -> Int[Array, " horizon"]:
        transition_key, symbol_key = jax.random.split(key)
        transitions = jax.random.dirichlet(transition_key, jnp.full(states, alpha), (states,))
        # Two additional symbols, S and S + 1, have the rows from which roots and the last symbol of the context are
        # drawn. They are at two additional positions after the sequence.
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
