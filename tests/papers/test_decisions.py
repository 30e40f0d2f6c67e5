"""Verdicts by intervals and of several parts, and minima that are not reached."""

import numpy as np
import pytest

from mesascope.learners import GradientDescent
from mesascope.papers._claim import UnsettledError, all_of, within
from mesascope.papers._intervals import above, below, between, mean_interval
from mesascope.papers._minimized import Minimum, best_of, bracketed, inside, minimized, minimized_by_values
from mesascope.papers._names import identified_as, name_of, unidentified
from mesascope.papers.kim2024._fixed_features import _End, _rare, _seen
from mesascope.probes import Asked, Identification, Ranked


@pytest.mark.parametrize(
    ("interval", "decision"),
    [
        ([1.0, 2.0], "met"),
        ([1.2, 1.8], "met"),
        ([0.9, 1.1], "undecided"),
        ([1.9, 2.1], "undecided"),
        ([0.0, 3.0], "undecided"),
        ([0.0, 0.9], "not met"),
        ([2.1, 3.0], "not met"),
        ([np.nan, np.nan], "not met"),
    ],
)
def test_an_interval_inside_verifies_outside_refutes_and_across_decides_nothing(interval, decision):
    assert between(interval, 1.0, 2.0) == decision


def test_one_sided_thresholds():
    interval = [1.0, 2.0]
    assert [above(interval, t) for t in (0.5, 1.5, 2.5)] == ["met", "undecided", "not met"]
    assert [below(interval, t) for t in (0.5, 1.5, 2.5)] == ["not met", "undecided", "met"]


def test_an_error_that_is_no_number_refutes_and_a_tolerance_that_is_none_decides_nothing():
    errors = (0.5, 1.0, 1.5, np.nan)
    assert [within(error, 1.0) for error in errors] == ["met", "met", "not met", "not met"]
    assert {within(error, np.nan) for error in errors} == {"undecided"}


def test_a_statement_of_several_parts_is_as_good_as_its_worst():
    assert all_of("met", "met") == "met"
    assert all_of("met", "undecided") == "undecided"
    assert all_of("undecided", "not met", "met") == "not met"


def test_descents_are_counted_as_good_bad_or_open_and_by_no_threshold_as_open_alone():
    ends = [_End(1e-9, True), _End(1e-9, False), _End(0.1, True), _End(0.1, False)]
    assert [end.kind(1e-3) for end in ends] == ["good", "good", "bad", "open"]
    assert {end.kind(np.nan) for end in ends} == {"open"}
    assert [_seen(*seen) for seen in [(1, 1), (0, 0), (0, 1)]] == ["met", "not met", "undecided"]
    rare = [_rare(*seen, most=0.05) for seen in [(1, 0, 0.2), (0, 0, 0.03), (0, 1, 0.03), (0, 0, 0.2)]]
    assert rare == ["not met", "met", "undecided", "undecided"]


def test_an_interval_of_few_numbers_uses_student():
    center, (low, high) = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    # t_{0.975} of 4 degrees of freedom is 2.77645
    assert center == pytest.approx(3) and (low, high) == pytest.approx((3 - 1.96325, 3 + 1.96325), rel=1e-5)


def test_an_interval_of_fewer_than_five_numbers_decides_nothing():
    with pytest.raises(UnsettledError, match="an interval of 4 numbers decides nothing; 5 are needed"):
        mean_interval([1.0, 2.0, 3.0, 4.0])


def _two_valleys(start):
    """The deeper of two valleys lies at 1, the other at −1; a start of 0 leads nowhere."""
    if start == 0:
        raise UnsettledError("on the ridge")
    return Minimum(np.sign([start]), -2.0 if start > 0 else -1.0)


