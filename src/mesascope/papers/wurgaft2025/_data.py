"""What the claims of wurgaft2025 share: pools of urns, transformers trained on them, and their weights of both strategies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mesascope.core import named_key
from mesascope.models import SequenceModel
from mesascope.processes import SymbolPool, Urns
from mesascope.theory import wurgaft2025 as theory

from .._claim import Settings
from .._pools import FIRST, SymbolTraining, predicted, trained_on
from .._shared import shared

PAPER = "wurgaft2025"


class Pools(Settings):
    """Pools of several sizes K, of urns with S symbols, of which T are drawn."""

    symbols: int = 8
    horizon: int = 24
    sizes: tuple[int, ...] = (4, 8, 16, 32, 64)
    pool_seed: int = 3


class Training(Pools, SymbolTraining):
    """The transformers that are trained on them, five for every pool."""

    width: int = 32
    layers: int = 1
    heads: int = 1
    rate: float = 0.01
    batch: int = 32
    steps: int = 1000
    per_decade: int = 8
    seed: int = 30


class Tested(Training):
    """On how many sequences models are compared with the strategies."""

    sequences: int = 1000


class Course(NamedTuple):
    """Models of one pool along their training, compared with both strategies on new sequences of the pool.

    Distances are mean squares of differences of probabilities over that between both strategies.

    Attributes:
        steps: the checkpoints, shape (n,).
        weights: of memorizing in the nearest mixture, 1 minus that of generalizing; not confined to 0 … 1; shape (seeds, n).
        left: the distance of this mixture from the model, shape (seeds, n).
        apart: the mean square that distances are divided by.
        loss_gap: what generalizing loses more than memorizing in one prediction, in nats.
        counted: the place of the first checkpoint that counts, for each seed, shape (seeds,): there the mixture has come near.
    """

    steps: np.ndarray
    weights: np.ndarray
    left: np.ndarray
    apart: float
    loss_gap: float
    counted: np.ndarray


FULL: dict[str, Any] = {"horizon": 64, "sizes": (8, 16, 32, 64, 128), "steps": 5000}
"""Sizes of the full preset, nearer to the paper's."""
_NEAR = 0.2  # share of the range of what mixtures leave, as in `analysis_utils.py:499-557` of the authors' program


def pool(settings: Pools, tasks: int) -> SymbolPool:
    """The pool of so many urns, the same for the models of all seeds."""
    return SymbolPool(Urns(settings.symbols), tasks=tasks, seed=settings.pool_seed)


@shared(Training)
def trained(settings: Training, tasks: int) -> dict[int, list[SequenceModel]]:
    """Steps → one transformer per seed, trained on a pool of so many urns."""
    return trained_on(pool(settings, tasks), settings)


@shared(Tested)
def course(settings: Tested, tasks: int) -> Course:
    """The models of all seeds along their training on a pool of so many urns."""
    models, urns = trained(settings, tasks), pool(settings, tasks)
    drawn = urns.sample(named_key(settings.seed, f"sequences {tasks}"), settings.horizon, settings.sequences)
    sequences = np.asarray(drawn)
    counts = np.cumsum(np.eye(settings.symbols)[sequences], 1)[:, FIRST - 1 : -1]
    memorizing = theory.memorizing(urns.table, counts)
    generalizing = theory.generalizing(counts)
    between = memorizing - generalizing
    apart = _square(between)
    rows = [
        [_parts(predicted(model, sequences) - generalizing, between, apart) for model in models[step]]
        for step in models
    ]
    weights, left = np.moveaxis(np.array(rows), 1, 0).transpose(2, 0, 1)
    # under the posterior of the pool, which is the law of the next symbol: less noise than with the symbols drawn
    gap = float(np.mean((memorizing * np.log(memorizing / generalizing)).sum(-1)))
    return Course(np.array(list(models)), weights, left, apart, gap, np.array([_near(one) for one in left]))


def first_counted(courses: Iterable[Course]) -> np.ndarray:
    """The place of the first checkpoint that counts on all pools, for each seed, shape (seeds,)."""
    return np.max([one.counted for one in courses], 0)


def _near(left: np.ndarray) -> int:
    """The first checkpoint at which a mixture leaves less than a fifth of the range above the least."""
    return int(np.flatnonzero(left <= left.min() + _NEAR * (left.max() - left.min()))[0])


def _parts(model: np.ndarray, between: np.ndarray, apart: float) -> tuple[float, float]:
    """The weight of memorizing in the nearest mixture, and what the mixture leaves, from differences to generalizing."""
    weight = float(np.mean((model * between).sum(-1))) / apart
    return weight, _square(model - weight * between) / apart


def _square(differences: np.ndarray) -> float:
    return float(np.mean((differences**2).sum(-1)))
