"""Replacements of layers: nothing, an affine map, a step of gradient descent, the output for another task."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import integer_at_least
from mesascope.models import (
    Context,
    Embedding,
    FactoredLinearSelfAttention,
    Layer,
    LinearAttentionStack,
    LinearSelfAttention,
    Looped,
    LowRankLinearSelfAttention,
    Normalizer,
    PairedTokens,
    PreNorm,
    Residual,
    Stack,
    StackedPrompt,
)


class Nothing(Layer):
    """The identity: z ↦ z.

    Attributes:
        entries: the width of the stream, ≥ 1.
    """

    entries: int = eqx.field(static=True)
    causal: ClassVar[bool] = True  # every token is mapped independently

    def __init__(self, entries: int):
        self.entries = integer_at_least("entries", entries, 1)

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return self.entries

    @property
    def output_width(self) -> int:
        """Entries of an output token: the same."""
        return self.entries

    def __call__(self, stream: Any) -> Array:
        """Return the stream."""
        return jnp.asarray(stream)


class Affine(Layer):
    """An affine map of every token: z ↦ z A + b.

    Attributes:
        weights: A, shape (width, output width); real or complex.
        bias: b, shape (output width,).
    """

    weights: Array
    bias: Array
    causal: ClassVar[bool] = True  # every token is mapped independently

    def __init__(self, weights: Any, bias: Any):
        self.weights, self.bias = jnp.asarray(weights), jnp.asarray(bias)
        if self.weights.ndim != 2 or self.bias.shape != self.weights.shape[1:]:
            raise ValueError(
                f"Affine: expected weights (width, out) and bias (out,), got {self.weights.shape} and {self.bias.shape}"
            )

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return int(self.weights.shape[0])

    @property
    def output_width(self) -> int:
        """Entries of an output token."""
        return int(self.weights.shape[1])

    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (…, n, width) → (…, n, output width)."""
        return stream @ self.weights + self.bias


class FromAnotherTask(Layer):
    """The output of a layer for another task: z_i ↦ z_i + (layer(z_j) − z_j), j the task before i in the batch.

    Attributes:
        layer: a map of streams (batch, n, width) that keeps the width.
    """

    layer: Layer

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return self.layer.width

    @property
    def output_width(self) -> int:
        """Entries of an output token: the same."""
        return self.layer.output_width

    @property
    def causal(self) -> bool:
        """Whether the inner layer is causal."""
        return self.layer.causal

    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (batch, n, width) → (batch, n, width)."""
        return stream + jnp.roll(self.layer(stream) - stream, 1, axis=0)


def gradient_step_layer(embedding: Embedding, layer: Layer, step_size: float) -> Layer:
    r"""Return one step of gradient descent from zero as a layer of linear attention, on the tokens of an embedding.

    On `StackedPrompt` tokens $(x_i, y_i)$ it adds $-\frac\eta\rho \sum_i y_i x_i^\top x_t$ to the label of token t; on
    `PairedTokens` $(0; x_t; x_{t-1})$ it adds $\frac\eta{\rho_t} \sum_{i \le t} x_i x_{i-1}^* x_t$ to the zero block.

    Args:
        embedding: the embedding of the tokens.
        layer: the layer to replace: the context and ρ are those of the linear attention that it begins with; for other
            layers the examples and their number.
        step_size: η, for the sum over examples divided by ρ.

    Raises:
        TypeError: an embedding for which no step is known.

    Source: vonoswald2023, Proposition 1; zheng2024, section 4.
    """
    if isinstance(embedding, StackedPrompt):
        inputs, labels = np.diag([1.0] * embedding.dim + [0.0]), np.diag([0.0] * embedding.dim + [1.0])
        w_kq, w_pv = inputs, -step_size * labels
    elif isinstance(embedding, PairedTokens):
        block = np.eye(embedding.dim)
        w_kq, w_pv = np.kron(_place(2, 1), block), step_size * np.kron(_place(0, 1), block)
    else:
        raise TypeError(
            f"model: no step of gradient descent is known on the tokens of {type(embedding).__name__}; give a layer of your "
            "own to intervene(…)"
        )
    normalizer, context = _attention_of(layer, embedding)
    return Residual(LinearSelfAttention(w_kq[None], w_pv[None], normalizer, context))


def _place(row: int, column: int) -> np.ndarray:
    """Return the 3 × 3 matrix with a single 1."""
    matrix = np.zeros((3, 3))
    matrix[row, column] = 1
    return matrix


def _attention_of(layer: Layer, embedding: Embedding) -> tuple[Normalizer, Context]:
    """Return ρ and the context of the linear attention that a layer begins with."""
    if isinstance(layer, LinearSelfAttention | LowRankLinearSelfAttention | FactoredLinearSelfAttention):
        return layer.normalizer, layer.context
    if isinstance(layer, Residual | PreNorm | Looped):
        return _attention_of(layer.layer, embedding)
    if isinstance(layer, Stack | LinearAttentionStack):
        return _attention_of(layer.layers[0], embedding)
    return "t-1", "causal" if embedding.layout == "tokens" else "examples"
