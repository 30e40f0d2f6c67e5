"""The limit of gradient flow of diagonal weights: the product a b, and the loss."""

from fractions import Fraction
from typing import NamedTuple

from ...core import exact, integer_at_least
from ...processes import DiagonalUnitary, NextToken
from ...specs import Number
from ._assumptions import MaskName, diagonal_stays_diagonal
from ._moments import TokenMoments, token_moments
from ._sums import weight_sums


class FlowCoefficients(NamedTuple):
    r"""Coefficients of the flow of diagonal weights: $a' = -b(\alpha ab - \beta)$, $b' = -a(\alpha ab - \beta)$.

    Attributes:
        alpha: $\alpha = \sum_t w_t r_t^2 (\kappa_2 + \kappa_3/(t-1)) > 0$ with $r_t = (t-1)/\rho_t$.
        beta: $\beta = \kappa_1 \sum_t w_t r_t > 0$.
    """

    alpha: Number
    beta: Number


def moments_of(process: DiagonalUnitary) -> TokenMoments:
    """Return the moments of the initial token of a process.

    Raises:
        TypeError: `process` is not a `DiagonalUnitary`.
        MomentError: a moment of order 2, 4 or 6 does not exist.
    """
    if not isinstance(process, DiagonalUnitary):
        raise TypeError(f"zheng2024 is about DiagonalUnitary processes, got {type(process).__name__}")
    return token_moments(process.law, process.dim)


def require_diagonal(process: DiagonalUnitary, mask: MaskName, what: str) -> TokenMoments:
    """Return the moments of the initial token after checking that the flow of diagonal weights remains diagonal.

    Raises:
        AssumptionError: it does not; the message begins with `what` and gives the moment that violates the condition.
    """
    moments = moments_of(process)
    diagonal_stays_diagonal(process.law, process.dim, mask=mask).require(
        f"{what} of {process.law.describe()} in dimension {process.dim}"
    )
    return moments


def limit_product(
    process: DiagonalUnitary, task: NextToken, *, mask: MaskName = None, normalizer: str = "t-1"
) -> Fraction | float:
    r"""Return the limit $a_* b_*$ of the product in gradient flow from diagonal weights.

    $$c_* = \frac{\kappa_1 \sum_t w_t r_t}{\sum_t w_t r_t^2 \left(\kappa_2 + \frac{\kappa_3}{t-1}\right)},
    \qquad r_t = (t-1)/\rho_t, \quad t = 2, \dots, T-1.$$

    With the paper's $w_t = 1$ and $\rho_t = t-1$ this is Theorem 4.1 of zheng2024,
    $\kappa_1 / (\kappa_2 + \frac{\kappa_3}{T-2} \sum_{t=2}^{T-1} \frac1{t-1})$; with the off-diagonal
    gradients masked and the full-one token, Theorem 4.3. It is reached from all initial weights $a_0 I$, $b_0 I$
    except $a_0 = -b_0$, where the limit is $0$.

    Args:
        process: diagonal unitary sequences; the law gives $\kappa_1$, $\kappa_2$, $\kappa_3$.
        task: horizon $T$ and weights $w_t$.
        mask: `"off-diagonal"` if gradients off the two diagonals are masked.
        normalizer: $\rho_t$, one of `"t-1"`, `"t"`, `"1"`.

    Returns:
        An exact fraction for up to 2000 context lengths with non-zero weight, otherwise a float.

    Raises:
        AssumptionError: the flow does not remain diagonal for this law; the message gives the moment that
            violates the condition.
        MomentError: a moment of order 2, 4 or 6 does not exist.
        ValueError: an unknown mask or normalizer.
    """
    require_diagonal(process, mask, "the limit product")
    alpha, beta = flow_coefficients(process, task, normalizer=normalizer)
    return beta / alpha


