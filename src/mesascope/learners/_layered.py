"""Gradient descent and GD++ whose steps have sizes of their own, as the layers of a trained network have."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from mesascope.core import finite_array

from ._arithmetic import real_in_precision_of
from ._fitting import learner
from ._spectrum import Ends, SpectralLearner


def _numbers(name: str, value: Any) -> Array:
    array = finite_array(name, value)
    if array.ndim != 1 or jnp.iscomplexobj(array):
        raise ValueError(
            f"{name} must be a list of real numbers, got an array of {array.dtype}, shape {array.shape}"
        )
    return array


def _steps(value: Any) -> Array:
    array = _numbers("step_sizes", value)
    if array.size == 0:
        raise ValueError("step_sizes must have at least one entry, got none")
    return array


@learner(
    "layered-gradient-descent",
    extends=("gradient-descent", ()),
    family="descent",
    flexibility=155,
    example={"step_sizes": (0.5, 0.1, 0.2)},
)
class LayeredGradientDescent(SpectralLearner):
    r"""Gradient descent from $W_0 = 0$ whose steps have the sizes $\eta_1, \dots, \eta_K$.

    $$W_k = W_{k-1} + \eta_k (\bar C - W_{k-1} \bar S), \qquad 1 - s f_K(s) = \prod_k (1 - \eta_k s).$$

    The order of the sizes makes no difference. $K$ layers of linear attention that read labels only are such steps.

    Args:
        step_sizes: $\eta_1, \dots, \eta_K$, numbers, shape (K,).

    Raises:
        TypeError, ValueError: sizes that are no finite real numbers, or none.

    Source: vonoswald2023, section 3; ahn2023, Lemma 1, for multiples of the identity.
    """

    step_sizes: Array

    def __init__(self, step_sizes: Any):
        self.step_sizes = _steps(step_sizes)

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return f_K by its recursion."""
        f = jnp.zeros_like(values)
        for step_size in real_in_precision_of(values, self.step_sizes):
            f = f + step_size * (1 - values * f)
        return f


@learner(
    "layered-gradient-descent++",
    extends=("layered-gradient-descent", ()),
    family="descent",
    flexibility=185,
    example={"step_sizes": (0.3, 0.2), "curvatures": (0.1,)},
)
class LayeredGradientDescentPlusPlus(SpectralLearner):
    r"""GD++ whose steps have sizes and curvature corrections of their own.

    With sizes $\eta_1, \dots, \eta_K$ and corrections $\gamma_1, \dots, \gamma_{K-1}$ the steps are those of
    `GradientDescentPlusPlus`, with $p_0 = 1$ and $f_0 = 0$:

    $$f_k = f_{k-1} + \eta_k p_{k-1}^2 (1 - s f_{k-1}), \qquad p_k = p_{k-1} (1 - \gamma_k s p_{k-1}^2).$$

    The correction of the last step changes no prediction.

    Args:
        step_sizes: $\eta_1, \dots, \eta_K$, numbers, shape (K,).
        curvatures: $\gamma_1, \dots, \gamma_{K-1}$, numbers, shape (K − 1,); 0 is gradient descent.

    Raises:
        TypeError, ValueError: entries that are no finite real numbers, no step, or another number of corrections.

    Source: vonoswald2023, section on curvature correction; ahn2023, section on transformers that also update the inputs.
    """

    step_sizes: Array
    curvatures: Array

    def __init__(self, step_sizes: Any, curvatures: Any):
        self.step_sizes, self.curvatures = _steps(step_sizes), _numbers("curvatures", curvatures)
        if self.curvatures.size != self.step_sizes.size - 1:
            raise ValueError(
                f"curvatures must be one fewer than the {self.step_sizes.size} step_sizes, got {self.curvatures.size}"
            )

    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return f_K by the recursion of f and p."""
        step_sizes, curvatures = (
            real_in_precision_of(values, one) for one in (self.step_sizes, self.curvatures)
        )
        f, scale = step_sizes[0] * jnp.ones_like(values), jnp.ones_like(values)
        for step_size, curvature in zip(step_sizes[1:], curvatures, strict=True):
            scale = scale * (1 - curvature * values * scale**2)
            f = f + step_size * scale**2 * (1 - values * f)
        return f
