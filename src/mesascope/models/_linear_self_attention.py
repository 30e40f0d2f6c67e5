"""Layers of linear attention, with merged or factored weights and one or several heads."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least, split_keys
from mesascope.specs import Positive, Size

from ._arrays import axes, finite_array, gaussian_array, positive_number
from ._batch_last_layer import BatchLastLayer, in_product_type
from ._batched_matmul import batched_matmul
from ._context import attention, check_context, inverse_normalizers, visible
from ._heads import checked_factors, factor_shapes, gaussian_factors, head_streams, projected_heads
from ._kernels import causal_merged_attention
from ._normalizer import Normalizer, check_normalizer
from ._specified import Context, layer


@layer("linear-attention")
class LinearSelfAttention(BatchLastLayer):
    """Linear attention with merged weights: z_t ↦ (1/ρ_t) Σ_h W^PV_h (Σ_i z_i z_i*) W^KQ_h z_t.

    The inner sum runs over the tokens that query t attends to. There is no residual connection: `LinearAttentionStack` and
    `Residual` add it. With `context="examples"` and ρ = "t-1" this is ahn2023's (1/n) P Z M (Z^T Q Z).

    Attributes:
        w_kq: W^KQ of every head, shape (heads, width, width); real or complex.
        w_pv: W^PV of every head, shape (heads, output width, width); real or complex.
        normalizer: ρ_t: "t-1", "t", "1" or a hashable function of an array of token counts, evaluated at the number of
            tokens up to and including the query: t for "causal", else all n. If ρ_1 = 0, the layer gives 0 there.
        context: the tokens i that query t attends to: "causal" (i ≤ t), "all", or "examples" (all but the last token).

    Raises:
        ValueError, TypeError: for shapes that do not fit, non-finite weights, an unknown normalizer or context.

    Source: ahn2023, equation (3); zheng2024, equation (2).
    """

    w_kq: Array = eqx.field(metadata=axes(3))
    w_pv: Array = eqx.field(metadata=axes(3))
    normalizer: Normalizer = eqx.field(static=True)
    context: Context = eqx.field(static=True)

    def __init__(self, w_kq: Any, w_pv: Any, normalizer: Normalizer = "t-1", context: Context = "causal"):
        kq, pv = finite_array("w_kq", w_kq, 3), finite_array("w_pv", w_pv, 3)
        heads, _, width = pv.shape
        if kq.shape != (heads, width, width):
            wanted = "w_kq (heads, width, width) and w_pv (heads, out, width)"
            raise ValueError(f"weights do not fit: expected {wanted}, got {kq.shape} and {pv.shape}")
        self.w_kq, self.w_pv = kq, pv
        self.normalizer, self.context = check_normalizer(normalizer), check_context(context)

    @classmethod
    def gaussian(
        cls,
        width: int,
        heads: Size = 1,
        scale: Positive = 0.1,
        *,
        key: Array,
        output_width: int | None = None,
        normalizer: Normalizer = "t-1",
        context: Context = "causal",
    ) -> Self:
        """Return a layer with independent N(0, scale²) entries.

        Args:
            width: entries of an input token.
            heads: number of heads.
            scale: standard deviation > 0 of the weights.
            key: random key.
            output_width: entries of an output token; by default the width.
            normalizer: the normalizer ρ_t.
            context: the tokens that a query attends to.
        """
        width, heads = integer_at_least("width", width, 1), integer_at_least("heads", heads, 1)
        output = width if output_width is None else integer_at_least("output_width", output_width, 1)
        scale = positive_number("scale", scale)
        key_kq, key_pv = split_keys(key)
        w_kq = gaussian_array(key_kq, (heads, width, width), scale)
        return cls(w_kq, gaussian_array(key_pv, (heads, output, width), scale), normalizer, context)

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return int(self.w_pv.shape[-1])

    @property
    def output_width(self) -> int:
        """Entries of an output token."""
        return int(self.w_pv.shape[-2])

    @property
    def causal(self) -> bool:
        """Whether `context` is "causal"."""
        return self.context == "causal"

    def on_batch_last(self, stream: Array) -> Array:
        """Return the new stream: (n, width, batch) → (n, output width, batch)."""
        stream = in_product_type(stream, self.w_kq, self.w_pv)
        if self.context == "causal":
            seen = causal_merged_attention(self.w_kq, self.w_pv, stream)
        else:
            seen = self._with_shared_memory(stream, stream)
        return _normalized(seen, self.normalizer, self.context)

    def last_on_batch_last(self, stream: Array) -> Array:
        """Return the last token only, from one memory for any context."""
        stream = in_product_type(stream, self.w_kq, self.w_pv)
        seen = self._with_shared_memory(stream, stream[-1:])
        inverse = inverse_normalizers(self.normalizer, self.context, len(stream))[-1]
        return seen * jnp.asarray(inverse, jnp.finfo(seen.dtype).dtype)

    def _with_shared_memory(self, stream: Array, queries: Array) -> Array:
        """Return (Σ_h W^PV_h G W^KQ_h) q, where all queries share G = Σ_i z_i z_i* and weights multiply G, not tokens."""
        heads, output, width = self.w_pv.shape
        seen = visible(stream, self.context)
        gram = batched_matmul(jnp.swapaxes(seen, 0, 1), seen.conj())
        memory = _weighted(self.w_pv.reshape(heads * output, width), gram)
        memory = jnp.swapaxes(memory.reshape(heads, output, width, -1), 1, 2).reshape(
            heads * width, output, -1
        )
        return batched_matmul(queries, _weighted(self.w_kq.reshape(heads * width, width).T, memory))


@layer("factored-linear-attention")
class FactoredLinearSelfAttention(BatchLastLayer):
    """Linear attention with W^KQ_h = W_K,h* W_Q,h and W^PV_h = W_P,h W_V,h, computed without merging them.

    Attributes:
        w_k, w_q: shape (heads, key size, width); real or complex.
        w_p: shape (heads, output width, value size).
        w_v: shape (heads, value size, width).
        normalizer, context: as in `LinearSelfAttention`.

    Raises:
        ValueError, TypeError: for shapes that do not fit, non-finite weights, an unknown normalizer or context.

    Source: vonoswald2023, section 2.
    """

    w_k: Array = eqx.field(metadata=axes(3))
    w_q: Array = eqx.field(metadata=axes(3))
    w_p: Array = eqx.field(metadata=axes(3))
    w_v: Array = eqx.field(metadata=axes(3))
    normalizer: Normalizer = eqx.field(static=True)
    context: Context = eqx.field(static=True)

    def __init__(
        self,
        *,
        w_k: Any,
        w_q: Any,
        w_p: Any,
        w_v: Any,
        normalizer: Normalizer = "t-1",
        context: Context = "causal",
    ):
        self.w_k, self.w_q, self.w_p, self.w_v = checked_factors(w_k, w_q, w_p, w_v)
        self.normalizer, self.context = check_normalizer(normalizer), check_context(context)

    @classmethod
    def gaussian(
        cls,
        width: int,
        heads: Size = 1,
        scale: Positive = 0.1,
        *,
        key: Array,
        key_size: Size | None = None,
        value_size: Size | None = None,
        output_width: int | None = None,
        normalizer: Normalizer = "t-1",
        context: Context = "causal",
    ) -> Self:
        """Return a layer with independent N(0, scale²) entries.

        Args:
            width: entries of an input token.
            heads: number of heads.
            scale: standard deviation > 0 of the weights.
            key: random key.
            key_size: entries of the keys of every head; by default the width.
            value_size: entries of the values of every head; by default the width.
            output_width: entries of an output token; by default the width.
            normalizer: the normalizer ρ_t.
            context: the tokens that a query attends to.
        """
        shapes = factor_shapes(width, heads, key_size, value_size, output_width)
        factors = gaussian_factors(key, shapes, [positive_number("scale", scale)] * 4)
        return cls(**factors._asdict(), normalizer=normalizer, context=context)

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return int(self.w_k.shape[-1])

    @property
    def output_width(self) -> int:
        """Entries of an output token."""
        return int(self.w_p.shape[-2])

    @property
    def causal(self) -> bool:
        """Whether `context` is "causal"."""
        return self.context == "causal"

    def on_batch_last(self, stream: Array) -> Array:
        """Return the new stream: (n, width, batch) → (n, output width, batch)."""
        stream = in_product_type(stream, self.w_k, self.w_q, self.w_p, self.w_v)
        values, keys, queries = (head_streams(w, stream) for w in (self.w_v, self.w_k, self.w_q))
        seen = attention(values, keys, queries, self.context)
        return _normalized(projected_heads(self.w_p, seen), self.normalizer, self.context)


def _weighted(weights: Array, matrices: Array) -> Array:
    """Return weights (i, j) times matrices (j, k, batch), as one product of two matrices: (i, k, batch)."""
    flat = weights @ matrices.reshape(weights.shape[1], -1)
    return flat.reshape(-1, *matrices.shape[1:])


def _normalized(summed: Array, normalizer: Normalizer, context: Context) -> Array:
    inverses = inverse_normalizers(normalizer, context, len(summed))
    return summed * jnp.asarray(inverses, jnp.finfo(summed.dtype).dtype)[:, None, None]
