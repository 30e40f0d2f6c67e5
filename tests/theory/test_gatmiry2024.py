from fractions import Fraction
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import (
    LastEntry,
    LinearAttentionStack,
    LinearSelfAttention,
    Looped,
    PromptModel,
    StackedPrompt,
)
from mesascope.theory import gatmiry2024

SIGMA = np.array([[2.0, 0.5], [0.5, 0.7]])


def matrix(dim, seed=0, size=0.3):
    """Not symmetric."""
    draws = np.random.default_rng([seed, dim]).normal(size=(dim, dim))
    return 0.5 * np.eye(dim) + size * draws / dim**0.5


def grams(dim, examples, count, seed=0):
    x = np.random.default_rng([seed, dim, examples]).normal(size=(count, examples, dim))
    return np.swapaxes(x, 1, 2) @ x / examples


@pytest.mark.parametrize(("dim", "examples", "loops"), [(1, 2, 1), (2, 5, 3), (4, 9, 6)])
@pytest.mark.parametrize("size", [0.0, 1.0])
def test_loops_are_steps(prompts, dim, examples, loops, size):
    x, y = prompts(dim, examples)
    a, u = matrix(dim), size * np.random.default_rng(dim).normal(size=dim)
    layer = LinearSelfAttention(*gatmiry2024.looped_layer(a, u), "t-1", "examples")
    model = PromptModel(StackedPrompt(dim), Looped(LinearAttentionStack([layer]), loops), LastEntry(-1))
    answers = np.asarray(model(x, y))
    for b, (inputs, labels) in enumerate(zip(x, y, strict=True)):
        w = np.zeros(dim)
        for _ in range(loops):  # gradient descent on the labels less what u adds to them
            w = w + a @ inputs[:-1].T @ (labels - inputs[:-1] @ (w - u)) / examples
        assert answers[b] == pytest.approx(inputs[-1] @ w, rel=1e-12, abs=1e-12)


def test_the_error_after_loops():
    a, u, w = matrix(3), np.array([1.0, -2.0, 0.5]), np.random.default_rng(1).normal(size=(4, 3))
    s = grams(3, 5, 4)
    for direction in (None, u):
        left = w
        for loops in range(5):
            found = gatmiry2024.error_after_loops(a, s, w, loops, direction)
            np.testing.assert_allclose(found, left, rtol=1e-12, atol=1e-13)
            shifted = left + (0 if direction is None else u)
            left = left - np.einsum("ij,bjk,bk->bi", a, s, shifted)


@pytest.mark.parametrize("direction", [None, [0.7, -0.4]])
def test_the_loss_of_one_loop_by_sampling(direction):
    # 40000 prompts drawn with NumPy; the answer is written out
    rng, n = np.random.default_rng(3), 6
    root = np.linalg.cholesky(SIGMA)
    x = rng.normal(size=(40_000, n + 1, 2)) @ root.T
    w = np.linalg.solve(root.T, rng.normal(size=(2, 40_000))).T
    u, a = np.zeros(2) if direction is None else np.array(direction), matrix(2)
    labels = np.einsum("bni,bi->bn", x, w)
    update = np.einsum("bni,bn->bi", x[:, :-1], labels[:, :-1] + x[:, :-1] @ u) / n
    errors = (np.einsum("bi,ij,bj->b", x[:, -1], a, update) - labels[:, -1]) ** 2
    expected = gatmiry2024.one_loop_loss(a, SIGMA, n, direction)
    assert abs(errors.mean() - expected) < 4 * errors.std() / len(errors) ** 0.5