def test_the_best_of_many_searches_counts_if_three_of_them_reach_it():
    best = best_of(_two_valleys, [-1, 2, -3, 4, 0, 5], 1e-9)
    assert (best.value, best.reached, best.starts, list(best.point)) == (-2.0, 3, 6, [1.0])
    assert best.values == (-2.0, -2.0, -2.0, -1.0, -1.0)
    with pytest.raises(UnsettledError, match="2 of 4 searches reach the least value -2; 3 have to"):
        best_of(_two_valleys, [-1, 2, -3, 4], 1e-9)
    with pytest.raises(UnsettledError, match="0 of 2 searches reach an end"):
        best_of(_two_valleys, [0, 0], 1e-9)


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


def test_a_minimum_inside_of_a_grid_is_refined_and_one_at_an_end_decides_nothing():
    loss, grids = (lambda x, y: (x - 1.3) ** 2 + 3 * (y - 0.21) ** 2 + x * y / 10), ([0, 1, 2, 4], [-1, 0, 1])
    found = bracketed(loss, *grids, halvings=20)
    exact = np.linalg.solve([[2, 0.1], [0.1, 6]], [2.6, 1.26])
    np.testing.assert_allclose(found.point, exact, atol=1e-5)  # neighbours are 10⁻⁶ apart
    assert found.value == loss(*found.point) < loss(1, 0)
    for fewer in (([1, 2, 4], [-1, 0, 1]), ([0, 1, 2], [0, 1, 2])):
        with pytest.raises(UnsettledError, match="at an end"):
            bracketed(loss, *fewer)
    assert inside([3.0, 1.0, 2.0]) == (1,)
    for values in ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [2.0, np.nan, 1.0]):
        with pytest.raises(UnsettledError, match="at an end"):
            inside(values)


def test_a_minimum_by_values_that_is_reached():
    def value(point):
        return _valley(point)[0]

    assert minimized_by_values(value, [-1.2, 1.0], fatol=1e-12).value < 1e-8
    with pytest.raises(UnsettledError, match="Nelder-Mead"):
        minimized_by_values(value, [-1.2, 1.0], maxiter=5)


def _found(answer, candidates=(), ranking=()):
    asked = Asked("process", "task", 100, 0, 0.01, 0.95)
    return Identification(answer, candidates, ranking, (), (), None, "", (), asked, (), None)


@pytest.mark.parametrize(
    ("answer", "candidates", "steps", "decision"),
    [
        ("identified", ("gradient-descent",), 2, "met"),
        ("identified", ("gradient-descent",), 3, "not met"),
        ("identified", ("ridge",), 2, "not met"),
        ("ambiguous", ("gradient-descent", "ridge"), 2, "undecided"),
        ("ambiguous", ("gradient-descent",), 2, "undecided"),  # its interval reaches beyond the tolerance
        ("ambiguous", ("newton", "ridge"), 2, "not met"),
        ("none", (), 2, "not met"),
    ],
)
def test_a_name_that_is_not_decided_is_neither_right_nor_wrong(answer, candidates, steps, decision):
    descent = Ranked(
        learner="gradient-descent",
        hyperparameters={"steps": 2.0},
        distance=0.001,
        interval=(0.0, 0.002),
        contains=(),
        algorithm=GradientDescent(0.1, 2),
    )
    found = _found(answer, candidates, (descent,))
    assert identified_as("gradient-descent", found, steps=steps) == decision
    if steps == 2:
        assert identified_as("gradient-descent", found) == decision


@pytest.mark.parametrize(
    ("answer", "decision"), [("none", "met"), ("ambiguous", "undecided"), ("identified", "not met")]
)
def test_no_name_is_a_decision_too(answer, decision):
    assert unidentified(_found(answer)) == decision


@pytest.mark.parametrize(
    ("answer", "candidates", "words"),
    [
        ("identified", ("ridge",), "ridge"),
        ("ambiguous", ("ridge",), "ridge (ambiguous)"),
        ("ambiguous", ("ridge", "newton"), "ridge or newton"),
        ("none", (), "none"),
    ],
)
def test_a_name_in_words_tells_an_ambiguous_answer_from_one_that_is_identified(answer, candidates, words):
    assert name_of(_found(answer, candidates)) == words
