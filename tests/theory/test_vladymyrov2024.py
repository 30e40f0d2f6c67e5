from fractions import Fraction

import numpy as np
import pytest

from mesascope.theory import Construction, vladymyrov2024, vonoswald2023


def ridge_errors(dim, examples, largest, count=40_000):
    """½|ŵ − w|² of ridge regression with known noise of every prompt, on sampled prompts."""
    rng = np.random.default_rng([dim, examples])
    x, w = rng.normal(size=(count, examples, dim)), rng.normal(size=(count, dim))
    sigma = largest * rng.uniform(size=(count, 1))
    y = np.einsum("bnd,bd->bn", x, w) + sigma * rng.normal(size=(count, examples))
    gram = np.swapaxes(x, 1, 2) @ x + (sigma**2)[..., None] * np.eye(dim)
    found = np.linalg.solve(gram, np.einsum("bnd,bn->bd", x, y)[..., None])[..., 0]
    return ((found - w) ** 2).sum(1) / 2, ((0.7 / examples * np.einsum("bnd,bn->bd", x, y) - w) ** 2).sum(
        1
    ) / 2


@pytest.mark.parametrize(("dim", "examples", "largest"), [(1, 3, 2.0), (3, 2, 1.0), (4, 8, 5.0)])
def test_the_oracle_on_sampled_prompts(dim, examples, largest):
    losses, _ = ridge_errors(dim, examples, largest)
    error = losses.std(ddof=1) / len(losses) ** 0.5
    assert abs(losses.mean() - vladymyrov2024.oracle_loss(dim, examples, largest)) < 4 * error


def test_the_oracle_at_the_ends():
    assert vladymyrov2024.oracle_loss(3, 5, 0) == 0
    assert (
        vladymyrov2024.oracle_loss_at(5, 3, 0) == vladymyrov2024.oracle_loss(5, 3, 0) == 1
    )  # two directions are never seen
    assert vladymyrov2024.oracle_loss(5, 3, 1e-6) == pytest.approx(1, rel=1e-5)  # the first order in σ
    assert vladymyrov2024.oracle_loss(3, 5, 1e6) == pytest.approx(1.5, rel=1e-4)  # nothing but the prior


@pytest.mark.parametrize(("dim", "examples", "largest"), [(1, 3, 2.0), (3, 2, 1.0), (4, 8, 5.0)])
def test_the_oracle_is_the_mean_of_those_at_one_level(dim, examples, largest):
    nodes, weights = np.polynomial.legendre.leggauss(40)
    levels = [vladymyrov2024.oracle_loss_at(dim, examples, largest * (1 + node) / 2) for node in nodes]
    assert weights @ levels / 2 == pytest.approx(vladymyrov2024.oracle_loss(dim, examples, largest), rel=1e-9)


@pytest.mark.parametrize(("dim", "examples", "largest"), [(2, 6, 3.0), (4, 8, 1.0)])
def test_one_layer_is_the_best_step_above_the_oracle(dim, examples, largest):
    # the quadratic in η of the losses of one step, from two steps on the same prompts, has its minimum there
    oracle, _ = ridge_errors(dim, examples, largest)
    noise = Fraction(largest) ** 2 / 3
    best = vonoswald2023.best_one_step_loss(dim, examples, noise_variance=noise) - noise / 2
    excess = vladymyrov2024.one_layer_excess(dim, examples, largest)
    error = oracle.std(ddof=1) / len(oracle) ** 0.5
    assert excess > 0
    assert abs(float(best) - excess - oracle.mean()) < 4 * error


def test_one_step_on_sampled_prompts():
    # η/N with η = 0.7: E ½|ŵ − w|² = ½(d − 2ηd + η² t₂/N²), t₂/N² = d((N + d + 1) + σ²)/N for unit inputs
    dim, examples, largest = 4, 8, 5.0
    _, losses = ridge_errors(dim, examples, largest)
    t2 = dim * (examples + dim + 1 + largest**2 / 3) / examples
    expected = (dim - 2 * 0.7 * dim + 0.7**2 * t2) / 2
    assert abs(losses.mean() - expected) < 4 * losses.std(ddof=1) / len(losses) ** 0.5
    # its minimum over η is that of the closed form
    step = dim / t2
    least = (dim - step * dim) / 2 - vladymyrov2024.oracle_loss(dim, examples, largest)
    assert vladymyrov2024.one_layer_excess(dim, examples, largest) == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize(("dim", "examples", "layers", "heads"), [(1, 1, 1, 1), (3, 5, 4, 2), (4, 3, 3, 3)])
