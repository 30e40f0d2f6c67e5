"""Linear attention with separate keys and queries of low rank, and values that are not factored."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least, split_keys
from mesascope.specs import Positive, Size

from ._arrays import axes, finite_array, gaussian_array, positive_number, refuse_stacked
from ._batch_last_layer import BatchLastLayer
from ._context import check_context
from ._linear_self_attention import LinearSelfAttention
from ._normalizer import Normalizer, check_normalizer
from ._specified import Context, layer


@layer("low-rank-linear-attention")
class LowRankLinearSelfAttention(BatchLastLayer):
    """Linear attention with W^KQ_h = W_K,h* W_Q,h of rank R, and W^PV_h as one matrix.

    The same map as `LinearSelfAttention` with these weights, and another gradient flow: a head is a product of three factors.

    Attributes:
        w_k, w_q: shape (heads, rank, width); real or complex.
        w_pv: shape (heads, output width, width).
        normalizer, context: as in `LinearSelfAttention`.

    Raises:
        ValueError, TypeError: for shapes that do not fit, a rank above the width, non-finite weights, an unknown normalizer or
            context.

    Source: zhang2025 (attention with separate keys and queries).
    """

    w_k: Array = eqx.field(metadata=axes(3))
    w_q: Array = eqx.field(metadata=axes(3))
    w_pv: Array = eqx.field(metadata=axes(3))
    normalizer: Normalizer = eqx.field(static=True)
    context: Context = eqx.field(static=True)

    def __init__(
        self, *, w_k: Any, w_q: Any, w_pv: Any, normalizer: Normalizer = "t-1", context: Context = "causal"
    ):
        given = {"w_k": w_k, "w_q": w_q, "w_pv": w_pv}
        k, q, pv = (finite_array(name, value, 3) for name, value in given.items())
        heads, rank, width = k.shape
        if not (k.shape == q.shape and (heads, width) == (pv.shape[0], pv.shape[2])):
            wanted = "w_k and w_q (heads, rank, width), w_pv (heads, out, width)"
            raise ValueError(
                f"weights do not fit: expected {wanted}, got {k.shape}, {q.shape} and {pv.shape}"
            )
        _check_rank(rank, width)
        self.w_k, self.w_q, self.w_pv = k, q, pv
        self.normalizer, self.context = check_normalizer(normalizer), check_context(context)

    @classmethod
    def gaussian(
        cls,
        width: int,
        heads: Size = 1,
        scale: Positive = 0.1,
        *,
        key: Array,
        rank: Size = 1,
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
            rank: entries of the keys and queries of every head, at most the width.
            output_width: entries of an output token; by default the width.
            normalizer: the normalizer ρ_t.
            context: the tokens that a query attends to.
        """
        width, heads = integer_at_least("width", width, 1), integer_at_least("heads", heads, 1)
        output = width if output_width is None else integer_at_least("output_width", output_width, 1)
        scale, rank = positive_number("scale", scale), _check_rank(rank, width)
        shapes = {"w_k": (heads, rank, width), "w_q": (heads, rank, width), "w_pv": (heads, output, width)}
        drawn = zip(split_keys(key, 3), shapes.items(), strict=True)
        weights = {name: gaussian_array(one, shape, scale) for one, (name, shape) in drawn}
        return cls(**weights, normalizer=normalizer, context=context)

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

    def merged(self) -> LinearSelfAttention:
        """The layer with W^KQ_h = W_K,h* W_Q,h, which gives the same outputs.

        Raises:
            ValueError: for several layers in one, stacked along a first axis of their weights.
        """
        refuse_stacked(self)
        w_kq = jnp.einsum("hri,hrj->hij", self.w_k.conj(), self.w_q)
        return LinearSelfAttention(w_kq, self.w_pv, self.normalizer, self.context)

    def on_batch_last(self, stream: Array) -> Array:
        """Return the new stream: (n, width, batch) → (n, output width, batch)."""
        return self.merged().on_batch_last(stream)

    def last_on_batch_last(self, stream: Array) -> Array:
        """Return the last token only, from one memory for any context."""
        return self.merged().last_on_batch_last(stream)


def _check_rank(rank: int, width: int) -> int:
    """Return the rank.

    Raises:
        ValueError: it is below 1 or above the width: no more directions are there to be learned.
    """
    rank = integer_at_least("rank", rank, 1)
    if rank > width:
        raise ValueError(
            f"rank: must be at most the width {width} of the tokens, got {rank}; take a smaller rank"
        )
    return rank