def limit_loss(
    process: DiagonalUnitary, task: NextToken, *, mask: MaskName = None, normalizer: str = "t-1"
) -> Fraction | float:
    r"""Return the limit of the population loss in gradient flow from diagonal weights.

    $$L_* = \frac d2 \left(E x_{1j}^2 \sum_t w_t - \frac{\beta^2}{\alpha}\right)$$

    Arguments and errors as in `limit_product`; $\alpha$, $\beta$ those of `flow_coefficients`.
    """
    product = limit_product(process, task, mask=mask, normalizer=normalizer)
    return diagonal_loss(process, task, product, normalizer=normalizer)


def masked_full_one_limit(dim: int, task: NextToken) -> Fraction | float:
    r"""Return the limit of $ab$ for the full-one token with masked off-diagonal gradients.

    $$\left(1 + (d-1) \frac{\sum_t w_t/(t-1)}{\sum_t w_t}\right)^{-1}$$

    With $w_t = 1$ this is Theorem 4.3 of zheng2024. It is `limit_product(..., mask="off-diagonal")` for
    `Constant(1)`.

    Args:
        dim: the token dimension $d \ge 1$.
        task: horizon $T$ and weights $w_t$.

    Raises:
        TypeError: `dim` is not an integer.
        ValueError: `dim` is below 1.
    """
    dim = integer_at_least("dim", dim, 1)
    sums = weight_sums(task)
    return 1 / (1 + (dim - 1) * _ratio(sums.cross, sums.linear))


def diagonal_loss(
    process: DiagonalUnitary, task: NextToken, product: Number, *, normalizer: str = "t-1"
) -> Fraction | float:
    r"""Return the population loss at diagonal weights, which depends on them through $c = ab$ only.

    $$L(c) = \sum_t w_t \frac d2 \left[c^2 r_t^2 \left(\kappa_2 + \frac{\kappa_3}{t-1}\right)
    - 2 c\,r_t \kappa_1 + E x_{1j}^2\right], \qquad r_t = (t-1)/\rho_t$$

    This holds for every law with finite moments to order 6, with $\kappa$ averaged over the coordinates: at
    diagonal weights, averaging over the phases leaves only even powers of every coordinate.

    Args:
        process: diagonal unitary sequences.
        task: horizon $T$ and weights $w_t$.
        product: $c = ab$.
        normalizer: $\rho_t$, one of `"t-1"`, `"t"`, `"1"`.

    Raises:
        MomentError: a moment of order 2, 4 or 6 does not exist.
        ValueError: an unknown normalizer.
    """
    alpha, beta = flow_coefficients(process, task, normalizer=normalizer)
    constant = moments_of(process).m2 * task.total_weight
    return Fraction(process.dim, 2) * (product**2 * alpha - 2 * product * beta + constant)


def flow_coefficients(
    process: DiagonalUnitary, task: NextToken, *, normalizer: str = "t-1"
) -> FlowCoefficients:
    r"""Return $\alpha$ and $\beta$ of the flow $a' = -b(\alpha ab - \beta)$, $b' = -a(\alpha ab - \beta)$.

    $\alpha = \sum_t w_t r_t^2 (\kappa_2 + \kappa_3/(t-1))$ and $\beta = \kappa_1 \sum_t w_t r_t$, where
    $r_t = (t-1)/\rho_t$. The loss is $L = d(\frac12 \alpha c^2 - \beta c + \text{const})$ in $c = ab$, and
    each of the $d$ entries $a$ has the gradient $\frac1d \partial L/\partial a$.

    Args:
        process: diagonal unitary sequences.
        task: horizon $T$ and weights $w_t$.
        normalizer: $\rho_t$, one of `"t-1"`, `"t"`, `"1"`.

    Raises:
        MomentError: a moment of order 2, 4 or 6 does not exist.
        ValueError: an unknown normalizer.
    """
    moments, sums = moments_of(process), weight_sums(task, normalizer)
    alpha = moments.kappa2 * sums.quadratic + moments.kappa3 * sums.cross
    return FlowCoefficients(alpha, moments.kappa1 * sums.linear)


def _ratio(numerator: Number, denominator: Number) -> Fraction | float:
    """Return the quotient, exactly if both are exact."""
    if isinstance(numerator, float) or isinstance(denominator, float):
        return float(numerator) / float(denominator)
    return exact(numerator) / denominator
