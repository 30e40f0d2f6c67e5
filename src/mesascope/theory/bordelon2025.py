r"""Depth and context length: steps of gradient descent on Gaussian prompts of large dimension (bordelon2025, arXiv 2510.01098).

Setting: $n$ examples $x_i \sim N(0, \Sigma)$, $y_i = w^\top x_i$, and $L$ layers of linear attention that are the steps
$w_{\ell+1} = w_\ell - a_\ell \Gamma \hat S (w_\ell - w)$ from 0, $\hat S = \frac1n \sum_i x_i x_i^\top$. With
$p(s) = \prod_\ell (1 - a_\ell s)$ what is left of the task after them is $p(\Gamma \hat S)\, w$.

Errors are $E(\hat y - y)^2$ over that of the answer 0. Two families of data:

- *isotropic*, $\Sigma = \Gamma = I$, $w \sim N(0, I)$; also any fixed $\Sigma$ with $\Gamma = \Sigma^{-1}$ and
  $w \sim N(0, \Sigma^{-1})$: the error is $\frac1d E\, \mathrm{tr}\, p(\hat S)^2$. As $d \to \infty$ with $n = \alpha d$ the
  eigenvalues of $\hat S$ follow the law of Marchenko and Pastur.
- *rotated*: $\Sigma = U \mathrm{diag}(\lambda) U^\top$ with another rotation in every prompt, $\Gamma = I$, $w = U v$. At
  infinite context length $\hat S = \Sigma$ and the error is $\sum_k c_k\, p(\lambda_k)^2$ with
  $c_k = \lambda_k E v_k^2 / \sum_j \lambda_j E v_j^2$.

Both are $\int p^2 d\mu$ for a probability measure μ, so that its moments give the error of any steps, and the best ones.

*Power laws.* Let $\lambda_k = k^{-\nu}$ and $c_k \propto k^{-\nu\beta - 1}$, with the exponent β of the source of tasks. Then
$L$ equal steps leave, up to a factor, $\sum_{k > K} c_k \propto K^{-\nu\beta}$ with $\lambda_K \approx 1/L$: the error falls
as $L^{-\beta}$, whatever ν is.

Source: bordelon2025, abstract and figure 1; the formulas are derived here.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import comb

import numpy as np

from ..core import exact, finite_number, finite_positive, integer_at_least, spectral_moments
from ..specs import Number


def limit_moments(most: int, context: Number) -> list[Fraction]:
    r"""Return $\int s^k d\mu$, $k = 0, \dots, K$, of the law of Marchenko and Pastur, exactly.

    $\sum_{r=1}^{k} \frac1k \binom kr \binom k{r-1} \alpha^{-(r - 1)}$, numbers of Narayana times powers of $1/\alpha$.

    Args:
        most: $K \ge 0$.
        context: $\alpha = n/d > 0$.

    Raises:
        TypeError, ValueError: numbers out of range.
    """
    ratio = 1 / exact(finite_positive("context", context))
    count = integer_at_least("most", most, 0)
    return [Fraction(1)] + [
        sum(
            (Fraction(comb(k, r) * comb(k, r - 1), k) * ratio ** (r - 1) for r in range(1, k + 1)),
            Fraction(0),
        )
        for k in range(1, count + 1)
    ]


def finite_moments(most: int, dim: int, examples: int) -> list[Fraction]:
    r"""Return $\frac1d E\, \mathrm{tr}\, \hat S^k$, $k = 0, \dots, K$, exactly: the same for finite $d$ and $n$.

    Args:
        most: $K \ge 0$.
        dim: $d \ge 1$.
        examples: $n \ge 1$.

    Raises:
        TypeError, ValueError: numbers out of range.
    """
    return [one / dim for one in spectral_moments(most, dim, examples)]


def rotated_moments(most: int, eigenvalues: Sequence[Number], shares: Sequence[Number]) -> list[Fraction]:
    r"""Return $\sum_k c_k \lambda_k^m$, $m = 0, \dots, M$, exactly: those of rotated covariances at infinite context length.

    Args:
        most: $M \ge 0$.
        eigenvalues: $\lambda_k > 0$.
        shares: $c_k > 0$ up to a factor, as many.

    Raises:
        TypeError, ValueError: numbers out of range, or lists of different lengths.
    """
    lam = [exact(finite_positive(f"eigenvalues[{k}]", one)) for k, one in enumerate(eigenvalues)]
    weights = [exact(finite_positive(f"shares[{k}]", one)) for k, one in enumerate(shares)]
    if len(lam) != len(weights) or not lam:
        raise ValueError(
            f"eigenvalues and shares must be as many, at least one, got {len(lam)} and {len(weights)}"
        )
    total, count = sum(weights, Fraction(0)), integer_at_least("most", most, 0)
    pairs = [(c / total, x) for c, x in zip(weights, lam, strict=True)]
    return [sum((c * x**m for c, x in pairs), Fraction(0)) for m in range(count + 1)]


def error_of_steps(steps: Sequence[Number], moments: Sequence[Fraction]) -> Fraction:
    r"""Return $\int p^2 d\mu$ for $p(s) = \prod_\ell (1 - a_\ell s)$, exactly.

    Args:
        steps: $a_0, \dots, a_{L-1}$, finite.
        moments: of μ, up to $2L$ or more.

    Raises:
        TypeError, ValueError: numbers out of range, or too few moments.
    """
    left = [Fraction(1)]
    for i, step in enumerate(steps):
        a = exact(finite_number(f"steps[{i}]", step))
        left = [
            one - a * before for one, before in zip([*left, Fraction(0)], [Fraction(0), *left], strict=True)
        ]
    _enough(moments, len(steps))
    return sum((x * y * moments[i + j] for i, x in enumerate(left) for j, y in enumerate(left)), Fraction(0))


def best_polynomial(layers: int, moments: Sequence[Fraction]) -> list[Fraction]:
    r"""Return the coefficients $1, c_1, \dots, c_L$ of the polynomial with $p(0) = 1$ that minimizes $\int p^2 d\mu$, exactly.

    With $h_i = m_i$ and $H_{ij} = m_{i+j}$, $i, j = 1, \dots, L$, it is $c = -H^{-1} h$. It is orthogonal to polynomials of
    smaller degree under $s\, d\mu$, so that its roots are real, different and between the ends of μ.

    Args:
        layers: $L \ge 0$.
        moments: $m_0, \dots, m_{2L}$ of a measure μ on positive numbers, or more. Where μ has fewer than $L$ points,
            the polynomial whose roots are these points is returned.

    Raises:
        TypeError, ValueError: too few moments.
    """
    count = integer_at_least("layers", layers, 0)
    _enough(moments, count)
    rows = [[*moments[i + 1 : i + count + 1], -moments[i]] for i in range(1, count + 1)]  # H c = −h
    for k in range(count):
        if rows[k][k] == 0:  # the moments are those of k points
            return best_polynomial(k, moments)
        for i in range(k + 1, count):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [one - factor * above for one, above in zip(rows[i], rows[k], strict=True)]
    found = [Fraction(0)] * count
    for k in reversed(range(count)):
        known = sum((rows[k][j] * found[j] for j in range(k + 1, count)), Fraction(0))
        found[k] = (rows[k][-1] - known) / rows[k][k]
    return [Fraction(1), *found]


def best_error(layers: int, moments: Sequence[Fraction]) -> Fraction:
    r"""Return the least error of $L$ layers, $m_0 + \sum_i c_i m_i$ with the coefficients of `best_polynomial`, exactly.

    Arguments and errors as there.
    """
    return sum((c * m for c, m in zip(best_polynomial(layers, moments), moments, strict=False)), Fraction(0))


def best_steps(layers: int, moments: Sequence[Fraction]) -> np.ndarray:
    """Return the step sizes of the least error, increasing: the inverses of the roots of `best_polynomial`.

    Arguments and errors as there.
    """
    coefficients = np.array([float(c) for c in best_polynomial(layers, moments)])
    return np.sort(np.roots(coefficients).real)  # of the reversed polynomial: the inverses


def limit_best_error(layers: int, context: Number) -> Fraction:
    r"""Return $1/(1 + \alpha + \dots + \alpha^L)$, the least error of $L$ layers on isotropic data as $d \to \infty$, exactly.

    The least error is $1/\sum_k \pi_k(0)^2$ with the orthonormal polynomials of μ. Of the law of Marchenko and Pastur the
    monic ones satisfy $P_{k+1}(s) = (s - 1 - \frac1\alpha) P_k(s) - \frac1\alpha P_{k-1}(s)$ from $P_0 = 1$,
    $P_1 = s - 1$, and have $\int P_k^2 d\mu = \alpha^{-k}$. So $P_k(0) = (-1)^k$ and $\pi_k(0)^2 = \alpha^k$.

    For $\alpha < 1$ it falls to $1 - \alpha$, the part of the task that no example shows, for $\alpha > 1$ like $\alpha^{-L}$;
    at $\alpha = 1$ it is $1/(L + 1)$.

    Args:
        layers: $L \ge 0$.
        context: $\alpha = n/d > 0$.

    Raises:
        TypeError, ValueError: numbers out of range.
    """
    alpha = exact(finite_positive("context", context))
    return 1 / sum((alpha**k for k in range(integer_at_least("layers", layers, 0) + 1)), Fraction(0))


def limit_best_steps(layers: int, context: Number) -> np.ndarray:
    r"""Return the step sizes of `limit_best_error`, increasing.

    $1/a_k = 1 + \frac1\alpha + \frac2{\sqrt\alpha} \cos\frac{k\pi}{L + 1}$: under $s\, d\mu$, a semicircle, the orthogonal
    polynomials are Chebyshev's of the second kind.

    Args:
        layers: $L \ge 1$.
        context: $\alpha = n/d > 0$.

    Raises:
        TypeError, ValueError: numbers out of range.
    """
    count, ratio = integer_at_least("layers", layers, 1), 1 / float(finite_positive("context", context))
    angles = np.pi * np.arange(1, count + 1) / (count + 1)
    return np.asarray(1 / (1 + ratio + 2 * ratio**0.5 * np.cos(angles)))


def _enough(moments: Sequence[Fraction], layers: int) -> None:
    if len(moments) < 2 * layers + 1:
        raise ValueError(
            f"moments: {layers} layers need those up to order {2 * layers}, got {len(moments) - 1}"
        )
