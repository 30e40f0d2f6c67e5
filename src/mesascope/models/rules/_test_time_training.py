"""TTT-Linear: a linear model that is trained in context, in mini-batches of tokens."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least, split_keys
from mesascope.specs import OpenUnit, Size, SpecError, show_number

from .._arrays import axes, gaussian_array, real_array
from .._batched_matmul import once
from ._rule import Gate, MemoryRule, MemorySizes, MemoryToken, applied, outer, over_batch, require_shape, rule

_EPSILON = 1e-6
"""Added to the variance of layer normalization, as in the authors' program."""


class Affine(NamedTuple):
    """A matrix W (m, w, batch) and a bias b (m, batch)."""

    matrix: Array
    bias: Array


class MiniBatch(NamedTuple):
    """The inner model at the start of the mini-batch, the model of now, and the number of tokens seen."""

    start: Affine
    now: Affine
    seen: Array


class InnerNorm(eqx.Module):
    r"""$z \mapsto k + \gamma \odot \mathrm{LN}(z) + \delta$: what the inner model adds to the key, normalized.

    Attributes:
        gain: γ of every head, shape (heads, value size).
        shift: δ of every head, shape (heads, value size).
    """

    gain: Array = eqx.field(metadata=axes(2))
    shift: Array = eqx.field(metadata=axes(2))

    def __call__(self, z: Array, key: Array) -> Array:
        """Return the output of the inner model: z (m, batch) and k (m, batch) → (m, batch)."""
        z = once(z)
        centered = z - z.mean(0)
        normalized = centered * jax.lax.rsqrt((centered**2).mean(0) + _EPSILON)
        gain, shift = (over_batch(one, z.shape[-1]).astype(z.dtype) for one in (self.gain, self.shift))
        return key + gain * normalized + shift


def _refuse_divergence(spec: Any) -> None:
    """Refuse steps that lead away from the minimum of the inner loss where the unit keys of a mini-batch are alike.

    Every token multiplies the error by 1 − η(‖k‖² + 1), the 1 for the bias. With layer normalization the gradient falls as the
    inner model grows, so that it cannot diverge in this way.
    """
    if not spec.norm and spec.rate * spec.mini_batch >= 1:
        raise SpecError(
            f"must be less than 1/mini_batch = {1 / spec.mini_batch:g}, got {show_number(spec.rate)}: steps of a mini-batch "
            "add up, and without normalization the memory diverges where its keys of unit length are alike",
            "rate",
        )


