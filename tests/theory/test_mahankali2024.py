"""Steps and losses of mahankali2024, compared with quadrature, samples and formulas of other papers."""

from fractions import Fraction

import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.models import LastEntry, LinearAttentionStack, LinearSelfAttention, PromptModel, StackedPrompt
from mesascope.processes import LinearRegression, NonlinearRegression, TwoLayerReLU
from mesascope.theory import mahankali2024, vonoswald2023

SIZES = [(1, 1, 0), (3, 5, Fraction(1, 2)), (10, 10, 2)]


@pytest.mark.parametrize(("dim", "examples", "noise"), SIZES)
def test_linear_targets_agree_with_the_derivation_for_all_inputs(dim, examples, noise):
    # that one is for the mean over examples and any kurtosis; here the sum, and Gaussian inputs
    mean_step = vonoswald2023.best_step_size(dim, examples, noise_variance=noise)
    assert mahankali2024.step_size(dim, examples, noise) == mean_step / examples
    expected = vonoswald2023.best_one_step_loss(dim, examples, noise_variance=noise)
    assert mahankali2024.least_loss(dim, examples, noise) == expected


def best_step_on(prompts):
    """The best step on these prompts, its loss, and standard errors of their components."""
    x, y = (np.asarray(part) for part in prompts)
    answers = np.einsum("bni,bn,bi->b", x[:, :-1], y[:, :-1], x[:, -1])
    return answers, y[:, -1]


@pytest.mark.slow
@pytest.mark.parametrize("process", ["relu", "inverse"])
def test_steps_are_best_on_samples(process):
    dim, examples, level, count = 2, 4, 0.7, 400_000
    sigma = np.array([[1.0, 0.4], [0.4, 0.6]])
    if process == "relu":
        law = NonlinearRegression(dim, TwoLayerReLU(3), noise=level)
        step = float(mahankali2024.relu_step_size(dim, examples, level**2))
        loss = float(mahankali2024.relu_least_loss(dim, examples, level**2))
        answers, targets = best_step_on(law.sample(named_key(0, process), examples, count))
    else:
        law = LinearRegression(dim, None, sigma, "inverse", level)
        step = float(mahankali2024.step_size(dim, examples, level**2))
        loss = float(mahankali2024.least_loss(dim, examples, level**2))
        x, y = law.sample(named_key(0, process), examples, count)
        turned = np.einsum("ij,bnj->bni", np.linalg.inv(sigma), np.asarray(x)[:, :-1])
        answers = np.einsum("bni,bn,bi->b", turned, np.asarray(y)[:, :-1], np.asarray(x)[:, -1])
        targets = np.asarray(y)[:, -1]
    # at the best step the error is not correlated with the answer; five standard errors
    slopes = answers * (step * answers - targets)
    assert abs(slopes.mean()) < 5 * slopes.std() / count**0.5
    losses = (step * answers - targets) ** 2 / 2
    assert abs(losses.mean() - loss) < 5 * losses.std() / count**0.5


def test_the_layer_is_the_step(prompts):

    sigma = np.array([[1.0, 0.4], [0.4, 0.6]])
    x, y = prompts(2, 5)
    layer = LinearSelfAttention(*mahankali2024.one_step(2, 0.3, sigma), "1", "examples")
    model = PromptModel(StackedPrompt(2), LinearAttentionStack([layer]), LastEntry(-1))
    for b in range(len(x)):
        w = 0.3 * np.linalg.solve(sigma, x[b, :-1].T @ y[b])
        assert float(model(x, y)[b]) == pytest.approx(w @ x[b, -1], rel=1e-12)
