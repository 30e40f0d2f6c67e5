"""Prompt processes, compared with their definitions. Sampled means must agree within 5 standard errors."""

import jax
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.processes import (
    Constant,
    DriftingRegression,
    InWeightsRegression,
    LinearRegression,
    NoiseChoice,
    NoiseRange,
    NonlinearRegression,
    OrthonormalFeatures,
    PromptMixture,
    RandomDiagonal,
    RandomFeatures,
    SineWaves,
    TaskPool,
    TwoLayerReLU,
    Uniform,
    noise_moment,
    noise_rule,
)
from sampled_means import draw, judge

COUNT = 20_000
COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
PRIOR = np.array([[1.0, 0.0, 0.4], [0.0, 2.0, 0.0], [0.4, 0.0, 3.0]])


def sample(process, examples, batch=COUNT, seed=0):
    prompts = draw(process, named_key(seed), examples, batch)
    return np.asarray(prompts.x), np.asarray(prompts.y)


def least_squares(x, y):
    """The weights of each prompt and its sum of squared residuals."""
    weights = (np.linalg.pinv(x) @ y[..., None])[..., 0]
    return weights, ((y - np.einsum("bnj,bj->bn", x, weights)) ** 2).sum(axis=-1)


def products(vectors):
    return vectors[..., :, None] * vectors[..., None, :]


@pytest.mark.parametrize(
    ("prior", "expected"),
    [("identity", np.eye(3)), ("inverse", np.linalg.inv(COVARIANCE)), (PRIOR, PRIOR)],
    ids=["identity", "inverse", "matrix"],
)
def test_inputs_and_weights_have_their_covariances(prior, expected):
    # √3 makes the variance of the uniform law 1.
    process = LinearRegression(3, Uniform(3**0.5), covariance=COVARIANCE, prior=prior)
    x, y = sample(process, 8)
    judge(x[:, 0], 0)
    judge(products(x[:, 0]), COVARIANCE)
    judge(products(x[:, -1]), COVARIANCE)
    judge(x[:, 0, :, None] * x[:, 1, None, :], 0)
    weights, residuals = least_squares(x, y)
    # Without noise the labels, the target among them, are the linear function: up to rounding.
    assert residuals.max() < 1e-20
    judge(weights, 0)
    judge(products(weights), expected)
    judge(products(weights) * (x[:, 0, 0] ** 2 - COVARIANCE[0, 0])[:, None, None], 0)


def test_by_default_inputs_are_samples_of_the_law():
    x, _ = sample(LinearRegression(3, Constant([1, 2, 3])), 2, batch=4)
    np.testing.assert_array_equal(x, np.broadcast_to([1.0, 2.0, 3.0], x.shape))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "second", "fourth"),
    [(0.5, 0.25, 0.0625), (NoiseRange(2), 4 / 3, 16 / 5), (NoiseChoice((1, 3)), 5, 41)],
    ids=["fixed", "range", "choice"],
)
def test_label_noise_has_its_moments(noise, second, fourth):
    x, y = sample(LinearRegression(3, noise=noise), 8)
    freedom = 9 - 3
    _, residuals = least_squares(x, y)
    # Given the level σ, the residuals are σ² χ² with n − d degrees of freedom.
    judge(residuals / freedom, second)
    judge(residuals**2 / (freedom * (freedom + 2)), fourth)


@pytest.mark.parametrize("noise", [NoiseRange("3/2"), NoiseChoice((1, "1/2", 0)), 2], ids=str)
def test_the_rule_of_noise_has_its_moments(noise):
    values, weights = noise_rule(noise)
    for power in range(3):
        assert weights @ values**power == pytest.approx(float(noise_moment(noise, 2 * power)), rel=1e-15)


def test_noise_has_quantiles_and_multiples():
    shares = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(NoiseRange(3).quantiles(shares), [0.3, 1.5, 2.7])
    np.testing.assert_array_equal(NoiseChoice((3, 1)).quantiles(shares), [1, 3, 3])
    assert NoiseRange(3).scaled(2) == NoiseRange(6)
    assert NoiseChoice((3, 1)).scaled(2) == NoiseChoice((6, 2))


@pytest.mark.slow
def test_sparse_weights_have_the_given_number_of_coordinates():
    weights, residuals = least_squares(*sample(LinearRegression(3, sparsity=2), 8))
    assert residuals.max() < 1e-20
    nonzero = abs(weights) > 1e-9
    assert (nonzero.sum(axis=1) == 2).all()
    judge(nonzero, 2 / 3)
    judge(weights**2, 2 / 3)


