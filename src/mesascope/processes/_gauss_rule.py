"""Gauss quadrature from moments: the check that moments are possible, and atoms with these moments."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..specs import Number

# Moments given as floats carry rounding; a Hankel determinant within this much of zero counts as zero.
ROUNDING = 32 * np.finfo(float).eps


class LineRule(NamedTuple):
    """A quadrature rule on the line: E f(x) ≈ Σ_k weights[k] f(nodes[k])."""

    nodes: np.ndarray
    weights: np.ndarray


class Jacobi(NamedTuple):
    r"""Coefficients of the monic orthogonal polynomials $p_{k+1} = (x - \alpha_k) p_k - \beta_k p_{k-1}$.

    Attributes:
        alpha: $\alpha_0, \dots, \alpha_{n-1}$.
        beta: $\beta_1, \dots, \beta_{n-1}$, all positive.
    """

    alpha: tuple[Fraction, ...]
    beta: tuple[Fraction, ...]


def jacobi_coefficients(moments: Sequence[Number]) -> Jacobi:
    r"""Return the Jacobi coefficients of a measure on the line with moments $m_0 = 1, m_1, \dots, m_{2N}$.

    With $L(x^i) = m_i$, the norms $h_k = L(p_k^2) = L(x^k p_k)$ must be positive until, possibly, one of them
    is zero: then the measure has exactly $k$ atoms, the zeros of $p_k$, and $L(x^j p_k) = 0$ for all $j$.
    Otherwise the moments determine $\alpha_0, \dots, \alpha_{N-1}$ and $\beta_1, \dots, \beta_N$, and
    $\alpha_N$, which depends on the unknown $m_{2N+1}$, is set to the mean of the others (0 for symmetric moments).

    The arithmetic is rational. When all moments are exact numbers the decision is exact; when some are
    floats, quantities within rounding of zero count as zero.

    Args:
        moments: an odd number of moments, `moments[0] == 1`.

    Raises:
        ValueError: no measure has these moments; the message gives the order.
    """
    tolerance = Fraction(ROUNDING) if any(isinstance(m, float) for m in moments) else Fraction(0)
    exact_moments = [Fraction(m) for m in moments]
    top = len(moments) - 1

    def functional(polynomial: list[Fraction], shift: int) -> tuple[Fraction, bool]:
        """Return L(x^shift p), and whether it is zero within rounding of the given moments."""
        terms = [c * exact_moments[i + shift] for i, c in enumerate(polynomial)]
        value = sum(terms, Fraction(0))
        if not tolerance:
            return value, value == 0
        return value, abs(value) <= tolerance * sum(map(abs, terms))

    alpha: list[Fraction] = []
    beta: list[Fraction] = []
    previous, current, previous_norm = [Fraction(0)], [Fraction(1)], Fraction(1)
    for k in range(top // 2 + 1):
        norm, vanishes = functional(current, k)
        if vanishes:
            for shift in range(top - k + 1):
                if not functional(current, shift)[1]:
                    raise ValueError(
                        f"no distribution has these moments: orders 0 to {2 * k} leave only {k} possible "
                        f"value{'s' * (k != 1)}, which contradict E x^{k + shift} = {moments[k + shift]}"
                    )
            break
        if norm < 0:
            raise ValueError(
                f"no distribution has these moments: the Hankel matrix of orders 0 to {2 * k} has a negative "
                f"determinant; E x^{2 * k} = {moments[2 * k]} is too small"
            )
        if k > 0:
            beta.append(norm / previous_norm)
        if 2 * k + 1 <= top:
            # L(x p_k²) = L(x^{k+1} p_k) + c h_k for p_k = x^k + c x^{k−1} + …
            alpha.append(functional(current, k + 1)[0] / norm + (current[k - 1] if k else 0))
        else:
            alpha.append(sum(alpha, Fraction(0)) / len(alpha))
        following = [Fraction(0), *current]
        for i, c in enumerate(current):
            following[i] -= alpha[k] * c
        if k > 0:
            for i, c in enumerate(previous):
                following[i] -= beta[k - 1] * c
        previous, current, previous_norm = current, following, norm
    return Jacobi(tuple(alpha), tuple(beta))


def golub_welsch(jacobi: Jacobi) -> LineRule:
    """Return the Gauss rule of the Jacobi coefficients: eigenvalues x, and weights 1/Σ_k p_k(x)² of orthonormal polynomials.

    A rule with n nodes is exact to degree 2n − 1 for the measure the coefficients come from. Where polynomials grow from
    p_0 to p_{n−1}, as beyond most of the measure, a sum of squares gives small weights all their digits, which entries of
    eigenvectors do not. Where they fall, at an atom that has nearly all the weight, rounding grows instead: take the atom out.
    """
    diagonal, off_diagonal = np.array(jacobi.alpha, float), np.sqrt(np.array(jacobi.beta, float))
    nodes = np.linalg.eigvalsh(np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1))
    polynomials = [np.zeros_like(nodes), np.ones_like(nodes)]
    for alpha, before, after in zip(diagonal, [0, *off_diagonal], off_diagonal, strict=False):
        polynomials.append(((nodes - alpha) * polynomials[-1] - before * polynomials[-2]) / after)
    weights = 1 / np.sum(np.square(polynomials), 0)
    if not any(jacobi.alpha):  # a symmetric measure: make the rule exactly symmetric
        nodes, weights = (nodes - nodes[::-1]) / 2, (weights + weights[::-1]) / 2
    nodes[abs(nodes) <= ROUNDING * abs(nodes).max()] = 0  # an atom at zero must be exactly there
    return LineRule(nodes, weights / weights.sum())
