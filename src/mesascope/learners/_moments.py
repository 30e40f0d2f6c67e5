"""Memories of the second moments of the examples, which most linear learners use, and the normal equations."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import jax.numpy as jnp
from jax import Array

from ._arithmetic import einsum, in_type_of, per_example
from ._learner import Features, Memory


class Moments(Memory):
    r"""Sums over the examples.

    Attributes:
        n: the number of examples, shape (…).
        gram: $S = \sum_i x_i x_i^*$, shape (…, p, p).
        cross: $C = \sum_i y_i x_i^*$, shape (…, m, p).
    """

    n: Array
    gram: Array
    cross: Array

    @classmethod
    def empty(cls, lead: tuple[int, ...], inputs: int, outputs: int, examples: int, dtype: Any) -> Self:
        """Return a memory without examples, with room for any number of them."""
        gram, cross = (jnp.zeros((*lead, rows, inputs), dtype) for rows in (inputs, outputs))
        return cls(jnp.zeros(lead, int), gram, cross)

    def with_example(self, x: Array, y: Array) -> Self:
        """Return the sums with one more term."""
        x, y = in_type_of(self.gram, x, y)
        return type(self)(self.n + 1, self.gram + _outer(x, x), self.cross + _outer(y, x))

    @classmethod
    def after_each(cls, x: Array, y: Array) -> Self:
        """Return all partial sums, the empty one first."""
        n = jnp.broadcast_to(jnp.arange(x.shape[-2] + 1), (*x.shape[:-2], x.shape[-2] + 1))
        return cls(n, _partial_sums(_outer(x, x)), _partial_sums(_outer(y, x)))


class NormalEquations(Features):
    r"""The normal equations $W \bar S = \bar C$ of the mean loss, and the query.

    Attributes:
        n: the number of examples, shape (…).
        gram: $\bar S = S/n$, shape (…, p, p).
        cross: $\bar C = C/n$, shape (…, m, p); both are 0 for $n = 0$.
        query: $q$, shape (…, p).
    """

    memory: ClassVar[type[Memory]] = Moments

    n: Array
    gram: Array
    cross: Array
    query: Array

    @classmethod
    def of(cls, memory: Moments, query: Array) -> Self:
        """Return the sums divided by the number of examples."""
        (query,) = in_type_of(memory.gram, query)
        gram, cross = (per_example(total, memory.n[..., None, None]) for total in (memory.gram, memory.cross))
        return cls(memory.n, gram, cross, query)


def _outer(a: Array, b: Array) -> Array:
    """Return a b^*."""
    return einsum("...i,...j->...ij", a, b.conj())


def _partial_sums(terms: Array) -> Array:
    """Return Σ_{i<n} of terms (…, N, rows, columns) for n = 0 … N."""
    start = jnp.zeros((*terms.shape[:-3], 1, *terms.shape[-2:]), terms.dtype)
    return jnp.concatenate([start, jnp.cumsum(terms, axis=-3)], axis=-3)
