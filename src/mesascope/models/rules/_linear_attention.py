"""Rules that add every token: linear attention, with and without forgetting."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from mesascope.core import finite_reals

from ._rule import (
    Decay,
    Gate,
    MemoryRule,
    MemorySizes,
    MemoryToken,
    applied,
    outer,
    over_batch,
    require_shape,
    rule,
)


@rule("linear-attention", make="plain")
class Additive(MemoryRule):
    r"""Linear attention: $M_t = M_{t-1} + v_t k_t^*$, read as $M_t q_t$.

    Source: katharopoulos2020, equations (16)–(20), without the denominator.
    """

    @classmethod
    def plain(cls) -> Self:
        """Return the rule."""
        return cls()

    def write(self, memory: Array, token: MemoryToken) -> Array:
        """Return M + v k*."""
        return memory + outer(token.value, token.key)


class Weighted(NamedTuple):
    """M = Σ v k* (m, w, batch) and z = Σ k (w, batch)."""

    matrix: Array
    weights: Array


@rule("normalized-linear-attention", make="plain")
class NormalizedAdditive(MemoryRule):
    r"""Linear attention whose weights sum to 1: $M_t q_t / (z_t^* q_t)$ with $z_t = \sum_{i \le t} k_i$.

    For positive features it is an average of the values with weights $k_i^* q_t$; where these sum to 0 the answer is 0, also if
    the square of their sum is less than the smallest number of the precision.

    Source: katharopoulos2020, equations (16)–(20).
    """

    @classmethod
    def plain(cls) -> Self:
        """Return the rule."""
        return cls()

    def empty(self, value: Array, key: Array) -> Weighted:
        """Return zeros."""
        return Weighted(jnp.zeros((len(value), *key.shape), value.dtype), jnp.zeros_like(key))

    def write(self, memory: Weighted, token: MemoryToken) -> Weighted:
        """Return M + v k* and z + k."""
        return Weighted(memory.matrix + outer(token.value, token.key), memory.weights + token.key)

    def read(self, memory: Weighted, query: Array) -> Array:
        """Return M q / (z* q)."""
        total = jnp.sum(memory.weights.conj() * query, 0)
        none = jnp.abs(total) < jnp.finfo(total.dtype).tiny ** 0.5  # its derivative has 1/total²
        return applied(memory.matrix, query) * jnp.where(none, 0, 1 / jnp.where(none, 1, total))


@rule("retention", make="fixed")
class Retention(MemoryRule):
    r"""Linear attention that forgets at a fixed rate: $M_t = \gamma M_{t-1} + v_t k_t^*$, with a number γ for every head.

    Attributes:
        decay: γ of every head in (0, 1], shape (heads,); it is not trained.

    Raises:
        TypeError, ValueError: for anything but numbers in (0, 1].

    Source: sun2023, section on retention (recurrent form, without rotation), for γ = 1 − 2^{−5−h} of head h = 0, 1, ….
    """

    decay: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, decay: Any):
        numbers = finite_reals("decay", decay)
        if numbers.ndim != 1 or not ((numbers > 0) & (numbers <= 1)).all():
            raise ValueError(
                f"decay must be a list of numbers in (0, 1], got {numbers.tolist()}; a memory with more diverges"
            )
        self.decay = tuple(numbers.tolist())

    @classmethod
    def fixed(cls, sizes: MemorySizes, decay: Decay | None = None) -> Self:
        """Return the rule.

        Args:
            sizes: the sizes of the memories.
            decay: γ in (0, 1) of all heads; by default 1 − 2^{−5−h} for head h = 0, 1, ….
        """
        return cls([1 - 2.0 ** (-5 - h) if decay is None else float(decay) for h in range(sizes.heads)])

    def check(self, sizes: MemorySizes) -> None:
        """Refuse another number of heads than that of the layer."""
        require_shape(self, "decay", (len(self.decay),), (sizes.heads,))

    def write(self, memory: Array, token: MemoryToken) -> Array:
        """Return γ M + v k*."""
        decay = over_batch(jnp.asarray(self.decay, memory.real.dtype), memory.shape[-1])
        return decay * memory + outer(token.value, token.key)


@rule("gated-linear-attention")
class GatedLinearAttention(MemoryRule):
    r"""Linear attention that forgets as its gate says: $M_t = M_{t-1} \,\mathrm{diag}(\alpha_t) + v_t k_t^*$.

    With one number α_t for every head it is the state-space duality of Mamba-2.

    Attributes:
        decay: α, with one number for every head, or for every entry of the keys.

    Source: yang2024gla, section on gated linear attention; dao2024 for one number.
    """

    decay: Gate

    @classmethod
    def gaussian(
        cls,
        sizes: MemorySizes,
        scale: float,
        decay: Decay = 0.9,
        gate: Literal["head", "entry"] = "entry",
        *,
        key: Array,
    ) -> Self:
        """Return the rule with independent N(0, scale²) weights of the gate.

        Args:
            sizes: the sizes of the memories.
            scale: standard deviation > 0 of the weights.
            decay: α in (0, 1) where the stream is 0; it is trained.
            gate: whether a head has one gate, or one for every entry of the keys.
            key: random key.
        """
        size = sizes.key if gate == "entry" else 1
        return cls(Gate.gaussian(sizes, decay, scale, key=key, size=size))

    def gate_sizes(self, sizes: MemorySizes) -> tuple[int, ...]:
        """Return one, or the number of entries of a key."""
        return 1, sizes.key

    def gates(self, stream: Array) -> tuple[Array, ...]:
        """Return α_t."""
        return (self.decay(stream),)

    def write(self, memory: Array, token: MemoryToken) -> Array:
        """Return M diag(α) + v k*."""
        (decay,) = token.gates
        return decay[None] * memory + outer(token.value, token.key)
