"""Losses of samples, compared with loops over their definitions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.objectives import check_task, sample_losses
from mesascope.processes import (
    DiagonalUnitary,
    FewShot,
    Gaussian,
    LinearRegression,
    MarkovTree,
    NextToken,
    OrthogonalAR,
)

KEY = jax.random.key(4)
T, N = 6, 3


class Extrapolation(eqx.Module):
    """ŷ_t = 2x_t − x_{t−1}, which depends on the order of the tokens."""

    def predictions(self, tokens):
        return 2 * tokens[..., 1:, :] - tokens[..., :-1, :]


class Bigrams(eqx.Module):
    """Logits of the next symbol: a row for the last symbol and one for that before it."""

    table: jax.Array

    def predictions(self, symbols):
        return self.table[0, symbols[..., 1:]] + self.table[1, symbols[..., :-1]]


class MeanLabel(eqx.Module):
    """The mean label of the examples, if there are any, and the sum of the query's entries."""

    def __call__(self, x, y):
        return jnp.sum(x[..., -1, :], -1) + jnp.sum(y, -1) / max(y.shape[-1], 1)

    def predictions(self, x, y):
        each = [self(x[..., : t + 1, :], y[..., :t]) for t in range(x.shape[-2])]
        return jnp.stack(each, -1)


NEXT_TOKEN = [NextToken(T), NextToken.last(T), NextToken(T, {2: "1/3", 4: 2}), NextToken(T, [0.5, 0, 1.5, 2])]
FEW_SHOT = [FewShot(N), FewShot.every(N), FewShot(N, {0: "1/3", 2: 2}), FewShot(N, [0.5, 0, 1.5, 2])]


@pytest.mark.parametrize("task", NEXT_TOKEN, ids=repr)
@pytest.mark.parametrize(
    "process", [DiagonalUnitary(Gaussian(1.0), 2), OrthogonalAR(Gaussian(1.0), 2)], ids=["complex", "real"]
)
def test_continuous_tokens(process, task):
    tokens = process.sample(KEY, T, 5)
    expected = np.zeros(5)
    for i, x in enumerate(np.asarray(tokens)):
        for t in range(2, T):  # from x_1 … x_t, that is x[0] … x[t − 1], to x_{t+1}
            error = 2 * x[t - 1] - x[t - 2] - x[t]
            expected[i] += float(task.weight(t)) * np.sum(np.abs(error) ** 2) / 2
    found = sample_losses(Extrapolation(), tokens, task)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("task", NEXT_TOKEN, ids=repr)
def test_discrete_tokens(task):
    symbols = MarkovTree.chain(T - 1, 3, 0.5).sample(KEY, T, 5)
    table = np.random.default_rng(0).normal(size=(2, 3, 3))
    expected = np.zeros(5)
    for i, s in enumerate(np.asarray(symbols)):
        for t in range(2, T):
            odds = np.exp(table[0, s[t - 1]] + table[1, s[t - 2]])
            expected[i] -= float(task.weight(t)) * np.log(odds[s[t]] / odds.sum())
    found = sample_losses(Bigrams(jnp.asarray(table)), symbols, task)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("task", FEW_SHOT, ids=repr)
def test_prompts(task):
    prompts = LinearRegression(2, noise=0.3).sample(KEY, N, 5)
    weights, expected = dict(enumerate(task.weights_array())), np.zeros(5)
    for i, (x, y) in enumerate(zip(np.asarray(prompts.x), np.asarray(prompts.y), strict=True)):
        for t, weight in weights.items():
            predicted = x[t].sum() + (y[:t].mean() if t else 0.0)
            expected[i] += weight * (predicted - y[t]) ** 2 / 2
    np.testing.assert_allclose(sample_losses(MeanLabel(), prompts, task), expected, rtol=1e-13)


def test_logits_far_from_zero_stay_finite():
    table = jnp.full((2, 3, 3), 1e4)
    symbols = jnp.array([[0, 1, 2, 0, 1, 2]])
    np.testing.assert_allclose(sample_losses(Bigrams(table), symbols, NextToken(T)), 4 * np.log(3))


@pytest.mark.parametrize(
    ("process", "task", "message"),
    [
        (LinearRegression(2), NextToken(T), r"draws prompts, not sequences; use FewShot\("),
        (OrthogonalAR(Gaussian(1.0), 2), FewShot(N), r"draws sequences, not prompts; use NextToken\("),
        (OrthogonalAR(Gaussian(1.0), 2), 6, r"must be a task such as NextToken\(horizon=100\)"),
        ("ar", NextToken(T), "must have a sampler"),
    ],
)
def test_tasks_that_do_not_fit_are_refused(process, task, message):
    with pytest.raises(TypeError, match=message):
        check_task(process, task)


class FirstEntry(eqx.Module):
    """Predicts one entry where tokens have two: broadcasting would make it fit."""

    def predictions(self, tokens):
        return tokens[..., 1:, :1]


class LabelColumn(eqx.Module):
    """Labels of shape (batch, 1): broadcasting would compare every prompt with every other."""

    def __call__(self, x, y):
        return x[..., -1, :1]


def test_predictions_of_another_shape_are_refused():
    tokens = OrthogonalAR(Gaussian(1.0), 2).sample(KEY, T, 5)
    with pytest.raises(ValueError, match=r"shape \(5, 4, 1\), their targets have \(5, 4, 2\)"):
        sample_losses(FirstEntry(), tokens, NextToken(T))
    prompts = LinearRegression(2).sample(KEY, N, 5)
    with pytest.raises(ValueError, match=r"shape \(5, 1\), their targets have \(5,\)"):
        sample_losses(LabelColumn(), prompts, FewShot(N))
