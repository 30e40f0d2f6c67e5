"""The mesa layer: attention that solves ridge regression in context."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from mesascope.specs import Positive, Size

from ._arrays import axes, finite_array, positive_number
from ._batch_last_layer import BatchLastLayer, in_product_type
from ._heads import checked_factors, factor_shapes, gaussian_factors, head_streams, projected_heads
from ._recursive_least_squares import causal_least_squares
from ._specified import layer


@layer("mesa")
class MesaLayer(BatchLastLayer):
    r"""The mesa layer: z_t ↦ Σ_h W_P,h Φ_h,t q_h,t with the ridge solution Φ_h,t of every head.

    With v_i = W_V,h z_i, k_i = W_K,h z_i and q_t = W_Q,h z_t,

        Φ_t = argmin_Φ ½ Σ_{i≤t} ‖v_i − Φ k_i‖² + ‖Φ‖²/(2λ) = (Σ_{i≤t} v_i k_i*) (Σ_{i≤t} k_i k_i* + I/λ)^{-1},

    exactly, by recursive least squares. Divided by λ it becomes linear attention with ρ = 1 as λ → 0. There is no residual
    connection: `LinearAttentionStack` and `Residual` add it.

    Attributes:
        w_k, w_q: shape (heads, key size, width); real or complex.
        w_p: shape (heads, output width, value size).
        w_v: shape (heads, value size, width).
        log_regularization: log λ, shared by the heads; training the logarithm keeps λ positive.

    Raises:
        ValueError, TypeError: for shapes that do not fit, non-finite weights, λ that is not a positive number.

    Source: vonoswald2024, section on the mesa layer.
    """

    w_k: Array = eqx.field(metadata=axes(3))
    w_q: Array = eqx.field(metadata=axes(3))
    w_p: Array = eqx.field(metadata=axes(3))
    w_v: Array = eqx.field(metadata=axes(3))
    log_regularization: Array = eqx.field(metadata=axes(0))

    def __init__(self, *, w_k: Any, w_q: Any, w_p: Any, w_v: Any, regularization: Any = 1.0):
        self.w_k, self.w_q, self.w_p, self.w_v = checked_factors(w_k, w_q, w_p, w_v)
        value = positive_number("regularization", regularization)
        self.log_regularization = finite_array("log_regularization", jnp.log(value), 0)

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
        regularization: Positive = 1.0,
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
            regularization: λ > 0 at the start; it is trained.
        """
        shapes = factor_shapes(width, heads, key_size, value_size, output_width)
        factors = gaussian_factors(key, shapes, [positive_number("scale", scale)] * 4)
        return cls(**factors._asdict(), regularization=regularization)

    @property
    def regularization(self) -> Array:
        """λ > 0; a large λ means weak regularization."""
        return jnp.exp(self.log_regularization)

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
        """True."""
        return True

    def on_batch_last(self, stream: Array) -> Array:
        """Return the new stream: (n, width, batch) → (n, output width, batch)."""
        stream = in_product_type(stream, self.w_k, self.w_q, self.w_p, self.w_v)
        values, keys, queries = (head_streams(w, stream) for w in (self.w_v, self.w_k, self.w_q))
        return projected_heads(self.w_p, causal_least_squares(values, keys, queries, self.regularization))
