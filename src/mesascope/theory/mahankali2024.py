r"""One layer of linear attention as one step of gradient descent for various targets (mahankali2024, arXiv 2307.03576).

Setting: tokens $(x_i, y_i)$, $i \le n$, and a query $(x_q, 0)$; $y_i = f(x_i) + \sigma \xi_i$. The optimal single layer of
linear self-attention predicts $\hat y = x_q^\top \hat w$, $\hat w = \eta\, P \sum_i y_i x_i$: one step of (preconditioned)
gradient descent from 0 on $\frac12 \sum_i (w^\top x_i - y_i)^2$. Losses here are $\frac12 E (\hat y - y_q)^2$ with the noisy
label $y_q$ of the query, as in the task `FewShot(n)`.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from ..core import covariance_matrix, exact, finite_nonnegative, integer_at_least
from ..specs import Number
from ._construction import Construction
from .zhang2024 import layer


def step_size(dim: int, examples: int, noise_variance: Number = 0) -> Fraction:
    r"""Return the step size of the optimal layer for linear targets.

    $$\eta_* = \frac1{n + d + 1 + \sigma^2}$$

    for $x \sim N(0, I)$, $w \sim N(0, I)$. With $g = \sum_i y_i x_i$ it is $E\, w^\top g / E |g|^2$, where $E\, w^\top g = n d$
    and $E |g|^2 = n d (n + d + 1 + \sigma^2)$. The same step is optimal for $x \sim N(0, \Sigma)$, $w \sim N(0, \Sigma^{-1})$
    with $P = \Sigma^{-1}$, since $\Sigma^{-1/2} x$ and $\Sigma^{1/2} w$ are $N(0, I)$.

    Args:
        dim: $d \ge 1$.
        examples: $n \ge 1$.
        noise_variance: $\sigma^2 \ge 0$.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: mahankali2024, Theorems 1 and 2 (as an expectation); the closed form is derived here.
    """
    n, d, noise = _checked(dim, examples, noise_variance)
    return 1 / (n + d + 1 + noise)


def least_loss(dim: int, examples: int, noise_variance: Number = 0) -> Fraction:
    r"""Return the loss of the optimal layer for linear targets, $\frac12 (d (1 - n \eta_*) + \sigma^2)$.

    Arguments and errors as in `step_size`, also for $x \sim N(0, \Sigma)$, $w \sim N(0, \Sigma^{-1})$.

    Source: derived here.
    """
    n, d, noise = _checked(dim, examples, noise_variance)
    return (d * (1 - n * step_size(dim, examples, noise_variance)) + noise) / 2


def relu_step_size(dim: int, examples: int, noise_variance: Number = 0) -> Fraction:
    r"""Return the step size of the optimal layer for random two-layer ReLU networks.

    $f(x) = \sum_{k \le m} a_k\, \mathrm{relu}(v_k^\top x)$, $a_k \sim N(0, 2/m)$ and $v_k \sim N(0, I)$ drawn for every
    prompt, $x \sim N(0, I)$. The linear part of $f$ is $\beta = E_x f(x) x = \frac12 \sum_k a_k v_k$ with
    $E |\beta|^2 = \frac d2$, and $E f(x)^2 |x|^2 = E |x|^4 = d (d + 2)$, both for every width $m$. With $g = \sum_i y_i x_i$,
    $E\, \beta^\top g = n \frac d2$ and $E |g|^2 = n (n-1) \frac d2 + n d (d + 2 + \sigma^2)$, so that

    $$\eta_* = \frac{E\, \beta^\top g}{E |g|^2} = \frac1{n + 2 d + 3 + 2 \sigma^2} .$$

    Arguments and errors as in `step_size`.

    Source: derived here for one family of mahankali2024, Theorem 3 (rotation-invariant targets with symmetric sign).
    """
    n, d, noise = _checked(dim, examples, noise_variance)
    return 1 / (n + 2 * d + 3 + 2 * noise)


def relu_least_loss(dim: int, examples: int, noise_variance: Number = 0) -> Fraction:
    r"""Return the loss of the layer of `relu_step_size`, $\frac12 (d (1 - \frac12 n \eta_*) + \sigma^2)$, since $E f(x)^2 = d$.

    Arguments and errors as in `step_size`.

    Source: derived here.
    """
    n, d, noise = _checked(dim, examples, noise_variance)
    return (d * (1 - n * relu_step_size(dim, examples, noise_variance) / 2) + noise) / 2


def one_step(dim: int, step: Number, covariance: Any = None) -> Construction:
    r"""Return the layer that predicts $\hat y = x_q^\top \hat w$, $\hat w = \eta\, \Sigma^{-1} \sum_i y_i x_i$.

    $W^{KQ} = \mathrm{diag}(\Sigma^{-1}, 0)$ and $W^{PV} = -\mathrm{diag}(0, \eta)$, a sum over the $n$ examples, $\rho = 1$;
    $\hat y$ is minus the last entry of the query token.

    Args:
        dim: $d \ge 1$.
        step: $\eta$.
        covariance: $\Sigma$, shape `(d, d)`; by default the identity.

    Returns:
        Weights of shape `(1, d + 1, d + 1)`.

    Raises:
        TypeError, ValueError: an argument out of range, or a covariance of another shape.

    Source: mahankali2024, section 3.
    """
    d = integer_at_least("dim", dim, 1)
    sigma = np.eye(d) if covariance is None else covariance_matrix("covariance", covariance)
    if len(sigma) != d:
        raise ValueError(f"covariance must have shape ({d}, {d}) for dim = {d}, got {sigma.shape}")
    return layer(np.linalg.inv(sigma), -float(step))


def _checked(dim: int, examples: int, noise_variance: Number) -> tuple[int, int, Fraction]:
    n, d = integer_at_least("examples", examples, 1), integer_at_least("dim", dim, 1)
    return n, d, exact(finite_nonnegative("noise_variance", noise_variance))
