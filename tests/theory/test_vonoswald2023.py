from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.processes import Gaussian, LinearRegression, Uniform
from mesascope.theory import vonoswald2023

STEPS = [0.3, 0.7, 0.1, 0.5, 0.2]
CURVATURES = [0.2, -0.1, 0.4, 0.0, 0.3]
SIZES = [(1, 1, 1), (2, 5, 3), (4, 3, 5)]


def descend(x, y, step_sizes):
    """w after every step from zero on 1/(2N) Σ (w·x_i − y_i)², for one prompt."""
    w, weights = np.zeros(x.shape[1]), []
    for step in step_sizes:
        w = w - step * x.T @ (x @ w - y) / len(y)
        weights.append(w)
    return weights


@pytest.mark.parametrize(("dim", "examples", "layers"), SIZES)
def test_layers_are_steps_of_gradient_descent(prompt_model, prompts, dim, examples, layers):
    x, y = prompts(dim, examples)
    model = prompt_model(vonoswald2023.gradient_descent(dim, STEPS[:layers]))
    streams = [np.asarray(z) for z in model.network.outputs(model.embedding(x, y))]
    assert len(streams) == layers
    for b in range(len(x)):
        for stream, w in zip(streams, descend(x[b, :-1], y[b], STEPS[:layers]), strict=True):
            np.testing.assert_allclose(stream[b, :, :-1], x[b], rtol=0, atol=0)  # inputs stay
            residuals = np.append(y[b], 0.0) - x[b] @ w
            np.testing.assert_allclose(stream[b, :, -1], residuals, rtol=1e-12, atol=1e-12)
        assert float(model(x, y)[b]) == pytest.approx(x[b, -1] @ w, rel=1e-12, abs=1e-12)


def test_one_step_is_one_layer():
    one, several = vonoswald2023.gradient_descent_step(3, 0.5), vonoswald2023.gradient_descent(3, [0.5, 0.1])
    assert one.w_kq.shape == one.w_pv.shape == (1, 4, 4)
    assert several.w_kq.shape == several.w_pv.shape == (2, 1, 4, 4)
    for alone, first in zip(one, several, strict=True):
        np.testing.assert_array_equal(alone, first[0])


@pytest.mark.parametrize(("dim", "examples", "layers"), SIZES)
def test_plus_plus_corrects_the_curvature_with_the_step(prompt_model, prompts, dim, examples, layers):
    x, y = prompts(dim, examples)
    steps, gammas = STEPS[:layers], CURVATURES[:layers]
    model = prompt_model(vonoswald2023.gradient_descent_plus_plus(dim, steps, gammas))
    predictions = np.asarray(model(x, y))
    for b in range(len(x)):
        inputs, labels = x[b], np.append(y[b], 0.0)
        for step, gamma in zip(steps, gammas, strict=True):
            seen = inputs[:-1]
            second_moments = seen.T @ seen / examples
            gradient = -(labels[:-1] @ seen) / examples
            labels = labels + step * inputs @ gradient
            inputs = inputs @ (np.eye(dim) - gamma * second_moments)
        assert predictions[b] == pytest.approx(-labels[-1], rel=1e-12, abs=1e-12)


