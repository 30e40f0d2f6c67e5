"""The trained layers of the claims, each trained once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jax import Array

from mesascope.models import SequenceModel, linear_transformer, mesa_transformer

from .._recorded import Trainings, recorded_trainings
from .._runs import seeds_of
from .._shared import shared
from .._still_falling import fall, halves
from ._common import Sequences, Tested, data, errors_by_length, fresh_sequences


class Training(Sequences, Trainings):
    """How networks are trained."""

    rate: float = 0.01
    batch: int = 64
    steps: int = 600


class LinearTraining(Training):
    """The size of the weights at which linear attention starts."""

    scale: float = 0.05


class Trained(LinearTraining, Tested):
    """Trained networks, and how these are compared."""


PAPER_SIZES: dict[str, Any] = {"dim": 10, "horizon": 50, "batch": 256, "steps": 20_000, "rate": 0.003}


def linear_layers(settings: LinearTraining, layers: int) -> list[SequenceModel]:
    """One trained stack of this many layers of linear attention per seed."""
    return _linear(settings, layers)[settings.steps]


def mesa_layers(settings: Training) -> list[SequenceModel]:
    """One trained mesa layer per seed; λ starts at 1 and is trained as well."""
    return _mesa(settings)[settings.steps]


def fall_of_linear_layers(settings: Trained, layers: int) -> float:
    """The share of their mean squared error that the second half of the training took off."""
    return fall_of_errors(_linear(settings, layers), settings)


def fall_of_mesa_layers(settings: Trained) -> float:
    """The share of their mean squared error that the second half of the training took off."""
    return fall_of_errors(_mesa(settings), settings)


def fall_of_errors(recorded: dict[int, list[SequenceModel]], settings: Tested) -> float:
    """`fall` of the mean squared error of models half way and at the end, seed by seed on the same sequences."""
    middle, end = (
        [
            errors_by_length(model, fresh_sequences(settings, seed)).mean()
            for model, seed in zip(models, seeds_of(settings), strict=True)
        ]
        for models in recorded.values()
    )
    return fall(middle, end)


@shared(LinearTraining)
def _linear(settings: LinearTraining, layers: int) -> dict[int, list[SequenceModel]]:
    return _trained(partial(_linear_start, settings, layers), settings)


def _linear_start(settings: LinearTraining, layers: int, key: Array) -> SequenceModel:
    return linear_transformer(settings.dim, layers, scale=settings.scale, key=key)


@shared(Training)
def _mesa(settings: Training) -> dict[int, list[SequenceModel]]:
    return _trained(partial(_mesa_start, settings.dim), settings)


def _mesa_start(dim: int, key: Array) -> SequenceModel:
    return mesa_transformer(dim, 1, key=key, key_size=dim, value_size=dim)


def _trained(make: Callable[[Array], SequenceModel], settings: Training) -> dict[int, list[SequenceModel]]:
    """Half of the steps and all → one model per seed."""
    process, task = data(settings)
    return recorded_trainings(make, process, task, halves(settings.steps), settings, warmup=100, clip=1.0)
