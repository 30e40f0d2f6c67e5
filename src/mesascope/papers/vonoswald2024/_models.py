"""The trained layers of the claims, each trained once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jax import Array

from mesascope.dynamics import Optimizer
from mesascope.models import SequenceModel, linear_transformer, mesa_transformer

from .._claim import Settings
from .._runs import seeds_of, trained_models
from .._shared import shared
from ._common import data

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
    "seeds": 3,
    "sequences": 4000,
}
PAPER_SIZES: dict[str, Any] = {
    "dim": 10,
    "horizon": 50,
    "batch": 256,
    "steps": 20_000,
    "rate": 0.003,
    "seeds": 5,
}
SCALE = (
    "sequences s_{t+1} = W s_t + ε, W orthogonal, ε of size 0.01, entries of s_1 ±1; quick: d = 4, T = 20, Adam, 600 steps "
    "of 64 sequences, three seeds; paper: d = 10, T = 50, 20000 steps of 256, five seeds"
)
_NAMES = ("law", "dim", "horizon", "noise", "rate", "batch", "steps", "seed", "seeds")


def linear_layers(settings: Settings, layers: int) -> list[SequenceModel]:
    """One trained stack of this many layers of linear attention per seed."""
    return _linear({**settings, "layers": layers})


@shared(*_NAMES, "scale", "layers")
def _linear(settings: Settings) -> list[SequenceModel]:
    return _trained(partial(_linear_start, settings), settings)


def _linear_start(settings: Settings, key: Array) -> SequenceModel:
    return linear_transformer(settings["dim"], settings["layers"], scale=settings["scale"], key=key)


@shared(*_NAMES)
def mesa_layers(settings: Settings) -> list[SequenceModel]:
    """One trained mesa layer per seed; λ starts at 1 and is trained as well."""
    return _trained(partial(_mesa_start, settings["dim"]), settings)


def _mesa_start(dim: int, key: Array) -> SequenceModel:
    return mesa_transformer(dim, 1, key=key, key_size=dim, value_size=dim)


def _trained(make: Callable[[Array], SequenceModel], settings: Settings) -> list[SequenceModel]:
    process, task = data(settings)
    return trained_models(
        make,
        process,
        task,
        seeds_of(settings),
        optimizer=Optimizer("adam", settings["rate"], "cosine", warmup=100, clip=1.0),
        steps=settings["steps"],
        batch=settings["batch"],
        held_out=2,
    )
