"""One layer of linear attention, trained as the authors train it."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.models import (
    FactoredLinearSelfAttention,
    FirstBlock,
    LinearAttentionStack,
    PairedTokens,
    SequenceModel,
)
from mesascope.processes import NextToken, OrthogonalAR

from .._recorded import recorded_models
from .._runs import Seeds, seeds_of
from .._shared import shared
from .._still_falling import halves
from ._common import LAWS, Sequences, drawn

if TYPE_CHECKING:
    import optax

SUM, MEAN = "1", "t-1"
"""The paper's attention, a sum over tokens, and zheng2024's, which divides it by their number less one."""


class FromRest(OrthogonalAR):
    """Sequences with s_0 = 0 before them, so that the prediction of s_2 from s_1 alone counts, as in the paper."""

    def sample(self, key: Any, horizon: int, batch: int) -> Array:
        """0, s_1, …, s_{T−1}, shape (batch, T, d)."""
        tokens = super().sample(key, horizon - 1, batch)
        return jnp.concatenate([jnp.zeros_like(tokens[:, :1]), tokens], 1)


class Clipped(FirstBlock):
    """The first block with every entry between −4 and 4, as the authors clip the values behind a layer."""

    def __call__(self, stream: Array) -> Array:
        """Predictions (…, n, d) from a stream (…, n, width)."""
        return jnp.clip(super().__call__(stream), -4.0, 4.0)


class LayerData(Sequences):
    """As in the authors' program, with attention as a sum or a mean."""

    law: str = "uniform"
    dim: int = 10
    horizon: int = 51
    normalizer: str = SUM


class Drawn(LayerData):
    """How many sequences are drawn at once."""

    sequences: int = 1000


class LayerTraining(LayerData, Seeds):
    """The layer, and how it is trained."""

    heads: int = 2
    key_size: int = 20
    scale: float = 0.1
    rate: float = 0.003
    decay: float = 0
    schedule: str = "cosine"
    batch: int = 64
    steps: int = 600


def layer_data(settings: LayerData) -> tuple[OrthogonalAR, NextToken]:
    """Sequences of `horizon` tokens, and the mean of the losses of all predictions that the layer makes.

    Where attention is a sum these begin with that of s_2. The mean over t − 1 tokens needs two.
    """
    kind = FromRest if settings.normalizer == SUM else OrthogonalAR
    process = kind(LAWS[settings.law], settings.dim, noise=settings.noise)
    tokens = settings.horizon + (settings.normalizer == SUM)
    return process, NextToken(tokens, dict.fromkeys(range(2, tokens), 1 / (tokens - 2)))


def sequences(settings: Drawn, key: Any) -> Array:
    """Sequences of `layer_data`, as many as are drawn at once."""
    process, task = layer_data(settings)
    return drawn(process, key, task.horizon, settings.sequences)


def _start(settings: LayerTraining, key: Array) -> SequenceModel:
    """The authors' layer: heads with W_K, W_Q, W_V and P of their own."""
    dim, size = settings.dim, settings.key_size
    sizes: dict[str, Any] = {"key_size": size, "value_size": size, "normalizer": settings.normalizer}
    layer = FactoredLinearSelfAttention.gaussian(3 * dim, settings.heads, settings.scale, key=key, **sizes)
    return SequenceModel(PairedTokens(dim), LinearAttentionStack([layer]), Clipped(dim))


@cache  # equal optimizers share their compiled code
def _optimizer(rate: float, decay: float, cosine_over: int) -> optax.GradientTransformation:
    """The authors': entries of the gradient clipped at 1, then Adam with weight decay; or a rate that falls to 0."""
    import optax

    schedule: Any = rate
    if cosine_over:
        schedule = optax.warmup_cosine_decay_schedule(0.0, rate, cosine_over // 6, cosine_over)
    return optax.chain(optax.clip(1.0), optax.adamw(schedule, weight_decay=decay))


@shared(LayerTraining)
def trained_layers(settings: LayerTraining) -> dict[int, list[SequenceModel]]:
    """Half of the steps and all → one layer per seed."""
    cosine_over = settings.steps if settings.schedule == "cosine" else 0
    optimizer = _optimizer(settings.rate, settings.decay, cosine_over)
    rest: dict[str, Any] = {"optimizer": optimizer, "batch": settings.batch, "held_out": 2}
    seeds, recorded = seeds_of(settings), halves(settings.steps)
    return recorded_models(partial(_start, settings), *layer_data(settings), seeds, recorded, **rest)


def numbers_of(model: SequenceModel) -> tuple[float, float]:
    """What a layer weighs s_{i−1}·s_t and s_i·s_{t−1} with: mean diagonals of the blocks, summed over heads."""
    (layer,) = model.network.layers  # type: ignore[attr-defined]
    dim = model.readout.output_width
    now, before = slice(dim, 2 * dim), slice(2 * dim, 3 * dim)
    step = other = 0.0
    for k, q, p, v in zip(
        *(np.asarray(w, float) for w in (layer.w_k, layer.w_q, layer.w_p, layer.w_v)), strict=True
    ):
        kq, pv = k.T @ q, p @ v
        value = np.trace(pv[:dim, now]) / dim
        step += value * np.trace(kq[before, now]) / dim
        other += value * np.trace(kq[now, before]) / dim
    return float(step), float(other)


AUTHORS_TRAINING: dict[str, Any] = {
    "scale": 0.0002,
    "rate": 1e-4,
    "decay": 0.1,
    "schedule": "constant",
    "batch": 256,
    "steps": 5000,
}
