"""Longhorn: the memory nearest to the one before that reduces the error of the token."""

from __future__ import annotations

from typing import Literal, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from mesascope.specs import OpenUnit

from ._delta import corrected
from ._rule import Gate, MemoryRule, MemorySizes, MemoryToken, outer, rule


@rule("longhorn")
class Longhorn(MemoryRule):
    r"""Longhorn: an implicit step of online regression.

    $$M_t = \mathrm{argmin}_M \|M - M_{t-1}\|^2 + \sum_j \beta_{t,j} |v_{t,j} - (M k_t)_j|^2.$$

    Row j of the minimum is $M_{t-1} + \Delta_{t,j} (v_t - M_{t-1} k_t) k_t^*$ with $\Delta_{t,j} = \beta_{t,j}/(1 +
    \beta_{t,j} \|k_t\|^2)$: a step of the delta rule that never overshoots, for keys of any length. With `products="diagonal"`
    $k_t k_t^*$ is replaced by its diagonal, as in the authors' layer, which then is linear in the memory entry by entry:

    $$M_t = (1 - \Delta_t \otimes |k_t|^2) \odot M_{t-1} + (\Delta_t \odot v_t) k_t^*.$$

    Attributes:
        rate: β, one number for every entry of the values.
        products: "full" for the minimum itself, or "diagonal".

    Source: liu2025, Theorem 3.1, and the approximation after it for "diagonal".
    """

    rate: Gate
    products: Literal["full", "diagonal"] = eqx.field(static=True, default="full")

    @classmethod
    def gaussian(
        cls,
        sizes: MemorySizes,
        scale: float,
        rate: OpenUnit = 0.5,
        products: Literal["full", "diagonal"] = "full",
        *,
        key: Array,
    ) -> Self:
        """Return the rule with independent N(0, scale²) weights of the gate.

        Args:
            sizes: the sizes of the memories.
            scale: standard deviation > 0 of the weights.
            rate: β in (0, 1) where the stream is 0; it is trained.
            products: "full" for the minimum itself, or "diagonal" for the authors' approximation.
            key: random key.
        """
        return cls(Gate.gaussian(sizes, rate, scale, key=key, size=sizes.value), products)

    def gates(self, stream: Array) -> tuple[Array, ...]:
        """Return β_t."""
        return (self.rate(stream),)

    def write(self, memory: Array, token: MemoryToken) -> Array:
        """Return the memory after the implicit step."""
        (rate,) = token.gates
        squares = jnp.abs(token.key) ** 2
        step = rate / (1 + rate * squares.sum(0))
        if self.products == "full":
            return corrected(memory, token, step)
        return (1 - step[:, None] * squares[None]) * memory + outer(step * token.value, token.key)
