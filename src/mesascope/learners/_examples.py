"""Memories of all examples, for learners that need more than their moments."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import jax.numpy as jnp
from jax import Array

from mesascope.core import concrete

from ._arithmetic import einsum, in_type_of
from ._learner import Features, Memory


class Examples(Memory):
    """The examples in order, in arrays that are filled from the start.

    Attributes:
        n: the number of examples, shape (…).
        x: inputs, shape (…, N, p); rows n and later are unspecified.
        y: outputs, shape (…, N, m).
    """

    n: Array
    x: Array
    y: Array

    @classmethod
    def empty(cls, lead: tuple[int, ...], inputs: int, outputs: int, examples: int, dtype: Any) -> Self:
        """Return a memory without examples, with room for `examples` of them."""
        x, y = (jnp.zeros((*lead, examples, entries), dtype) for entries in (inputs, outputs))
        return cls(jnp.zeros(lead, int), x, y)

    def with_example(self, x: Array, y: Array) -> Self:
        """Return the memory with one more row.

        Raises:
            ValueError: the memory is full.
        """
        capacity = self.x.shape[-2]
        if concrete(self.n) and (self.n >= capacity).any():
            raise ValueError(f"the memory is full: it has room for {capacity} examples; create it with more")
        x, y = in_type_of(self.x, x, y)
        here = (jnp.arange(capacity) == self.n[..., None])[..., None]
        return type(self)(
            self.n + 1, jnp.where(here, x[..., None, :], self.x), jnp.where(here, y[..., None, :], self.y)
        )

    @classmethod
    def after_each(cls, x: Array, y: Array) -> Self:
        """Return memories that share the examples: x and y have an axis of length 1 where n has length N + 1."""
        n = jnp.broadcast_to(jnp.arange(x.shape[-2] + 1), (*x.shape[:-2], x.shape[-2] + 1))
        return cls(n, x[..., None, :, :], y[..., None, :, :])


class Context(Features):
    """The examples and the query.

    Attributes:
        n: the number of examples, shape (…).
        x: inputs, shape (…, N, p), of which the first n are seen.
        y: outputs, shape (…, N, m).
        query: shape (…, p).
    """

    memory: ClassVar[type[Memory]] = Examples

    n: Array
    x: Array
    y: Array
    query: Array

    @classmethod
    def of(cls, memory: Examples, query: Array) -> Self:
        """Return the examples of the memory with the query."""
        (query,) = in_type_of(memory.x, query)
        return cls(memory.n, memory.x, memory.y, query)

    @property
    def seen(self) -> Array:
        """Whether each example is seen, shape (…, N)."""
        return jnp.arange(self.x.shape[-2]) < self.n[..., None]

    @property
    def overlaps(self) -> Array:
        """x_i^* q, shape (…, N)."""
        return einsum("...np,...p->...n", self.x.conj(), self.query)
