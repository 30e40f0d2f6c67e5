import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Empirical,
    Gaussian,
    Mixture,
    Moments,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)
from mesascope.theory import zheng2024
from mesascope.theory.zheng2024 import _assumptions

SIGNS = np.array(list(itertools.product([1.0, -1.0], repeat=2)))

# law, dim, and the answers to: Assumption 4.1, diagonal stays diagonal, Assumption 4.2
CASES = {
    "gaussian": (Gaussian(), 4, True, True, False),
    "uniform": (Uniform(3), 4, True, True, False),
    "student": (StudentT("13/2"), 4, True, True, False),
    "student-6": (StudentT(6), 4, False, False, False),
    "cauchy": (StudentT(1), 4, False, False, False),
    "sparse": (Sparse(0.3), 4, True, True, True),
    "rademacher": (Rademacher(0.3), 4, True, True, True),
    "full-one": (Constant(1), 4, False, False, True),
    "full-one, one dimension": (Constant(1), 1, False, True, True),
    "zero": (Constant(0), 4, False, False, False),
    "vector": (Constant([1, 2]), 2, False, False, False),
    "one-hot of fixed sign": (Empirical(np.eye(4), joint=True), 4, False, True, True),
    "skewed of mean zero": (Empirical([-1.0, -1.0, 2.0]), 4, False, False, False),
    "three values": (Moments([1, 0, "1/2", 0, "1/2", 0, "1/2"]), 4, True, True, True),
    "signs and zeros": (Mixture([("1/2", Sparse(2)), ("1/2", Rademacher(2))]), 4, True, True, True),
    "two scales": (Mixture([("1/2", Rademacher(1)), ("1/2", Rademacher(2))]), 4, True, True, False),
    "unequal columns": (Empirical(SIGNS * [1, 2]), 2, False, False, False),
    "signs as joint samples": (Empirical(SIGNS, joint=True), 2, True, True, True),
    "dependent signs": (Empirical([[1.0, 1.0], [-1.0, -1.0]], joint=True), 2, False, False, True),
}


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name):
    law, dim, first, diagonal, second = CASES[name]
    assert bool(zheng2024.satisfies_assumption_41(law, dim)) == first
    assert bool(zheng2024.diagonal_stays_diagonal(law, dim)) == diagonal
    assert bool(zheng2024.satisfies_assumption_42(law)) == second
    assert bool(zheng2024.satisfies_assumption_42(law, dim)) == second
    assert diagonal or not first  # the paper's condition is the stronger one


@pytest.mark.parametrize(
    ("question", "law", "dim", "reason"),
    [
        ("41", Gaussian(), 3, "κ1 = 3, κ2 = 15, κ3 = 6 for every coordinate"),
        ("41", StudentT(6), 3, "E x^6 does not exist for StudentT(df=6, scale=1)"),
        ("41", StudentT(3), 3, "E x^4 does not exist"),
        ("41", Constant(1), 3, "E[x_j] = 1 is not 0"),
        ("41", Constant([0, 2, 0]), 3, "E[x_2] = 2 is not 0"),
        ("41", Empirical([-1.0, -1.0, 2.0]), 3, "E[x_j^3 x_r^3] = 4 is not 0"),
        ("41", Empirical([[1.0, 1.0], [-1.0, -1.0]], joint=True), 2, "E[x_j x_r] = 1 is not 0"),
        ("41", Empirical(SIGNS * [1, 2]), 2, "κ1 = E[x_j^4] is 1 for j = 1 but 16 for j = 2"),
        ("diagonal", Constant([1, 2]), 2, "E[x_1^3 x_2] = 2 is not 0"),
        ("42", Gaussian(), None, "E[x_j^2] − E[x_j^4]²/E[x_j^6] = 2/5 is not 0"),
        ("42", Rademacher(3), None, "c² = 9"),
        ("42", StudentT(6), None, "E x^6 does not exist"),
        ("42", Constant([1, 2]), None, "E[x_j^4] is 1 for j = 1 but 16 for j = 2"),
    ],
)
def test_reasons_name_the_moment(question, law, dim, reason):
    ask = {
        "41": zheng2024.satisfies_assumption_41,
        "42": zheng2024.satisfies_assumption_42,
        "diagonal": zheng2024.diagonal_stays_diagonal,
    }[question]
    verdict = ask(law, dim)
    assert reason in verdict.reason
    assert verdict.holds == bool(verdict)


