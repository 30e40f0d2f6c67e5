"""The memory of Titans: online gradient descent with momentum and weight decay."""

from __future__ import annotations

from typing import NamedTuple, Self

import jax.numpy as jnp
from jax import Array

from mesascope.core import split_keys
from mesascope.specs import OpenUnit

from ._rule import Gate, MemoryRule, MemorySizes, MemoryToken, applied, outer, rule


class Momentum(NamedTuple):
    """M and the momentum S, each (m, w, batch)."""

    matrix: Array
    momentum: Array


@rule("titans")
class Titans(MemoryRule):
    r"""Titans: $S_t = \eta_t S_{t-1} + \theta_t (v_t - M_{t-1} k_t) k_t^*$, $M_t = (1 - \alpha_t) M_{t-1} + S_t$.

    The memory is linear, and read as $M_t q_t$. $S_t$ is the momentum; $\alpha_t$ says how much is forgotten.

    The paper's loss has no factor ½, so that its θ is half of this one. While one key $k$ is repeated the memory is stable
    if $\theta \|k\|^2 < (1 + \eta)(2 - \alpha)$, thus for unit keys and all gates in (0, 1). With unit keys that change it can
    diverge: for θ = 0.9, η = 0.95, α = 0.01, a key at every fifth token and one orthogonal to it at the others, it grows
    by a factor of 1.9 in five tokens.

    Attributes:
        rate: θ, one number for every head.
        momentum: η, one number for every head.
        forgetting: α, one number for every head.

    Source: behrouz2025, section on the long-term memory.
    """

    rate: Gate
    momentum: Gate
    forgetting: Gate

    @classmethod
    def gaussian(
        cls,
        sizes: MemorySizes,
        scale: float,
        rate: OpenUnit = 0.5,
        momentum: OpenUnit = 0.5,
        forgetting: OpenUnit = 0.1,
        *,
        key: Array,
    ) -> Self:
        """Return the rule with independent N(0, scale²) weights of the gates.

        Args:
            sizes: the sizes of the memories.
            scale: standard deviation > 0 of the weights.
            rate: θ in (0, 1) where the stream is 0; it is trained.
            momentum: η in (0, 1) where the stream is 0; it is trained.
            forgetting: α in (0, 1) where the stream is 0; it is trained.
            key: random key.
        """
        values = rate, momentum, forgetting
        return cls(
            *(Gate.gaussian(sizes, v, scale, key=k) for v, k in zip(values, split_keys(key, 3), strict=True))
        )

    def gates(self, stream: Array) -> tuple[Array, ...]:
        """Return θ_t, η_t and α_t."""
        return self.rate(stream), self.momentum(stream), self.forgetting(stream)

    def empty(self, value: Array, key: Array) -> Momentum:
        """Return zeros."""
        zeros = jnp.zeros((len(value), *key.shape), value.dtype)
        return Momentum(zeros, zeros)

    def write(self, memory: Momentum, token: MemoryToken) -> Momentum:
        """Return M and S after the token."""
        rate, momentum, forgetting = token.gates
        error = token.value - applied(memory.matrix, token.key)
        after = momentum * memory.momentum + outer(rate * error, token.key)
        return Momentum((1 - forgetting) * memory.matrix + after, after)

    def read(self, memory: Momentum, query: Array) -> Array:
        """Return M q."""
        return applied(memory.matrix, query)
