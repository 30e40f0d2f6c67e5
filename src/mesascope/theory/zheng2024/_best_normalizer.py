"""The optimal normalizer, a question of the reviews."""

from fractions import Fraction

from ...core import exact
from ...processes import DiagonalUnitary, NextToken
from ._limits import moments_of


def best_normalizer_shift(process: DiagonalUnitary) -> Fraction:
    r"""Return the shift $s$ of the best normalizer $\rho_t = t - 1 + s$ of diagonal weights.

    With $u_t = c(t-1)/\rho_t$ the loss at diagonal weights is $\sum_t w_t \frac d2 [u_t^2(\kappa_2 +
    \kappa_3/(t-1)) - 2u_t\kappa_1 + E x_{1j}^2]$. Every $u_t$ has its optimal value $\kappa_1/(\kappa_2 +
    \kappa_3/(t-1))$ if

    $$\rho_t = t - 1 + \frac{\kappa_3}{\kappa_2}, \qquad c = \frac{\kappa_1}{\kappa_2},$$

    for all weights $w_t$ and horizons. The shift is $(d-1)/5$ for the Gaussian law of any scale.

    Raises:
        MomentError: a moment of order 2, 4 or 6 does not exist.
        ValueError: the token is always zero.
    """
    moments = moments_of(process)
    if moments.kappa2 == 0:
        raise ValueError(f"all normalizers have the same loss: {process.law.describe()} is always zero")
    return moments.kappa3 / moments.kappa2


def best_normalized_loss(process: DiagonalUnitary, task: NextToken) -> Fraction | float:
    r"""Return the smallest loss of diagonal weights over all normalizers $\rho_t$.

    $$L = \sum_t w_t \frac d2 \left(E x_{1j}^2 - \frac{\kappa_1^2}{\kappa_2 + \kappa_3/(t-1)}\right)$$

    Arguments and errors as in `best_normalizer_shift`; the sum over the context lengths is exact.
    """
    best_normalizer_shift(process)  # refuses a token that is always zero
    moments = moments_of(process)
    weights = [(t, 1) for t in task.support] if task.weights is None else list(task.weights)
    gained = (exact(w) * moments.kappa1**2 / (moments.kappa2 + moments.kappa3 / (t - 1)) for t, w in weights)
    return Fraction(process.dim, 2) * (moments.m2 * task.total_weight - sum(gained, Fraction(0)))
