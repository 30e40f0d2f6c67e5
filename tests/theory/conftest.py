import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.models import LastEntry, LinearAttentionStack, LinearSelfAttention, PromptModel, StackedPrompt
from mesascope.processes import LinearRegression


@pytest.fixture(scope="session")
def attention():
    """The layers of linear attention with the weights of a construction of several layers."""

    def build(construction, normalizer, context):
        layers = zip(*construction, strict=True)
        return LinearAttentionStack([LinearSelfAttention(*layer, normalizer, context) for layer in layers])

    return build


@pytest.fixture(scope="session")
def prompt_model(attention):
    """The transformer with the weights of a construction of several layers, with ρ = number of examples."""

    def build(construction):
        stack = attention(construction, "t-1", "examples")
        return PromptModel(StackedPrompt(stack.width - 1), stack, LastEntry(-1))

    return build


@pytest.fixture(scope="session")
def prompts():
    """Inputs (batch, N + 1, d) and labels of the examples (batch, N), noisy."""

    def draw(dim, examples, batch=4):
        key = named_key(0, "constructions", str(dim), str(examples))
        x, y = LinearRegression(dim, noise=0.5).sample(key, examples, batch)
        return np.asarray(x), np.asarray(y)[:, :-1]

    return draw
