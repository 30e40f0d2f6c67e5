"""Sums over context lengths as symbols: Σ_t w_t/ρ_t^p N(t − 1) for the counts N of `_counts`, and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mesascope.core import exact
from mesascope.processes import NextToken

from .._counts import STABLE_FROM
from .._loss_polynomial import exact_schedule

if TYPE_CHECKING:
    from sympy import Expr


class LengthSums:
    """Sums over the context lengths of a task, with the symbols T and, unless all weights are 1, w_t.

    Attributes:
        values: what has a value that depends on the task: T, sums that have no closed form, and w_t.
    """

    def __init__(self, task: NextToken, normalizer: str) -> None:
        from sympy import Integer, Symbol

        self.task, self.normalizer = task, normalizer
        self.horizon = Symbol("T")
        self.values: dict[Expr, Any] = {self.horizon: Integer(task.horizon)}
        self._schedules = {power: exact_schedule(task, normalizer, power) for power in (1, 2)}

    def __call__(self, numbers: tuple[int, ...], power: int) -> Expr:
        """Return Σ_t w_t/ρ_t^power N(t − 1).

        Args:
            numbers: N(1), …, N(5), and the coefficients of the polynomial that N is from 6 on.
            power: of the normalizer; 0 for Σ_t w_t.
        """
        from sympy import Add, Integer, Piecewise

        table, polynomial = numbers[: STABLE_FROM - 1], numbers[STABLE_FROM - 1 :]
        terms = [Integer(c) * self._sum(k, power) for k, c in enumerate(polynomial) if c]
        for s, n in enumerate(table, 1):
            if excess := n - sum(c * s**k for k, c in enumerate(polynomial)):
                value = Integer(excess) * self._summand(Integer(s + 1), 0, power)
                terms.append(value if s == 1 else Piecewise((value, self.horizon > s + 1), (0, True)))
        return Add(*terms)

    def total(self) -> Expr:
        """Return Σ_t w_t."""
        return self._sum(0, 0)

    def _summand(self, t: Expr, k: int, power: int) -> Expr:
        from sympy import IndexedBase, Integer, Rational

        rho = {"t-1": t - 1, "t": t, "1": Integer(1)}[self.normalizer]
        value = (t - 1) ** k / rho**power
        if self.task.weights is None:
            return value
        weight = IndexedBase("w")[t]
        if t.is_Integer:
            number = dict(self.task.weights).get(int(t), 0)
            self.values[weight] = Rational(*_ratio(number))
        return weight * value

    def _sum(self, k: int, power: int) -> Expr:
        """Return Σ_t w_t (t − 1)^k/ρ_t^power, in closed form if it is a polynomial of T."""
        from sympy import Rational, Sum, Symbol

        t = Symbol("t")
        summand = self._summand(t, k, power)
        found = Sum(summand, (t, 2, self.horizon - 1))
        if summand.is_polynomial(t) and self.task.weights is None:
            return found.doit().factor()
        if power == 0:
            self.values[found] = Rational(*_ratio(self.task.total_weight))
            return found
        schedule = self._schedules[power]
        value = (
            sum(f * s**k for s, f in enumerate(schedule[: STABLE_FROM - 1], 1))
            + schedule[STABLE_FROM - 1 + k]
        )
        self.values[found] = Rational(int(value.p), int(value.q))
        return found


def _ratio(value: Any) -> tuple[int, int]:
    return exact(value).as_integer_ratio()
