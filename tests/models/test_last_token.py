"""The output for the last token only equals the last of all outputs, for all layers with a shortcut."""

import jax
import numpy as np
import pytest

from mesascope.models import (
    FactoredLinearSelfAttention,
    LinearAttentionStack,
    LinearSelfAttention,
    Looped,
    LowRankLinearSelfAttention,
    MesaLayer,
    Residual,
    Stack,
)
from mesascope.models._around_layer import AfterFirst

KEY = jax.random.key(0)


def linear(context, heads=2, normalizer="t-1"):
    return LinearSelfAttention.gaussian(3, heads, 0.5, key=KEY, context=context, normalizer=normalizer)


LAYERS = {
    "causal": linear("causal"),
    "all": linear("all", normalizer="t"),
    "examples": linear("examples"),
    "factored": FactoredLinearSelfAttention.gaussian(3, 2, 0.5, key=KEY, context="examples"),
    "low rank": LowRankLinearSelfAttention.gaussian(3, 2, 0.5, key=KEY, context="all"),
    "mesa": MesaLayer.gaussian(3, 1, 0.5, key=KEY),
    "stack of linear layers": LinearAttentionStack([linear("all"), linear("examples"), linear("causal")]),
    "looped": Looped(LinearAttentionStack([linear("examples")]), 2),
    "all but the first": AfterFirst(linear("causal")),
    "stack": Stack([Residual(linear("causal")), linear("examples", 1)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LAYERS))
@pytest.mark.parametrize("tokens", [1, 2, 5])
def test_last_token(name, tokens):
    rng = np.random.default_rng(0)
    stream = rng.normal(size=(2, 3, tokens, 3))
    layer = LAYERS[name]
    whole = layer(stream)
    assert layer.last(stream).shape == (2, 3, 1, 3)
    # sums of a few products of order one, in two orders
    np.testing.assert_allclose(layer.last(stream), whole[..., -1:, :], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(layer.last(1j * stream[0]), layer(1j * stream[0])[..., -1:, :], atol=1e-12)


def test_one_token_has_no_examples_to_sum_over():
    assert not np.any(LAYERS["examples"].last(np.ones((1, 3))))