def test_every_layer_keeps_a_linear_model(prompts, dim, examples, layers, heads):
    (x, y) = (a[0] for a in prompts(dim, examples))
    w_kq, w_pv = np.random.default_rng(0).normal(size=(2, layers, heads, dim + 1, dim + 1)) / 4
    found = vladymyrov2024.implicit_models(Construction(w_kq, w_pv), x[:-1], y)
    tokens = np.column_stack([x, np.append(y, 0.0)])
    for layer in range(layers + 1):
        inputs = x @ found.m[layer].T + np.outer(np.append(y, 0.0), found.u[layer])
        labels = np.append(y, 0.0) * found.a[layer] - x @ found.w[layer]
        np.testing.assert_allclose(tokens, np.column_stack([inputs, labels]), rtol=1e-11, atol=1e-12)
        if layer < layers:
            old = tokens.copy()
            for q, p in zip(w_kq[layer], w_pv[layer], strict=True):
                for j in range(examples + 1):
                    for i in range(examples):
                        tokens[j] += p @ old[i] * (old[i] @ q @ old[j]) / examples


@pytest.mark.slow
def test_diagonal_heads_are_four_numbers(prompts, prompt_model):
    dim, examples = 3, 6
    x, y = prompts(dim, examples)
    omega = np.random.default_rng(1).normal(size=(3, 2, 2)) / 4
    predictions = prompt_model(vladymyrov2024.diagonal_heads(dim, omega))(x, y)
    for b in range(len(x)):
        inputs, labels = x[b].copy(), np.append(y[b], 0.0)
        for (xx, xy), (yx, yy) in omega:
            s, mixed = inputs[:-1].T @ inputs[:-1] / examples, labels[:-1] @ inputs[:-1] / examples
            size = labels[:-1] @ labels[:-1] / examples
            inputs, labels = (
                inputs + xx * inputs @ s + xy * np.outer(labels, mixed),
                labels + yx * inputs @ mixed + yy * size * labels,
            )
        assert float(predictions[b]) == pytest.approx(-labels[-1], rel=1e-12, abs=1e-12)


def test_gd_plus_plus_is_two_of_the_four():
    steps, curvatures = [0.3, 0.5], [0.1, 0.2]
    ours = vladymyrov2024.diagonal_heads(
        2, [[[-c, 0], [-s, 0]] for s, c in zip(steps, curvatures, strict=True)]
    )
    theirs = vonoswald2023.gradient_descent_plus_plus(2, steps, curvatures)
    np.testing.assert_array_equal(ours.w_pv[:, :1] @ ours.w_kq[:, :1], theirs.w_pv @ theirs.w_kq)
    np.testing.assert_array_equal(ours.w_pv[:, 1:], 0)


@pytest.mark.parametrize("condition", [1.0, 1.5, 30.0, 1e4])
def test_the_schedule_keeps_eigenvalues_between_its_ends(condition):
    schedule = vladymyrov2024.second_order_schedule(0.5, 0.5 * condition, 8)
    s, error = np.geomspace(0.5, 0.5 * condition, 2001), 1.0
    for step, curvature, kappa in zip(*schedule[:3], strict=True):
        # the grid misses the inner maximum by the square of its spacing
        assert s.max() / s.min() == pytest.approx(kappa, rel=1e-4)
        assert s.max() / s.min() <= kappa * (1 + 1e-12)
        others = np.linspace(0, 2, 401) * curvature  # no other curvature does better
        spread = [
            (t.max() / t.min() if t.min() > 0 else np.inf) for t in (s * (1 - g * s) ** 2 for g in others)
        ]
        s, error = s * (1 - curvature * s) ** 2, error * (1 - step * s)
        assert s.max() / s.min() <= min(spread) * (1 + 1e-4)
    assert abs(error).max() <= schedule.bound * (1 + 1e-9) + 1e-15  # rounding of eight factors


def test_layers_grow_with_the_logarithm_of_the_condition_number():
    def layers(condition):
        return next(
            n for n in range(1, 60) if vladymyrov2024.second_order_schedule(1, condition, n).bound < 1e-9
        )

    counts = np.array([layers(10.0**power) for power in range(6, 13)])
    # log 10 / log(27/4) = 1.206 layers for a factor 10
    assert (counts[-1] - counts[0]) / 6 == pytest.approx(np.log(10) / np.log(27 / 4), abs=1 / 6)
    kappa = vladymyrov2024.second_order_schedule(1, 1 + 1e-3, 2).conditions[1]
    assert kappa - 1 == pytest.approx(3 / 16 * 1e-6, rel=1e-2)  # the next order is 1e-3


def test_steps_of_gradient_descent():
    assert vladymyrov2024.gradient_steps(3, 0.5**4) == 4
    assert vladymyrov2024.gradient_steps(3, 0.99 * 0.5**4) == 5
