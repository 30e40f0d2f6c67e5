import numpy as np
import pytest

from mesascope.theory import fu2024


@pytest.fixture
def answers(attention):
    def predict(dim, steps, alpha, x, y):
        layers = attention(fu2024.newton(dim, steps, alpha), "1", "examples")
        return np.asarray(layers(fu2024.newton_tokens(x, y)))[:, -1, -1]

    return predict


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "examples", "steps"), [(1, 1, 0), (2, 3, 2), (3, 6, 5)])
def test_layers_are_newton_iterations(answers, prompts, dim, examples, steps):
    x, y = prompts(dim, examples)
    alpha = 1 / (x[:, :-1] ** 2).sum((1, 2)).max() ** 2
    found = answers(dim, steps, alpha, x, y)
    assert fu2024.newton(dim, steps, alpha).w_kq.shape == (steps + 2, 1, 3 * dim + 1, 3 * dim + 1)
    for b in range(len(x)):
        gram, moments = x[b, :-1].T @ x[b, :-1], x[b, :-1].T @ y[b]
        inverse = alpha * gram
        for _ in range(steps):
            inverse = inverse @ (2 * np.eye(dim) - gram @ inverse)
        assert found[b] == pytest.approx(x[b, -1] @ inverse @ moments, rel=1e-12, abs=1e-12)


@pytest.mark.slow
def test_many_iterations_are_least_squares(answers, prompts):
    x, y = prompts(2, 20)
    found = answers(2, 14, 1 / (x**2).sum((1, 2)).max() ** 2, x, y)
    for b in range(len(x)):
        w = np.linalg.lstsq(x[b, :-1], y[b])[0]
        assert found[b] == pytest.approx(w @ x[b, -1], rel=1e-11, abs=1e-11)


def test_the_error_in_eigenvalues():
    s, alpha = np.array([0.0, 0.3, 1.0, 2.0]), 0.2
    m = alpha * s
    for steps in range(6):
        np.testing.assert_allclose(fu2024.newton_error(s, alpha, steps), 1 - s * m, rtol=1e-12, atol=1e-15)
        m = m * (2 - s * m)


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_equivalent_steps_leave_the_same_error(steps):
    s, alpha, eta = 0.7, 0.3, 0.4
    count = fu2024.equivalent_gradient_steps(s, alpha, steps, eta)
    assert (1 - eta * s) ** count == pytest.approx(float(fu2024.newton_error(s, alpha, steps)), rel=1e-12)
    assert fu2024.equivalent_gradient_steps(s, alpha, steps + 1, eta) == pytest.approx(2 * count, rel=1e-14)
