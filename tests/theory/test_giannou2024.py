import numpy as np
import pytest

from mesascope.models import LinearAttentionStack, LinearSelfAttention, Looped
from mesascope.theory import giannou2024


def matrix(dim, *batch, seed=0):
    """Not symmetric; condition number below 10."""
    rng = np.random.default_rng([seed, dim])
    return np.eye(dim) + rng.normal(size=(*batch, dim, dim)) / (3 * dim)


def looped(dim, loops):
    layer = LinearSelfAttention(*giannou2024.newton_step(dim), "1", "all")
    return Looped(LinearAttentionStack([layer]), loops)


@pytest.mark.parametrize(("dim", "batch"), [(1, ()), (3, (2,)), (4, (2, 3))])
@pytest.mark.parametrize("near", [True, False])
def test_a_layer_is_a_newton_step(dim, batch, near):
    a = matrix(dim, *batch)
    x = giannou2024.newton_start(a) if near else matrix(dim, *batch, seed=1)  # exact wherever it starts
    for tokens in looped(dim, 5).outputs(giannou2024.newton_tokens(a, x)):
        x = x @ (2 * np.eye(dim) - a @ x)
        scale = abs(x).max()
        np.testing.assert_allclose(giannou2024.newton_inverse(tokens), x, rtol=1e-12, atol=1e-12 * scale)
        np.testing.assert_array_equal(tokens[..., :dim], a)  # A and I are left alone


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_it_converges_quadratically_from_the_safe_start(dim):
    # eigenvalues all over the complex plane
    a = matrix(dim, seed=2) @ np.roll(np.diag(np.linspace(-1, 2, dim)), 1, axis=0)
    start = giannou2024.newton_start(a)
    residual = np.eye(dim) - a @ start
    assert abs(np.linalg.eigvals(residual)).max() < 1
    inverses = [
        giannou2024.newton_inverse(z) for z in looped(dim, 30).outputs(giannou2024.newton_tokens(a, start))
    ]
    for k in range(1, 11):
        # I − A X_k = (I − A X_0)^(2^k); rounding is multiplied by at most 2 in every step
        expected = np.linalg.matrix_power(residual, 2**k)
        np.testing.assert_allclose(np.eye(dim) - a @ inverses[k - 1], expected, rtol=0, atol=2**k * 1e-14)
    np.testing.assert_allclose(a @ inverses[-1], np.eye(dim), rtol=0, atol=1e-14 * np.linalg.cond(a))


def test_the_safe_start_by_hand():
    # greatest column sum 2, greatest row sum 2
    np.testing.assert_array_equal(giannou2024.newton_start([[0, -2], [1, 0]]), [[0, 0.25], [-0.5, 0]])


def test_positive_definite_matrices_converge_from_a_multiple_of_the_identity():
    root = matrix(3, seed=3)
    a = root @ root.T
    largest = np.linalg.eigvalsh(a)[-1]
    for factor, converges in ((1.9, True), (2.1, False)):
        tokens = giannou2024.newton_tokens(a, factor / largest * np.eye(3))
        inverse = giannou2024.newton_inverse(looped(3, 10)(tokens))
        # (0.9)^(2^10) is nothing; (−1.1)^(2^10) is 10^42
        assert np.allclose(inverse @ a, np.eye(3), rtol=0, atol=1e-12) == converges


@pytest.mark.parametrize(("dim", "examples", "steps"), [(1, 1, 0), (2, 3, 2), (3, 6, 5)])
def test_least_squares_by_newton(attention, prompts, dim, examples, steps):
    x, y = prompts(dim, examples)
    alpha = 1 / (x[:, :-1] ** 2).sum((1, 2)).max()
    layers = giannou2024.least_squares_by_newton(dim, steps)
    assert layers.w_kq.shape == layers.w_pv.shape == (steps + 2, 1, 3 * dim + 1, 3 * dim + 1)
    stack = attention(layers, "1", "examples")
    predictions = stack(giannou2024.least_squares_tokens(x, y, alpha))[:, -1, -1]
    for b in range(len(x)):
        gram, moments = x[b, :-1].T @ x[b, :-1], x[b, :-1].T @ y[b]
        inverse = alpha * np.eye(dim)
        for _ in range(steps):
            inverse = inverse @ (2 * np.eye(dim) - gram @ inverse)
        assert float(predictions[b]) == pytest.approx(x[b, -1] @ inverse @ moments, rel=1e-12, abs=1e-12)


@pytest.mark.slow
def test_many_steps_are_least_squares(attention, prompts):
    x, y = prompts(2, 20)
    layers = giannou2024.least_squares_by_newton(2, 12)
    stack = attention(layers, "1", "examples")
    predictions = stack(giannou2024.least_squares_tokens(x, y, 1 / (x**2).sum((1, 2)).max()))[:, -1, -1]
    for b in range(len(x)):
        w = np.linalg.lstsq(x[b, :-1], y[b])[0]
        assert float(predictions[b]) == pytest.approx(w @ x[b, -1], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("dim", [1, 3, 5])
def test_two_layers_are_one_step_and_leave_the_workspace_empty(attention, dim):
    a, x = matrix(dim, 2), matrix(dim, 2, seed=1)
    stack = attention(giannou2024.newton_step_in_two_layers(dim), "1", "all")
    tokens = np.concatenate([giannou2024.newton_tokens(a, x), np.zeros((2, dim, dim))], -1)
    half_way, tokens = (np.asarray(z) for z in stack.outputs(tokens))
    left = np.eye(dim) - a @ x
    np.testing.assert_allclose(np.swapaxes(half_way[..., 3 * dim :], -1, -2), left, rtol=0, atol=1e-13)
    np.testing.assert_allclose(giannou2024.newton_inverse(tokens[..., : 3 * dim]), x + x @ left, atol=1e-13)
    np.testing.assert_allclose(tokens[..., 3 * dim :], 0, atol=1e-15)


@pytest.mark.parametrize("condition", [1.5, 10, 1000])
@pytest.mark.parametrize("error", [0.5, 1e-3, 1e-9])
def test_steps_needed_by_counting(condition, error):
    left, steps = 1 - 1 / condition, 0
    while left > error:
        left, steps = left**2, steps + 1
    assert giannou2024.newton_steps_needed(condition, error) == steps


@pytest.mark.parametrize(("condition", "error"), [(1, 0.1), (2, 1), (-2, 0.1), (2, 0)])
def test_steps_needed_refuses_what_needs_none(condition, error):
    with pytest.raises(ValueError, match=r"condition|error"):
        giannou2024.newton_steps_needed(condition, error)
