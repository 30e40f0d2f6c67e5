"""The exact loss of any number of steps along Σ⁻¹, beside fractions, spectra, pairings, samples and the best polynomial."""

import re
from fractions import Fraction

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.dynamics import gradient_flow
from mesascope.models import preconditioned_linear_transformer, step_size_transformer
from mesascope.objectives import ExactMoments, MonteCarlo, population_loss
from mesascope.objectives._regression_tasks import regression_tasks
from mesascope.objectives._step_sizes import steps_loss
from mesascope.processes import FewShot, InWeightsRegression, LinearRegression, TaskPool
from mesascope.theory import ahn2023, bordelon2025
from mesascope.theory._wishart import wishart_mean

SIGMA = np.array([[2.0, 0.3], [0.3, 0.5]])
TASK = FewShot(6)


def steps(sizes, loops=1, metric=None, dim=2):
    metric = np.linalg.inv(SIGMA) if metric is None else metric
    return step_size_transformer(dim, len(sizes), loops, key=named_key(0), metric=metric, start=sizes)


def exact(model, process, task=TASK):
    return float(population_loss(model, process, task, ExactMoments()).value)


def sizes_of(count):
    return np.random.default_rng(count).uniform(0.1, 0.6, count)


@pytest.mark.parametrize(("layers", "loops"), [(4, 1), (2, 10), (48, 1)])
@pytest.mark.parametrize("noise", [0, 0.3])
def test_it_is_the_sum_in_fractions(layers, loops, noise):
    process = LinearRegression(2, covariance=SIGMA, prior="inverse", noise=noise)
    expected = float(ahn2023.multiples_loss([*sizes_of(layers)] * loops, 2, 6, noise))
    # the largest node of 48 steps is 30: rounding in a hundred factors 1 − a s
    assert exact(steps(sizes_of(layers), loops), process) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    ("size", "layers", "dim", "examples"),
    [
        (1, 20, 5, 200),
        (0.5, 30, 300, 3),
        (0.1, 20, 1000, 1),
        (0.7, 8, 20, 5),
        (0.2, 48, 1, 1),
        (0.5, 9, 6, 6),
    ],
)
def test_no_digit_is_lost_without_noise(size, layers, dim, examples):
    """Few and many examples, whose Gram matrices are nearly all null or nearly the identity: every loss has 11 digits."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(dim, dim)))[0] if dim < 100 else np.eye(dim)
    sigma = rotation @ np.diag(np.linspace(1, 2, dim)) @ rotation.T
    sigma = (sigma + sigma.T) / 2
    sizes = [size] * layers
    process = LinearRegression(dim, covariance=sigma, prior="inverse")
    model = steps(sizes, metric=np.linalg.inv(sigma), dim=dim)
    expected = float(ahn2023.multiples_loss([Fraction(str(size))] * layers, dim, examples))
    assert exact(model, process, FewShot(examples)) == pytest.approx(expected, rel=1e-11)


def test_it_is_the_mean_over_spectra():
    def left(s):
        return np.prod([(1 - a * s / 6) ** 2 for a in sizes_of(7)], axis=0)

    process = LinearRegression(2, covariance=SIGMA, prior="inverse")
    # the prior is that of whitened weights N(0, I): the mean over the spectrum is that of the task
    assert exact(steps(sizes_of(7)), process) == pytest.approx(wishart_mean(left, 2, 6) / 2, rel=1e-10)


@pytest.mark.parametrize(
    "process",
    [
        LinearRegression(2, covariance=SIGMA, prior=[[0.8, -0.2], [-0.2, 1.5]], noise=0.7),
        TaskPool(LinearRegression(2, covariance=SIGMA), tasks=3),
        InWeightsRegression((0.5, -1.0), covariance=SIGMA, label_scale=0.8),
    ],
    ids=["noisy", "pool", "in weights"],
)
def test_of_three_steps_it_is_the_sum_over_pairings(process):
    task = FewShot(6) if isinstance(process, InWeightsRegression) else FewShot(6, {0: 1, 2: 0.5, 6: 2})
    model = steps(sizes_of(3))
    found = steps_loss(model.network.layers, (0, 1, 2), regression_tasks(process), task)
    assert float(found.value) == pytest.approx(exact(model, process, task), rel=1e-12)


@pytest.mark.slow
def test_it_is_the_mean_over_samples():
    process, task = LinearRegression(2, covariance=SIGMA, noise=0.5), FewShot(6, {0: 0.5, 3: 1, 6: 2})
    model = steps(sizes_of(5), metric=3 * np.linalg.inv(SIGMA))  # a multiple of the inverse
    sampled = population_loss(model, process, task, MonteCarlo(20_000, seed=1, batch=20_000))
    assert abs(exact(model, process, task) - float(sampled.value)) < 4 * float(sampled.standard_error)


def test_gradients_are_differences_in_fractions():
    process, sizes, width = LinearRegression(2, noise=0.3), sizes_of(6), Fraction(1, 10**6)

    def moved(place, by):
        return [Fraction(a) + by * (i == place) for i, a in enumerate(sizes)]

    expected = [
        float(
            (
                ahn2023.multiples_loss(moved(i, width), 2, 6, 0.3)
                - ahn2023.multiples_loss(moved(i, -width), 2, 6, 0.3)
            )
            / (2 * width)
        )
        for i in range(6)
    ]
    slope = jax.grad(lambda model: population_loss(model, process, TASK).value)(
        steps(sizes, metric=np.eye(2))
    )
    found = [float(layer.step_size) for layer in slope.network.layers]
    # the error of the difference is of order width², 1e-12
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
def test_the_flow_ends_at_the_best_polynomial():
    process, task = LinearRegression(3), FewShot(12)
    start = step_size_transformer(3, 5, key=named_key(1), start=[0.1, 0.2, 0.3, 0.4, 0.5])
    flow = gradient_flow(start, process, task, tolerance=1e-12)
    moments = bordelon2025.finite_moments(10, 3, 12)
    best = bordelon2025.best_polynomial(5, moments)
    least = sum(a * b * moments[i + j] for i, a in enumerate(best) for j, b in enumerate(best))
    assert flow.converged
    assert flow.loss[-1] == pytest.approx(1.5 * float(least), rel=1e-9)  # d/2 of the mean square


def test_a_layer_is_that_of_its_matrix():
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(5, 7, 2))), jnp.asarray(rng.normal(size=(5, 6)))
    sizes, metric = [0.3, -0.4], [[1.0, 0.5], [-0.2, 2.0]]
    matrices = [size * np.array(metric) for size in sizes]
    other = preconditioned_linear_transformer(2, 2, 2, key=named_key(0), start=matrices)
    np.testing.assert_allclose(steps(sizes, 2, metric)(x, y), other(x, y), rtol=1e-12)
    process = LinearRegression(2, covariance=SIGMA, noise=0.5)  # another metric, two steps
    two = preconditioned_linear_transformer(2, 2, key=named_key(0), start=matrices)
    assert exact(steps(sizes, 1, metric), process) == pytest.approx(exact(two, process), rel=1e-14)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: steps(sizes_of(4), metric=np.eye(2)), "with a multiple of Σ⁻¹ as its metric"),
        (
            lambda: preconditioned_linear_transformer(2, 2, 2, key=named_key(0)),
            "more than three preconditioned steps, layers times loops, for step_size_transformer",
        ),
        (lambda: steps(sizes_of(7), 7), "at most 48 steps, layers times loops, not 49; use MonteCarlo"),
        (lambda: steps(sizes_of(4), metric=np.eye(3), dim=3), "model has dim 3, the process has dim 2"),
    ],
    ids=["metric", "matrices", "depth", "dim"],
)
def test_unsupported_models_are_refused(model, words):
    process = LinearRegression(2, covariance=SIGMA)
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        population_loss(model(), process, TASK)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=re.escape(words)):
        ExactMoments().objective(process, TASK)(model())


def test_another_metric_that_nobody_could_check_gives_no_number():
    objective = ExactMoments().objective(LinearRegression(2, covariance=SIGMA), TASK)
    loss = eqx.filter_jit(lambda objective, model: objective(model).value)
    assert np.isnan(loss(objective, steps(sizes_of(4), metric=np.eye(2))))
    assert np.isfinite(loss(objective, steps(sizes_of(4))))


def test_an_inverse_in_double_precision_is_taken():
    """Σ of condition 10⁸: rounding of the inverse is no other metric."""
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    sigma = rotation @ np.diag(np.geomspace(1e-8, 1, 5)) @ rotation.T
    sigma = (sigma + sigma.T) / 2
    process = LinearRegression(5, covariance=sigma, prior="inverse")
    model = steps(sizes_of(4), metric=np.linalg.inv(sigma), dim=5)
    expected = float(ahn2023.multiples_loss([*sizes_of(4)], 5, 6))
    assert exact(model, process) == pytest.approx(expected, rel=1e-7)  # the inverse times Σ has 8 digits


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"start": [0.1]}, "start has 1 entries, but layers is 2; make them equal"),
        ({"start": [0.1, np.nan]}, "start[1] must be finite and fit double precision, got nan"),
        ({"metric": np.eye(3)}, "metric: must have the shape (2, 2)"),
        ({"metric": [[1.0, 2.0]]}, "metric must be a square matrix, got shape (1, 2)"),
        ({"metric": [[1.0, 2.0]], "start": [0.1, 0.2]}, "metric must be a square matrix, got shape (1, 2)"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        step_size_transformer(2, 2, key=named_key(0), **arguments)
