import time
from fractions import Fraction

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
    MomentError,
    NextToken,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)
from mesascope.theory import zheng2024

NORMALIZERS = ("t-1", "t", "1")


def gaussian(scale=1, dim=5):
    return DiagonalUnitary(Gaussian(scale), dim)


def test_theorem_41_for_the_papers_setting():
    limit = zheng2024.limit_product(gaussian(), NextToken(100))
    harmonic = sum(Fraction(1, k) for k in range(1, 99))
    assert limit == Fraction(3) / (15 + Fraction(12, 98) * harmonic)
    assert float(limit) == 0.19190508852558863


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
@pytest.mark.parametrize("horizon", [3, 10, 100])
@pytest.mark.parametrize("scale", ["1/2", 1, 2])
def test_theorem_41_written_out_for_three_laws(dim, horizon, scale):
    s2 = Fraction(scale) ** 2
    mean = sum(Fraction(1, t - 1) for t in range(2, horizon)) / (horizon - 2)
    task = NextToken(horizon)
    expected = {
        Gaussian: 3 / (s2 * (15 + 3 * (dim - 1) * mean)),
        Sparse: 1 / s2,
        Rademacher: 1 / (s2 * (1 + (dim - 1) * mean)),
        Uniform: Fraction(1, 5) / (s2 * (Fraction(1, 7) + (dim - 1) * Fraction(1, 15) * mean)),
    }
    for law, limit in expected.items():
        assert zheng2024.limit_product(DiagonalUnitary(law(scale), dim), task) == limit


def test_one_hot_is_the_same_for_all_weights_and_horizons():
    process = DiagonalUnitary(Sparse(2), 7)
    for task in (
        NextToken(3),
        NextToken(50),
        NextToken.last(50),
        NextToken(5, [1, 0, "7/3"]),
        NextToken(10**9),
    ):
        assert zheng2024.limit_product(process, task) == Fraction(1, 4)


def test_the_last_length_only():
    limit = zheng2024.limit_product(gaussian(), NextToken.last(100))
    assert limit == Fraction(3) / (15 + Fraction(12, 98))
    # Training on the last prediction only ends closer to the infinite-horizon value 1/5.
    assert zheng2024.limit_product(gaussian(), NextToken(100)) < limit < Fraction(1, 5)


def test_a_mixture_by_hand():
    # Half one-hot ±2, half signs, d = 3: κ1 = ½(16/3 + 1), κ2 = ½(64/3 + 1), κ3 = ½(0 + 2).
    law = Mixture([("1/2", Sparse(2)), ("1/2", Rademacher())])
    assert zheng2024.token_moments(law, 3) == zheng2024.TokenMoments(
        Fraction(7, 6), Fraction(19, 6), Fraction(67, 6), Fraction(1)
    )
    assert zheng2024.limit_product(DiagonalUnitary(law, 3), NextToken(4, [2, 3])) == (5 * Fraction(19, 6)) / (
        5 * Fraction(67, 6) + 2 + Fraction(3, 2)
    )


def test_moments_of_unequal_coordinates_are_averaged():
    table = [[1.0, 2.0, 0.5], [-1.0, 3.0, 0.0], [2.0, -2.0, 1.0], [0.0, 0.0, -1.0]]
    x = np.array(table)
    for joint in (True, False):
        moments = zheng2024.token_moments(Empirical(table, joint=joint), 3)
        second, fourth = (x**2).mean(0), (x**4).mean(0)
        mixed = (x**2).T @ x**4 / 4 if joint else np.outer(second, fourth)
        expected = (second.mean(), fourth.mean(), (x**6).mean(), (mixed.sum() - np.trace(mixed)) / 3)
        actual = (moments.m2, moments.kappa1, moments.kappa2, moments.kappa3)
        np.testing.assert_allclose(list(map(float, actual)), expected, rtol=1e-14)


def test_exchangeable_moments_agree_with_products():
    for law in (Gaussian(), Sparse(2), Mixture([("1/3", Sparse()), ("2/3", Uniform(2))]), Constant(2)):
        direct, each = zheng2024.token_moments(law, 4), zheng2024.coordinate_moments(law, 4)
        for name in ("m2", "kappa1", "kappa2", "kappa3"):
            assert set(getattr(each, name)) == {getattr(direct, name)}
        assert each.kappa3 == each.kappa3_swapped


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_theorem_43(dim):
    for task in (NextToken(3), NextToken(100), NextToken(5, [1, 2, 3]), NextToken.last(50)):
        limit = zheng2024.masked_full_one_limit(dim, task)
        mean = sum(Fraction(task.weight(t)) / (t - 1) for t in task.support) / task.total_weight
        assert limit == 1 / (1 + (dim - 1) * mean)
        assert limit == zheng2024.limit_product(DiagonalUnitary(Constant(1), dim), task, mask="off-diagonal")
    assert float(zheng2024.masked_full_one_limit(5, NextToken(100))) == pytest.approx(
        0.8258257205973869, rel=1e-15
    )
    with pytest.raises(ValueError, match="dim must be at least 1"):
        zheng2024.masked_full_one_limit(0, NextToken(5))


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_exact_sums_and_closed_forms_meet(normalizer):
    # 2000 context lengths are summed exactly, 2001 in closed form: they differ by the last summand.
    exact, closed = (zheng2024.weight_sums(NextToken(n), normalizer) for n in (2002, 2003))
    ratio = {"t-1": 1.0, "t": 2001 / 2002, "1": 2001.0}[normalizer]
    last = np.array([ratio, ratio**2, ratio**2 / 2001])
    assert all(isinstance(s, Fraction) for s in exact)
    np.testing.assert_allclose(np.array(list(map(float, closed))) - last, list(map(float, exact)), rtol=1e-13)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_sums_by_definition(normalizer):
    task = NextToken(9, [1, 2, "1/3", 0.5, 0, 1, 4])
    rho = {"t-1": lambda t: t - 1, "t": lambda t: t, "1": lambda t: 1}[normalizer]
    ratios = {t: Fraction(t - 1, rho(t)) for t in task.context_lengths}
    weights = {t: Fraction(task.weight(t)) for t in task.context_lengths}
    sums = zheng2024.weight_sums(task, normalizer)
    assert sums.linear == sum(weights[t] * ratios[t] for t in ratios)
    assert sums.quadratic == sum(weights[t] * ratios[t] ** 2 for t in ratios)
    assert sums.cross == sum(weights[t] * ratios[t] ** 2 / (t - 1) for t in ratios)


