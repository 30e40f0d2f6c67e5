from fractions import Fraction

import numpy as np
import pytest

from mesascope.core import exact, finite_nonnegative, finite_number, finite_positive, integer_at_least
from mesascope.specs import show_number


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (2, 2),
        (0.5, 0.5),
        (Fraction(1, 3), Fraction(1, 3)),
        ("1/3", Fraction(1, 3)),
        ("0.1", Fraction(1, 10)),
        ("-2e-1", Fraction(-1, 5)),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.array(1.5), 1.5),
    ],
)
def test_numbers_are_kept_exact(given, number):
    result = finite_number("scale", given)
    assert result == number
    assert type(result) in (int, float, Fraction)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), np.float64("nan")])
def test_not_finite_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"^scale must be finite and fit double precision, got -?(nan|inf)$"):
        finite_number("scale", value)


@pytest.mark.parametrize("value", [None, True, 1j, [1.0], np.ones(2), np.complex128(1), np.bool_(True)])
def test_not_a_number_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"^scale must be a number, got .+$"):
        finite_number("scale", value)


@pytest.mark.parametrize("text", ["", "one", "1/0", "1/2/3", "nan", "inf", " 1 ", "١"])
def test_strings_that_are_not_rational_numbers_are_refused(text):
    with pytest.raises(ValueError, match=r"^scale .* is not a rational number; write"):
        finite_number("scale", text)


@pytest.mark.parametrize("value", [0, -1, 0.0, "-1/3"])
def test_positive_refuses_zero_and_less(value):
    with pytest.raises(ValueError, match="scale must be greater than 0, got"):
        finite_positive("scale", value)
    assert finite_positive("scale", 5e-324) == 5e-324


def test_nonnegative_accepts_zero():
    assert finite_nonnegative("weight", 0.0) == 0
    with pytest.raises(ValueError, match=r"weight must not be negative, got -0\.1"):
        finite_nonnegative("weight", -0.1)


def test_integers():
    assert integer_at_least("dim", np.int32(3), 1) == 3
    assert type(integer_at_least("dim", np.int32(3), 1)) is int
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        integer_at_least("dim", 0, 1)
    for wrong in (5.0, "5", None, True, np.bool_(True)):
        with pytest.raises(TypeError, match="dim must be an integer"):
            integer_at_least("dim", wrong, 1)


def test_exact_is_the_rational_number_that_a_float_is():
    assert exact(0.1) == Fraction(3602879701896397, 36028797018963968)
    assert exact(3) == 3


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1"), (1, "1"), (0.1, "0.1"), (Fraction(1, 3), "1/3"), (1e300, "1e+300"), (-2.0, "-2")],
)
def test_numbers_are_shown_short(number, text):
    assert show_number(number) == text
