"""Linear attention whose heads are multiples of the identity on blocks of a token."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import integer_at_least
from mesascope.specs import Positive, show

from ._arrays import axes, gaussian_array, positive_number, real_array, refuse_stacked
from ._batch_last_layer import BatchLastLayer
from ._context import check_context
from ._linear_self_attention import LinearSelfAttention
from ._normalizer import Normalizer, check_normalizer
from ._specified import Context, layer

Pairs = tuple[tuple[int, int], ...]


@layer("diagonal-attention", make="on_last_entry")
class DiagonalSelfAttention(BatchLastLayer):
    """Linear attention with diagonal heads: z_t ↦ (1/ρ_t) (Ω ∘ Σ_i z_i z_i*) z_t, ∘ the entrywise product.

    Any number of heads W^PV_h = diag(p_h) and W^KQ_h = diag(q_h) is this layer with Ω = Σ_h p_h q_h^T. A token has
    blocks, and Ω is one number ω_ab on every pair of blocks: block a of the new token is Σ_b ω_ab Σ_i z_i,a (z_i,b* z_t,b).
    Pairs that are not listed have ω_ab = 0, also during training. For prompts, blocks (d, 1) are the input and the label:
    the pair (1, 0) alone is gradient descent, (0, 0) and (1, 0) together are GD++.

    Attributes:
        couplings: ω of the pairs, shape (pairs,); real.
        blocks: sizes of the blocks ≥ 1; the width is their sum.
        pairs: (a, b) for every coupling: the block that is written and the block that is read; by default all pairs.
        normalizer, context: as in `LinearSelfAttention`.

    Raises:
        ValueError, TypeError: for sizes below 1, a pair that is not a pair of blocks or is given twice, couplings of another
            shape or not finite, an unknown normalizer or context.

    Source: vladymyrov2024, section on diagonal attention matrices.
    """

    couplings: Array = eqx.field(metadata=axes(1))
    blocks: tuple[int, ...] = eqx.field(static=True)
    pairs: Pairs = eqx.field(static=True)
    normalizer: Normalizer = eqx.field(static=True)
    context: Context = eqx.field(static=True)

    def __init__(
        self,
        couplings: Any,
        blocks: Any,
        pairs: Any = None,
        normalizer: Normalizer = "t-1",
        context: Context = "causal",
    ):
        self.blocks = _checked_blocks(blocks)
        self.pairs = _checked_pairs(pairs, len(self.blocks))
        self.couplings = real_array("couplings", couplings, 1)
        if len(self.couplings) != len(self.pairs):
            raise ValueError(
                f"couplings: expected one for each of the {len(self.pairs)} pairs of blocks, got {len(self.couplings)}"
            )
        self.normalizer, self.context = check_normalizer(normalizer), check_context(context)

    @classmethod
    def gaussian(
        cls,
        blocks: Any,
        scale: Positive,
        *,
        key: Array,
        pairs: Any = None,
        normalizer: Normalizer = "t-1",
        context: Context = "causal",
    ) -> Self:
        """Return a layer whose couplings are independent N(0, scale²), scale > 0."""
        pairs = _checked_pairs(pairs, len(_checked_blocks(blocks)))
        drawn = gaussian_array(key, (len(pairs),), positive_number("scale", scale))
        return cls(drawn, blocks, pairs, normalizer, context)

    @classmethod
    def on_last_entry(
        cls,
        width: int,
        scale: Positive = 0.1,
        *,
        key: Array,
        normalizer: Normalizer = "t-1",
        context: Context = "causal",
    ) -> Self:
        """Return a layer with two blocks: the last entry of a token, which is the label in prompts, and the others.

        Args:
            width: entries of a token.
            scale: standard deviation > 0 of the couplings.
            key: random key.
            normalizer: the normalizer ρ_t.
            context: the tokens that a query attends to.
        """
        blocks = (width - 1, 1) if width > 1 else (1,)
        return cls.gaussian(blocks, scale, key=key, normalizer=normalizer, context=context)

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return sum(self.blocks)

    @property
    def output_width(self) -> int:
        """Entries of an output token: the same."""
        return self.width

    @property
    def causal(self) -> bool:
        """Whether `context` is "causal"."""
        return self.context == "causal"

    def merged(self) -> LinearSelfAttention:
        """Return the same layer with merged weights: one head for every block, which reads only that block."""
        refuse_stacked(self)
        matrix = jnp.zeros((len(self.blocks),) * 2, self.couplings.dtype)
        matrix = matrix.at[tuple(np.array(self.pairs).T)].set(self.couplings)
        member = np.repeat(np.eye(len(self.blocks)), self.blocks, axis=1)  # (blocks, width)
        writes = matrix.T @ jnp.asarray(member, matrix.dtype)  # head b: ω_ab on the entries of block a
        eye = jnp.eye(self.width, dtype=matrix.dtype)
        return LinearSelfAttention(
            jnp.asarray(member, matrix.dtype)[:, :, None] * eye,
            writes[:, :, None] * eye,
            self.normalizer,
            self.context,
        )

    def on_batch_last(self, stream: Array) -> Array:
        """Return the new stream: (n, width, batch) → (n, output width, batch)."""
        return self.merged().on_batch_last(stream)

    def last_on_batch_last(self, stream: Array) -> Array:
        """Return the last token only."""
        return self.merged().last_on_batch_last(stream)


def _checked_blocks(blocks: Any) -> tuple[int, ...]:
    if not isinstance(blocks, tuple | list) or not blocks:
        raise TypeError(
            f"blocks: must be the sizes of at least one block, such as (5, 1), got {show(blocks)}"
        )
    return tuple(integer_at_least(f"blocks[{k}]", size, 1) for k, size in enumerate(blocks))


def _checked_pairs(pairs: Any, blocks: int) -> Pairs:
    known = tuple((a, b) for a in range(blocks) for b in range(blocks))
    if pairs is None:
        return known
    given = tuple(tuple(pair) for pair in pairs)
    if not given or len(set(given)) != len(given) or not set(given) <= set(known):
        raise ValueError(
            f"pairs: must be distinct pairs of the {blocks} blocks, at least one, such as ((0, 0),), got {show(pairs)}"
        )
    return given
