"""Small random problems, and models with known layers."""

from dataclasses import replace

import numpy as np
import pytest

import mesascope as ms
from mesascope.core import named_key
from mesascope.probes import Problems, draw_problems
from mesascope.theory import vonoswald2023


def _regression(tasks, examples, seed=0):
    """Noisy linear regression in three dimensions, with equal weights of all numbers of examples 0 … N."""
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(tasks, examples + 1, 3)), rng.normal(size=(tasks, 3))
    y = np.einsum("tnp,tp->tn", x, w) + 0.1 * rng.normal(size=x.shape[:2])
    weights = np.full(examples + 1, 1 / (examples + 1))
    return Problems(ms.Prompts(x, y), x[:, :-1], y[:, :-1, None], x, y[..., None], weights)


@pytest.fixture(scope="session")
def prompts():
    """200 tasks after 0 … 4 examples."""
    return _regression(200, 4)


@pytest.fixture(scope="session")
def last_prompts(prompts):
    """The same tasks, with weight only for all 4 examples."""
    return replace(prompts, weights=np.array([0.0, 0, 0, 0, 1]))


@pytest.fixture(scope="session")
def sequences():
    """200 noisy linear sequences, with weights for 1, 2 and 3 examples."""
    rng = np.random.default_rng(0)
    transitions = 0.5 * rng.normal(size=(200, 3, 3))
    tokens = [rng.normal(size=(200, 3))]
    for _ in range(4):
        step = np.einsum("tij,tj->ti", transitions, tokens[-1])
        tokens.append(step + 0.3 * rng.normal(size=(200, 3)))
    tokens = np.stack(tokens, 1)
    contexts, weights = tokens[:, :-1], np.array([0.0, 1.0, 1.0, 1.0]) / 3
    return Problems(contexts, contexts[:, :-1], contexts[:, 1:], contexts, tokens[:, 1:], weights)


@pytest.fixture(scope="session")
def many_prompts():
    """4000 tasks after 0 … 4 examples."""
    return _regression(4000, 4)


@pytest.fixture
def steps_of_descent():
    """Prompt models of dimension 3 whose every layer is one step of gradient descent."""

    def build(layers, step_size):
        weights = zip(*vonoswald2023.gradient_descent(3, [step_size] * layers), strict=True)
        stack = ms.LinearAttentionStack(ms.LinearSelfAttention(*w, "t-1", "examples") for w in weights)
        return ms.PromptModel(ms.StackedPrompt(3), stack, ms.LastEntry(-1))

    return build


@pytest.fixture
def few_prompts():
    """60 tasks after 0 … 4 examples."""
    return _regression(60, 4)


@pytest.fixture
def descent():
    """The predictions of steps of gradient descent for regression, by loops."""

    def predict(problems, step_size, steps):
        x, y, queries = (np.asarray(a) for a in (problems.x, problems.y[..., 0], problems.queries))
        found = np.zeros(problems.targets.shape)
        for n in range(1, len(problems.weights)):
            w = np.zeros((problems.tasks, x.shape[-1]))
            for _ in range(steps):
                residual = y[:, :n] - np.einsum("tip,tp->ti", x[:, :n], w)
                w = w + step_size / n * np.einsum("ti,tip->tp", residual, x[:, :n])
            found[:, n, 0] = np.einsum("tp,tp->t", w, queries[:, n])
        return np.where(problems.weights[:, None] > 0, found, 0)

    return predict


@pytest.fixture
def random_attention():
    """Layers of linear attention with random weights."""

    def build(width, heads=1, context="causal"):
        w_kq, w_pv = 0.3 * np.random.default_rng(0).normal(size=(2, heads, width, width))
        return ms.LinearSelfAttention(w_kq, w_pv, "t-1", context)

    return build


@pytest.fixture(scope="session")
def trained():
    """One layer of linear attention trained to predict from 10 examples, close to the best step of descent."""
    random = ms.LinearSelfAttention(
        *0.3 * np.random.default_rng(0).normal(size=(2, 1, 4, 4)), "t-1", "examples"
    )
    start = ms.PromptModel(ms.StackedPrompt(3), ms.LinearAttentionStack([random]), ms.LastEntry(-1))
    settings = {
        "optimizer": ms.Optimizer(learning_rate=0.02),
        "steps": 1500,
        "precision": "float64",
        "average": 0.99,
    }
    return ms.train(start, ms.LinearRegression(3), ms.FewShot(10), **settings).average


@pytest.fixture(scope="session")
def trained_on():
    """2000 tasks of the training distribution, and 2000 more."""
    return tuple(
        draw_problems(ms.LinearRegression(3), ms.FewShot(10), 2000, named_key(seed, "tests"))
        for seed in (1, 2)
    )
