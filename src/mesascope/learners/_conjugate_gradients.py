"""The method of conjugate gradients."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import einsum, inverse_above, per_example, real_in_precision_of
from ._checks import checked_integer, nonnegative_number
from ._fitting import PENALTY, learner
from ._learner import Features, Learner
from ._moments import NormalEquations


@learner(
    "conjugate-gradients",
    integer="steps",
    largest=48,
    family="least-squares",
    flexibility=80,
    example={"steps": 5},
)
class ConjugateGradients(Learner):
    r"""$K$ steps of conjugate gradients on the mean loss, from $W_0 = 0$.

    With $R_0 = P_0 = \bar C$ and $\langle A, B \rangle = \mathrm{Re}\, \mathrm{tr} A B^*$,

    $$\alpha = \frac{\|R_k\|^2}{\langle P_k \bar S, P_k \rangle}, \quad W_{k+1} = W_k + \alpha P_k, \quad
    R_{k+1} = R_k - \alpha P_k \bar S, \quad P_{k+1} = R_{k+1} + \frac{\|R_{k+1}\|^2}{\|R_k\|^2} P_k.$$

    $W$ is one variable: its rows share the step sizes. After as many steps as $\bar S$ has distinct positive eigenvalues,
    $W$ is the least-squares solution of minimum norm. It stops if $\|R_k\|$ is below rounding, $16\, \varepsilon \|\bar C\|$.

    Args:
        steps: $K \ge 1$.

    Raises:
        TypeError, ValueError: `steps` is not an integer ≥ 1.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    steps: int | Array

    def __init__(self, steps: int):
        self.steps = checked_integer("steps", steps, 1)

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        return einsum(
            "...mp,...p->...m", descended(features.gram, features.cross, self.steps), features.query
        )


@learner(
    "ridge-conjugate-gradients",
    PENALTY,
    integer="steps",
    largest=48,
    extends=("conjugate-gradients", (("penalty", 0.0),)),
    family="least-squares",
    flexibility=125,
    example={"penalty": 0.7, "steps": 2},
)
class RidgeConjugateGradients(Learner):
    r"""$K$ steps of conjugate gradients towards ridge regression, from $W_0 = 0$.

    The steps of `ConjugateGradients` with $\bar S + \frac rn I$ in place of $\bar S$: they minimize
    $\frac1{2n} \left( \sum_i |y_i - W x_i|^2 + r \|W\|^2 \right)$.

    Args:
        penalty: $r \ge 0$; 0 is conjugate gradients on the loss.
        steps: $K \ge 1$.

    Raises:
        TypeError, ValueError: `penalty` is not a finite number ≥ 0, `steps` is not an integer ≥ 1.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    penalty: Array
    steps: int | Array

    def __init__(self, penalty: Any, steps: int):
        self.penalty = nonnegative_number("penalty", penalty)
        self.steps = checked_integer("steps", steps, 1)

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        gram = features.gram
        shift = per_example(real_in_precision_of(gram, self.penalty), features.n[..., None, None])
        weights = descended(
            gram + shift * jnp.eye(gram.shape[-1], dtype=gram.dtype), features.cross, self.steps
        )
        return einsum("...mp,...p->...m", weights, features.query)


def descended(gram: Array, cross: Array, steps: Any, start: Array | None = None) -> Array:
    """Return W after some steps from `start`, by default 0, with the Gram matrix (…, p, p) and C̄ (…, m, p)."""
    floor = (16 * jnp.finfo(gram.dtype).eps) ** 2 * _product(cross, cross)

    def step(_: Any, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        weights, residual, direction = carry
        along = einsum("...mi,...ij->...mj", direction, gram)
        square = _product(residual, residual)
        active = square > floor
        size = jnp.where(
            active, square * inverse_above(jnp.zeros_like(square), _product(along, direction)), 0
        )
        weights, new = weights + size * direction, residual - size * along
        turn = jnp.where(active, _product(new, new) * inverse_above(floor, square), 0)
        return weights, new, new + turn * direction

    start = jnp.zeros_like(cross) if start is None else start
    residual = cross - einsum("...mi,...ij->...mj", start, gram)
    found: Array = jax.lax.fori_loop(0, steps, step, (start, residual, residual))[0]
    return found


def _product(a: Array, b: Array) -> Array:
    """Return Re tr A B^*, shape (…, 1, 1)."""
    return jnp.sum(a.real * b.real + a.imag * b.imag, axis=(-2, -1), keepdims=True)
