"""Gradient flow on pools of regression tasks: of the exact features in finite dimensions, and its limit in many."""

from math import inf

import numpy as np
import pytest

from mesascope.processes import LinearRegression, TaskPool
from mesascope.theory import lu2024
from theory.regression_pools import features, process


@pytest.mark.parametrize(("alpha", "kappa"), [(0.3, 0.4), (2.0, 1.0), (5.0, 3.0)])
def test_the_flow_of_the_limit_ends_at_the_minimum_and_begins_at_zero(alpha, kappa):
    fresh, pool = lu2024.flow_errors(alpha, kappa, 0.25, np.array([0.0, inf]))
    assert fresh[0] == pytest.approx(1.25, rel=1e-12) and pool[0] == pytest.approx(1.25, rel=1e-12)
    assert fresh[1] == pytest.approx(lu2024.icl_error(alpha, kappa, 0.25), rel=1e-10)
    assert pool[1] == pytest.approx(lu2024.idg_error(alpha, kappa, 0.25), rel=1e-10)


@pytest.mark.parametrize("rho", [0.0, 0.25])
@pytest.mark.parametrize(
    ("alpha", "kappa"), [(1e3, 1), (1e6, 1), (1e30, 1), (1e6, 0.999), (1e30, 3.0), (1e-6, 1e-6)]
)
def test_the_flow_of_the_limit_has_its_digits_where_eigenvalues_come_near_zero(alpha, kappa, rho):
    fresh, pool = lu2024.flow_errors(alpha, kappa, rho, inf)
    assert fresh == pytest.approx(lu2024.icl_error(alpha, kappa, rho), rel=1e-11, abs=1e-14)
    assert pool == pytest.approx(lu2024.idg_error(alpha, kappa, rho), rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("scale", [[1, 1, 1, 1], [0.5, 2, 1, 3]])
def test_the_flow_solves_its_equation(scale):
    covariance = np.diag(scale) / 4
    pool = TaskPool(LinearRegression(4, covariance=covariance, prior="sphere", noise=0.5), tasks=3)
    these = features(pool, 6)
    times = np.array([0.0, 0.3, 2.0])
    gamma, integrated = np.zeros_like(these.cross), []
    for step in range(20_001):  # the midpoint rule with steps of 1e-4 leaves an error below 1e-7
        if step in (0, 3000, 20_000):
            integrated.append(gamma)
        half = gamma + 1e-4 / 2 * 4 * covariance @ (these.cross - gamma @ these.gram)
        gamma = gamma + 1e-4 * 4 * covariance @ (these.cross - half @ these.gram)
    found = these.after(times)
    assert found.shape == (3, 4, 5)
    np.testing.assert_allclose(found, integrated, atol=1e-7)
    np.testing.assert_allclose(these.after(1e9), these.minimum, atol=1e-9)
    np.testing.assert_allclose(these.after(inf), these.minimum, atol=1e-9)
    assert these.error(found)[1] == pytest.approx(these.error(found[1]), rel=1e-14)


@pytest.mark.parametrize("dim", [8, 20])
def test_a_flow_on_one_task_without_noise_ends_though_its_features_are_dependent(dim):
    """The sum of squared labels is |w|²/d times the rest: F has an eigenvalue 0, which rounding makes ±1e-16."""
    for seed in range(4):
        these = features(TaskPool(process(dim, 0.0), tasks=1, seed=seed), 16)
        for time in (1e3, 1e18, inf):
            assert these.error(these.after(time)) == pytest.approx(these.error(these.minimum), abs=1e-12)


@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_labels_of_any_size_have_the_same_minimum(size):
    tasks = np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 1.0]])
    one, other = (features(TaskPool(LinearRegression(2), vectors=scale * tasks), 3) for scale in (1.0, size))
    for gamma in (other.minimum, other.after(inf)):
        assert other.error(gamma) / size**2 == pytest.approx(one.error(one.minimum), rel=1e-9)


@pytest.mark.slow
def test_without_squares_the_flow_comes_to_the_limit():
    dim, alpha, kappa, noise, times = 120, 1, 0.5, 0.5, np.array([0.2, 1.0, inf])
    fresh = features(process(dim, noise), alpha * dim).without_squares
    pools = [TaskPool(process(dim, noise), tasks=int(kappa * dim), seed=seed) for seed in range(6)]
    trained = [features(pool, alpha * dim).without_squares for pool in pools]
    errors = np.mean([fresh.error(one.after(times)) for one in trained], 0)
    on_pool = np.mean([one.error(one.after(times)) for one in trained], 0)
    limits = lu2024.flow_errors(alpha, kappa, noise**2, times)
    # differences of order 1/d, and 6 pools
    np.testing.assert_allclose(errors, limits[0], atol=1 / dim)
    np.testing.assert_allclose(on_pool, limits[1], atol=1 / dim)


def test_times_before_the_start_are_refused():
    these = features(TaskPool(process(3, 0.5), tasks=2), 4)
    for time in (-1.0, np.nan):
        with pytest.raises(ValueError, match="times must be at least 0"):
            these.after(time)
        with pytest.raises(ValueError, match="times must be at least 0"):
            lu2024.flow_errors(1, 1, 0.25, time)


def test_times_and_weights_of_another_kind_are_refused():
    these = features(TaskPool(process(3, 0.5), tasks=2), 4)
    with pytest.raises(TypeError, match="times must be numbers, got 'x'"):
        lu2024.flow_errors(1, 1, 0.25, "x")
    with pytest.raises(ValueError, match=r"gamma must have shape \(…, 3, 4\), got \(2, 2\)"):
        these.error(np.eye(2))
    with pytest.raises(ValueError, match="gamma must be finite"):
        these.error(np.full((3, 4), np.nan))
