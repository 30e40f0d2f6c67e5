from fractions import Fraction

import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Gaussian,
    Mixture,
    NextToken,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)
from mesascope.theory import zheng2024

PROCESSES = {
    "gaussian": DiagonalUnitary(Gaussian("1/2"), 5),
    "sparse": DiagonalUnitary(Sparse(2), 4),
    "rademacher": DiagonalUnitary(Rademacher(), 3),
    "uniform": DiagonalUnitary(Uniform(2), 3),
    "student": DiagonalUnitary(StudentT(15), 3),  # df > 12: the variance of the squared error must exist
    "mixture": DiagonalUnitary(Mixture([("1/2", Sparse(2)), ("1/2", Gaussian())]), 3),
    "vector": DiagonalUnitary(Constant([1, 0, -2]), 3),
}


@pytest.mark.parametrize(
    ("law", "gap"),
    [
        (Gaussian(1), "2/5"),
        (Gaussian(3), "18/5"),
        (Sparse(2), 0),
        (Rademacher(2), 0),
        (Uniform(1), Fraction(1, 3) - Fraction(7, 25)),
        # m2 = 8/6, κ1 = 64·3/(6·4), κ2 = 160
        (StudentT(8), Fraction(4, 3) - Fraction(64, 160)),
        (Mixture([("1/2", Rademacher(1)), ("1/2", Rademacher(2))]), Fraction(5, 2) - Fraction(17**2, 2 * 65)),
    ],
)
def test_capability_gap(law, gap):
    assert zheng2024.capability_gap(DiagonalUnitary(law, 5)) == Fraction(gap)


def test_the_risk_of_the_trained_layer_tends_to_the_gap():
    process = PROCESSES["gaussian"]
    gap = zheng2024.capability_gap(process)
    excess = []
    for horizon in (10**2, 10**4, 10**6):
        limit = zheng2024.limit_product(process, NextToken(horizon))
        excess.append(float(zheng2024.finite_context_risk(process, horizon, limit)) - float(gap))
    assert all(e > 0 for e in excess)
    # κ3 c²/(t−1) to leading order, per coordinate; the shift of c* adds (log T/T)² only.
    kappa3 = float(zheng2024.token_moments(process.law, 5).kappa3)
    limit = 1 / (5 * 0.25)
    assert excess[2] == pytest.approx(kappa3 * limit**2 / 10**6, rel=1e-3)
    # One-hot tokens are recovered exactly at every context length and horizon.
    one_hot = PROCESSES["sparse"]
    for horizon, length in ((3, 2), (10, 50), (100, 3)):
        limit = zheng2024.limit_product(one_hot, NextToken(horizon))
        assert zheng2024.finite_context_risk(one_hot, length, limit) == 0


def test_risk_is_the_loss_per_coordinate():
    process = PROCESSES["mixture"]
    c = Fraction(1, 7)
    for t in (2, 3, 8):
        loss = zheng2024.diagonal_loss(process, NextToken(9, {t: 1}), c)
        assert zheng2024.finite_context_risk(process, t, c) * Fraction(3, 2) == loss


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("context_length", [2, 7])
@pytest.mark.parametrize("name", PROCESSES)
def test_against_sampled_predictions(name, context_length, seed):
    process, t, c, count = PROCESSES[name], context_length, 0.15, 100_000
    tokens = np.asarray(process.sample(named_key(seed, "capability", name), t + 1, count))
    past, following, query, target = tokens[:, : t - 1], tokens[:, 1:t], tokens[:, t - 1], tokens[:, t]
    # One gradient step from zero on ½Σ‖x_{i+1} − W x_i‖², with rate c/(t−1), applied to x_t.
    inner = np.einsum("nir,nr->ni", past.conj(), query)
    prediction = c / (t - 1) * np.einsum("nij,ni->nj", following, inner)

    def agrees(samples, expected):
        error = samples.std(ddof=1) / len(samples) ** 0.5
        # 28 runs of three means each: five standard errors, a sixth for the tails. The seeds are fixed.
        assert samples.mean() == pytest.approx(float(expected), abs=6 * error + 1e-12)

    squared = np.mean(abs(prediction - target) ** 2, axis=1)
    agrees(squared, zheng2024.finite_context_risk(process, t, c))
    nonzero = tokens[:, 0] != 0
    agrees((prediction[nonzero] / target[nonzero]).real, zheng2024.expected_ratio(process, c))
    covariance = (prediction * target.conj()).real.mean(axis=1)
    power = float(zheng2024.token_moments(process.law, process.dim).m2)
    agrees(covariance / power, zheng2024.correlation_ratio(process, c))


def test_ratios_in_the_limit():
    for scale in ("1/2", 1, 2):
        gaussian = DiagonalUnitary(Gaussian(scale), 5)
        assert zheng2024.expected_ratio(gaussian) == Fraction(1, 5)  # Proposition 4.1, refined
        assert zheng2024.correlation_ratio(gaussian) == Fraction(3, 5)
    for law in (Sparse(3), Rademacher(3)):
        assert zheng2024.expected_ratio(DiagonalUnitary(law, 5)) == 1
        assert zheng2024.correlation_ratio(DiagonalUnitary(law, 5)) == 1
    assert zheng2024.expected_ratio(DiagonalUnitary(Uniform(2), 5)) == Fraction(7, 15)


def test_ratios_at_a_finite_horizon():
    process = DiagonalUnitary(Gaussian(), 5)
    limit = zheng2024.limit_product(process, NextToken(100))
    assert zheng2024.expected_ratio(process, limit) == limit
    assert zheng2024.correlation_ratio(process, limit) == 3 * limit


@pytest.mark.parametrize("name", ["gaussian", "uniform", "student", "mixture", "sparse"])
def test_gap_and_correlation_are_one_statement(name):
    process = PROCESSES[name]
    moments = zheng2024.token_moments(process.law, process.dim)
    assert zheng2024.capability_gap(process) == moments.m2 * (1 - zheng2024.correlation_ratio(process))


def test_the_full_one_token_is_recovered_under_the_mask():
    process = DiagonalUnitary(Constant(1), 5)
    assert zheng2024.capability_gap(process, mask="off-diagonal") == 0
    assert zheng2024.expected_ratio(process, mask="off-diagonal") == 1
    for ask in (zheng2024.capability_gap, zheng2024.expected_ratio, zheng2024.correlation_ratio):
        with pytest.raises(zheng2024.AssumptionError, match=r"E\[x_j\^3 x_r\] = 1 is not 0"):
            ask(process)


def test_bad_arguments():
    process = PROCESSES["gaussian"]
    with pytest.raises(ValueError, match="context length must be at least 2, got 1"):
        zheng2024.finite_context_risk(process, 1, 0.1)
    for ask in (zheng2024.expected_ratio, zheng2024.correlation_ratio):
        with pytest.raises(ValueError, match=r"0/0.*Constant\(0\) is always zero"):
            ask(DiagonalUnitary(Constant(0), 2), 0.1)
