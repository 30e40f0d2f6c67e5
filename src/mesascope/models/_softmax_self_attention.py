"""Softmax attention."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import integer_at_least
from mesascope.specs import Size

from ._arrays import axes, positive_number, real_array
from ._context import check_context
from ._heads import checked_factors, factor_shapes, gaussian_factors
from ._kernels import project
from ._layer import Layer, checked_real_stream
from ._specified import Context, layer, only_real


@layer("softmax-attention", real=only_real)
class SoftmaxSelfAttention(Layer):
    """Softmax attention: z_t ↦ Σ_h W_P,h Σ_i α_ti W_V,h z_i with α_t = softmax_i (W_K,h z_i · W_Q,h z_t / √key size).

    The sum and the softmax run over the tokens that query t attends to; if there are none ("examples" of a single token) the
    layer gives 0. There is no residual connection and no bias.

    Attributes:
        w_k, w_q: shape (heads, key size, width), real.
        w_p: shape (heads, output width, value size), real.
        w_v: shape (heads, value size, width), real.
        context: the tokens i that query t attends to: "causal" (i ≤ t), "all", or "examples" (all but the last token).

    Raises:
        ValueError, TypeError: for shapes that do not fit, weights that are complex or not finite, an unknown context.
    """

    w_k: Array = eqx.field(metadata=axes(3))
    w_q: Array = eqx.field(metadata=axes(3))
    w_p: Array = eqx.field(metadata=axes(3))
    w_v: Array = eqx.field(metadata=axes(3))
    context: Context = eqx.field(static=True)

    def __init__(self, *, w_k: Any, w_q: Any, w_p: Any, w_v: Any, context: Context = "causal"):
        given = {"w_k": w_k, "w_q": w_q, "w_p": w_p, "w_v": w_v}
        factors = checked_factors(**{name: real_array(name, value, 3) for name, value in given.items()})
        self.w_k, self.w_q, self.w_p, self.w_v = factors
        self.context = check_context(context)

    @classmethod
    def gaussian(
        cls,
        width: int,
        heads: Size = 1,
        *,
        key: Array,
        key_size: Size | None = None,
        value_size: Size | None = None,
        output_width: int | None = None,
        output_gain: float = 1.0,
        context: Context = "causal",
    ) -> Self:
        """Return a layer with independent N(0, 1/fan-in) entries, those of w_p times `output_gain`.

        Args:
            width: entries of an input token.
            heads: number of heads.
            key: random key.
            key_size: entries of the keys of every head; by default width / heads.
            value_size: entries of the values of every head; by default width / heads.
            output_width: entries of an output token; by default the width.
            output_gain: factor > 0 of w_p.
            context: the tokens that a query attends to.

        Raises:
            ValueError: a size is not given and the width is not a multiple of the number of heads.
        """
        key_size = _head_size(width, heads) if key_size is None else key_size
        value_size = _head_size(width, heads) if value_size is None else value_size
        shapes = factor_shapes(width, heads, key_size, value_size, output_width)
        scale, output_gain = width**-0.5, positive_number("output_gain", output_gain)
        scales = (scale, scale, output_gain * (heads * value_size) ** -0.5, scale)
        return cls(**gaussian_factors(key, shapes, scales)._asdict(), context=context)

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

    def __call__(self, stream: Any) -> Array:
        """Return the new stream: (…, n, width) → (…, n, output width)."""
        stream = checked_real_stream(self, stream)
        heads, key_size, _ = self.w_k.shape
        fused = jnp.concatenate([w.reshape(-1, self.width) for w in (self.w_q, self.w_k, self.w_v)])
        cuts = (heads * key_size, 2 * heads * key_size)
        parts = jnp.split(project(stream, fused), cuts, axis=-1)
        queries, keys, values = (x.reshape(*x.shape[:-1], heads, -1) for x in parts)
        seen = _softmax_attention(queries, keys, values, self.context)
        merged = jnp.moveaxis(self.w_p, 0, 1).reshape(self.output_width, -1)
        return project(seen.reshape(*stream.shape[:-1], -1), merged)


def _softmax_attention(queries: Array, keys: Array, values: Array, context: Context) -> Array:
    """Return attention of queries and keys (…, n, heads, key size) and values (…, n, heads, value size)."""
    if context == "examples":
        keys, values = keys[..., :-1, :, :], values[..., :-1, :, :]
    tokens, visible = queries.shape[-3], keys.shape[-3]
    if visible == 0:
        return jnp.zeros((*queries.shape[:-1], values.shape[-1]), values.dtype)
    scores = jnp.einsum("...thk,...ihk->...hti", queries * queries.shape[-1] ** -0.5, keys)
    if context == "causal":
        scores = jnp.where(np.tri(tokens, dtype=bool), scores, -jnp.inf)
    return jnp.einsum("...hti,...ihv->...thv", jax.nn.softmax(scores), values)


def _head_size(width: int, heads: int) -> int:
    if integer_at_least("width", width, 1) % integer_at_least("heads", heads, 1):
        raise ValueError(f"width {width} is not a multiple of {heads} heads; give key_size and value_size")
    return width // heads
