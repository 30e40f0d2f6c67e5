"""Weights, layers and prompts that tests of refusals share."""

import jax
import numpy as np

from mesascope.models import LastEntry, LinearSelfAttention, PromptModel, StackedPrompt

KEY = jax.random.key(0)
W = np.ones((1, 3, 3))
LINEAR = LinearSelfAttention(W, W)
PROMPT = PromptModel(StackedPrompt(2), LINEAR, LastEntry())
X, Y = np.ones((4, 3, 2)), np.ones((4, 2))