def test_many_explicit_weights_are_summed_in_floating_point():
    horizon = 5000
    doubled = NextToken(horizon, {t: 2 for t in range(2, horizon)})
    assert zheng2024.limit_product(gaussian(), doubled) == pytest.approx(
        zheng2024.limit_product(gaussian(), NextToken(horizon)), rel=1e-14
    )


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_huge_horizons_take_no_time(normalizer):
    begin = time.perf_counter()
    limit = zheng2024.limit_product(gaussian(), NextToken(10**15), normalizer=normalizer)
    last = zheng2024.limit_product(gaussian(), NextToken.last(10**15), normalizer=normalizer)
    assert time.perf_counter() - begin < 1  # seconds; a loop over 10^15 lengths would take years
    if normalizer != "1":
        assert float(limit) == pytest.approx(0.2, rel=1e-12)
        assert float(last) == pytest.approx(0.2, rel=1e-12)
    else:  # ρ = 1: c* ≈ κ1 (T²/2) / (κ2 T³/3) = 3/(10 T), and 1/(5 T) from the last length alone
        assert float(limit) * 1e15 == pytest.approx(0.3, rel=1e-12)
        assert float(last) * 1e15 == pytest.approx(0.2, rel=1e-12)


@pytest.mark.slow
@given(
    st.lists(st.fractions(0, 3, max_denominator=7), min_size=1, max_size=6).filter(any),
    st.sampled_from(NORMALIZERS),
    st.fractions(-1, 1, max_denominator=9),
)
def test_the_limit_minimizes_the_loss_on_the_diagonal(weights, normalizer, step):
    process, task = gaussian("1/2", 3), NextToken(len(weights) + 2, weights)
    limit = zheng2024.limit_product(process, task, normalizer=normalizer)
    least = zheng2024.limit_loss(process, task, normalizer=normalizer)
    alpha, beta = zheng2024.flow_coefficients(process, task, normalizer=normalizer)
    # An exact parabola in c with its vertex at the limit.
    loss = zheng2024.diagonal_loss(process, task, limit + step, normalizer=normalizer)
    assert loss == least + Fraction(3, 2) * alpha * step**2
    assert least == Fraction(3, 2) * (Fraction(1, 4) * task.total_weight - beta**2 / alpha)


def test_scaling_the_tokens():
    # x → s x turns c* into c*/s² and the loss into s² times the loss.
    for law in (Gaussian, Sparse, Rademacher, Uniform):
        one, three = DiagonalUnitary(law(1), 4), DiagonalUnitary(law(3), 4)
        task = NextToken(7)
        assert zheng2024.limit_product(three, task) * 9 == zheng2024.limit_product(one, task)
        assert zheng2024.limit_loss(three, task) == zheng2024.limit_loss(one, task) * 9


def test_the_loss_of_the_reference_quadrature():
    # Gaussian, d = 2, T = 5, a = 0.3, b = 0.7, computed independently by full quadrature.
    loss = zheng2024.diagonal_loss(gaussian(dim=2), NextToken(5), Fraction(21, 100))
    assert float(loss) == pytest.approx(1.4470500000000002, rel=1e-14)
    alpha, beta = zheng2024.flow_coefficients(gaussian(dim=2), NextToken(5))
    slope = alpha * Fraction(21, 100) - beta
    assert float(slope * Fraction(7, 10)) == pytest.approx(1.1234999999999973, rel=1e-14)
    assert float(slope * Fraction(3, 10)) == pytest.approx(0.48149999999999876, rel=1e-14)


def test_refusals():
    task = NextToken(10)
    with pytest.raises(
        zheng2024.AssumptionError, match=r"limit product of Constant\(1\) in dimension 3: E\[x_j\^3 x_r\]"
    ):
        zheng2024.limit_product(DiagonalUnitary(Constant(1), 3), task)
    with pytest.raises(zheng2024.AssumptionError, match=r"κ1 = E\[x_j\^4\] is 1 for j = 1 but 16 for j = 2"):
        zheng2024.limit_product(DiagonalUnitary(Constant([1, 2]), 2), task, mask="off-diagonal")
    with pytest.raises(zheng2024.AssumptionError, match="always zero"):
        zheng2024.limit_product(DiagonalUnitary(Constant(0), 3), task)
    with pytest.raises(MomentError, match=r"E x\^6 does not exist for StudentT\(df=6"):
        zheng2024.limit_product(DiagonalUnitary(StudentT(6), 3), task)
    with pytest.raises(ValueError, match="normalizer: 't\\+1' has no closed form here; use one of"):
        zheng2024.limit_product(gaussian(), task, normalizer="t+1")
    with pytest.raises(ValueError, match="mask: 'diagonal' is unknown; use None or 'off-diagonal'"):
        zheng2024.limit_product(gaussian(), task, mask="diagonal")
    with pytest.raises(TypeError, match="is about DiagonalUnitary processes, got Gaussian"):
        zheng2024.limit_product(Gaussian(), task)
