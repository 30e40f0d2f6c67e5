"""Verdicts by intervals and of several parts, and minima that are not reached."""

import numpy as np
import pytest

from mesascope.learners import GradientDescent
from mesascope.papers._claim import UnsettledError, all_of, within
from mesascope.papers._intervals import above, below, between, mean_interval
from mesascope.papers._minimized import minimized, minimized_by_values
from mesascope.papers._names import named, nameless
from mesascope.papers.kim2024._fixed_features import _End, _rare, _seen
from mesascope.probes import Identification
from mesascope.probes._identification import Ranked


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ([1.0, 2.0], "verified"),
        ([1.2, 1.8], "verified"),
        ([0.9, 1.1], "inconclusive"),
        ([1.9, 2.1], "inconclusive"),
        ([0.0, 3.0], "inconclusive"),
        ([0.0, 0.9], "refuted"),
        ([2.1, 3.0], "refuted"),
        ([np.nan, np.nan], "refuted"),
    ],
)
def test_an_interval_inside_verifies_outside_refutes_and_across_decides_nothing(interval, verdict):
    assert between(interval, 1.0, 2.0) == verdict


def test_one_sided_thresholds():
    interval = [1.0, 2.0]
    assert [above(interval, t) for t in (0.5, 1.5, 2.5)] == ["verified", "inconclusive", "refuted"]
    assert [below(interval, t) for t in (0.5, 1.5, 2.5)] == ["refuted", "inconclusive", "verified"]


def test_an_error_that_is_no_number_refutes_and_a_tolerance_that_is_none_decides_nothing():
    errors = (0.5, 1.0, 1.5, np.nan)
    assert [within(error, 1.0) for error in errors] == ["verified", "verified", "refuted", "refuted"]
    assert {within(error, np.nan) for error in errors} == {"inconclusive"}


def test_a_statement_of_several_parts_is_as_good_as_its_worst():
    assert all_of("verified", "verified") == "verified"
    assert all_of("verified", "inconclusive") == "inconclusive"
    assert all_of("inconclusive", "refuted", "verified") == "refuted"


def test_descents_are_counted_as_good_bad_or_open_and_by_no_threshold_as_open_alone():
    ends = [_End(1e-9, True), _End(1e-9, False), _End(0.1, True), _End(0.1, False)]
    assert [end.kind(1e-3) for end in ends] == ["good", "good", "bad", "open"]
    assert {end.kind(np.nan) for end in ends} == {"open"}
    assert [_seen(*seen) for seen in [(1, 1), (0, 0), (0, 1)]] == ["verified", "refuted", "inconclusive"]
    rare = [_rare(*seen, most=0.05) for seen in [(1, 0, 0.2), (0, 0, 0.03), (0, 1, 0.03), (0, 0, 0.2)]]
    assert rare == ["refuted", "verified", "inconclusive", "inconclusive"]


def test_an_interval_of_few_numbers_uses_student():
    center, (low, high) = mean_interval([1.0, 2.0, 3.0])
    # t_{0.975} of 2 degrees of freedom is 4.3027
    assert center == pytest.approx(2) and (low, high) == pytest.approx((2 - 2.48414, 2 + 2.48414), rel=1e-5)


def _valley(point):
    """Rosenbrock's function and its gradient."""
    a, b = point
    slope = np.array([-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)])
    return (1 - a) ** 2 + 100 * (b - a**2) ** 2, slope


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B"])
def test_a_minimum_that_is_reached(method):
    found = minimized(_valley, [-1.2, 1.0], 1e-4, method=method, gtol=1e-8, maxiter=200)
    np.testing.assert_allclose(
        found.point, 1, atol=1e-5
    )  # the gradient's bound over the least curvature, 0.4
    with pytest.raises(UnsettledError, match="gradient"):
        minimized(_valley, [-1.2, 1.0], 1e-4, method=method, maxiter=3)


def test_a_minimum_by_values_that_is_reached():
    def value(point):
        return _valley(point)[0]

    assert minimized_by_values(value, [-1.2, 1.0], fatol=1e-12).value < 1e-8
    with pytest.raises(UnsettledError, match="Nelder-Mead"):
        minimized_by_values(value, [-1.2, 1.0], maxiter=5)


@pytest.mark.parametrize(
    ("answer", "candidates", "steps", "verdict"),
    [
        ("identified", ("gradient-descent",), 2, "verified"),
        ("identified", ("gradient-descent",), 3, "refuted"),
        ("identified", ("ridge",), 2, "refuted"),
        ("ambiguous", ("gradient-descent", "ridge"), 2, "inconclusive"),
        ("ambiguous", ("gradient-descent",), 2, "inconclusive"),  # its interval reaches beyond the tolerance
        ("ambiguous", ("newton", "ridge"), 2, "refuted"),
        ("none", (), 2, "refuted"),
    ],
)
def test_a_name_that_is_not_decided_is_neither_right_nor_wrong(answer, candidates, steps, verdict):
    descent = Ranked("gradient-descent", {"steps": 2.0}, 0.001, (0.0, 0.002), (), GradientDescent(0.1, 2))
    found = Identification(answer, candidates, (descent,), (), (), None)
    assert named(found, "gradient-descent", steps) == verdict
    if steps == 2:
        assert named(found, "gradient-descent") == verdict


@pytest.mark.parametrize(
    ("answer", "verdict"), [("none", "verified"), ("ambiguous", "inconclusive"), ("identified", "refuted")]
)
def test_no_name_is_a_verdict_too(answer, verdict):
    assert nameless(Identification(answer, (), (), (), (), None)) == verdict