@pytest.mark.parametrize(("dim", "examples"), [(1, 1), (2, 6), (5, 40)])
def test_the_minimum_of_one_loop(dim, examples):
    multiple, least = gatmiry2024.one_loop_minimum(dim, examples)
    assert isinstance(least, Fraction)
    sigma = np.eye(dim) + 0.3
    best = float(multiple) * np.linalg.inv(sigma)
    assert gatmiry2024.one_loop_loss(best, sigma, examples) == pytest.approx(float(least), rel=1e-13)
    for seed in range(5):
        other = best + 0.01 * matrix(dim, seed, 1.0)
        assert gatmiry2024.one_loop_loss(other, sigma, examples) > float(least)
        u = 0.01 * np.random.default_rng(seed).normal(size=dim)
        assert gatmiry2024.one_loop_loss(best, sigma, examples, u) > float(least)
    assert gatmiry2024.best_multiple(dim, examples, 1) == pytest.approx(float(multiple), abs=1e-10)
    assert gatmiry2024.multiple_loss(float(multiple), dim, examples, 1) == pytest.approx(
        float(least), rel=1e-10
    )


@pytest.mark.parametrize("loops", [1, 2, 4])
def test_one_dimension_by_moments(loops):
    # E s^k of χ²(n)/n: n (n + 2) … (n + 2k − 2)/n^k, in fractions
    n, a = 7, Fraction(3, 4)
    moment, total, slope = Fraction(1), Fraction(0), Fraction(0)
    for k in range(2 * loops + 1):
        term = comb(2 * loops, k) * (-1) ** k * moment
        total, slope = total + term * a**k, slope + (k * term * a ** (k - 1) if k else 0)
        moment *= Fraction(n + 2 * k, n)
    assert gatmiry2024.multiple_loss(0.75, 1, n, loops) == pytest.approx(float(total), rel=1e-11)
    assert gatmiry2024.multiple_slope(0.75, 1, n, loops) == pytest.approx(float(slope), rel=1e-10)


def test_the_best_multiple_is_where_the_slope_vanishes_and_tends_to_one():
    near, far = (gatmiry2024.best_multiple(3, n, 3) for n in (10, 60))
    assert near < far < 1
    assert gatmiry2024.multiple_slope(near, 3, 10, 3) == pytest.approx(0, abs=1e-9)
    lower, middle, upper = (gatmiry2024.multiple_loss(near * f, 3, 10, 3) for f in (0.99, 1, 1.01))
    assert middle < min(lower, upper)


@pytest.mark.slow
@pytest.mark.parametrize("loops", [1, 2, 5])
def test_loss_and_gradient_against_automatic_differentiation(loops):
    m, s = matrix(3), grams(3, 6, 10)

    def loss(weights):
        rest = jnp.eye(3) - weights @ s
        return jnp.mean(jnp.sum(jnp.linalg.matrix_power(rest, loops) ** 2, (1, 2)))

    value, slope = gatmiry2024.loss_and_gradient(m, s, loops)
    assert value == pytest.approx(float(loss(m)), rel=1e-12)
    np.testing.assert_allclose(slope, jax.grad(loss)(jnp.asarray(m)), rtol=1e-11, atol=1e-12)


def test_the_gradient_at_multiples_is_the_slope_shared_by_all_directions():
    a, d, n, loops = 0.6, 2, 8, 2
    parts = [
        gatmiry2024.loss_and_gradient(a * np.eye(d), grams(d, n, 4000, seed), loops) for seed in range(10)
    ]
    expected = gatmiry2024.multiple_slope(a, d, n, loops) / d
    found = np.array([slope for _, slope in parts])
    error = found.std(0, ddof=1) / len(parts) ** 0.5
    assert np.all(abs(found.mean(0) - expected * np.eye(d)) < 5 * error)


@pytest.mark.parametrize("loops", [1, 2, 3])
def test_the_longest_time_integrates_the_inequality(loops):
    losses = np.linspace(0.5, 4.0, 2001)
    times = gatmiry2024.dominated_time(losses, 4.0, loops)
    speed = losses ** ((2 * loops - 1) / loops) / 16  # −dℓ/dt where the inequality is an equality
    slopes = np.gradient(times, losses)[1:-1]
    np.testing.assert_allclose(slopes * speed[1:-1], -1, rtol=1e-4)  # second differences of steps of 2e-3
    assert times[-1] == 0


def test_the_longest_time_refuses_a_loss_that_is_higher_than_the_first():
    with pytest.raises(ValueError, match="between 0 and start"):
        gatmiry2024.dominated_time([1.0, 5.0], 4.0, 2)
