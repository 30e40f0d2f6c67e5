import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.models import (
    FirstBlock,
    LinearAttention,
    LinearAttentionStack,
    LinearSelfAttention,
    PairedTokens,
    SequenceModel,
)
from mesascope.processes import DiagonalUnitary, Gaussian
from mesascope.theory import zheng2024


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "horizon"), [(1, 2), (3, 7)])
def test_the_layer_is_one_gradient_step(dim, horizon):
    tokens = np.asarray(DiagonalUnitary(Gaussian(), dim).sample(named_key(0, "step"), horizon, 4))
    a, b = 0.5, -0.7
    layer = LinearSelfAttention(*zheng2024.gradient_descent_step(dim, a, b), "t-1", "causal")
    model = SequenceModel(PairedTokens(dim), LinearAttentionStack([layer]), FirstBlock(dim))
    predictions = np.asarray(model.predictions(tokens))
    for x, predicted in zip(tokens, predictions, strict=True):
        for t in range(2, horizon + 1):
            # one step of size ab/(t−1) from W = 0: the gradient there is −Σ x_{i+1} x_i*
            gradient = -sum(np.outer(x[i], x[i - 1].conj()) for i in range(1, t))
            w = -a * b / (t - 1) * gradient
            np.testing.assert_allclose(predicted[t - 2], w @ x[t - 1], rtol=1e-12, atol=1e-12)


def test_it_is_the_diagonal_layer_of_the_paper():
    ours = zheng2024.gradient_descent_step(3, 0.5, 2)
    theirs = LinearAttention.diagonal(3, 0.5, 2).to_full()
    for mine, full in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, np.asarray(full)[None])
