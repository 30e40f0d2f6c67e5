import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.models import LastEntry, LinearAttentionStack, LinearSelfAttention, PromptModel, StackedPrompt
from mesascope.processes import LinearRegression


@pytest.fixture(scope="session")
def prompt_model():
    """The transformer with the weights of a construction of several layers, with ρ = number of examples."""

    def build(construction):
        layers = [LinearSelfAttention(*layer, "t-1", "examples") for layer in zip(*construction, strict=True)]
        stack = LinearAttentionStack(layers)
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