def test_random_covariances_are_shared_within_a_prompt_only():
    law = Uniform(2)
    x, _ = sample(LinearRegression(3, covariance=RandomDiagonal(law)), 8)
    second, fourth = float(law.moment(2)), float(law.moment(4))
    judge(products(x[:, 0]), second * np.eye(3))
    judge(x[:, 0] ** 2 * x[:, 1] ** 2, fourth)
    judge(x[:, 0, 0] ** 2 * x[:, 1, 1] ** 2, second**2)


@pytest.mark.slow
@pytest.mark.parametrize("target", [TwoLayerReLU(4), RandomFeatures(500)], ids=["two-layer", "features"])
def test_nonlinear_labels_have_their_kernel(target):
    x, y = sample(NonlinearRegression(3, target), 1)
    one, two = x[:, 0], x[:, 1]
    if isinstance(target, RandomFeatures):
        features = np.asarray(target.feature_values(x))
        kernel = 2 / 500 * (features[:, 0] * features[:, 1]).sum(axis=-1)
    else:
        # Averaged over the weights, E f(x) f(x') is the arc-cosine kernel of order 1, here E f(x)² = |x|².
        sizes = np.linalg.norm(one, axis=-1) * np.linalg.norm(two, axis=-1)
        angles = np.arccos((one * two).sum(axis=-1) / sizes)
        kernel = sizes / np.pi * (np.sin(angles) + (np.pi - angles) * np.cos(angles))
        judge(y[:, 0] ** 2 - (one**2).sum(axis=-1), 0)
    judge(y, 0)
    judge(y[:, 0] * y[:, 1] - kernel, 0)


@pytest.mark.slow
def test_features_are_the_same_in_all_prompts():
    target = RandomFeatures(4, seed=1)
    x, y = sample(NonlinearRegression(3, target, Uniform(1)), 39, batch=2000)
    assert abs(x).max() <= 1
    weights, residuals = least_squares(np.asarray(target.feature_values(x)), y)
    assert residuals.max() < 1e-20
    judge(products(weights), 2 / 4 * np.eye(4))
    # The features of another seed do not explain the labels.
    assert least_squares(np.asarray(RandomFeatures(4, seed=2).feature_values(x)), y)[1].mean() > 0.01


def test_sine_waves_have_their_means_and_products():
    # E A = 0.3, E A² = 0.31/3; sin φ has the mean 2/π, cos φ the mean 0, for φ uniform on [0, π].
    x, y = sample(NonlinearRegression(2, SineWaves(), Uniform(5)), 2)
    sums = x.sum(-1)
    judge(y - 0.6 / np.pi * np.cos(sums), 0)
    judge(y[:, 0] * y[:, 1] - 0.31 / 6 * np.cos(sums[:, 0] - sums[:, 1]), 0)


def test_sine_waves_are_drawn_within_their_bounds():
    waves = SineWaves(2, 3)
    amplitudes, phases = waves.draw(named_key(0), 1, 1000)
    assert amplitudes.min() >= 2 and amplitudes.max() <= 3
    assert phases.min() >= 0 and phases.max() <= np.pi
    tops = waves.values((amplitudes, phases), (np.pi / 2 - np.asarray(phases))[:, None, None])
    np.testing.assert_allclose(tops[:, 0], amplitudes, rtol=1e-12)


def test_nonlinear_labels_have_noise():
    # Inputs that are 0 have the label 0 but for the noise.
    _, y = sample(NonlinearRegression(2, TwoLayerReLU(3), Constant(0), noise=0.5), 1)
    judge(y**2, 0.25)
    judge(y[:, 0] * y[:, 1], 0)


def test_balanced_features_and_their_labels():
    process = OrthonormalFeatures(3, dim=4, law=Uniform(1))
    assert sum(process.probabilities) == 1
    x, y = sample(process, 8)
    assert (np.sort(x, axis=-1) == [0, 0, 0, 1]).all()
    judge(x[:, 0], [1 / 3, 1 / 3, 1 / 3, 0])
    judge(x[:, 0, 0] * x[:, -1, 0], 1 / 9)
    assert abs(y).max() <= 1
    judge(y[:, -1] ** 2, 1 / 3)
    # Within a prompt equal features have equal labels; different ones are independent.
    same = (x[:, 0] == x[:, 1]).all(axis=-1)
    np.testing.assert_array_equal(y[same, 0], y[same, 1])
    judge(y[~same, 0] * y[~same, 1], 0)


