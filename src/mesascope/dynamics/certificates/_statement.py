"""What is proved, in sentences."""

from __future__ import annotations

from fractions import Fraction

from ._decimals import above, below, exactly, leading
from ._question import Proved, Question

_DIGITS = 20  # significant digits of bounds in sentences
_LONG = 60  # characters of a quotient that is written out


def statement(question: Question, proved: Proved) -> tuple[str, ...]:
    """The sentences of a certificate; every one follows from what is proved."""
    sentences = (
        question.describe(),
        _unused(proved),
        _point(proved),
        _kind(proved),
        _value(proved),
        _products(question, proved),
    )
    return tuple(one for one in sentences if one)


def _unused(proved: Proved) -> str:
    if not proved.unused:
        return ""
    many = f"{proved.unused} of the weights" if proved.unused > 1 else "one of the weights"
    return f"It does not depend on {many}; everything that follows is about the others, these being as in the centre."


def _point(proved: Proved) -> str:
    if proved.unique_within is None:
        return (
            "The centre is a critical point of L: the gradient there is exactly 0. That there is no other nearby is not "
            "proved."
        )
    alone = proved.unique_within > proved.radius
    return (
        f"Exactly one critical point of L with the conserved quantities of the centre lies within {exactly(proved.radius)} of "
        f"it, entry by entry{f', and no other within {below(proved.unique_within)}' if alone else ''}."
    )


def _kind(proved: Proved) -> str:
    positive, negative, zero = proved.inertia
    counted = f"Its Hessian has {positive} positive, {negative} negative and {zero} zero eigenvalues"
    if proved.unique_within is None:
        if proved.least:
            least = "0" if not any(proved.loss) else "the least of all weights"
            return f"{counted}; the loss there is {least}, so that it is a global minimum."
        return (
            f"{counted}: {'a saddle' if negative else 'what it is along those of the zeros is not proved'}."
        )
    kind = f"a saddle of index {negative}" if negative else "a strict minimum"
    return f"{counted}; the zeros are those of the scalings that leave L as it is: but for them it is {kind}."


def _value(proved: Proved) -> str:
    return f"The loss there is {_between(*proved.loss)}."


def _products(question: Question, proved: Proved) -> str:
    if proved.theorem is not None:
        return f"Every a_j b_j is exactly {proved.theorem}, {question.theorem}."
    if not proved.products:
        return ""
    low, high = max(p[0] for p in proved.products), min(p[1] for p in proved.products)
    if low <= high:  # one number may be all of them; each is known as well as it says
        widest = max(proved.products, key=lambda p: p[1] - p[0])
        return f"Every a_j b_j is {_between(*widest)}."
    return f"The a_j b_j are {'; '.join(_between(*one) for one in proved.products)}."


def _between(low: Fraction, high: Fraction) -> str:
    if low == high:
        return str(low) if len(str(low)) < _LONG else f"{leading(low, _DIGITS)}…"
    return f"{leading((low + high) / 2, _DIGITS)}…, known to {above((high - low) / 2)}"
