"""Gradient descent that adapts to the examples: its step size, or a step size for every coordinate."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import einsum, inverse_above, real_in_precision_of
from ._checks import checked_integer, real_number
from ._fitting import Scalar, learner
from ._learner import Features, Learner
from ._moments import NormalEquations
from ._spectrum import Ends, SpectralLearner


@learner(
    "adaptive-gradient-descent",
    integer="steps",
    largest=48,
    family="descent",
    flexibility=85,
    example={"steps": 3},
)
class AdaptiveGradientDescent(SpectralLearner):
    r"""$K$ steps of gradient descent from $W_0 = 0$ with the step size that is best for the eigenvalues of the examples.

    $$\eta = \frac2{s_{\min} + s_{\max}}, \qquad f_K(s) = \frac{1 - (1 - \eta s)^K}s$$

    with the smallest and the largest eigenvalue of $\bar S$ that are not 0: of all step sizes it shrinks the largest error,
    $\max_s |1 - \eta s|$, most.

    Args:
        steps: $K \ge 1$.

    Raises:
        TypeError, ValueError: `steps` is not an integer ≥ 1.
    """

    steps: int | Array

    def __init__(self, steps: int):
        self.steps = checked_integer("steps", steps, 1)

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return f_K by its recursion."""
        step_size = 2 / (ends.smallest + ends.largest)  # 0 without examples
        return jax.lax.fori_loop(
            0, self.steps, lambda _, f: f + step_size * (1 - values * f), jnp.zeros_like(values)
        )


@learner(
    "jacobi-gradient-descent",
    Scalar("damping", 0.05, 2.0),
    integer="steps",
    largest=48,
    family="descent",
    flexibility=158,
    example={"damping": 0.3, "steps": 4},
)
class JacobiGradientDescent(Learner):
    r"""$K$ damped Jacobi steps on the normal equations, from $W_0 = 0$: descent preconditioned by the diagonal of $\bar S$.

    $$W_{k+1} = W_k + \omega (\bar C - W_k \bar S) D^{-1}, \qquad D = \mathrm{diag}(\bar S_{11}, \dots, \bar S_{pp}).$$

    A coordinate that is 0 in all examples is left out.

    Args:
        damping: $\omega$, a number; 1 is Jacobi's method.
        steps: $K \ge 1$.

    Raises:
        TypeError, ValueError: `damping` is not a finite number, `steps` is not an integer ≥ 1.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    damping: Array
    steps: int | Array

    def __init__(self, damping: Any, steps: int):
        self.damping = real_number("damping", damping)
        self.steps = checked_integer("steps", steps, 1)

    @property
    def rotation_invariant(self) -> bool:
        """No: the diagonal has coordinates."""
        return False

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        gram, cross = features.gram, features.cross
        diagonal = jnp.diagonal(gram, axis1=-2, axis2=-1).real
        scale = real_in_precision_of(cross, self.damping) * inverse_above(jnp.zeros_like(diagonal), diagonal)

        def step(_: Any, weights: Array) -> Array:
            return weights + (cross - einsum("...mi,...ij->...mj", weights, gram)) * scale[..., None, :]

        weights = jax.lax.fori_loop(0, self.steps, step, jnp.zeros_like(cross))
        return einsum("...mp,...p->...m", weights, features.query)
