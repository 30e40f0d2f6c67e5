"""The exact loss of one layer on regression prompts, compared with quadrature, samples and closed forms."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.dynamics import gradient_flow
from mesascope.models import (
    FactoredLinearSelfAttention,
    LastEntry,
    LinearAttentionStack,
    LinearSelfAttention,
    PromptModel,
    StackedPrompt,
    preconditioned_linear_transformer,
    prompt_linear_transformer,
)
from mesascope.objectives import ExactMoments, MonteCarlo, population_loss
from mesascope.objectives._regression_tasks import regression_tasks
from mesascope.processes import (
    FewShot,
    Gaussian,
    InWeightsRegression,
    LinearRegression,
    NoiseChoice,
    NoiseRange,
    PromptMixture,
    RandomDiagonal,
    TaskPool,
    Uniform,
)
from mesascope.theory import ahn2023, vonoswald2023

SIGMA = [[1.0, 0.3], [0.3, 0.5]]
PROCESSES = {
    "plain": LinearRegression(2),
    "noisy": LinearRegression(2, Gaussian(0.7), SIGMA, noise=0.8),
    "inverse": LinearRegression(2, None, SIGMA, "inverse", NoiseRange(1.5)),
    "random": LinearRegression(2, None, RandomDiagonal(Gaussian(0.8)), SIGMA, 0.3),
    "uniform": LinearRegression(3, None, RandomDiagonal(Uniform(1.0))),
    "sphere": LinearRegression(2, None, SIGMA, "sphere", 0.5),
    "pool": TaskPool(LinearRegression(2, None, SIGMA, noise=0.4), tasks=3),
    "random pool": TaskPool(
        LinearRegression(2, None, RandomDiagonal(Gaussian(0.8)), noise=NoiseChoice((0.5, 1.5))), tasks=2
    ),
    "in weights": InWeightsRegression([1.0, -0.6], SIGMA, 0.8),
}
PROCESSES["mixture"] = PromptMixture(PROCESSES["noisy"], PROCESSES["pool"], 0.3)


def model(dim, heads=1, context="examples", normalizer="t-1", sign=-1.0, scale=0.6, seed=0):
    key = named_key(seed, "regression", str(heads))
    layer = LinearSelfAttention.gaussian(
        dim + 1, heads, scale, key=key, normalizer=normalizer, context=context
    )
    return PromptModel(StackedPrompt(dim), LinearAttentionStack([layer]), LastEntry(sign))


def exact(model, process, task):
    return float(population_loss(model, process, task, ExactMoments()).value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "context", "heads"),
    [
        ("plain", "all", 1),
        ("noisy", "examples", 2),
        ("inverse", "causal", 1),
        ("random", "all", 2),
        ("uniform", "examples", 1),
        ("sphere", "all", 2),
        ("pool", "all", 2),
        ("random pool", "examples", 1),
        ("mixture", "all", 1),
    ],
)
def test_it_is_the_mean_over_samples(name, context, heads):
    process, task = PROCESSES[name], FewShot(3, {1: 1, 3: 2})
    one = model(process.dim, heads, context, "t")
    sampled = population_loss(one, process, task, MonteCarlo(60_000, seed=1, batch=20_000))
    assert abs(exact(one, process, task) - float(sampled.value)) < 4 * float(sampled.standard_error)


def by_quadrature(model, examples, noise, nodes=6):
    """One-dimensional inputs: the definition, over Gauss–Hermite nodes exact to degree 11 in every normal number."""
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    # x_1 … x_N, x_q, w, ξ_1 … ξ_N, ξ_q
    count = 2 * examples + 3
    index = np.array(list(product(range(nodes), repeat=count)))
    x, w, xi = (z[index[:, : examples + 1]], z[index[:, examples + 1]], z[index[:, examples + 2 :]])
    y = w[:, None] * x + noise * xi
    predicted = model(jnp.asarray(x[..., None]), jnp.asarray(y[:, :-1]))
    return float(np.prod(weights[index], axis=1) @ (np.asarray(predicted) - y[:, -1]) ** 2 / 2)


@pytest.mark.parametrize("context", ["examples", "all"])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_it_is_the_definition_in_one_dimension(context, sign):
    one = model(1, 2, context, "t", sign, scale=1.0)
    process = LinearRegression(1, noise=0.7)
    assert exact(one, process, FewShot(1)) == pytest.approx(by_quadrature(one, 1, 0.7), rel=1e-11)


@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e7])
def test_it_knows_random_covariances_of_any_size(scale):
    """E (ŷ − y)²/2 of the answer 0 is E |w|² E s²/2d per dimension, here 3 · scale²/3/2."""
    zero = jax.tree.map(jnp.zeros_like, model(3, 1))
    process = LinearRegression(3, None, RandomDiagonal(Uniform(scale)))
    assert exact(zero, process, FewShot(2)) == pytest.approx(scale**2 / 2, rel=1e-12)


@pytest.mark.parametrize("context", ["examples", "all"])
def test_a_pool_is_the_mean_over_its_tasks(context):
    # each task alone is a pool of one: by quadrature over x and noise, with w fixed
    vectors, one = np.array([[0.4], [-1.3], [2.0]]), model(1, 2, context, "t", scale=1.0)
    z, weights = np.polynomial.hermite_e.hermegauss(6)
    weights = weights / weights.sum()
    index = np.array(list(product(range(6), repeat=6)))  # x_1, x_2, x_q, ξ_1, ξ_2, ξ_q
    x, xi, shares = z[index[:, :3]], 0.6 * z[index[:, 3:]], np.prod(weights[index], axis=1)
    expected = 0.0
    for w in vectors[:, 0]:
        y = w * x + xi
        predicted = np.asarray(one(jnp.asarray(x[..., None]), jnp.asarray(y[:, :-1])))
        expected += float(shares @ (predicted - y[:, -1]) ** 2 / 2) / len(vectors)
    pool = TaskPool(LinearRegression(1, noise=0.6), vectors=vectors)
    assert exact(one, pool, FewShot(2)) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("context", ["examples", "all"])
def test_in_weights_labels_are_noise_for_examples_and_known_for_the_query(context):
    one = model(1, 2, context, "t", scale=1.0)
    z, weights = np.polynomial.hermite_e.hermegauss(6)
    weights = weights / weights.sum()
    index = np.array(list(product(range(6), repeat=5)))  # x_1, x_2, x_q, y_1, y_2
    x, y, shares = z[index[:, :3]], 0.6 * z[index[:, 3:]], np.prod(weights[index], axis=1)
    error = np.asarray(one(jnp.asarray(x[..., None]), jnp.asarray(y))) - 1.3 * x[:, -1]
    process = InWeightsRegression([1.3], label_scale=0.6)
    assert exact(one, process, FewShot(2)) == pytest.approx(float(shares @ error**2) / 2, rel=1e-11)


@pytest.mark.slow
def test_in_weights_prompts_are_the_mean_over_samples():
    process, task, one = PROCESSES["in weights"], FewShot(3), model(2, 2, "all", "t")
    sampled = population_loss(one, process, task, MonteCarlo(60_000, seed=1, batch=20_000))
    assert abs(exact(one, process, task) - float(sampled.value)) < 4 * float(sampled.standard_error)


def test_in_weights_prompts_have_one_query():
    with pytest.raises(ValueError, match="task: weights predictions after fewer than 3 examples"):
        exact(model(2), PROCESSES["in weights"], FewShot(3, {1: 1, 3: 2}))


def test_steps_on_the_context_lose_by_labels_that_are_noise():
    # without values of inputs nothing is known by the weights: E y²/2, and half the power of the step on noise
    sigma, w, examples, scale = np.array(SIGMA), np.array([1.0, -0.6]), 5, 0.8
    step = np.array([[0.7, 0.1], [0.1, 0.4]])
    spread = np.trace(step @ sigma @ step.T @ sigma) * scale**2 / examples
    expected = (w @ sigma @ w + spread) / 2
    process = PROCESSES["in weights"]
    layered = preconditioned_linear_transformer(2, 1, key=named_key(0), start=[step])
    assert exact(layered, process, FewShot(examples)) == pytest.approx(expected, rel=1e-12)


def test_a_mixture_is_the_mean_of_its_parts():
    one, task = model(2, 2, "all"), FewShot(3)
    process = PROCESSES["mixture"]
    expected = 0.3 * exact(one, process.process, task) + 0.7 * exact(one, process.other, task)
    assert exact(one, process, task) == pytest.approx(expected, rel=1e-14)


def test_a_large_pool_tends_to_its_prior_as_one_over_root_k():
    process, task, one = PROCESSES["noisy"], FewShot(3), model(2, 2, "all", scale=0.3)
    fresh = exact(one, process, task)
    sizes = (100, 10_000)
    gaps = [
        np.std([exact(one, TaskPool(process, tasks=k, seed=s), task) - fresh for s in range(24)])
        for k in sizes
    ]
    # 24 seeds know a standard deviation to 15 %, two of them a slope over a factor of 100 to 0.05
    slope = np.log(gaps[1] / gaps[0]) / np.log(sizes[1] / sizes[0])
    assert slope == pytest.approx(-0.5, abs=0.15)


def test_the_loss_does_not_become_expensive_with_the_dimension():
    process, task = LinearRegression(60, noise=0.5), FewShot(60)
    assert regression_tasks(process).covariances.shape == (1, 60, 60)  # one node, whatever the dimension
    best = vonoswald2023.best_step_size(60, 60, noise_variance=0.25)
    layers = vonoswald2023.gradient_descent_step(60, best)
    layer = LinearSelfAttention(layers.w_kq, layers.w_pv, "t-1", "examples")
    one = PromptModel(StackedPrompt(60), LinearAttentionStack([layer]), LastEntry(-1))
    expected = vonoswald2023.best_one_step_loss(60, 60, noise_variance=0.25)
    assert exact(one, process, task) == pytest.approx(float(expected), rel=1e-12)


def test_the_loss_for_many_examples_is_fast_and_correct():
    # at the same weights, 1/ρ = 1/N: the loss is a polynomial of degree 1 in 1/N for tokens that the query does not join
    one, process = model(3), LinearRegression(3, noise=0.5)
    losses = [exact(one, process, FewShot(n)) for n in (1, 2, 4, 10**6)]
    slope = 2 * (losses[0] - losses[1])
    limit = losses[0] - slope
    assert losses[2] == pytest.approx(limit + slope / 4, rel=1e-12)
    assert losses[3] == pytest.approx(limit + slope / 1e6, rel=1e-12)


@pytest.mark.parametrize(("dim", "examples", "noise"), [(1, 1, 0), (3, 5, 0.5), (10, 10, 0), (7, 40, 2)])
def test_one_step_of_gradient_descent_has_its_closed_form(dim, examples, noise):
    best = vonoswald2023.best_step_size(dim, examples, noise_variance=noise**2)
    layers = vonoswald2023.gradient_descent_step(dim, best)
    layer = LinearSelfAttention(layers.w_kq, layers.w_pv, "t-1", "examples")
    one = PromptModel(StackedPrompt(dim), LinearAttentionStack([layer]), LastEntry(-1))
    loss = exact(one, LinearRegression(dim, noise=noise), FewShot(examples))
    expected = vonoswald2023.best_one_step_loss(dim, examples, noise_variance=noise**2)
    assert loss == pytest.approx(float(expected), rel=1e-12)


def test_factored_weights_are_their_products():
    key = named_key(2, "factored")
    layer = FactoredLinearSelfAttention.gaussian(3, 2, 0.7, key=key, key_size=2, context="examples")
    merged = LinearSelfAttention(
        np.einsum("hki,hkj->hij", layer.w_k, layer.w_q), layer.w_p @ layer.w_v, "t-1", "examples"
    )
    process, task = PROCESSES["noisy"], FewShot(4)
    losses = [
        exact(PromptModel(StackedPrompt(2), LinearAttentionStack([one]), LastEntry(-1)), process, task)
        for one in (layer, merged)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 2])
def test_keys_and_queries_of_low_rank_are_the_mean_over_samples(rank):
    process, task = PROCESSES["noisy"], FewShot(3)
    one = prompt_linear_transformer(2, 1, 2, 0.7, key=named_key(3, "low rank"), rank=rank)
    sampled = population_loss(one, process, task, MonteCarlo(60_000, seed=1, batch=20_000))
    assert abs(exact(one, process, task) - float(sampled.value)) < 4 * float(sampled.standard_error)


@pytest.mark.slow
def test_flows_end_at_the_preconditioner_of_ahn2023():
    process, task = LinearRegression(2, None, SIGMA), FewShot(6)
    start = prompt_linear_transformer(2, 1, scale=0.3, key=named_key(1, "start"))
    flow = gradient_flow(start, process, task, rtol=1e-8, tolerance=1e-8)
    assert flow.converged
    layer = flow.model.network.layers[0]
    step = -np.asarray(layer.w_pv[0, -1, -1] * layer.w_kq[0, :2, :2])
    expected = ahn2023.one_layer_preconditioner(SIGMA, 6)

    # the flow stops at a gradient of 1e-8 of its scale
    np.testing.assert_allclose(step, expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "pool"])
def test_gradients_are_those_of_finite_differences(name):
    process, task = PROCESSES[name], FewShot(3)
    one = model(2, 2, "all")
    arrays, rest = jax.tree.flatten(one)
    slope = jax.tree.leaves(jax.grad(lambda m: population_loss(m, process, task).value)(one))
    rng = np.random.default_rng(0)
    along = [rng.normal(size=a.shape) for a in arrays]

    def value(t):
        moved = [a + t * v for a, v in zip(arrays, along, strict=True)]
        return exact(jax.tree.unflatten(rest, moved), process, task)

    expected = sum(float((g * v).sum()) for g, v in zip(slope, along, strict=True))
    width = 1e-4  # a polynomial of degree four: the error of the difference is of order width²
    assert (value(width) - value(-width)) / (2 * width) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "process", "error", "words"),
    [
        (lambda: model(3), LinearRegression(2), ValueError, "model has dim 3, the process has dim 2"),
        (lambda: model(2), LinearRegression(2, Uniform(1.0)), TypeError, "Gaussian inputs only, not Uniform"),
        (
            lambda: model(2),
            LinearRegression(2, sparsity=1),
            TypeError,
            "moments of sparse weights are not known; use MonteC",
        ),
        (
            lambda: model(20),
            LinearRegression(20, None, RandomDiagonal(Gaussian(1))),
            ValueError,
            "too many nodes",
        ),
        (
            partial(prompt_linear_transformer, 2, 2, key=jax.random.key(0)),
            LinearRegression(2),
            TypeError,
            "and for steps of preconditioned_linear_transformer and step_size_transformer, not for this PromptModel; use",
        ),
    ],
    ids=["dim", "law", "sparsity", "nodes", "layers"],
)
def test_unsupported_settings_are_refused(make, process, error, words):
    with pytest.raises(error, match=words) as caught:
        population_loss(make(), process, FewShot(4))
    assert "\n" not in str(caught.value)


def test_complex_weights_are_refused():
    one = model(2)
    turned = jax.tree.map(lambda leaf: leaf * (1 + 0j), one)
    with pytest.raises(TypeError, match="take their real parts"):
        population_loss(turned, LinearRegression(2), FewShot(4))