def test_a_mask_leaves_only_the_equality_of_coordinates():
    assert zheng2024.diagonal_stays_diagonal(Constant(1), 4, mask="off-diagonal")
    assert not zheng2024.diagonal_stays_diagonal(Constant([1, 2]), 2, mask="off-diagonal")
    with pytest.raises(ValueError, match="mask: 'on' is unknown"):
        zheng2024.diagonal_stays_diagonal(Gaussian(), 2, mask="on")


def partitions(total, largest):
    """Non-increasing sequences of positive integers with this sum."""
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


def test_the_lists_of_moments_are_complete():
    every = [p for total in range(1, 7) for p in partitions(total, total) if len(p) <= 4]
    odd = {p: sum(n % 2 for n in p) for p in every}
    needed = {p for p in every if odd[p] == 2 and sum(p) in (4, 6)}
    assert set(_assumptions.OFF_DIAGONAL) == needed
    stated = {p for p in every if 1 in p}
    assert set(_assumptions.FIRST_POWER) == stated - needed
    assert needed - stated == {(3, 3)}  # what the wording of the paper leaves out


def test_moments_that_matter_come_from_pairs():
    # E[x_p x_q x_r²] and E[x_p x_q x_r² x_s²] with p ≠ q, over all coincidences of r and s with the others.
    found = set()
    for places in itertools.product(range(4), repeat=2):
        for exponents in ({0: 1, 1: 1}, {0: 1, 1: 1, places[1]: 0}):
            counts = dict.fromkeys(range(4), 0) | exponents
            counts[places[0]] += 2
            if len(exponents) == 2:
                found.add(tuple(sorted(filter(None, counts.values()), reverse=True)))
            counts[places[1]] += 2
            found.add(tuple(sorted(filter(None, counts.values()), reverse=True)))
    assert {p for p in found if sum(p) in (4, 6)} == set(_assumptions.OFF_DIAGONAL)


@pytest.mark.slow
@given(
    st.lists(st.fractions(-3, 3, max_denominator=4), min_size=1, max_size=5, unique=True),
    st.lists(st.integers(1, 5), min_size=5, max_size=5),
)
def test_the_gap_closes_exactly_for_one_non_zero_absolute_value(points, counts):
    samples = [float(x) for x, n in zip(points, counts, strict=False) for _ in range(n)]
    law = Empirical(samples)
    single = len({abs(x) for x in samples if x}) == 1
    assert bool(zheng2024.satisfies_assumption_42(law)) == single
    if any(samples):
        gap = zheng2024.capability_gap(DiagonalUnitary(law, 3), mask="off-diagonal")
        assert gap >= 0
        assert (gap == 0) == single


def test_the_dimension_is_checked_and_does_not_change_the_second_answer():
    for dim in (1, 2, 7):
        assert zheng2024.satisfies_assumption_42(Sparse(2), dim)
        assert not zheng2024.satisfies_assumption_42(
            Mixture([("1/2", Sparse(1)), ("1/2", Rademacher(2))]), dim
        )
    for ask in (zheng2024.satisfies_assumption_41, zheng2024.satisfies_assumption_42):
        with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
            ask(Gaussian(), 0)
        with pytest.raises(ValueError, match="dim is 3, but tokens"):
            ask(Constant([1, 2]), 3)


def test_require_raises_with_the_reason():
    verdict = zheng2024.satisfies_assumption_41(Constant(1), 2)
    with pytest.raises(zheng2024.AssumptionError, match=r"^the claim: E\[x_j\] = 1 is not 0$"):
        verdict.require("the claim")
    zheng2024.satisfies_assumption_41(Gaussian(), 2).require("the claim")
