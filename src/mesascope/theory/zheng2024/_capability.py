"""The risk of the trained layer on test sequences, and the ratio of its predictions to the data."""

from fractions import Fraction

from ...core import exact, integer_at_least
from ...processes import DiagonalUnitary
from ...specs import Number
from ._assumptions import MaskName
from ._limits import moments_of, require_diagonal


def finite_context_risk(process: DiagonalUnitary, context_length: int, product: Number) -> Fraction | float:
    r"""Return the mean squared error per coordinate of diagonal weights with $ab = c$ after $t$ tokens.

    $$\frac1d E\|\hat y_t - x_{t+1}\|^2 = c^2 \left(\kappa_2 + \frac{\kappa_3}{t-1}\right) - 2 c \kappa_1
    + E x_{1j}^2$$

    With $c$ from `limit_product` it is the test risk of the trained layer, which tends to
    `capability_gap` for $t \to \infty$ and $T \to \infty$. It holds for every law with finite moments to order 6, with
    $\kappa$ averaged over the coordinates; the normalizer is $\rho_t = t-1$.

    Args:
        process: diagonal unitary test sequences (possibly with another law than in training).
        context_length: $t \ge 2$, possibly longer than the training horizon.
        product: $c = ab$.

    Raises:
        MomentError: a moment of order 2, 4 or 6 does not exist.
        ValueError: `context_length` is below 2.
    """
    t = integer_at_least("context length", context_length, 2)
    moments = moments_of(process)
    square = moments.kappa2 + moments.kappa3 / exact(t - 1)
    return product**2 * square - 2 * product * moments.kappa1 + moments.m2


def capability_gap(process: DiagonalUnitary, *, mask: MaskName = None) -> Fraction | float:
    r"""Return the excess risk per coordinate that remains as $T, t \to \infty$.

    $$E x_{1j}^2 - \kappa_1^2/\kappa_2 \ge 0$$

    It is zero if and only if $x_{1j} \in \{0, \pm c\}$ (Cauchy–Schwarz; see `satisfies_assumption_42`): zero
    for one-hot tokens and signs, $\frac25\sigma^2$ for the Gaussian law (zheng2024, Theorem 4.2, Proposition
    4.1 and Example 4.1).

    Args:
        process: diagonal unitary sequences.
        mask: `"off-diagonal"` if gradients off the two diagonals are masked during training.

    Raises:
        AssumptionError: trained weights do not remain diagonal for this law.
        MomentError: a moment of order 2, 4 or 6 does not exist.
    """
    moments = require_diagonal(process, mask, "the capability gap")
    return moments.m2 - moments.kappa1**2 / moments.kappa2


def expected_ratio(
    process: DiagonalUnitary, product: Number | None = None, *, mask: MaskName = None
) -> Fraction | float:
    r"""Return the mean of the elementwise quotient $\hat y_{t,j} / x_{t+1,j}$ over test sequences.

    For diagonal weights $\hat y_{t,j}/x_{t+1,j} = \frac c{t-1} \sum_{i<t} \sum_r x_{1r}^2
    (\bar\lambda_j \lambda_r)^{t-i}$, where only $r = j$ contributes to the mean over $\lambda$: the quotient has
    the mean

    $$c\,E[x_{1j}^2 \mid x_{1j} \ne 0] = \frac{c\,E x_{1j}^2}{P(x_{1j} \ne 0)}$$

    at every context length $t$ and horizon. With $c = \kappa_1/\kappa_2$, the limit of training as $T \to
    \infty$, it is $1/5$ for the Gaussian law at any scale (zheng2024, Proposition 4.1, refined) and 1 for
    one-hot tokens.

    Args:
        process: diagonal unitary sequences.
        product: $c = ab$; by default the infinite-horizon limit $\kappa_1/\kappa_2$.
        mask: `"off-diagonal"` if gradients off the two diagonals are masked during training; matters only
            for `product=None`.

    Raises:
        AssumptionError: `product` is `None` and trained weights do not remain diagonal for this law.
        MomentError: a moment of order 2, 4 or 6 does not exist.
        ValueError: the token is always zero.
    """
    moments = moments_of(process)
    nonzero = 1 - exact(process.law.zero_probability(process.dim))
    if nonzero == 0:
        raise ValueError(f"the quotient is 0/0 everywhere: {process.law.describe()} is always zero")
    return _or_limit(process, product, mask) * moments.m2 / nonzero


def correlation_ratio(
    process: DiagonalUnitary, product: Number | None = None, *, mask: MaskName = None
) -> Fraction | float:
    r"""Return $E[\hat y_{t,j} \bar x_{t+1,j}] / E|x_{t+1,j}|^2$, the regression of predictions on the data.

    $$\frac{c\,\kappa_1}{E x_{1j}^2}$$

    at every context length $t$. With $c = \kappa_1/\kappa_2$ it is $\kappa_1^2/(\kappa_2 E x_{1j}^2) \le 1$,
    and 1 minus this ratio is the capability gap divided by $E x_{1j}^2$; the ratio is $3/5$ for the Gaussian law. Unlike
    the mean of quotients it exists for any weights; the quotient has light tails only at exactly diagonal weights, where
    $x_{1j}$ cancels.

    Arguments and errors as in `expected_ratio`.
    """
    moments = moments_of(process)
    if moments.m2 == 0:
        raise ValueError(f"the ratio is 0/0: {process.law.describe()} is always zero")
    return _or_limit(process, product, mask) * moments.kappa1 / moments.m2


def _or_limit(process: DiagonalUnitary, product: Number | None, mask: MaskName) -> Number:
    if product is not None:
        return product
    moments = require_diagonal(process, mask, "the limit of training")
    return moments.kappa1 / moments.kappa2