@rule("ttt-linear", refuse=_refuse_divergence)
class TTTLinear(MemoryRule):
    r"""TTT-Linear: gradient descent on $\frac12 \|f(k_t) - v_t\|^2$ in mini-batches of b tokens.

    $$W_t = W_{t'} - \sum_{s=t'+1}^{t} \eta_s \nabla \ell(W_{t'}; k_s, v_s), \qquad f(k) = W k + b,$$

    where t' is the last token of the mini-batch before; the bias b is trained in the same way. With an inner layer
    normalization $f(k) = k + \mathrm{LN}(W k + b)$. A query is answered by $f(q_t)$ with the weights $W_t$. Without
    normalization and for mini-batches of one token it is the delta rule with a bias. Streams are real.

    Attributes:
        rate: η, one number for every head.
        w_0: W before the first token, shape (heads, value size, key size).
        b_0: b before the first token, shape (heads, value size).
        norm: the inner layer normalization, or None; with it keys and values have one size.
        mini_batch: b ≥ 1.

    Raises:
        TypeError, ValueError: for arrays of other shapes, or b < 1.

    Source: sun2024, sections on mini-batch TTT and on instantiations of TTT layers.
    """

    real: ClassVar[bool] = True

    rate: Gate
    w_0: Array = eqx.field(metadata=axes(3))
    b_0: Array = eqx.field(metadata=axes(2))
    norm: InnerNorm | None
    mini_batch: int = eqx.field(static=True)

    def __init__(self, rate: Gate, w_0: Any, b_0: Any, norm: InnerNorm | None = None, mini_batch: int = 1):
        self.rate, self.norm = rate, norm
        self.w_0, self.b_0 = real_array("w_0", w_0, 3), real_array("b_0", b_0, 2)
        if self.w_0.shape[:2] != self.b_0.shape:
            raise ValueError(
                f"w_0 {self.w_0.shape} and b_0 {self.b_0.shape} do not fit; use (heads, value, key) and (heads, value)"
            )
        if norm is not None and self.w_0.shape[1] != self.w_0.shape[2]:
            raise ValueError(
                f"norm: values of {self.w_0.shape[1]} entries cannot be added to keys of {self.w_0.shape[2]}; "
                "make key_size and value_size equal, or do without normalization (norm = false)"
            )
        self.mini_batch = integer_at_least("mini_batch", mini_batch, 1)

    @classmethod
    def gaussian(
        cls,
        sizes: MemorySizes,
        scale: float,
        rate: OpenUnit = 0.05,
        mini_batch: Size = 16,
        norm: bool = True,
        *,
        key: Array,
    ) -> Self:
        """Return the rule with independent N(0, scale²) weights of the gate and of W, and b = 0, before the first token.

        Args:
            sizes: the sizes of the memories.
            scale: standard deviation > 0 of the weights.
            rate: η in (0, 1) where the stream is 0; it is trained.
            mini_batch: tokens b ≥ 1 whose gradients are taken at the same weights.
            norm: whether the inner model has a layer normalization.
            key: random key.
        """
        heads, value = sizes.heads, sizes.value
        inner = InnerNorm(jnp.ones((heads, value)), jnp.zeros((heads, value))) if norm else None
        key_gate, key_start = split_keys(key)
        w_0 = gaussian_array(key_start, (heads, value, sizes.key), scale)
        gate = Gate.gaussian(sizes, rate, scale, key=key_gate)
        return cls(gate, w_0, jnp.zeros((heads, value)), inner, mini_batch)

    def check(self, sizes: MemorySizes) -> None:
        """Refuse a gate and an initial model of other sizes than those of the layer."""
        super().check(sizes)
        require_shape(self, "w_0", self.w_0.shape, (sizes.heads, sizes.value, sizes.key))
        if self.norm is not None:
            for name, part in (("norm.gain", self.norm.gain), ("norm.shift", self.norm.shift)):
                require_shape(self, name, part.shape, (sizes.heads, sizes.value))

    def gates(self, stream: Array) -> tuple[Array, ...]:
        """Return η_t."""
        return (self.rate(stream),)

    def empty(self, value: Array, key: Array) -> MiniBatch:
        """Return W_0 and b_0."""
        batch = key.shape[-1]
        start = Affine(*(over_batch(one, batch).astype(value.dtype) for one in (self.w_0, self.b_0)))
        return MiniBatch(start, start, jnp.zeros((), int))

    def write(self, memory: MiniBatch, token: MemoryToken) -> MiniBatch:
        """Return the memory after a gradient at the weights with which the mini-batch started."""
        (rate,) = token.gates
        first = memory.seen % self.mini_batch == 0
        start = jax.tree.map(lambda a, b: jnp.where(first, a, b), memory.now, memory.start)
        step = once(-rate * self._gradient(start, token))
        now = Affine(memory.now.matrix + outer(step, token.key), memory.now.bias + step)
        return MiniBatch(start, now, memory.seen + 1)

    def read(self, memory: MiniBatch, query: Array) -> Array:
        """Return f(q) with the weights of now."""
        answer = applied(memory.now.matrix, query) + memory.now.bias
        return answer if self.norm is None else self.norm(answer, query)

    def _gradient(self, model: Affine, token: MemoryToken) -> Array:
        """Return the gradient of ½ ‖f(k) − v‖² in z = W k + b; that in W is its product with k*."""
        z = applied(model.matrix, token.key) + model.bias
        norm = self.norm
        if norm is None:
            return z - token.value
        output, pull_back = jax.vjp(lambda z: norm(z, token.key), z)
        return pull_back(output - token.value)[0]
