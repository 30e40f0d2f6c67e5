"""Models that are constructed to run an algorithm, compared with the learner of that algorithm."""

import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.learners import (
    GradientDescent,
    GradientDescentPlusPlus,
    PreconditionedGradientDescent,
    Ridge,
    predictions,
    prompt_examples,
    sequence_examples,
)
from mesascope.models import (
    LastEntry,
    LinearAttention,
    LinearAttentionStack,
    LinearSelfAttention,
    MesaLayer,
    PromptModel,
    StackedPrompt,
)
from mesascope.processes import DiagonalUnitary, Gaussian, LinearRegression
from mesascope.theory import ahn2023, vonoswald2023

DIM, SIZE = 3, 6


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)


@pytest.fixture(scope="module")
def tokens():
    return DiagonalUnitary(Gaussian(), DIM).sample(named_key(0), SIZE, 4)


def test_linear_attention_on_the_diagonal_is_one_step_with_step_size_ab(tokens):
    model = LinearAttention.diagonal(DIM, a=0.3, b=0.5)
    close(predictions(GradientDescent(0.15), *sequence_examples(tokens))[:, 1:], model.predictions(tokens))


def test_blocks_of_full_matrices_are_a_preconditioner_and_a_map_of_outputs(tokens):
    rng = np.random.default_rng(0)
    inner, outer = rng.normal(size=(2, DIM, DIM))
    w_kq, w_pv = np.zeros((2 * DIM, 2 * DIM)), np.zeros((DIM, 2 * DIM))
    w_kq[DIM:, :DIM], w_pv[:, :DIM] = inner, outer
    model = LinearAttention(w_kq=w_kq, w_pv=w_pv)
    close(
        predictions(PreconditionedGradientDescent(inner, outer), *sequence_examples(tokens))[:, 1:],
        model.predictions(tokens),
    )


def test_a_mesa_layer_is_ridge_regression(tokens):
    # Tokens (x_t, x_{t−1}) contain an output and its input; queries are x_t
    pairs = np.concatenate([tokens, np.concatenate([np.zeros_like(tokens[:, :1]), tokens[:, :-1]], 1)], -1)
    now, before = np.eye(2 * DIM)[:DIM], np.eye(2 * DIM)[DIM:]
    layer = MesaLayer(
        w_k=before[None], w_q=now[None], w_v=now[None], w_p=np.eye(DIM)[None], regularization=2.5
    )
    close(predictions(Ridge(1 / 2.5), *sequence_examples(tokens)), layer(pairs))


@pytest.mark.parametrize(
    ("construction", "learner"),
    [
        (vonoswald2023.gradient_descent(DIM, [0.2] * 3), GradientDescent(0.2, steps=3)),
        (
            vonoswald2023.gradient_descent_plus_plus(DIM, [0.2] * 3, [0.1] * 3),
            GradientDescentPlusPlus(0.2, 0.1, steps=3),
        ),
        (
            ahn2023.preconditioned_gradient_descent(np.stack([np.diag([0.1, 0.2, 0.3]) + 0.05] * 2)),
            PreconditionedGradientDescent(np.diag([0.1, 0.2, 0.3]) + 0.05, steps=2),
        ),
    ],
    ids=["gradient-descent", "gradient-descent++", "preconditioned"],
)
def test_constructions_for_prompts(construction, learner):
    layers = [LinearSelfAttention(*layer, "t-1", "examples") for layer in zip(*construction, strict=True)]
    model = PromptModel(StackedPrompt(DIM), LinearAttentionStack(layers), LastEntry(-1))
    x, y = LinearRegression(DIM, noise=0.5).sample(named_key(0), SIZE, 4)
    close(predictions(learner, *prompt_examples(x, y))[:, -1, 0], model(x, y[:, :-1]))