def test_plus_plus_without_curvature_is_gradient_descent():
    plain = vonoswald2023.gradient_descent(2, STEPS)
    for ours, theirs in zip(vonoswald2023.gradient_descent_plus_plus(2, STEPS, [0] * 5), plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_plus_plus_by_hand_along_the_axes(prompt_model):
    # S = diag(1, 1/4), w = (1, 1), query (1, 1): each axis with eigenvalue λ goes its own way. The first layer predicts
    # ½λ and leaves residual and input 1 − λ/2; the second adds 4λ residual · input².
    x = np.array([[np.sqrt(2), 0], [0, np.sqrt(0.5)], [1, 1]])[None]
    construction = vonoswald2023.gradient_descent_plus_plus(2, [0.5, 4.0], [0.5, 0.0])
    prediction = float(prompt_model(construction)(x, x[:, :2].sum(-1))[0])
    assert prediction == pytest.approx(sum(v / 2 + 4 * v * (1 - v / 2) ** 3 for v in (1, 1 / 4)), rel=1e-12)


def enumerated_losses(dim, examples, values, probabilities, noise_variance, steps):
    """½E(ŷ − y_q)² for several step sizes, over all inputs with coordinates in `values`."""
    s2 = sum(p * v**2 for v, p in zip(values, probabilities, strict=True))
    losses = np.zeros(len(steps))
    for index in product(range(len(values)), repeat=dim * examples):
        x = np.array([values[i] for i in index]).reshape(examples, dim)
        probability = np.prod([probabilities[i] for i in index])
        for k, step in enumerate(steps):
            # ŵ − w = (ηS − I) w + η/N Σ ξ_i x_i, and E w wᵀ = I
            bias = step * x.T @ x / examples - np.eye(dim)
            error = (bias**2).sum() + (step / examples) ** 2 * noise_variance * (x**2).sum()
            losses[k] += probability * (s2 * error + noise_variance) / 2
    return losses


@pytest.mark.parametrize(
    ("values", "probabilities", "variance", "kurtosis"),
    [
        ((-2, 2), (0.5, 0.5), 4, 1),
        ((-2, 0, 2), (1 / 8, 3 / 4, 1 / 8), 1, 4),
        # centred, but not symmetric
        ((-1, 2), (2 / 3, 1 / 3), 2, Fraction(3, 2)),
    ],
)
@pytest.mark.parametrize(("dim", "examples"), [(1, 1), (1, 4), (2, 3), (3, 2)])
@pytest.mark.parametrize("noise_variance", [0, "3/2"])
def test_best_step_against_enumeration(
    dim, examples, values, probabilities, variance, kurtosis, noise_variance
):
    law = {"variance": variance, "kurtosis": kurtosis, "noise_variance": noise_variance}
    best = vonoswald2023.best_step_size(dim, examples, **law)
    loss = vonoswald2023.best_one_step_loss(dim, examples, **law)
    assert isinstance(best, Fraction)
    assert isinstance(loss, Fraction)
    steps = [float(best) * factor for factor in (0.0, 0.5, 1.0, 2.0)]
    losses = enumerated_losses(dim, examples, values, probabilities, float(Fraction(noise_variance)), steps)
    assert losses[2] == pytest.approx(float(loss), rel=1e-12)
    a, b, _ = np.polyfit(steps, losses, 2)  # exactly a parabola
    assert -b / (2 * a) == pytest.approx(steps[2], rel=1e-10)  # a least-squares fit: a few hundred roundings


def least_loss_on_a_grid(examples, half_width, least, largest):
    """The least ½E(ŷ − y)² of ŷ = m + (1/N) Σ_i (k(x_i) y_i + g(x_i)), with k, g and m free at every node of the inputs.

    For each query it is a least-squares problem in k, g and m: what N examples put at a node, with and without their labels.
    """
    nodes, weights = np.polynomial.legendre.leggauss(100)
    x, p, n = half_width * nodes, weights / 2, examples
    amplitudes, phases = least + (largest - least) * (nodes + 1) / 2, np.pi * (nodes + 1) / 2
    waves = amplitudes[:, None, None] * np.sin(x + phases[:, None])  # (amplitude, phase, x)
    mean = np.einsum("a,f,afx->x", p, p, waves)
    both = np.einsum("a,f,afx,afz->xz", p, p, waves, waves)
    pairs, labelled = (1 - 1 / n) * np.outer(p, p), pairs_of(p, n, mean)
    seconds = np.block(
        [
            [np.diag(p * np.diag(both)) / n + pairs * both, labelled, (p * mean)[:, None]],
            [labelled.T, np.diag(p) / n + pairs, p[:, None]],
            [(p * mean)[None], p[None], np.ones((1, 1))],
        ]
    )
    crossed = np.concatenate([p[:, None] * both, np.outer(p, mean), mean[None]])  # with the query's label
    explained = np.einsum("kq,kq->q", crossed, np.linalg.pinv(seconds, rcond=1e-13, hermitian=True) @ crossed)
    return p @ (np.diag(both) - explained) / 2


def pairs_of(p, n, mean):
    """E of the labels at a node times the number of examples at another, both over N."""
    return np.diag(p * mean) / n + (1 - 1 / n) * np.outer(p * mean, p)


@pytest.mark.parametrize("examples", [1, 4, 10])
@pytest.mark.parametrize(
    ("half_width", "amplitudes"), [(5.0, (0.1, 0.5)), (1.0, (0.1, 0.5)), (2.5, (1.0, 1.5))]
)
def test_best_step_on_sine_waves_is_least_squares_on_a_grid(examples, half_width, amplitudes):
    least, largest = amplitudes
    best = vonoswald2023.best_sine_step_loss(examples, half_width=half_width, least=least, largest=largest)
    # the rule of 100 nodes is exact to about 1e-10 for the quotients in the formula
    assert best == pytest.approx(least_loss_on_a_grid(examples, half_width, least, largest), rel=1e-9)


def test_best_step_on_sine_waves_falls_with_examples():
    losses = [vonoswald2023.best_sine_step_loss(examples) for examples in (1, 10, 100, 10_000)]
    assert losses == sorted(losses, reverse=True)
    # Nearly inversely to their number: N L tends to a constant.
    assert losses[3] * 10_000 == pytest.approx(losses[2] * 100, rel=0.02)
    # Over whole periods sin² and cos² have the mean ½, and a half width of 1e9 is one up to 1e-9.
    assert vonoswald2023.best_sine_step_loss(10, half_width=np.pi) == pytest.approx(
        vonoswald2023.best_sine_step_loss(10, half_width=1e9), rel=1e-8
    )


def test_impossible_waves_are_refused():
    with pytest.raises(ValueError, match=r"largest, 0\.05, is below least, 0\.1: swap them"):
        vonoswald2023.best_sine_step_loss(10, largest=0.05)
    with pytest.raises(ValueError, match="examples must be at least 1"):
        vonoswald2023.best_sine_step_loss(0)


def test_published_numbers():
    # d = N = 10, U(−½, ½)
    law = {"variance": Fraction(1, 12), "kurtosis": Fraction(9, 5)}
    assert float(vonoswald2023.best_step_size(10, 10, **law)) == pytest.approx(6.0606, abs=5e-5)
    assert float(vonoswald2023.best_one_step_loss(10, 10, **law)) == pytest.approx(0.206229, abs=5e-7)
    for d, n in ((1, 1), (5, 20), (10, 10)):
        assert vonoswald2023.best_one_step_loss(d, n) == Fraction(d * (d + 1), 2 * (n + d + 1))
        assert vonoswald2023.best_step_size(d, n, noise_variance=2) == Fraction(n, n + d + 3)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "variance", "kurtosis"), [(Gaussian(2), 4, 3), (Uniform(1), "1/3", "9/5")])
def test_best_loss_is_that_of_the_layer(prompt_model, law, variance, kurtosis):
    dim, examples, noise, batch = 3, 6, 0.5, 50_000
    known = {"variance": variance, "kurtosis": kurtosis, "noise_variance": noise**2}
    step = float(vonoswald2023.best_step_size(dim, examples, **known))
    process = LinearRegression(dim, law, noise=noise)
    x, y = process.sample(named_key(0, "best step", law.describe()), examples, batch)
    predictions = prompt_model(vonoswald2023.gradient_descent(dim, [step]))(x, y[:, :-1])
    losses = np.asarray(predictions - y[:, -1]) ** 2 / 2
    error = losses.std(ddof=1) / batch**0.5
    # five standard errors, a sixth for the heavy tail of the fourth power of Gaussian inputs
    expected = float(vonoswald2023.best_one_step_loss(dim, examples, **known))
    assert losses.mean() == pytest.approx(expected, abs=6 * error)
    assert 6 * error < 0.1 * expected
