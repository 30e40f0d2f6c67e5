"""What is proved, in sentences."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ._question import Proved, Question

_DIGITS = 20  # significant digits of bounds in sentences


def statement(question: Question, proved: Proved) -> tuple[str, ...]:
    """The sentences of a certificate; every one follows from what is proved."""
    return (_loss(question), _point(proved), _kind(proved), _value(proved), _products(question, proved))


def _loss(question: Question) -> str:
    mask = ", with all weights off the diagonals of the blocks 0" if question.mask else ""
    weights = "all weighted 1" if question.task.weights is None else "weighted as the specification says"
    return (
        f"L is the population loss of one layer of linear attention on {question.process.describe()} with horizon "
        f"{question.task.horizon}, context lengths {weights}, ρ_t = {question.normalizer}{mask}."
    )


def _point(proved: Proved) -> str:
    if proved.unique_within is None:
        return (
            "The centre is a critical point of L: the gradient there is exactly 0. That there is no other nearby is not "
            "proved."
        )
    return (
        f"Exactly one critical point of L with the conserved quantities of the centre lies within {_short(proved.radius)} of "
        f"it, entry by entry, and no other within {_short(proved.unique_within)}."
    )


def _kind(proved: Proved) -> str:
    positive, negative, zero = proved.inertia
    counted = f"Its Hessian has {positive} positive, {negative} negative and {zero} zero eigenvalues"
    if proved.unique_within is None:
        if not any(proved.loss):
            return f"{counted}; the loss is 0 there, so that it is a global minimum."
        return (
            f"{counted}: {'a saddle' if negative else 'what it is along those of the zeros is not proved'}."
        )
    kind = f"a saddle of index {negative}" if negative else "a strict minimum"
    return f"{counted}; the zeros are those of the scalings that leave L as it is: but for them it is {kind}."


def _value(proved: Proved) -> str:
    low, high = proved.loss
    return (
        f"The loss there is {low}."
        if low == high and len(str(low)) < 60
        else f"The loss there is {_between(low, high)}."
    )


def _products(question: Question, proved: Proved) -> str:
    if proved.theorem is not None:
        theorem = "4.3" if question.mask else "4.1"
        return f"Every a_j b_j is exactly {proved.theorem}, the value of Theorem {theorem} of zheng2024."
    low, high = min(p[0] for p in proved.products), max(p[1] for p in proved.products)
    return f"Every a_j b_j is {_between(low, high)}."


def _between(low: Fraction, high: Fraction) -> str:
    middle, off = (low + high) / 2, (high - low) / 2
    return f"{significant(middle, _DIGITS)}…, known to {_short(off)}" if off else f"{middle}"


def significant(value: Fraction, digits: int) -> str:
    """The first digits of a number, cut off."""
    places = max(digits - len(str(int(abs(value)))), 0)
    scaled = int(abs(value) * 10**places)
    text = str(scaled).rjust(places + 1, "0")
    return ("-" if value < 0 else "") + (f"{text[:-places]}.{text[-places:]}" if places else text)


def _short(value: Any) -> str:
    """A bound from above with one digit, such as 1e-40."""
    if value == 0:
        return "0"
    exponent = len(str(value.numerator)) - len(str(value.denominator)) - 1
    while value / Fraction(10) ** exponent > 9:
        exponent += 1
    mantissa = -(-value // Fraction(10) ** exponent)
    return f"{mantissa}e{exponent}" if exponent else str(mantissa)
