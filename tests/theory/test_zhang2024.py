"""Closed forms of zhang2024, compared with Gauss–Hermite sums, finite differences and algebraic identities."""

from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad

from mesascope.theory import zhang2024

SIGMA = np.array([[2.0, 0.6], [0.6, 0.5]])
RNG = np.random.default_rng(0)


def second_moments(covariance, examples):
    """S = (1/N) Σ x_i x_iᵀ over a Gauss–Hermite rule, exact to degree 5 in every coordinate, with weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    weights = weights / weights.sum()
    root = np.linalg.cholesky(covariance)
    dim = len(covariance)
    for index in product(range(3), repeat=dim * examples):
        x = nodes[list(index)].reshape(examples, dim) @ root.T
        yield x.T @ x / examples, np.prod(weights[list(index)])


def brute_risk(a, covariance, examples):
    """E (ŷ − y)² = E tr Λ(AS − I)(AS − I)ᵀ."""
    eye = np.eye(len(covariance))
    return sum(
        weight * np.trace(covariance @ (a @ s - eye) @ (a @ s - eye).T)
        for s, weight in second_moments(covariance, examples)
    )


@pytest.mark.parametrize("examples", [1, 3])
def test_gamma_is_the_mean_of_squares(examples):
    squares = sum(weight * s @ s for s, weight in second_moments(SIGMA, examples))
    np.testing.assert_allclose(zhang2024.gamma(SIGMA, examples) @ SIGMA, squares, rtol=1e-12)


@pytest.mark.parametrize("examples", [1, 3])
def test_risk_is_that_of_the_definition(examples):
    a = RNG.normal(size=(2, 2))  # asymmetric, to detect wrong transposes
    assert zhang2024.risk(a, SIGMA, examples) == pytest.approx(brute_risk(a, SIGMA, examples), rel=1e-12)


@pytest.mark.parametrize("examples", [1, 3])
def test_the_error_of_one_task_and_query_is_that_of_the_definition(examples):
    a, w, x = RNG.normal(size=(2, 2)), RNG.normal(size=2), RNG.normal(size=2)
    brute = sum(weight * (x @ (a @ s - np.eye(2)) @ w) ** 2 for s, weight in second_moments(SIGMA, examples))
    assert zhang2024.pointwise_error(a, SIGMA, examples, w, x) == pytest.approx(brute, rel=1e-12)


def test_no_task_and_query_exceed_the_bound_and_some_reach_it():
    a, inverse = np.linalg.inv(zhang2024.gamma(SIGMA, 20)), np.linalg.inv(SIGMA)

    def ratio(examples, w, x):
        return zhang2024.pointwise_error(a, SIGMA, examples, w, x) / (w @ SIGMA @ w * (x @ inverse @ x))

    for examples in (1, 10, 10**9):
        bound = zhang2024.pointwise_bound(a, SIGMA, examples)
        assert max(ratio(examples, *pair) for pair in RNG.normal(size=(500, 2, 2))) <= bound
    # for long prompts the eigenvector of the smallest eigenvalue, where A Λ is farthest from 1, is the worst
    values, vectors = np.linalg.eigh(SIGMA)
    assert ratio(10**12, vectors[:, 0], vectors[:, 0]) == pytest.approx(bound, rel=1e-6)
    assert bound <= ((1 + values.sum() / values[0]) / 20) ** 2 + 2e-9


def test_the_reduced_flow_is_minus_the_gradient():
    u_matrix, u = RNG.normal(size=(2, 2)), 0.7
    rate, scalar_rate = zhang2024.reduced_flow(u_matrix, u, SIGMA, 2)
    width = 1e-5  # central differences of a polynomial of degree 4: errors of order width²

    def loss(moved, scalar):
        return brute_risk(scalar * moved.T, SIGMA, 2) / 2

    for i, j in product(range(2), repeat=2):
        step = np.zeros((2, 2))
        step[i, j] = width
        slope = (loss(u_matrix + step, u) - loss(u_matrix - step, u)) / (2 * width)
        assert rate[i, j] == pytest.approx(-slope, rel=1e-7)
    slope = (loss(u_matrix, u + width) - loss(u_matrix, u - width)) / (2 * width)
    assert scalar_rate == pytest.approx(-slope, rel=1e-7)
    # u² − ‖U‖² is conserved
    assert u * scalar_rate == pytest.approx(np.sum(u_matrix * rate), rel=1e-12)


def test_the_limit_is_stationary_balanced_and_has_minimal_risk():
    u_matrix, u = zhang2024.flow_limit(SIGMA, 4)
    rate, scalar_rate = zhang2024.reduced_flow(u_matrix, u, SIGMA, 4)
    assert abs(rate).max() < 1e-14 and abs(scalar_rate) < 1e-14
    assert u**2 == pytest.approx(np.sum(u_matrix**2), rel=1e-13)
    inverse = np.linalg.inv(zhang2024.gamma(SIGMA, 4))
    assert u == pytest.approx(np.trace(inverse @ inverse) ** 0.25, rel=1e-13)
    best = zhang2024.risk(inverse, SIGMA, 4)
    assert best == pytest.approx(np.trace(SIGMA - SIGMA @ SIGMA @ inverse), rel=1e-12)
    for _ in range(20):
        assert zhang2024.risk(inverse + 0.01 * RNG.normal(size=(2, 2)), SIGMA, 4) > best


def test_the_floor_is_the_risk_on_long_prompts():
    inverse = np.linalg.inv(zhang2024.gamma(SIGMA, 5))
    expected = zhang2024.risk(inverse, SIGMA, 10**9)
    assert zhang2024.risk_floor(SIGMA, 5) == pytest.approx(expected, rel=1e-6)  # finite prompts: order 1/M
    ratio = zhang2024.risk_floor(SIGMA, 1000) / zhang2024.risk_floor(SIGMA, 2000)
    assert ratio == pytest.approx(4, rel=0.01)  # order 1/N²


def test_the_step_for_random_covariances_is_best():
    # s = z² for normal z: E s, E s², E s³ = 1, 3, 15; the risk given Λ is that of the definition
    dim, examples = 2, 3
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    weights = weights / weights.sum()

    def mean_risk(a):
        return sum(
            weights[i]
            * weights[j]
            * zhang2024.risk(a * np.eye(2), np.diag([nodes[i], nodes[j]]) ** 2, examples)
            for i, j in product(range(4), repeat=2)
        )

    best = zhang2024.random_covariance_step(1, 3, 15, dim, examples)
    values = [mean_risk(a) for a in (best - 0.1, best, best + 0.1)]
    # a parabola whose vertex is the middle one
    assert values[0] == pytest.approx(values[2], rel=1e-12) and values[1] < values[0]
    assert zhang2024.random_covariance_step(1, 3, 15, 7, 10**9) == pytest.approx(0.2, rel=1e-7)


@pytest.mark.parametrize(("examples", "test_examples"), [(1, 1), (4, 3), (1000, 7)])
def test_theorem_4_2_is_the_risk_of_the_trained_layer(examples, test_examples):
    expected = zhang2024.risk(np.linalg.inv(zhang2024.gamma(SIGMA, examples)), SIGMA, test_examples)
    assert zhang2024.prediction_error(SIGMA, examples, test_examples) == pytest.approx(expected, rel=1e-12)


def test_the_limiting_risk_for_random_covariances_is_that_of_the_best_step():
    # Exponential(1) by Gauss–Laguerre, exact for these polynomials
    nodes, weights = np.polynomial.laguerre.laggauss(6)
    step = zhang2024.random_covariance_step(1, 2, 6, 1, 10**12)
    stays = np.sum(weights * nodes * (step * nodes - 1) ** 2)
    assert zhang2024.random_covariance_risk(1, 2, 6, 3) == pytest.approx(3 * stays, rel=1e-10)
    assert stays == pytest.approx(1 / 3, rel=1e-10)


@pytest.mark.parametrize("query", [0.1, -1.0, 3.0])
def test_the_variance_given_a_query_is_a_ratio_of_integrals(query):
    def integral(power):
        return quad(lambda t: 2 * t ** (2 * power) * np.exp(-(t**2) - query**2 / (2 * t**2)), 0, np.inf)[0]

    ratio = integral(1) / integral(0)  # s = t², ds = 2t dt, and a density of s^(-1/2)
    assert zhang2024.variance_given_query(query) == pytest.approx(ratio, rel=1e-8)


@pytest.mark.parametrize("own", [False, True], ids=["other queries", "own queries"])
def test_the_factors_of_random_covariances_are_those_of_sampled_answers(own):
    rng = np.random.default_rng(0)
    s, other = rng.normal(size=(2, 400_000, 2)) ** 2  # E s, E s², E s³ = 1, 3, 15
    w, z = rng.normal(size=(2, 400_000, 2))
    query = z * np.sqrt(s if own else other)
    right, answer = (w * query).sum(1), 3 / 15 * (query * s * w).sum(1)
    off = (answer - zhang2024.random_covariance_factors(1, 3, 15)[own] * right) * right
    assert abs(off.mean()) < 4 * off.std() / len(off) ** 0.5  # standard errors
    assert 0.05 * (right**2).mean() > 4 * off.std() / len(off) ** 0.5  # which tell a twentieth
