"""Prompt models of constructions, and losses of models on the same test prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.models import (
    Context,
    LastEntry,
    Layer,
    LinearAttentionStack,
    LinearSelfAttention,
    Normalizer,
    PromptModel,
    StackedPrompt,
)
from mesascope.objectives import Task, sample_losses, task_length
from mesascope.processes import FewShot
from mesascope.theory import Construction

GD_PLUS_PLUS = ((0, 0), (1, 0))
"""Couplings of diagonal heads for GD++: inputs write into inputs and labels, labels are not read."""

_AT_ONCE = 2000  # prompts whose streams are in memory at the same time


def construction_stack(
    construction: Construction, normalizer: Normalizer = "t-1", context: Context = "examples"
) -> LinearAttentionStack:
    """One layer, or several, with residual connections; by default sums run over the N examples, ρ = N.

    Args:
        construction: weights of one layer, or of several.
        normalizer: ρ, as for `LinearSelfAttention`.
        context: the tokens that sums run over, as for `LinearSelfAttention`.
    """
    w_kq, w_pv = (weights if weights.ndim == 4 else weights[None] for weights in construction)
    layers = zip(w_kq, w_pv, strict=True)
    return LinearAttentionStack(LinearSelfAttention(*layer, normalizer, context) for layer in layers)


def prompt_model(network: Layer, sign: float = -1) -> PromptModel:
    """A network on stacked prompts, whose answer is the last entry of the query's token times the sign."""
    return PromptModel(StackedPrompt(network.width - 1), network, LastEntry(sign))


def construction_model(construction: Construction, normalizer: Normalizer = "t-1") -> PromptModel:
    """The transformer of a construction: sums run over the N examples."""
    return prompt_model(construction_stack(construction, normalizer))


def layer_weights(model: PromptModel) -> Construction:
    """Merged weights of every layer of a transformer of linear attention, as float64."""
    layers = model.network.layers  # type: ignore[attr-defined]  # a LinearAttentionStack
    merged = ([getattr(layer, name) for layer in layers] for name in ("w_kq", "w_pv"))
    return Construction(*(np.asarray(jnp.stack(weights), float) for weights in merged))


def fresh_losses(
    models: Mapping[str, Any], process: Any, task: FewShot, count: int, seed: int
) -> dict[str, np.ndarray]:
    """½(ŷ − y)² of every model on the same `count` fresh prompts: name → shape (count,).

    Differences of models on the same prompts vary much less than their losses.
    """
    prompts = process.sample(named_key(seed, "test prompts"), task_length(task), count)
    return {name: np.asarray(batched_losses(model, prompts, task), float) for name, model in models.items()}


@eqx.filter_jit
def batched_losses(model: Any, samples: Any, task: Task) -> Array:
    """`sample_losses` of many prompts or sequences, as many at a time as fit into memory: shape (count,)."""

    def one(sample: Any) -> Array:
        return sample_losses(model, jax.tree.map(lambda a: a[None], sample), task)[0]

    return jax.lax.map(one, samples, batch_size=_AT_ONCE)
