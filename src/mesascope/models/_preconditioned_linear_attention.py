"""Layers of linear attention that are one step of preconditioned gradient descent, with no other weights."""

from __future__ import annotations

import abc
from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least
from mesascope.specs import Positive

from ._arrays import axes, gaussian_array, positive_number, real_array
from ._batch_last_layer import BatchLastLayer, in_product_type


class PreconditionedStep(BatchLastLayer):
    r"""Linear attention on stacked prompts that adds $-x_j^\top A \frac1n \sum_i x_i y_i$ to every label."""

    @abc.abstractmethod
    def matrix(self) -> Array:
        """Return $A$, shape (d, d)."""

    @property
    def width(self) -> int:
        """Entries of an input token, d + 1."""
        return int(self.matrix().shape[-1]) + 1

    @property
    def output_width(self) -> int:
        """Entries of an output token: the same."""
        return self.width

    @property
    def causal(self) -> bool:
        """False: every token reads all examples."""
        return False

    def on_batch_last(self, stream: Array) -> Array:
        """Return the new stream: (n, width, batch) → (n, width, batch)."""
        stream = in_product_type(stream, self.matrix())
        return self._changes(stream, stream)

    def last_on_batch_last(self, stream: Array) -> Array:
        """Return the last token only."""
        stream = in_product_type(stream, self.matrix())
        return self._changes(stream, stream[-1:])

    def _changes(self, stream: Array, queries: Array) -> Array:
        inputs, labels = stream[:-1, :-1], stream[:-1, -1]
        mean = jnp.einsum("nib,nb->ib", inputs, labels) / max(len(inputs), 1)
        change = -jnp.einsum("nib,ij,jb->nb", queries[:, :-1], self.matrix(), mean)
        return jnp.concatenate([jnp.zeros_like(queries[:, :-1]), change[:, None]], 1)


class PreconditionedLinearAttention(PreconditionedStep):
    r"""Linear attention on stacked prompts whose only weights are $A$: labels change by $-x_j^\top A \frac1n \sum_i x_i y_i$.

    Tokens are $(x_j, y_j)$, the sum runs over the $n$ examples, all tokens but the last, and inputs do not change. It is
    `LinearSelfAttention` with $W^{KQ} = -\mathrm{diag}(A^\top, 0)$, $W^{PV} = \mathrm{diag}(0, 1)$, the normalizer "t-1" and
    the context "examples", all of whose other weights stay 0 in a flow. With a residual connection a layer is a step
    $w \leftarrow w - A \nabla \frac1{2n} \sum_i (w^\top x_i - y_i)^2$.

    Attributes:
        preconditioner: $A$, shape (d, d), symmetric or not; real.

    Raises:
        TypeError, ValueError: for an array that is not square, real and finite.

    Source: ahn2023, Lemma 1; gatmiry2024, section 2.
    """

    preconditioner: Array = eqx.field(metadata=axes(2))

    def __init__(self, preconditioner: Any):
        a = real_array("preconditioner", preconditioner, 2)
        if a.shape[0] != a.shape[1] or not a.size:
            raise ValueError(f"preconditioner: must have shape (d, d), got {a.shape}")
        self.preconditioner = a

    @classmethod
    def gaussian(cls, width: int, scale: Positive = 0.1, *, key: Array) -> Self:
        """Return a layer with independent N(0, scale²) entries.

        Args:
            width: entries of a token, d + 1.
            scale: standard deviation > 0 of the weights.
            key: random key.
        """
        dim = integer_at_least("width", width, 2) - 1
        return cls(gaussian_array(key, (dim, dim), positive_number("scale", scale)))

    def matrix(self) -> Array:
        """Return the preconditioner."""
        return self.preconditioner
