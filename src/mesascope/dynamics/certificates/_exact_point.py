"""Critical points with rational weights: everything about them is decided exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import fmpq_mat

from ._balls import as_fmpq, as_fraction
from ._decimals import leading
from ._inertia import Inertia
from ._krawczyk import NotProvedError
from ._question import Proved, Question


def exact_gradient(question: Question, theta: Sequence[Fraction]) -> list[Fraction]:
    """∇L at rational weights, exactly; 0 where weights are fixed."""
    slope = question.polynomial.gradient([as_fmpq(entry) for entry in theta])
    return [Fraction(0) if n in question.fixed else as_fraction(entry) for n, entry in enumerate(slope)]


def prove_exactly(question: Question, theta: Sequence[Fraction]) -> Proved:
    r"""Prove that rational weights are a critical point, and of which kind.

    The signs of the eigenvalues follow from the characteristic polynomial: all its roots are real, and then the number of
    positive ones is the number of sign changes among its coefficients (Descartes).

    Raises:
        NotProvedError: the gradient is not 0; here this is a proof that the point is not critical.
    """
    question.require_masked(theta)
    slope = exact_gradient(question, theta)
    largest = max(slope, key=abs)
    if largest != 0:
        place = slope.index(largest)
        raise NotProvedError(
            f"the gradient is not 0 at these weights, its entry {place} is {leading(largest, 3)}…",
            question.field_of(place),
        )
    loss = question.polynomial
    free = question.where().free
    curvature = loss.hessian([as_fmpq(entry) for entry in theta])
    inertia = exact_inertia([[curvature[n][m] for m in free] for n in free])
    value = as_fraction(loss.value([as_fmpq(entry) for entry in theta]))
    return Proved(
        Fraction(0),
        None,
        inertia,
        question.unused,
        (value, value),
        tuple((p, p) for p in question.products(theta)),
        question.theorem_at(theta),
        value == question.least,
    )


def exact_inertia(matrix: Sequence[Sequence[Any]]) -> Inertia:
    """The signs of the eigenvalues of a symmetric matrix of rational numbers."""
    polynomial = fmpq_mat([list(row) for row in matrix]).charpoly()
    coefficients = [polynomial[n] for n in range(len(matrix) + 1)]
    zero = next(n for n, c in enumerate(coefficients) if c != 0)
    signs = [c > 0 for c in coefficients if c != 0]
    positive = sum(one != other for one, other in pairwise(signs))
    return Inertia(positive, len(matrix) - zero - positive, zero)
