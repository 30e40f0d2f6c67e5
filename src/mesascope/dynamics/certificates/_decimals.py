"""Rational numbers as decimals that say on which side of them they lie; of any size, as floats are not."""

from __future__ import annotations

from fractions import Fraction


def above(value: Fraction) -> str:
    """A number with one digit that is not below a value ≥ 0, such as 2e-40 for 1.3e-40."""
    return _one_digit(value, up=True)


def below(value: Fraction) -> str:
    """A number with one digit that is not above a value ≥ 0."""
    return _one_digit(value, up=False)


def exactly(value: Fraction) -> str:
    """A value ≥ 0 as a decimal with an exponent if it is one, else as a quotient."""
    places = decimal_places(value)
    return f"{(value * 10**places).numerator}e-{places}" if places else str(value)


def decimal_places(value: Fraction) -> int | None:
    """How many decimal places a number has; None if they do not end."""
    twos, rest = _divided_out(value.denominator, 2)
    fives, rest = _divided_out(rest, 5)
    return max(twos, fives) if rest == 1 else None


def leading(value: Fraction, digits: int) -> str:
    """The first significant digits of a number, cut off."""
    if value == 0:
        return "0"
    exponent = _exponent(abs(value))
    places = max(digits - 1 - exponent, 0)
    text = str(int(abs(value) * 10**places)).rjust(places + 1, "0")
    return ("-" if value < 0 else "") + (f"{text[:-places]}.{text[-places:]}" if places else text)


def _one_digit(value: Fraction, *, up: bool) -> str:
    if value == 0:
        return "0"
    exponent = _exponent(value)
    unit = Fraction(10) ** exponent
    digit = -(-value // unit) if up else value // unit
    if digit == 10:
        digit, exponent = 1, exponent + 1
    return f"{digit}e{exponent}" if exponent else str(digit)


def _divided_out(number: int, prime: int) -> tuple[int, int]:
    """How often a prime divides a number, and what is left."""
    times = 0
    while number % prime == 0:
        number //= prime
        times += 1
    return times, number


def _exponent(value: Fraction) -> int:
    """The n with 10ⁿ ≤ value < 10ⁿ⁺¹."""
    exponent = len(str(value.numerator)) - len(str(value.denominator))
    return exponent if value >= Fraction(10) ** exponent else exponent - 1
