"""The paper's layer, a sum over the examples, with random weights; and the gradient step of a layer's weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import Array

from mesascope.models import LinearSelfAttention, PromptModel
from mesascope.theory import Construction

from .._prompts import construction_model

PAPER = "mahankali2024"


def random_layer(dim: int, scale: float, key: Array) -> PromptModel:
    """Every entry of W^KQ and W^PV independent N(0, scale²)."""
    drawn = LinearSelfAttention.gaussian(dim + 1, 1, scale, key=key)
    return construction_model(Construction(np.asarray(drawn.w_kq), np.asarray(drawn.w_pv)), "1")


def step_of(model: PromptModel) -> tuple[np.ndarray, float]:
    """P of ŷ = x_qᵀ P Σ y_i x_i, and the relative size of all other weights that reach the prediction.

    With u the last row of W^PV and m the last row of W^KQ the rest are the terms of the parts of u on inputs and of m.
    """
    layer: Any = model.network.layers[0]  # type: ignore[attr-defined]  # a LinearAttentionStack
    w_kq, w_pv = np.asarray(layer.w_kq[0], float), np.asarray(layer.w_pv[0], float)
    u, m = w_pv[-1], w_kq[:, :-1]
    made = -u[-1] * m[:-1].T
    others = max(np.abs(u[:-1]).max() / np.abs(u).max(), np.abs(m[-1]).max() / np.abs(m).max())
    return made, float(others)
