"""Sums over context lengths as rational numbers: the exact version of `_schedule`."""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpq

from mesascope.core import exact
from mesascope.models import Normalizer
from mesascope.processes import NextToken

from ._counts import STABLE_FROM

_MAX_HORIZON = 100_000  # the number of digits of sums of 1/s grows with the number of terms
_OFFSETS = {"t-1": 0, "t": 1}


def exact_schedule(task: NextToken, normalizer: Normalizer, power: int) -> tuple[fmpq, ...]:
    r"""Return $f(1), \dots, f(5)$ and $\sum_{s \ge 6} f(s) s^k$, k = 0, 1, 2, with $f(s) = w_{s+1}/\rho_{s+1}^{power}$.

    With the table and the polynomial of a count N they give $\sum_t w_t/\rho_t^{power} N(t - 1)$.

    Raises:
        ValueError: the normalizer is a function, or the horizon is above 10⁵.
    """
    if not isinstance(normalizer, str):
        raise ValueError("rho: exact sums need one of 't-1', 't', '1'; a function gives rounded numbers")
    if task.horizon > _MAX_HORIZON:
        raise ValueError(
            f"horizon: rational numbers grow with it; exact sums allow at most {_MAX_HORIZON}, got {task.horizon}"
        )
    pairs = task.weights if task.weights is not None else [(t, 1) for t in range(2, task.horizon)]
    factors = [(t - 1, rational(w) / _rho(normalizer, t) ** power) for t, w in pairs]
    head = [_sum([f for s, f in factors if s == k]) for k in range(1, STABLE_FROM)]
    tail = [_sum([f * s**k for s, f in factors if s >= STABLE_FROM]) for k in range(3)]
    return (*head, *tail)


def rational(value: object) -> fmpq:
    """Return an int, float or fraction as a rational number of flint; a float is the rational number it represents."""
    fraction = exact(value)  # type: ignore[arg-type]  # ints, floats, fractions
    return fmpq(fraction.numerator, fraction.denominator)


def _rho(normalizer: str, t: int) -> fmpq:
    return fmpq(1) if normalizer == "1" else fmpq(t - 1 + _OFFSETS[normalizer])


def _sum(terms: Sequence[fmpq]) -> fmpq:
    """Return the sum, computed by halves, so that long numbers are added last."""
    if len(terms) < 2:
        return terms[0] if terms else fmpq(0)
    middle = len(terms) // 2
    return _sum(terms[:middle]) + _sum(terms[middle:])
