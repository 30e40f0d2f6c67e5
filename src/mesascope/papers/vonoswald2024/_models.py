"""The trained layers of the claims, each trained once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jax import Array

from mesascope.dynamics import Optimizer
from mesascope.models import SequenceModel, linear_transformer, mesa_transformer

from .._claim import OldSettings
from .._recorded import recorded_models
from .._runs import seeds_of_old
from .._shared import shared_by_name
from .._still_falling import fall, halves
from ._common import data, errors_by_length, fresh_sequences

TRAINING: dict[str, Any] = {
    "law": "rademacher",
    "dim": 4,
    "horizon": 20,
    "noise": 0.01,
    "scale": 0.05,
    "rate": 0.01,
    "batch": 64,
    "steps": 600,
    "seed": 0,
    "seeds": 5,
    "sequences": 4000,
}
PAPER_SIZES: dict[str, Any] = {
    "dim": 10,
    "horizon": 50,
    "batch": 256,
    "steps": 20_000,
    "rate": 0.003,
}
_NAMES = ("law", "dim", "horizon", "noise", "rate", "batch", "steps", "seed", "seeds")


def linear_layers(settings: OldSettings, layers: int) -> list[SequenceModel]:
    """One trained stack of this many layers of linear attention per seed."""
    return _linear({**settings, "layers": layers})[settings["steps"]]


def mesa_layers(settings: OldSettings) -> list[SequenceModel]:
    """One trained mesa layer per seed; λ starts at 1 and is trained as well."""
    return _mesa(settings)[settings["steps"]]


def fall_of_linear_layers(settings: OldSettings, layers: int) -> float:
    """The share of their mean squared error that the second half of the training took off."""
    return fall_of_errors(_linear({**settings, "layers": layers}), settings)


def fall_of_mesa_layers(settings: OldSettings) -> float:
    """The share of their mean squared error that the second half of the training took off."""
    return fall_of_errors(_mesa(settings), settings)


def fall_of_errors(recorded: dict[int, list[SequenceModel]], settings: OldSettings) -> float:
    """`fall` of the mean squared error of models half way and at the end, seed by seed on the same sequences."""
    middle, end = (
        [
            errors_by_length(model, fresh_sequences(settings, seed)).mean()
            for model, seed in zip(models, seeds_of_old(settings), strict=True)
        ]
        for models in recorded.values()
    )
    return fall(middle, end)


@shared_by_name(*_NAMES, "scale", "layers")
def _linear(settings: OldSettings) -> dict[int, list[SequenceModel]]:
    return _trained(partial(_linear_start, settings), settings)


def _linear_start(settings: OldSettings, key: Array) -> SequenceModel:
    return linear_transformer(settings["dim"], settings["layers"], scale=settings["scale"], key=key)


@shared_by_name(*_NAMES)
def _mesa(settings: OldSettings) -> dict[int, list[SequenceModel]]:
    return _trained(partial(_mesa_start, settings["dim"]), settings)


def _mesa_start(dim: int, key: Array) -> SequenceModel:
    return mesa_transformer(dim, 1, key=key, key_size=dim, value_size=dim)


def _trained(make: Callable[[Array], SequenceModel], settings: OldSettings) -> dict[int, list[SequenceModel]]:
    """Half of the steps and all → one model per seed."""
    process, task = data(settings)
    return recorded_models(
        make,
        process,
        task,
        seeds_of_old(settings),
        halves(settings["steps"]),
        optimizer=Optimizer("adam", settings["rate"], "cosine", warmup=100, clip=1.0),
        batch=settings["batch"],
        held_out=2,
    )
