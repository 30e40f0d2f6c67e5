"""MesaNet: ridge regression after every token, with gates, solved exactly or by conjugate gradients."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least, split_keys
from mesascope.specs import OpenUnit, Positive, Size

from .._arrays import axes, real_array
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


class Moments(NamedTuple):
    """G = Σ v k* (m, w, batch) and H = Σ k k* (w, w, batch), weighted by the gates."""

    products: Array
    gram: Array


@rule("mesa-net")
class MesaNet(MemoryRule):
    r"""MesaNet: the solution of weighted ridge regression, $G_t (H_t + \Lambda)^{-1} q_t$.

    $$G_t = \gamma_t G_{t-1} + \beta_t v_t k_t^*, \qquad H_t = \gamma_t H_{t-1} + \beta_t k_t k_t^*.$$

    The matrix is the minimum of $\sum_{i \le t} \zeta_i \|v_i - M k_i\|^2 + \mathrm{Tr}\, M \Lambda M^*$ with the weights
    $\zeta_i = \beta_i \prod_{i < s \le t} \gamma_s$. With `steps` the linear system is solved by that many steps of conjugate
    gradients from 0, fewer where the residual is below rounding, 16 ε ‖q‖.

    Attributes:
        rate: β, one number for every head.
        decay: γ, one number for every head.
        log_penalty: the logarithm of the diagonal of Λ, shape (heads, key size).
        steps: steps of conjugate gradients ≥ 1, or None: the exact solution.

    Raises:
        TypeError, ValueError: for a penalty of another shape, or steps < 1.

    Source: vonoswald2025, equation (5), and the section on conjugate gradients.
    """

    rate: Gate
    decay: Gate
    log_penalty: Array = eqx.field(metadata=axes(2))
    steps: int | None = eqx.field(static=True)

    def __init__(self, rate: Gate, decay: Gate, log_penalty: Any, steps: int | None = None):
        self.rate, self.decay = rate, decay
        self.log_penalty = real_array("log_penalty", log_penalty, 2)
        self.steps = None if steps is None else integer_at_least("steps", steps, 1)

    @classmethod
    def gaussian(
        cls,
        sizes: MemorySizes,
        scale: float,
        rate: OpenUnit = 0.9,
        decay: Decay = 0.9,
        penalty: Positive = 1.0,
        steps: Size | None = None,
        *,
        key: Array,
    ) -> Self:
        """Return the rule with independent N(0, scale²) weights of the gates.

        Args:
            sizes: the sizes of the memories.
            scale: standard deviation > 0 of the weights.
            rate: β in (0, 1) where the stream is 0; it is trained.
            decay: γ in (0, 1) where the stream is 0; it is trained.
            penalty: the diagonal of Λ > 0 at the start; it is trained.
            steps: steps of conjugate gradients ≥ 1; by default the system is solved exactly.
            key: random key.
        """
        keys = split_keys(key, 2)
        gate, forget = (
            Gate.gaussian(sizes, v, scale, key=k) for v, k in zip((rate, decay), keys, strict=True)
        )
        return cls(gate, forget, jnp.full((sizes.heads, sizes.key), math.log(penalty)), steps)

    def check(self, sizes: MemorySizes) -> None:
        """Refuse gates and a penalty of other sizes than those of the layer."""
        super().check(sizes)
        require_shape(self, "log_penalty", self.log_penalty.shape, (sizes.heads, sizes.key))

    def gates(self, stream: Array) -> tuple[Array, ...]:
        """Return β_t and γ_t."""
        return self.rate(stream), self.decay(stream)

    def empty(self, value: Array, key: Array) -> Moments:
        """Return zeros."""
        return Moments(*(jnp.zeros((len(one), *key.shape), value.dtype) for one in (value, key)))

    def write(self, memory: Moments, token: MemoryToken) -> Moments:
        """Return G and H after the token."""
        rate, decay = token.gates
        products = decay * memory.products + outer(rate * token.value, token.key)
        return Moments(products, decay * memory.gram + outer(rate * token.key, token.key))

    def read(self, memory: Moments, query: Array) -> Array:
        """Return G (H + Λ)^{-1} q."""
        gram = memory.gram
        penalty = over_batch(jnp.exp(self.log_penalty), query.shape[-1]).astype(gram.real.dtype)
        if self.steps is None:
            solution = _solved(gram, penalty, query)
        else:
            solution = _by_conjugate_gradients(gram, penalty, query, self.steps)
        return applied(memory.products, solution)


def _solved(gram: Array, penalty: Array, query: Array) -> Array:
    """Return (H + Λ)^{-1} q."""
    matrices = jnp.moveaxis(gram, -1, 0) + jax.vmap(jnp.diag)(penalty.T)
    return jnp.linalg.solve(matrices, query.T[..., None])[..., 0].T


def _by_conjugate_gradients(gram: Array, penalty: Array, query: Array, steps: int) -> Array:
    """Return the solution of (H + Λ) x = q after steps of conjugate gradients from x = 0 (Hestenes and Stiefel).

    A member of the batch whose residual is below rounding takes no more steps: 16 ε ‖q‖. The solution is linear in q: it is
    found for queries whose largest entry is 1, whose squares are not too small.
    """
    size = jax.lax.stop_gradient(jnp.max(jnp.abs(query), 0))
    query = query / jnp.where(size > 0, size, 1)
    floor = (16 * jnp.finfo(gram.dtype).eps) ** 2 * _square(query)

    def step(_: Any, state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, residual, direction, square = state
        active = square > floor
        image = applied(gram, direction) + penalty * direction
        length = _ratio(square, jnp.sum((direction.conj() * image).real, 0), active)
        x, residual = x + length * direction, residual - length * image
        after = _square(residual)
        return x, residual, residual + _ratio(after, square, active) * direction, after

    start = jnp.zeros_like(query), query, query, _square(query)
    return size * jax.lax.fori_loop(0, steps, step, start)[0]


def _square(vectors: Array) -> Array:
    return jnp.sum(jnp.abs(vectors) ** 2, 0)


def _ratio(numerator: Array, denominator: Array, active: Array) -> Array:
    """Return a/b where active, else 0."""
    return jnp.where(active, numerator / jnp.where(active, denominator, 1), 0)
