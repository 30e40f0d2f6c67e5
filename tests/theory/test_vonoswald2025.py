"""The regression problem of the mesa layer, and the bound on conjugate gradients, against their definitions."""

import numpy as np
import pytest

from mesascope.theory import vonoswald2025


def test_weights_are_products_of_later_decays():
    rates, decays = np.array([0.5, 0.8, 0.3]), np.array([0.9, 0.7, 0.6])
    expected = [0.5 * 0.7 * 0.6, 0.8 * 0.6, 0.3]
    np.testing.assert_allclose(vonoswald2025.token_weights(rates, decays), expected, rtol=1e-14)


def test_gated_ridge_solves_its_normal_equations():
    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    weights, penalty = rng.uniform(size=6), np.array([0.1, 1.0, 3.0])
    memory = vonoswald2025.gated_ridge(keys, values, weights, penalty)
    gram = (weights[:, None] * keys).T @ keys + np.diag(penalty)
    cross = (weights[:, None] * values).T @ keys
    np.testing.assert_allclose(memory @ gram, cross, rtol=1e-12, atol=1e-13)


def test_the_bound_is_the_least_largest_value_of_a_polynomial_that_is_1_at_0():
    """On [1, κ] it is that of the Chebyshev polynomial T_k, moved there and divided by its value at 0."""
    kappa, steps = 20.0, 5
    chebyshev = np.polynomial.chebyshev.Chebyshev.basis(steps)
    moved = chebyshev((kappa + 1) / (kappa - 1))
    np.testing.assert_allclose(vonoswald2025.conjugate_gradient_bound(kappa, steps), 1 / moved, rtol=1e-12)
    assert vonoswald2025.conjugate_gradient_bound(kappa, 0) == 1
    assert vonoswald2025.conjugate_gradient_bound(1, 3) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vonoswald2025.token_weights([0.5], [0.5, 0.5]), "must have shape"),
        (
            lambda: vonoswald2025.gated_ridge(np.ones((2, 2)), np.ones((3, 1)), np.ones(2), np.ones(2)),
            "do not fit",
        ),
        (lambda: vonoswald2025.gated_ridge(*np.ones((2, 2, 2)), np.ones(2), np.zeros(2)), "positive"),
        (lambda: vonoswald2025.gated_ridge(*np.ones((2, 2, 2)), -np.ones(2), np.ones(2)), "not be negative"),
        (lambda: vonoswald2025.conjugate_gradient_bound(0.5, 1), "condition must be at least 1, got 0.5"),
        (lambda: vonoswald2025.conjugate_gradient_bound(2, -1), "steps must be at least 0"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