def test_imbalanced_features_have_their_probabilities():
    process = OrthonormalFeatures.imbalanced(3, "4/5")
    assert [float(p) for p in process.probabilities] == [0.8, 0.1, 0.1]
    judge(sample(process, 8)[0][:, 0], [0.8, 0.1, 0.1])
    assert process == OrthonormalFeatures(3, probabilities=["4/5", "1/10", "1/10"])
    assert "largest probability 0.8" in process.describe()


@pytest.mark.slow
def test_traced_features_give_the_same_prompts():
    target = RandomFeatures(3, seed=4)
    one, traced = (NonlinearRegression(2, of) for of in (target, target.traced(2)))
    assert "traced RandomFeatures(features=3)" in traced.describe()
    drawn = jax.jit(lambda process: process.sample(jax.random.key(0), 5, 4))(traced)
    np.testing.assert_array_equal(drawn.x, one.sample(jax.random.key(0), 5, 4).x)
    np.testing.assert_allclose(drawn.y, one.sample(jax.random.key(0), 5, 4).y, rtol=1e-14)


@pytest.mark.slow
def test_weights_are_a_random_walk_from_example_to_example():
    """In one dimension y_i/x_i = w_i without noise."""
    x, y = sample(DriftingRegression(1, drift=0.5, covariance=[[2.0]]), 4)
    weights = y / x[..., 0]
    judge(x[:, 2, 0] ** 2, 2.0)
    judge(weights[:, 0] ** 2, 1.0)
    steps = np.diff(weights, axis=1)
    judge(products(steps), 0.25 * np.eye(4))
    judge(steps * weights[:, :1], 0)
    judge(steps * x[:, :-1, 0], 0)


@pytest.mark.slow
def test_labels_of_drifting_regression_have_noise_and_without_drift_are_linear():
    x, y = sample(DriftingRegression(3, drift=0.0, covariance=COVARIANCE), 8, batch=100)
    assert least_squares(x, y)[1].max() < 1e-20  # rounding
    x, y = sample(DriftingRegression(1, drift=0.0, noise=0.5), 1)
    judge(y**2, 1.25)
    judge(y[:, 0] * y[:, 1] * x[:, 0, 0] * x[:, 1, 0], 1.0)


def test_in_weights_only_the_query_has_a_label_that_its_input_tells():
    w = np.array([0.5, -1.0, 2.0])
    x, y = sample(InWeightsRegression(w, COVARIANCE, label_scale=0.7), 2)
    np.testing.assert_allclose(y[:, -1], x[:, -1] @ w, rtol=1e-12, atol=1e-12)
    judge(products(x[:, 0]), COVARIANCE)
    judge(products(y[:, :-1]), 0.49 * np.eye(2))
    judge(y[:, :-1, None] * x[:, :-1], 0)
    judge(y[:, :-1, None] * x[:, -1:], 0)


@pytest.mark.slow
def test_a_mixture_has_prompts_of_both_processes_whole_and_in_their_shares():
    pool = TaskPool(LinearRegression(2), vectors=[[3.0, -4.0]])
    x, y = sample(PromptMixture(pool, LinearRegression(2, noise=0.5), share=0.3), 4)
    known = abs(y - x @ [3.0, -4.0]).max(1) < 1e-9
    judge(known, 0.3)  # a prompt with noise is never so near
    other = y[~known] - x[~known] @ [3.0, -4.0]
    judge(other[:, 0] ** 2, 25 + 2 + 0.25)
    judge(known[::2] * known[1::2], 0.09)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (
            lambda: PromptMixture(LinearRegression(2), LinearRegression(3)),
            "other has inputs of dimension 3",
        ),
        (lambda: PromptMixture(LinearRegression(2), 3), "other must be a process or a table with its kind"),
        (lambda: PromptMixture(LinearRegression(2), LinearRegression(2), share=1), "share must be"),
        (lambda: InWeightsRegression([]), "weights must be a list of numbers"),
        (lambda: InWeightsRegression([1, 2], [[1.0]]), "covariance must have shape (2, 2)"),
        (lambda: InWeightsRegression([1], RandomDiagonal(Uniform(1))), "covariance must be a matrix"),
        (lambda: InWeightsRegression([1], label_scale=0), "label_scale must be"),
    ],
)
def test_what_mixtures_and_in_weights_prompts_refuse(call, what):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert what in str(error.value) and "\n" not in str(error.value)
