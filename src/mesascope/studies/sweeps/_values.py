"""Numbers along an axis, the same on every machine: equal steps in exact arithmetic, equal ratios correctly rounded."""

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from mesascope.specs import Number, Positive, Real, Spec, SpecError, in_file_form, show

MAX_POINTS = 1_000_000
_CONTEXT = Context(prec=50)
_DIGITS = Context(prec=40)  # the digits that are exact after the rounding of logarithms

Length = Annotated[int, Field(strict=True, ge=1, le=MAX_POINTS)]


class RangeSpec(Spec):
    """Equally spaced numbers from start to stop, both included: start, start + step, …, or `count` of them.

    Decimals are taken as they are written: 0.1, 0.2, 0.3 and not 0.30000000000000004. If all numbers are integers they stay
    integers; exact numbers such as "1/3" give exact numbers.

    Attributes:
        start, stop: the ends; stop is left out if the steps do not reach it exactly.
        step: not 0; instead of count.
        count: how many numbers; instead of step.
    """

    start: Real
    stop: Real
    step: Real | None = None
    count: Length | None = None

    @model_validator(mode="after")
    def _step_or_count(self) -> Self:
        if (self.step is None) == (self.count is None):
            raise SpecError("needs either step or count" + ("" if self.step is None else ", not both"))
        span = _exact(self.stop) - _exact(self.start)
        if self.step is not None:
            if not self.step or span * _exact(self.step) < 0:
                raise SpecError(f"must lead from start to stop, got {show(in_file_form(self.step))}", "step")
            if span / _exact(self.step) >= MAX_POINTS:
                raise SpecError(f"gives more than {MAX_POINTS} numbers; take larger steps", "step")
        return self

    def numbers(self) -> list[Any]:
        """The numbers, as a specification file would write them."""
        start, stop = _exact(self.start), _exact(self.stop)
        if self.step is not None:
            step, count = _exact(self.step), int((stop - start) / _exact(self.step)) + 1
        else:
            count = self.count or 1
            step = (stop - start) / max(count - 1, 1)
        given = [one for one in (self.start, self.stop, self.step) if one is not None]
        return _alike([start + i * step for i in range(count)], given)


class LogRangeSpec(Spec):
    """Numbers from start to stop, both included, each the same multiple of the one before.

    If all numbers are integers they stay integers: 10, 100, 1000.

    Attributes:
        start, stop: the ends > 0.
        count: how many numbers.
    """

    start: Positive
    stop: Positive
    count: Length

    def numbers(self) -> list[Any]:
        """The numbers, as a specification file would write them."""
        low, high = (_CONTEXT.ln(_decimal(_exact(one))) for one in (self.start, self.stop))
        spread = _CONTEXT.divide(_CONTEXT.subtract(high, low), Decimal(max(self.count - 1, 1)))
        logarithms = [
            _CONTEXT.add(low, _CONTEXT.multiply(spread, Decimal(i))) for i in range(1, self.count - 1)
        ]
        inner = [Fraction(_DIGITS.plus(_CONTEXT.exp(one))) for one in logarithms]
        ends = [_exact(self.start), _exact(self.stop)]
        found = [ends[0], *inner, ends[1]] if self.count > 1 else ends[:1]
        inexact = [float(one) if isinstance(one, Fraction) else one for one in (self.start, self.stop)]
        return _alike(found, inexact)


def _exact(value: Number) -> Fraction:
    """The number as it was written: a float as its shortest decimal."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _decimal(value: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))


def _alike(found: Sequence[Fraction], given: Sequence[Number]) -> list[Any]:
    """All as integers, as exact numbers, or as floats, like the numbers that were given."""
    if all(isinstance(one, int) for one in given) and all(one.denominator == 1 for one in found):
        return [int(one) for one in found]
    if any(isinstance(one, Fraction) for one in given):
        return [str(one) for one in found]
    return [float(one) for one in found]
