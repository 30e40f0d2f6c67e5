"""Sums over context lengths, through which results depend on the horizon, the weights and the normalizer."""

from fractions import Fraction
from functools import lru_cache
from math import fsum, pi
from typing import NamedTuple

import numpy as np

from mesascope.specs import show

from ...core import exact
from ...processes import NextToken
from ...specs import Number

EXACT_TERMS = 2000
"""The maximal number of summands of exact fractions, whose numerators grow by about one digit per summand."""


class WeightSums(NamedTuple):
    r"""Sums over the context lengths $t = 2, \dots, T-1$ with $r_t = (t-1)/\rho_t$.

    Attributes:
        linear: $\sum_t w_t r_t$.
        quadratic: $\sum_t w_t r_t^2$.
        cross: $\sum_t w_t r_t^2 / (t-1)$.
    """

    linear: Number
    quadratic: Number
    cross: Number


def weight_sums(task: NextToken, normalizer: str = "t-1") -> WeightSums:
    r"""Return the sums over context lengths that multiply the moments in the loss at diagonal weights.

    With the paper's $\rho_t = t-1$ and $w_t = 1$ they are $T-2$, $T-2$ and the harmonic number $H_{T-2}$.

    For up to 2000 context lengths with non-zero weight the sums are exact. Otherwise weights 1 are summed in
    closed form with the digamma function $\psi$ ($H_n = \psi(n+1) + \gamma$, $\sum_{k \le n} k^{-2} =
    \pi^2/6 - \psi'(n+1)$), so that time and memory do not depend on $T$; other weights are added in floating
    point.

    Args:
        task: horizon $T$ and weights $w_t$.
        normalizer: $\rho_t$, one of `"t-1"` (the paper's), `"t"`, `"1"`.

    Raises:
        TypeError: `task` is not a `NextToken`.
        ValueError: an unknown normalizer.
    """
    if not isinstance(task, NextToken):
        raise TypeError(f"task: must be a task such as NextToken(horizon=100), got {show(task)}")
    if normalizer not in ("t-1", "t", "1"):
        raise ValueError(
            f"normalizer: {show(normalizer)} has no closed form here; use one of 't-1', 't', '1'"
        )
    return _weight_sums(task, normalizer)


# limit, trajectory and gap of one setting need the same sums, which take milliseconds
@lru_cache(maxsize=16)
def _weight_sums(task: NextToken, normalizer: str) -> WeightSums:
    if task.weights is None and task.horizon - 2 > EXACT_TERMS:
        return _closed_form(task.horizon - 2, normalizer)
    weights = [(t, Fraction(1)) for t in task.support] if task.weights is None else task.weights
    terms = [_summands(t - 1, exact(weight), normalizer) for t, weight in weights]
    if len(terms) > EXACT_TERMS:
        return WeightSums(*(fsum(map(float, column)) for column in zip(*terms, strict=True)))
    return WeightSums(*(sum(column, Fraction(0)) for column in zip(*terms, strict=True)))


def _summands(k: int, weight: Fraction, normalizer: str) -> tuple[Fraction, Fraction, Fraction]:
    """Return the summands w r, w r², w r²/k of the context length t = k + 1."""
    ratio = {"t-1": Fraction(1), "t": Fraction(k, k + 1), "1": Fraction(k)}[normalizer]
    return weight * ratio, weight * ratio**2, weight * ratio**2 / k


def _closed_form(n: int, normalizer: str) -> WeightSums:
    """Return the sums over k = t − 1 = 1, …, n with weights 1."""
    if normalizer == "1":
        return WeightSums(n * (n + 1) // 2, n * (n + 1) * (2 * n + 1) // 6, n * (n + 1) // 2)
    from scipy.special import digamma, polygamma  # the import takes half a second: only for long sums

    if normalizer == "t-1":
        return WeightSums(n, n, float(digamma(n + 1) + np.euler_gamma))
    # r = k/(k+1) = 1 − 1/(k+1), so r² = 1 − 2/(k+1) + 1/(k+1)² and r²/k = 1/(k+1) − 1/(k+1)².
    first = float(digamma(n + 2) + np.euler_gamma) - 1  # Σ 1/(k+1)
    second = float(pi**2 / 6 - polygamma(1, n + 2)) - 1  # Σ 1/(k+1)²
    return WeightSums(n - first, n - 2 * first + second, first - second)
