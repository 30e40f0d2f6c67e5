"""The delta rule, with and without forgetting: one step of gradient descent for every token."""

from __future__ import annotations

from typing import Self

from jax import Array

from mesascope.core import split_keys
from mesascope.specs import OpenUnit

from ._rule import Decay, Gate, MemoryRule, MemorySizes, MemoryToken, applied, outer, rule


def corrected(memory: Array, token: MemoryToken, rate: Array) -> Array:
    """Return M + β (v − M k) k*: a step of size β down the gradient of ½ ‖v − M k‖²."""
    error = token.value - applied(memory, token.key)
    return memory + outer(rate * error, token.key)


@rule("delta-net")
class DeltaNet(MemoryRule):
    r"""DeltaNet: $M_t = M_{t-1} + \beta_t (v_t - M_{t-1} k_t) k_t^*$, read as $M_t q_t$.

    A memory with keys longer than $\sqrt{2/\beta_t}$ diverges on such keys: keys of unit length never do. With free keys that
    are independent $N(0, s^2 I)$, $k_t \in \mathbb{R}^w$, its mean square stays bounded for constant
    $\beta < 2/((w + 2) s^2)$ and diverges above.

    Attributes:
        rate: β, one number for every head.

    Source: schlag2021, section on the delta rule; yang2024, section 2.
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
        return cls(Gate.gaussian(sizes, rate, scale, key=key))

    def gates(self, stream: Array) -> tuple[Array, ...]:
        """Return β_t."""
        return (self.rate(stream),)

    def write(self, memory: Array, token: MemoryToken) -> Array:
        """Return M + β (v − M k) k*."""
        (rate,) = token.gates
        return corrected(memory, token, rate)


@rule("gated-delta-net")
class GatedDeltaNet(MemoryRule):
    r"""Gated DeltaNet: $M_t = \alpha_t M_{t-1} (I - \beta_t k_t k_t^*) + \beta_t v_t k_t^*$, read as $M_t q_t$.

    Attributes:
        rate: β, one number for every head.
        decay: α, one number for every head.

    Source: yang2025, section on the gated delta rule.
    """

    rate: Gate
    decay: Gate

    @classmethod
    def gaussian(
        cls, sizes: MemorySizes, scale: float, rate: OpenUnit = 0.5, decay: Decay = 0.9, *, key: Array
    ) -> Self:
        """Return the rule with independent N(0, scale²) weights of the gates.

        Args:
            sizes: the sizes of the memories.
            scale: standard deviation > 0 of the weights.
            rate: β in (0, 1) where the stream is 0; it is trained.
            decay: α in (0, 1) where the stream is 0; it is trained.
            key: random key.
        """
        keys = split_keys(key, 2)
        return cls(
            Gate.gaussian(sizes, rate, scale, key=keys[0]), Gate.gaussian(sizes, decay, scale, key=keys[1])
        )

    def gates(self, stream: Array) -> tuple[Array, ...]:
        """Return β_t and α_t."""
        return self.rate(stream), self.decay(stream)

    def write(self, memory: Array, token: MemoryToken) -> Array:
        """Return N + β (v − N k) k* with N = α M."""
        rate, decay = token.gates
        return corrected(decay * memory, token, rate)
