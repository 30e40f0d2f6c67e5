"""The best polynomial beside a descent on its coefficients, and steps of gradient descent."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mesascope.papers._spectral_steps import best_polynomial, best_polynomial_loss, loss_of_steps

EIGENVALUES = np.random.default_rng(0).gamma(2.0, size=(50, 3))


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_the_best_polynomial_has_the_least_loss_that_a_descent_on_its_coefficients_finds(steps):
    scale = EIGENVALUES.max()

    def loss(coefficients):
        rest = np.polyval([*coefficients, 1.0], EIGENVALUES / scale)
        return 0.7 / 2 * np.mean(np.sum(rest**2, -1))

    found = minimize(loss, np.zeros(steps), tol=1e-12)
    # the loss is quadratic: the descent is as near as its numerical gradients allow
    assert best_polynomial_loss(EIGENVALUES, steps, 0.7) == pytest.approx(found.fun, rel=1e-6)


def test_one_step_is_the_best_step_of_gradient_descent():
    best = EIGENVALUES.sum() / (EIGENVALUES**2).sum()
    expected = loss_of_steps(EIGENVALUES, [best], [0.0], 1.0)
    assert best_polynomial_loss(EIGENVALUES, 1, 1.0) == pytest.approx(expected, rel=1e-12)


def test_steps_at_the_roots_of_the_polynomial_reach_its_loss():
    spread = np.geomspace(0.5, 2.0, 30).reshape(10, 3)
    roots = np.polynomial.polynomial.polyroots(best_polynomial(spread, 3))
    assert np.isreal(roots).all()
    reached = loss_of_steps(spread, 1 / roots.real, np.zeros(3), 1.0)
    assert reached == pytest.approx(best_polynomial_loss(spread, 3, 1.0), rel=1e-9)


def test_no_steps_of_gradient_descent_are_better():
    bound = best_polynomial_loss(EIGENVALUES, 3, 1.0)
    drawn = np.random.default_rng(1).uniform(0, 1, (500, 3))
    losses = [loss_of_steps(EIGENVALUES, sizes, np.zeros(3), 1.0) for sizes in drawn]
    assert bound <= min(losses) <= 2 * bound  # some of the drawn are good
