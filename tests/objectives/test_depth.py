"""The exact loss of preconditioned steps, compared with quadrature of the definition, spectra, samples and one layer."""

import re
from functools import partial
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.dynamics import gradient_flow
from mesascope.models import (
    LastEntry,
    LinearAttentionStack,
    LinearSelfAttention,
    Looped,
    PreconditionedLinearAttention,
    PromptModel,
    StackedPrompt,
    preconditioned_linear_transformer,
)
from mesascope.objectives import ExactMoments, MonteCarlo, population_loss
from mesascope.processes import FewShot, Gaussian, LinearRegression, NoiseRange, RandomDiagonal, TaskPool
from mesascope.theory import ahn2023, gatmiry2024
from mesascope.theory._wishart import wishart_mean

SIGMA = [[1.0, 0.3], [0.3, 0.5]]
PRIOR = [[0.8, -0.2], [-0.2, 1.5]]


def steps(dim, layers, loops=1, scale=0.4, seed=0):
    return preconditioned_linear_transformer(dim, layers, loops, scale, key=named_key(seed, "steps"))


def exact(model, process, task):
    return float(population_loss(model, process, task, ExactMoments()).value)


def by_quadrature(model, process, examples, noise):
    """The definition: Gauss–Hermite nodes for the examples, and for all that the loss is quadratic in two nodes each."""
    dim, degree = process.dim, 4 * _steps_of(model)
    z, weights = np.polynomial.hermite_e.hermegauss(degree // 2 + 1)
    weights = weights / weights.sum()
    index = np.array(list(product(range(len(z)), repeat=examples * dim)))
    # exact in every square of one number: x_q, w and the noise have the nodes ±1
    signs = np.array(list(product((-1.0, 1.0), repeat=2 * dim + examples)))
    shares = np.prod(weights[index], axis=1)
    root, prior_root = np.linalg.cholesky(process.input_covariance), np.linalg.cholesky(PRIOR)
    total = 0.0
    for one in signs:
        query, task, errors = np.split(one, [dim, 2 * dim])
        inputs = np.concatenate([z[index].reshape(-1, examples, dim), np.tile(query, (len(index), 1, 1))], 1)
        x = inputs @ root.T
        y = x @ (prior_root @ task) + noise * np.append(errors, 0)
        missed = np.asarray(_answers(model, x, y[:, :-1])) - y[:, -1]
        total += float(shares @ missed**2) / len(signs)
    return (total + noise**2) / 2


@eqx.filter_jit
def _answers(model, x, y):
    return model(x, y)


def _steps_of(model):
    network = model.network
    return network.loops * len(network.layer.layers) if isinstance(network, Looped) else len(network.layers)


@pytest.mark.parametrize(("layers", "loops", "examples"), [(2, 1, 2), (3, 1, 2), (1, 3, 1)])
def test_it_is_the_definition_by_quadrature(layers, loops, examples):
    one = steps(2, layers, loops)
    process = LinearRegression(2, None, SIGMA, PRIOR, 0.7)
    expected = by_quadrature(one, process, examples, 0.7)
    assert exact(one, process, FewShot(examples)) == pytest.approx(expected, rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layers", "loops", "process"),
    [
        (3, 1, LinearRegression(4, Gaussian(0.8), None, "inverse", NoiseRange(1.5))),
        (1, 2, LinearRegression(4, prior="sphere")),
    ],
    ids=["noisy", "loops"],
)
def test_it_is_the_mean_over_samples(layers, loops, process):
    one, task = steps(4, layers, loops, 0.2), FewShot(8, {0: 0.5, 3: 1, 8: 2})
    sampled = population_loss(one, process, task, MonteCarlo(20_000, seed=1, batch=20_000))
    assert abs(exact(one, process, task) - float(sampled.value)) < 4 * float(sampled.standard_error)


@pytest.mark.parametrize(("multiples", "loops"), [([0.7], 3), ([0.9, 0.4], 1), ([1.1, 0.3, 0.6], 1)])
def test_multiples_of_the_inverse_covariance_are_means_over_spectra(multiples, loops):
    sigma, examples = np.array(SIGMA), 7
    one = preconditioned_linear_transformer(
        2,
        len(multiples),
        loops,
        key=jax.random.key(0),
        start=[a * np.linalg.inv(sigma) for a in multiples],
    )

    def left(s):
        return np.prod([(1 - a * s / examples) ** 2 for a in multiples], axis=0) ** loops

    expected = wishart_mean(left, 2, examples) / 2
    process = LinearRegression(2, None, sigma, "inverse")
    assert exact(one, process, FewShot(examples)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "process",
    [LinearRegression(3, None, np.diag([1, 0.5, 2.0]), noise=0.6), TaskPool(LinearRegression(3), tasks=2)],
    ids=["noisy", "pool"],
)
def test_one_step_is_one_layer_of_linear_attention(process):
    one, task = steps(3, 1), FewShot(5, {0: 1, 2: 0.5, 5: 1})
    made = ahn2023.preconditioned_gradient_descent(one.network.layers[0].preconditioner[None])
    layer = LinearSelfAttention(made.w_kq[0], made.w_pv[0], "t-1", "examples")
    other = PromptModel(StackedPrompt(3), LinearAttentionStack([layer]), LastEntry(-1))
    assert exact(one, process, task) == pytest.approx(exact(other, process, task), rel=1e-13)


@pytest.mark.slow
def test_gradients_are_those_of_finite_differences():
    process, task, one = LinearRegression(2, None, SIGMA, noise=0.5), FewShot(4), steps(2, 3)
    arrays, rest = jax.tree.flatten(one)
    slope = jax.tree.leaves(jax.grad(lambda m: population_loss(m, process, task).value)(one))
    rng = np.random.default_rng(0)
    along = [rng.normal(size=a.shape) for a in arrays]

    def value(t):
        moved = [a + t * v for a, v in zip(arrays, along, strict=True)]
        return exact(jax.tree.unflatten(rest, moved), process, task)

    expected = sum(float((g * v).sum()) for g, v in zip(slope, along, strict=True))
    width = 1e-4  # the error of the difference is of order width², a few thousand times the slope
    assert (value(width) - value(-width)) / (2 * width) == pytest.approx(expected, rel=1e-4)


def test_many_examples_leave_the_steps_on_the_covariance():
    """For N → ∞ the examples are their covariance: the loss is tr Σ Π P Πᵀ/2 with S = Σ, up to O(1/N)."""
    one, process = steps(2, 2), LinearRegression(2, None, SIGMA, noise=0.5)
    sigma, rest = np.array(SIGMA), np.eye(2)
    for layer in one.network.layers:
        rest = (np.eye(2) - np.asarray(layer.preconditioner) @ sigma) @ rest
    limit = (np.trace(sigma @ rest @ rest.T) + 0.25) / 2
    gaps = [exact(one, process, FewShot(n)) - limit for n in (10**5, 10**6)]
    assert gaps[1] == pytest.approx(gaps[0] / 10, rel=1e-3)


@pytest.mark.slow
def test_flows_of_a_loop_end_at_the_best_multiple():
    """Two loops on Σ = I, from a multiple of I: the flow stays among multiples and ends at their best."""
    start = preconditioned_linear_transformer(2, 1, 2, key=jax.random.key(0), start=0.3 * np.eye(2)[None])
    flow = gradient_flow(start, LinearRegression(2), FewShot(10), rtol=1e-8, tolerance=1e-9)
    assert flow.converged
    best = gatmiry2024.best_multiple(2, 10, 2)
    # the flow stops at a gradient of 1e-9 of its scale
    np.testing.assert_allclose(flow.model.network.layer.layers[0].preconditioner, best * np.eye(2), atol=1e-7)


@pytest.mark.parametrize(
    ("make", "process", "error", "words"),
    [
        (
            partial(steps, 2, 4),
            LinearRegression(2),
            ValueError,
            "supports more than three preconditioned steps, layers times loops, for step_size_transformer",
        ),
        (
            partial(steps, 2, 2, 2),
            LinearRegression(2),
            ValueError,
            "the covariance of the inputs; use MonteCarlo ('monte-carlo' in a SPEC)",
        ),
        (partial(steps, 3, 2), LinearRegression(2), ValueError, "model has dim 3, the process has dim 2"),
        (
            partial(steps, 2, 2),
            LinearRegression(2, None, RandomDiagonal(Gaussian(1.0))),
            TypeError,
            "a fixed covariance, not a random one; use MonteCarlo",
        ),
    ],
    ids=["layers", "loops", "dim", "random covariance"],
)
def test_unsupported_settings_are_refused(make, process, error, words):
    with pytest.raises(error, match=re.escape(words)) as caught:
        population_loss(make(), process, FewShot(4))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("loops", [1, 3])
def test_the_layers_are_the_construction_of_ahn2023(loops):
    rng = np.random.default_rng(1)
    matrices = rng.normal(size=(2, 3, 3))
    x, y = jnp.asarray(rng.normal(size=(5, 7, 3))), jnp.asarray(rng.normal(size=(5, 6)))
    one = preconditioned_linear_transformer(3, 2, loops, key=jax.random.key(0), start=matrices)
    made = ahn2023.preconditioned_gradient_descent(matrices)
    stack = LinearAttentionStack(
        [LinearSelfAttention(kq, pv, "t-1", "examples") for kq, pv in zip(*made, strict=True)]
    )
    other = PromptModel(StackedPrompt(3), Looped(stack, loops), LastEntry(-1))
    np.testing.assert_allclose(one(x, y), other(x, y), rtol=1e-9)  # entries cancel after six steps
    streams = (model.network(model.embedding(x, y)) for model in (one, other))
    np.testing.assert_allclose(*streams, rtol=1e-9)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [(np.ones((2, 3)), "must have shape (d, d), got (2, 3)"), (1j * np.eye(2), "must be real")],
)
def test_bad_preconditioners_are_refused(matrix, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        PreconditionedLinearAttention(matrix)
