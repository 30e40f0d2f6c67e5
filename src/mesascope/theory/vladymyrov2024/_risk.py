"""Losses in closed form: of the oracle, and of the best single layer relative to it."""

import numpy as np

from ...core import exact, finite_nonnegative, integer_at_least
from ...specs import Number
from .._wishart import wishart_mean
from ..vonoswald2023 import best_step_size


def oracle_loss(dim: int, examples: int, largest: Number) -> float:
    r"""Return the mean loss of ridge regression with known noise level of every prompt.

    $$L_{\mathrm{oracle}} = \tfrac12 E\, \sigma_\tau^2\, \mathrm{tr} \bigl(X^\top X + \sigma_\tau^2 I\bigr)^{-1}
    = \tfrac12 E \sum_{k=1}^d \Bigl( 1 - \frac{\sqrt{s_k}}{\sigma_{\max}} \arctan \frac{\sigma_{\max}}{\sqrt{s_k}} \Bigr)$$

    with the eigenvalues $s_k$ of $X^\top X = \sum_i x_i x_i^\top$: half the posterior variance of $w^\top x_q$,
    averaged over $\sigma_\tau \sim U(0, \sigma_{\max})$ in closed form and over the $s_k$ by `wishart_mean`.

    Args:
        dim: $d \ge 1$.
        examples: $N \ge 1$.
        largest: $\sigma_{\max} \ge 0$.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: derived here; the baseline of vladymyrov2024, section 4 (ridge regression with known noise variance).
    """
    d, n = integer_at_least("dim", dim, 1), integer_at_least("examples", examples, 1)
    sigma_max = float(finite_nonnegative("largest", largest))
    if sigma_max == 0:
        return max(d - n, 0) / 2  # least squares is exact on the span of the examples

    def unexplained(s: np.ndarray) -> np.ndarray:
        root = np.sqrt(s)
        return 1 - root / sigma_max * np.arctan2(sigma_max, root)

    return wishart_mean(unexplained, d, n) / 2


def oracle_loss_at(dim: int, examples: int, noise: Number) -> float:
    r"""Return the loss of ridge regression at one noise level, $\frac12 \sigma^2 E\, \mathrm{tr} (X^\top X + \sigma^2 I)^{-1}$.

    Args:
        dim: $d \ge 1$.
        examples: $N \ge 1$.
        noise: $\sigma \ge 0$.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: derived here, as `oracle_loss`, which is its mean over $\sigma \sim U(0, \sigma_{\max})$.
    """
    d, n = integer_at_least("dim", dim, 1), integer_at_least("examples", examples, 1)
    variance = float(finite_nonnegative("noise", noise)) ** 2
    if variance == 0:
        return oracle_loss(d, n, 0)
    return wishart_mean(lambda s: variance / (s + variance), d, n) / 2


def one_layer_loss(dim: int, examples: int, noise_variance: Number) -> float:
    r"""Return the loss of the best single layer, $\frac12 \bigl( d - \frac{dN}{N + d + 1 + E \sigma_\tau^2} \bigr)$.

    The query's label is 0, so that with one layer only heads that read inputs and write labels affect the prediction:
    $\hat y = \frac1N \sum_i y_i\, x_i^\top A x_q$. For isotropic inputs the optimum is one step of gradient descent,
    $A = \eta I$, with a step size that cannot depend on the noise of the prompt: that of `vonoswald2023.best_step_size`.

    Args:
        dim: $d \ge 1$.
        examples: $N \ge 1$.
        noise_variance: $E \sigma_\tau^2 \ge 0$.

    Raises:
        TypeError, ValueError: an argument that is not a number, or out of range.

    Source: derived here.
    """
    return float(dim * (1 - best_step_size(dim, examples, noise_variance=noise_variance))) / 2


def one_layer_excess(dim: int, examples: int, largest: Number) -> float:
    r"""Return the excess of the best single layer.

    $$L_1 - L_{\mathrm{oracle}}, \qquad E \sigma_\tau^2 = \tfrac13 \sigma_{\max}^2,$$

    with $L_1$ of `one_layer_loss`.

    Arguments and errors as in `oracle_loss`.

    Source: derived here; vladymyrov2024, table of adjusted evaluation losses, row of one layer.
    """
    variance = exact(finite_nonnegative("largest", largest)) ** 2 / 3
    return one_layer_loss(dim, examples, variance) - oracle_loss(dim, examples, largest)
