"""The loss of given sequences, straight from the definition."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array


def sequence_losses(model: Any, tokens: Array, weights: Any) -> Array:
    """Σ_t w_t ½‖ŷ_t − x_{t+1}‖² of every sequence.

    Args:
        model: has `predictions(tokens (…, t, d)) → (…, t − 1, d)`, entry t − 2 predicting x_{t+1}.
        tokens: x_1 … x_T, shape (batch, T, d).
        weights: w_2 … w_{T−1}, shape (T − 2,).

    Returns:
        Shape (batch,), real.
    """
    errors = model.predictions(tokens[..., :-1, :]) - tokens[..., 2:, :]
    squared = jnp.sum(jnp.real(errors * errors.conj()), -1)
    return squared @ jnp.asarray(weights, squared.dtype) / 2
