"""Five layers of linear attention beside five steps along gradients, the same steps for all prompts."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from mesascope.models import (
    AroundLayer,
    BatchLastLayer,
    LinearAttentionStack,
    PromptModel,
    prompt_linear_transformer,
)

from .._claim import Claim, Finding, presets
from .._intervals import below, mean_interval
from .._prompts import fresh_losses, prompt_model
from .._recorded import Trainings, recorded_trainings
from .._runs import seeds_of
from .._spectral_steps import best_polynomial_loss, spectra
from .._still_falling import fall, halves, unless_falling
from ._common import PAPER, Data, data


class _Clipped(AroundLayer, BatchLastLayer):
    """A layer after which every entry of the stream lies between ±limit: z ↦ clip(z + layer(z)) − z, beside a residual z."""

    layer: BatchLastLayer
    limit: float = eqx.field(static=True)

    def on_batch_last(self, stream: Array) -> Array:
        """Streams (n, width, batch) → the change of all tokens."""
        return jnp.clip(stream + self.layer.on_batch_last(stream), -self.limit, self.limit) - stream

    def last_on_batch_last(self, stream: Array) -> Array:
        """Streams (n, width, batch) → the change of the last token, (1, width, batch)."""
        last = stream[-1:]
        return jnp.clip(last + self.layer.last_on_batch_last(stream), -self.limit, self.limit) - last


class _FiveLayers(Data, Trainings):
    dim: int = 5
    layers: int = 5
    limit: float = 10.0
    rate: float = 0.02
    batch: int = 128
    steps: int = 3000
    seed: int = 40
    chosen_on: int = 20_000
    prompts: int = 10_000


def _start(settings: _FiveLayers, key: Array) -> PromptModel:
    drawn: Any = prompt_linear_transformer(settings.dim, settings.layers, key=key).network
    return prompt_model(LinearAttentionStack(_Clipped(layer, settings.limit) for layer in drawn.layers))


def _five_layers(settings: _FiveLayers) -> Finding:
    """Losses of trained layers over that of the best polynomial."""
    process, task = data(settings)
    variance = settings.half_width**2 / 3
    eigenvalues = spectra(process, settings.examples, settings.chosen_on, settings.seed)
    best = best_polynomial_loss(eigenvalues, settings.layers, variance)
    trained = recorded_trainings(
        partial(_start, settings),
        process,
        task,
        halves(settings.steps),
        settings,
        clip=0.1,
    )
    middle, end = (
        [
            float(fresh_losses({"model": model}, process, task, settings.prompts, seed)["model"].mean())
            / best
            for seed, model in zip(seeds_of(settings), models, strict=True)
        ]
        for models in trained.values()
    )
    (mean, interval), falling = mean_interval(end), fall(middle, end)
    return Finding(
        {"over_the_best_polynomial": mean},
        {"over_the_best_polynomial": "below 1"},
        None,
        unless_falling(below(interval, 1.0), falling),
        {
            "interval_95": interval,
            "each_seed": end,
            "loss_of_the_best_polynomial": best,
            "fallen_in_the_second_half": falling,
        },
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/five-layers",
        title="Five trained layers beat five fixed steps of gradient descent",
        evidence="measured, reduced",
        origin="paper",
        statement="""Five layers of linear attention, clipped at ±10 and trained, have a lower loss than five steps of gradient
            descent with the best sizes and momentum, the same for all prompts.""",
        source="""vonoswald2023, section 3, Figure 3(b) (five layers; authors' code, transformer.py:201-202 and
            constructed_token_setup.ipynb, cell 4: entries clipped at ±10); sizes and momentum of the rival's steps are ours""",
        settings=presets(_FiveLayers(), dim=10, rate=0.01, batch=2048, steps=50_000, prompts=100_000),
        check=_five_layers,
        criterion="""The 95 % interval over seeds of the loss on fresh prompts, divided by that of the rival, must lie below 1.
            Every method of five steps along gradients, the same for all prompts, leaves p(S) w of the weights w, with a
            polynomial p of degree at most 5 and p(0) = 1. The best of these is a least-squares problem: nothing is searched. It
            is solved on 20 000 prompts, and the loss on the same ones flatters the rival.""",
        history="""Tried before without clipped streams, with 1500 to 3000 steps, rates from 0.003 to 0.05, starts of 0.1 and
            0.3 and gradients clipped at 1, 0.1 and 0.01: of seeds 0 to 5, 20 to 24 and 30 to 34 some trainings diverged with
            every rate above 0.01, or had huge losses on few prompts. Three layers on three inputs with seeds 10 to 14 were near
            the rival. Clipped, the settings of this claim were looked at with seeds 2 to 5, 20 to 24 and 30 to 34: 0.18 to 0.73
            times the rival's loss. Its seeds, 40 to 44, were looked at with these settings under other words of the claim.""",
        cost="about 5 h",
        papers_setting="about 5 h",
    ),
)
