"""Moments, least errors and best steps of bordelon2025: by quadrature, by search, and by another theory's losses."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from mesascope.theory import ahn2023
from mesascope.theory import bordelon2025 as theory

EIGENVALUES = [Fraction(4, 10), Fraction(3, 10), Fraction(1, 10)]


@pytest.mark.parametrize("context", [Fraction(1, 2), 1, 3])
def test_moments_of_the_limit_are_those_of_the_density(context):
    """ρ(s) = √((b − s)(s − a)) α/(2πs) on [a, b], and for α < 1 a point mass 1 − α at 0."""
    ratio = 1 / float(context)
    low, high = (1 - ratio**0.5) ** 2, (1 + ratio**0.5) ** 2
    angles = np.pi * np.arange(1, 2001) / 2001  # Chebyshev's nodes of the second kind
    s = (high + low) / 2 + (high - low) / 2 * np.cos(angles)
    weights = np.pi / 2001 * ((high - low) / 2) ** 2 * np.sin(angles) ** 2 / (2 * np.pi * ratio)
    found = [float(m) for m in theory.limit_moments(6, context)]
    np.testing.assert_allclose(found[1:], [(weights * s ** (k - 1)).sum() for k in range(1, 7)], rtol=1e-12)
    assert found[0] == 1


@pytest.mark.parametrize("steps", [[0.3], [0.2, Fraction(1, 3), 0.7]])
def test_errors_at_finite_d_are_the_losses_of_multiples(steps):
    moments = theory.finite_moments(2 * len(steps), 3, 5)
    assert theory.error_of_steps(steps, moments) == 2 * ahn2023.multiples_loss(steps, 3, 5) / 3


def test_errors_of_rotated_covariances_are_those_of_descent():
    """Steps on Σ = U diag(λ) Uᵀ from w = U v with independent v_k, E v_k² = c_k/λ_k: errors of the columns add up."""
    lam, shares, steps = np.array(EIGENVALUES, float), np.array([1.0, 2.0, 3.0]), [0.7, 2.0, 5.0]
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    sigma = rotation @ np.diag(lam) @ rotation.T
    left = rotation * np.sqrt(shares / lam)
    before = np.trace(left.T @ sigma @ left)
    for step in steps:
        left = left - step * sigma @ left
    error = np.trace(left.T @ sigma @ left) / before
    moments = theory.rotated_moments(6, EIGENVALUES, [1, 2, 3])
    assert float(theory.error_of_steps(steps, moments)) == pytest.approx(error, rel=1e-12)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(
    "moments", [theory.finite_moments(6, 4, 6), theory.rotated_moments(6, EIGENVALUES, [1, 2, 3])]
)
def test_the_best_steps_have_the_least_error(layers, moments):
    steps, least = theory.best_steps(layers, moments), theory.best_error(layers, moments)
    assert float(theory.error_of_steps(list(steps), moments)) == pytest.approx(
        float(least), rel=1e-9, abs=1e-15
    )
    rng = np.random.default_rng(layers)
    for _ in range(5):
        start = steps * rng.uniform(0.5, 1.5, layers)
        found = minimize(
            lambda a: float(theory.error_of_steps(list(a), moments)), start, method="Nelder-Mead"
        )
        assert found.fun >= float(least) - 1e-12


def test_as_many_layers_as_eigenvalues_leave_nothing_and_more_neither():
    moments = theory.rotated_moments(10, EIGENVALUES, EIGENVALUES)
    assert [theory.best_error(layers, moments) > 0 for layers in range(6)] == [True] * 3 + [False] * 3
    np.testing.assert_allclose(theory.best_steps(5, moments), [2.5, 10 / 3, 10], rtol=1e-12)


@pytest.mark.parametrize("context", [Fraction(2, 7), 1, Fraction(5, 2)])
@pytest.mark.parametrize("layers", [0, 1, 5])
def test_least_errors_of_the_limit_are_closed(layers, context):
    moments = theory.limit_moments(2 * layers, context)
    assert theory.limit_best_error(layers, context) == theory.best_error(layers, moments)
    if layers:
        found = theory.limit_best_steps(layers, context)
        np.testing.assert_allclose(found, theory.best_steps(layers, moments), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.limit_moments(2, 0), "context"),
        (lambda: theory.finite_moments(2, 0, 1), "dim"),
        (lambda: theory.rotated_moments(2, [1.0], [1.0, 2.0]), "as many"),
        (lambda: theory.rotated_moments(2, [-1.0], [1.0]), r"eigenvalues\[0\]"),
        (lambda: theory.error_of_steps([np.nan], [1, 1, 1]), r"steps\[0\]"),
        (lambda: theory.best_error(2, [1, 1, 1]), "up to order 4, got 2"),
        (lambda: theory.limit_best_steps(0, 1.0), "layers"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
