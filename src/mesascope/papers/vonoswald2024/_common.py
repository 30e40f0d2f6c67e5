"""What the claims of vonoswald2024 share: sequences, trainings on them, and losses by context length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.models import SequenceModel
from mesascope.processes import Gaussian, NextToken, OrthogonalAR, Rademacher, Uniform

from .._claim import Settings
from .._recorded import Trainings, recorded_trainings
from .._runs import Seeds, seeds_of
from .._still_falling import fall, halves

PAPER = "vonoswald2024"
LAWS = {"gaussian": Gaussian(1.0), "rademacher": Rademacher(1.0), "uniform": Uniform(1.0)}
"""Of the first token: the text's, one for which all sequences are of one size, and the authors' program's."""
_AT_ONCE = 1000  # sequences whose streams are in memory at the same time


class Sequences(Settings):
    """Sequences of the paper: the law of the first token, their sizes, and the noise of transitions."""

    law: str = "rademacher"
    dim: int = 4
    horizon: int = 20
    noise: float = 0.01


class Tested(Sequences, Seeds):
    """On how many sequences the models of all seeds are compared."""

    sequences: int = 4000


def data(settings: Sequences) -> tuple[OrthogonalAR, NextToken]:
    """Sequences s_{t+1} = W s_t + ε with W orthogonal, drawn for every sequence."""
    process = OrthogonalAR(LAWS[settings.law], settings.dim, noise=settings.noise)
    return process, NextToken(settings.horizon)


def fresh_sequences(settings: Tested, seed: int) -> Array:
    """Test sequences, shape (sequences, T, d)."""
    process, task = data(settings)
    return drawn(process, named_key(seed, "test sequences"), task.horizon, settings.sequences)


class Training(Sequences, Trainings):
    """How networks are trained."""

    rate: float = 0.01
    batch: int = 64
    steps: int = 600


PAPER_SIZES: dict[str, Any] = {"dim": 10, "horizon": 50, "batch": 256, "steps": 20_000, "rate": 0.003}


def trained(make: Callable[[Array], SequenceModel], settings: Training) -> dict[int, list[SequenceModel]]:
    """Half of the steps and all → one model per seed."""
    process, task = data(settings)
    return recorded_trainings(make, process, task, halves(settings.steps), settings, warmup=100, clip=1.0)


@eqx.filter_jit
def drawn(process: OrthogonalAR, key: Array, horizon: int, sequences: int) -> Array:
    """What `process.sample` gives; its loop is compiled once, and not with every call."""
    return process.sample(key, horizon, sequences)


def few_shot_sequence(x: Any, y: Any, end: Any | None) -> Array:
    """x_1, y_1, …, x_m, y_m, x, with an end token after every label unless it is None.

    Args:
        x: inputs with the query, shape (…, m + 1, d).
        y: labels of the examples, shape (…, m, d).
        end: shape (d,).

    Returns:
        Shape (…, 2m + 1, d), or (…, 3m + 1, d).
    """
    each = [x[..., :-1, :], y]
    if end is not None:
        each.append(jnp.broadcast_to(end, y.shape))
    m, d = y.shape[-2:]
    examples = jnp.stack(each, -2).reshape(*y.shape[:-2], len(each) * m, d)
    return jnp.concatenate([examples, x[..., -1:, :]], -2)


run_layers = eqx.filter_jit(lambda network, tokens: network(tokens))
"""The stream behind all layers, from tokens (…, n, width)."""


def errors_by_length(model: Any, tokens: Array) -> np.ndarray:
    """‖ŷ_t − s_{t+1}‖²/d of every sequence for t = 2 … T − 1, shape (sequences, T − 2)."""
    return np.asarray(_errors(model, tokens), float)


def errors_of_seeds(models: Sequence[SequenceModel], settings: Tested) -> np.ndarray:
    """Mean of `errors_by_length` of every seed's model on sequences of its own, shape (seeds, T − 2)."""
    pairs = zip(models, seeds_of(settings), strict=True)
    return np.array(
        [errors_by_length(model, fresh_sequences(settings, seed)).mean(0) for model, seed in pairs]
    )


def fall_of_errors(recorded: dict[int, list[SequenceModel]], settings: Tested) -> float:
    """`fall` of the mean squared error of models half way and at the end, seed by seed on the same sequences."""
    return fall(*(errors_of_seeds(models, settings) for models in recorded.values()))


@eqx.filter_jit
def _errors(model: Any, tokens: Array) -> Array:
    def one(sequence: Array) -> Array:
        missed = model.predictions(sequence[None, :-1])[0] - sequence[2:]
        return (missed**2).mean(-1)

    return jax.lax.map(one, tokens, batch_size=_AT_ONCE)
