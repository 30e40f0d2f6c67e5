"""One layer of linear attention, trained; the claims about it share the training."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.models import PromptModel, prompt_linear_transformer

from .._prompts import fresh_losses
from .._recorded import Trainings, recorded_trainings
from .._runs import seeds_of
from .._shared import shared
from .._still_falling import fall
from ._common import Data, best_loss, best_step, data


class Training(Data, Trainings):
    """One layer, trained; how often it is recorded."""

    rate: float = 0.03
    batch: int = 512
    recorded: tuple[int, ...] = (20, 40, 60, 100, 200, 500, 1000)


class TestedTraining(Training):
    """On how many prompts trained layers are compared with the step."""

    prompts: int = 20_000


PAPER_SIZES: dict[str, Any] = {
    "batch": 2048,
    "recorded": (50, 100, 150, 200, 500, 1000, 2500, 5000),
    "rate": 0.01,
    "seeds": 10,
    "prompts": 100_000,
}


@shared(Training)
def trained_layers(settings: Training) -> dict[int, list[PromptModel]]:
    """Number of training steps → one layer of linear attention per seed."""
    start = partial(_start, settings.dim)
    return recorded_trainings(start, *data(settings), settings.recorded, settings, clip=1.0)


def at_the_end(settings: Training) -> list[PromptModel]:
    """The layers at the end of their training."""
    return trained_layers(settings)[settings.recorded[-1]]


def half_way(settings: Training) -> list[PromptModel]:
    """The layers after half of their steps."""
    return trained_layers(settings)[settings.recorded[-1] // 2]


def fall_of_the_loss(settings: TestedTraining) -> float:
    """The share of the loss that the second half of the training took off."""
    middle, end = (
        [over + 1 for over in loss_above_the_step(models, settings)]
        for models in (half_way(settings), at_the_end(settings))
    )
    return fall(middle, end)


def _start(dim: int, key: Array) -> PromptModel:
    return prompt_linear_transformer(dim, 1, key=key)


def distances_from_the_step(models: list[PromptModel], settings: TestedTraining) -> list[float]:
    """E(ŷ − ŷ_step)² of the answers of every model, on prompts of its own."""
    process, _ = data(settings)
    step, found = best_step(settings), []
    for seed, model in zip(seeds_of(settings), models, strict=True):
        x, y = process.sample(named_key(seed, "test prompts"), settings.examples, settings.prompts)
        found.append(float(jnp.mean((model(x, y[:, :-1]) - step(x, y[:, :-1])) ** 2)))
    return found


def loss_above_the_step(models: list[PromptModel], settings: TestedTraining) -> list[float]:
    """(L(model) − L(step))/L* of every model on prompts of its own."""
    step, above = best_step(settings), []
    for seed, model in zip(seeds_of(settings), models, strict=True):
        found = fresh_losses({"model": model, "step": step}, *data(settings), settings.prompts, seed)
        above.append(float(np.mean(found["model"] - found["step"])) / best_loss(settings))
    return above
