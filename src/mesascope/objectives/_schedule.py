"""Sums over context lengths, through which the loss depends on weights w_t, normalizer ρ_t and horizon."""

from __future__ import annotations

from math import comb, fsum

import numpy as np

from mesascope.models import NAMED_NORMALIZERS, Normalizer, normalizer_values
from mesascope.processes import NextToken

from ._counts import STABLE_FROM

MAX_LISTED = 10_000_000
_OFFSETS = {"t-1": 0, "t": 1}
_DEGREE = 2
_SHORT = 10_000


def schedule_features(task: NextToken, normalizer: Normalizer, power: int) -> np.ndarray:
    """Return the sums whose dot product with a count's table and polynomial is Σ_t (w_t/ρ_t^power) N(t − 1).

    With f(s) = w_{s+1}/ρ_{s+1}^power: f(1), …, f(STABLE_FROM − 1), then Σ_{s ≥ STABLE_FROM} f(s) s^k for k =
    0, 1, 2. For equal weights and the normalizers "t-1", "t" and "1", sums are computed in closed form, so that the cost
    does not depend on the horizon.

    Raises:
        ValueError: weights are equal, the normalizer is a function, and the horizon is above 10⁷.
    """
    weights = task.weights
    if weights is None and isinstance(normalizer, str):
        head = np.arange(1, STABLE_FROM)
        rho = normalizer_values(normalizer, head + 1)
        table = np.where(head + 1 < task.horizon, rho**-power, 0.0)
        return np.concatenate([table, _tail_sums(task.horizon - 2, normalizer, power)])
    lengths, values = _listed(task)
    s = lengths - 1.0
    f = values / normalizer_values(normalizer, lengths) ** power
    table = np.array([f[s == k].sum() for k in range(1, STABLE_FROM)])
    tail = s >= STABLE_FROM
    return np.concatenate([table, [np.sum(f[tail] * s[tail] ** k) for k in range(_DEGREE + 1)]])


def _listed(task: NextToken) -> tuple[np.ndarray, np.ndarray]:
    """Return the context lengths with a weight, and their weights, as arrays."""
    if task.weights is None:
        if task.horizon > MAX_LISTED:
            raise ValueError(
                f"normalizer: a function of t is summed term by term, too long for horizon {task.horizon}; "
                f"use one of {', '.join(NAMED_NORMALIZERS)}, or a horizon of at most {MAX_LISTED}"
            )
        return np.arange(2, task.horizon), np.ones(task.horizon - 2)
    lengths, values = zip(*task.weights, strict=True)
    return np.array(lengths), np.array([float(w) for w in values])


def _tail_sums(last: int, normalizer: str, power: int) -> np.ndarray:
    """Return Σ_{s = STABLE_FROM}^{last} s^k/ρ^power, k = 0, 1, 2, for ρ = s, s + 1 or 1."""
    if last < STABLE_FROM:
        return np.zeros(_DEGREE + 1)
    if normalizer == "1":
        return np.array([_power_sum(STABLE_FROM, last, k) for k in range(_DEGREE + 1)])
    offset = _OFFSETS[normalizer]
    sums = {k: _power_sum(STABLE_FROM + offset, last + offset, k) for k in range(-power, _DEGREE - power + 1)}
    # s^k = (ρ − offset)^k, expanded in powers of ρ
    return np.array(
        [
            sum(comb(k, i) * (-offset) ** (k - i) * sums[i - power] for i in range(k + 1))
            for k in range(_DEGREE + 1)
        ]
    )


def _power_sum(first: int, last: int, exponent: int) -> float:
    """Return Σ_{n = first}^{last} n^exponent, −2 ≤ exponent ≤ 2 (Faulhaber; digamma, Hurwitz zeta)."""
    if exponent < 0:
        if last - first < _SHORT:
            return fsum(n**exponent for n in range(first, last + 1))
        from scipy.special import digamma, zeta  # the import takes half a second: only for long sums

        if exponent == -1:
            return float(digamma(last + 1) - digamma(first))
        return float(zeta(2, first) - zeta(2, last + 1))
    upto = {0: lambda n: n, 1: lambda n: n * (n + 1) // 2, 2: lambda n: n * (n + 1) * (2 * n + 1) // 6}[
        exponent
    ]
    return float(upto(last) - upto(first - 1))
