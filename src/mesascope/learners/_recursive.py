"""Learners that update an estimate of the weights and its covariance after every example."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from ._arithmetic import einsum, real_in_precision_of
from ._checks import fraction, nonnegative_number, positive_number
from ._examples import Context
from ._fitting import PENALTY, Scalar, learner
from ._learner import Features, Learner
from ._online import answers, error_of, no_weights, outer


@learner(
    "recursive-least-squares",
    PENALTY,
    Scalar("forgetting", 0.5, 0.99, bounded=True),
    extends=("ridge", (("forgetting", 1.0),)),
    family="least-squares",
    flexibility=140,
    example={"penalty": 0.7, "forgetting": 0.9},
)
class RecursiveLeastSquares(Learner):
    r"""Recursive least squares with exponential forgetting.

    The minimum of $\sum_{i \le n} \phi^{n-i} |y_i - W x_i|^2 + r \phi^n \|W\|^2$, computed by one update per example
    from $W = 0$ and $P = I/r$:

    $$g = \frac{P x_i}{\phi + x_i^* P x_i}, \qquad W \leftarrow W + (y_i - W x_i) g^*, \qquad
    P \leftarrow (P - g x_i^* P)/\phi.$$

    Without forgetting it is ridge regression. Along a direction that no input has, $P$ grows as $\phi^{-n}$: when that exceeds
    the inverse of the precision answers are rounding, and later NaN (wind-up). At one $n$ it is `DiscountedRidge` with the
    penalty $r \phi^n$.

    Args:
        penalty: $r > 0$; a mesa layer with regularization $\lambda$ has $r = 1/\lambda$.
        forgetting: $\phi \in (0, 1]$; 1 means no forgetting.

    Raises:
        TypeError, ValueError: `penalty` is not a finite number > 0, `forgetting` is not a number in (0, 1].

    Source: vonoswald2024, section on the mesa layer, for $\phi = 1$.
    """

    reads: ClassVar[type[Features]] = Context

    penalty: Array
    forgetting: Array

    def __init__(self, penalty: Any, forgetting: Any = 1.0):
        self.penalty = positive_number("penalty", penalty)
        self.forgetting = fraction("forgetting", forgetting)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        return _predict(features, self.penalty, self.forgetting, jnp.zeros_like(self.penalty))


@learner(
    "kalman-filter",
    PENALTY,
    Scalar("drift", 1e-4, 1.0),
    extends=("ridge", (("drift", 0.0),)),
    family="least-squares",
    flexibility=150,
    example={"penalty": 0.7, "drift": 0.1},
)
class KalmanFilter(Learner):
    r"""The Kalman filter for drifting weights: the Bayesian prediction of a noisy process with a drifting transition.

    $y_i = W_i x_i + \xi_i$ with noise of variance $\sigma^2$ in every entry, $W_{i+1} = W_i + \Delta_i$ with independent
    entries of variance $\delta \sigma^2$ in $\Delta_i$, and entries of variance $\sigma^2/r$ in $W_1$. Only the ratios
    matter. From $W = 0$ and $P = I/r$,

    $$g = \frac{P x_i}{1 + x_i^* P x_i}, \qquad W \leftarrow W + (y_i - W x_i) g^*, \qquad
    P \leftarrow P - g x_i^* P + \delta I.$$

    Without drift it is ridge regression.

    Args:
        penalty: $r > 0$, the variance of the noise divided by that of the initial weights.
        drift: $\delta \ge 0$, the variance of a change of the weights divided by that of the noise.

    Raises:
        TypeError, ValueError: `penalty` is not a finite number > 0, `drift` is not a finite number ≥ 0.
    """

    reads: ClassVar[type[Features]] = Context

    penalty: Array
    drift: Array

    def __init__(self, penalty: Any, drift: Any):
        self.penalty = positive_number("penalty", penalty)
        self.drift = nonnegative_number("drift", drift)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        return _predict(features, self.penalty, jnp.ones_like(self.penalty), self.drift)


def _predict(context: Context, penalty: Array, forgetting: Array, drift: Array) -> Array:
    """Return W_n q, with the weights of all n from one pass over the examples."""
    penalty, forgetting, drift = (
        real_in_precision_of(context.x, value) for value in (penalty, forgetting, drift)
    )
    weights = no_weights(context)
    identity = jnp.eye(weights.shape[-1], dtype=weights.dtype)

    def step(state: tuple[Array, Array], x: Array, y: Array) -> tuple[Array, Array]:
        weights, covariance = state
        spread = einsum("...ij,...j->...i", covariance, x)
        scale = (forgetting + einsum("...i,...i->...", x.conj(), spread).real)[..., None, None]
        weights = weights + outer(error_of(weights, x, y), spread) / scale
        covariance = (covariance - outer(spread, spread) / scale) / forgetting
        return weights, covariance + drift * identity

    covariance = jnp.broadcast_to(identity / penalty, (*context.x.shape[:-2], *identity.shape))
    return answers(context, step, (weights, covariance), lambda state: state[0])
