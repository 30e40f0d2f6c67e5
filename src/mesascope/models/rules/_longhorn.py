"""Longhorn: the memory nearest to the one before that reduces the error of the token."""

from __future__ import annotations

from typing import Self

import jax.numpy as jnp
from jax import Array

from mesascope.specs import OpenUnit

from ._delta import corrected
from ._rule import Gate, MemoryRule, MemorySizes, MemoryToken, outer, rule


@rule("longhorn")
class Longhorn(MemoryRule):
    r"""Longhorn: $M_t = M_{t-1} + (\Delta_t \odot (v_t - M_{t-1} k_t)) k_t^*$, $\Delta_t = \beta_t/(1 + \beta_t \|k_t\|^2)$.

    It is an implicit step of online regression,

    $$M_t = \mathrm{argmin}_M \|M - M_{t-1}\|^2 + \sum_j \beta_{t,j} |v_{t,j} - (M k_t)_j|^2:$$

    a step of the delta rule that never overshoots, for keys of any length.

    Attributes:
        rate: β, one number for every entry of the values.

    Source: liu2025, Theorem 3.1.
    """

    rate: Gate

    @classmethod
    def gaussian(cls, sizes: MemorySizes, scale: float, rate: OpenUnit = 0.5, *, key: Array) -> Self:
        """Return the rule with independent N(0, scale²) weights of the gate.

        Args:
            sizes: the sizes of the memories.
            scale: standard deviation > 0 of the weights.
            rate: β in (0, 1) where the stream is 0; it is trained.
            key: random key.
        """
        return cls(Gate.gaussian(sizes, rate, scale, key=key, size=sizes.value))

    def gate_sizes(self, sizes: MemorySizes) -> tuple[int, ...]:
        """Return the number of entries of a value."""
        return (sizes.value,)

    def gates(self, stream: Array) -> tuple[Array, ...]:
        """Return β_t."""
        return (self.rate(stream),)

    def write(self, memory: Array, token: MemoryToken) -> Array:
        """Return the memory after the implicit step."""
        return corrected(memory, token, _step(token))


@rule("diagonal-longhorn")
class DiagonalLonghorn(Longhorn):
    r"""Longhorn as trained: $M_t = (1 - \Delta_t \otimes |k_t|^2) \odot M_{t-1} + (\Delta_t \odot v_t) k_t^*$.

    This form is trained by its authors: where $k_t k_t^*$ multiplies the memory in the step of `Longhorn`, its diagonal stands.

    Attributes:
        rate: β, one number for every entry of the values.

    Source: liu2025, the approximation after Theorem 3.1.
    """

    def write(self, memory: Array, token: MemoryToken) -> Array:
        """Return (1 − Δ ⊗ |k|²) ⊙ M + (Δ ⊙ v) k*."""
        step, squares = _step(token), jnp.abs(token.key) ** 2
        return (1 - outer(step, squares)) * memory + outer(step * token.value, token.key)


def _step(token: MemoryToken) -> Array:
    """Return Δ = β/(1 + β ‖k‖²)."""
    (rate,) = token.gates
    return rate / (1 + rate * jnp.sum(jnp.abs(token.key) ** 2, 0))
