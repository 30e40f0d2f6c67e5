"""Prompts, features and attention of kim2024 as a model of this library."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from jax import Array

from mesascope.models import MLP, Embedding, LastEntry, LinearAttentionStack, PromptModel, StackedPrompt
from mesascope.theory import Construction

from .._prompts import construction_stack

PAPER = "kim2024"


class FeaturePrompt(Embedding):
    """One token per pair: the features of the input beside its label.

    Attributes:
        features: h, from inputs (…, d) to features (…, m).
    """

    features: MLP

    @property
    def width(self) -> int:
        """Entries of a token: m + 1."""
        return self.features.output_width + 1

    @property
    def layout(self) -> Literal["stacked"]:
        """One token of the stream per pair."""
        return "stacked"

    def __call__(self, x: Any, y: Any) -> Array:
        """Inputs (…, N + 1, d) and labels (…, N) → (…, N + 1, m + 1)."""
        return StackedPrompt(self.features.output_width)(self.features(x), y)


def attention_layer(attention: Any) -> LinearAttentionStack:
    """The layer that adds −(1/N) Σ y_i h_iᵀ W h_j to every label."""
    size = len(attention)
    w_kq, w_pv = np.zeros((2, 1, size + 1, size + 1))
    w_kq[0, :size, :size], w_pv[0, size, size] = attention, -1.0
    return construction_stack(Construction(w_kq, w_pv))


def feature_model(features: MLP, attention: Any) -> PromptModel:
    """ŷ = (1/N) Σ y_i h(x_i)ᵀ W h(x_q)."""
    return PromptModel(FeaturePrompt(features), attention_layer(attention), LastEntry(-1))
