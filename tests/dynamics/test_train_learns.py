"""Training finds what theory says can be learned."""

import jax
import numpy as np
import pytest

from mesascope import DiagonalUnitary, LinearAttention, NextToken, Sparse, train
from mesascope.dynamics import Optimizer, Outcome
from mesascope.models import prompt_linear_transformer, token_transformer
from mesascope.processes import FewShot, LinearRegression, MarkovTree
from mesascope.theory import vonoswald2023


@pytest.mark.slow
def test_one_linear_layer_learns_one_step_of_gradient_descent():
    dim, examples = 3, 8  # in even dimensions half of the starts end in a worse stationary point
    start = prompt_linear_transformer(dim, 1, key=jax.random.key(0))
    run = train(
        start, LinearRegression(dim), FewShot(examples), optimizer=Optimizer("adam", 0.02, "cosine"), steps=800,
        batch=128, held_out=100_000, seed=1,
    )  # fmt: skip
    best = float(vonoswald2023.best_one_step_loss(dim, examples))
    assert np.isclose(best, 1 / 2)
    # no layer does better; noise of 128 prompts a step keeps it within two percent
    noise = 5 * float(run.loss.standard_error)
    assert best - noise < float(run.loss.value) < 1.02 * best + noise
    assert noise < 0.05 * best < 0.05 * run.losses[0]


@pytest.mark.slow
def test_linear_attention_learns_the_mesa_optimizer():
    start = LinearAttention.diagonal(2, 0.3, 0.3)
    run = train(
        start, DiagonalUnitary(Sparse(1.0), 2), NextToken(10), optimizer=Optimizer("adam", 0.01), steps=600, batch=64,
        seed=3, held_out=64,
    )  # fmt: skip
    assert run.losses[-1] < 0.05 * run.losses[0]
    # one-hot tokens with c = 1: the loss vanishes only at ab = 1 (Example 4.1); noise of 64 sequences a step
    np.testing.assert_allclose(np.asarray(run.model.products()), 1.0, atol=0.05)


@pytest.mark.slow
def test_a_transformer_learns_markov_chains_in_context():
    """Symbols alone are uniform over all chains: below their entropy, log S, only the context helps."""
    states, length = 3, 10
    start = token_transformer(states, 16, 1, 2, length + 1, key=jax.random.key(0))
    task = NextToken(length + 1, dict.fromkeys(range(2, length - 1), 1))  # without the uniform symbol s_T
    run = train(
        start, MarkovTree.chain(length, states, 0.1), task, optimizer=Optimizer("adam", 0.01, clip=1.0), steps=150,
        batch=64, held_out=256, record_every=1,
    )  # fmt: skip
    assert run.result is Outcome.FINISHED
    each = float(run.loss.value) / float(task.total_weight)
    assert each + 5 * float(run.loss.standard_error) / float(task.total_weight) < 0.7 * np.log(states)
    assert run.losses[0] / float(task.total_weight) > 0.9 * np.log(states)
