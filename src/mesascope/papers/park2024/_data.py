"""What the claims of park2024 share: pools of Markov chains, transformers trained on them, and the four strategies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from mesascope.core import named_key
from mesascope.models import SequenceModel
from mesascope.processes import MarkovChains, SymbolPool
from mesascope.theory import park2024 as theory

from .._claim import Settings
from .._pools import FIRST, SymbolTraining, predicted, trained_on
from .._shared import shared

PAPER = "park2024"
FULL: dict[str, Any] = {"horizon": 64, "width": 32, "sizes": (4, 32, 256), "steps": 5000}
"""Sizes of the full preset, nearer to the paper's."""


class Pools(Settings):
    """Pools of several sizes K, of Markov chains of S symbols, of which T are seen."""

    symbols: int = 3
    horizon: int = 24
    sizes: tuple[int, ...] = (2, 16, 128)
    pool_seed: int = 2


class Training(Pools, SymbolTraining):
    """The transformers that are trained on them, five for every pool."""

    width: int = 24
    layers: int = 2
    heads: int = 2
    rate: float = 0.01
    batch: int = 32
    steps: int = 1500
    per_decade: int = 6
    seed: int = 20


class Tested(Training):
    """On how many sequences models are compared with the strategies."""

    sequences: int = 500


class Course(NamedTuple):
    """Models of one pool along their training, compared with the strategies on sequences of one law.

    A distance is the mean square of what predicted probabilities differ by, divided by the mean square of what those of the
    model differ from 1/S by.

    Attributes:
        steps: the checkpoints, shape (n,).
        distances: of every strategy, shape (seeds, n, strategies).
        weights: of the nearest convex mixture of all, shape (seeds, n, strategies).
        left: the distance of this mixture, shape (seeds, n).
    """

    steps: np.ndarray
    distances: np.ndarray
    weights: np.ndarray
    left: np.ndarray


def pool(settings: Pools, tasks: int) -> SymbolPool:
    """The pool of so many chains, the same for the models of all seeds."""
    return SymbolPool(MarkovChains(settings.symbols), tasks=tasks, seed=settings.pool_seed)


@shared(Training)
def trained(settings: Training, tasks: int) -> dict[int, list[SequenceModel]]:
    """Steps → one transformer per seed, trained on a pool of so many chains."""
    return trained_on(pool(settings, tasks), settings)


@shared(Tested)
def course(settings: Tested, tasks: int, law: str) -> Course:
    """The models of all seeds along their training on a pool, on sequences of one law, "pool" or "new"."""
    models, chains = trained(settings, tasks), pool(settings, tasks)
    process = chains if law == "pool" else chains.process
    key = named_key(settings.seed, f"{law} {tasks}")
    sequences = np.asarray(process.sample(key, settings.horizon, settings.sequences))
    answers = [
        theory.probabilities(name, sequences[:, :-1], chains.table)[:, FIRST - 1 :]
        for name in theory.STRATEGIES
    ]
    rows = [[_compared(predicted(model, sequences), answers) for model in models[step]] for step in models]
    found = np.swapaxes(np.array(rows), 0, 1)
    count = len(answers)
    return Course(np.array(list(models)), found[..., :count], found[..., count : 2 * count], found[..., -1])


def _compared(model: np.ndarray, answers: list[np.ndarray]) -> np.ndarray:
    """The distances of all strategies, the weights of the nearest convex mixture, and its distance."""
    flat = np.stack([one.ravel() for one in answers], 1)
    target, size = model.ravel(), float(((model - 1 / model.shape[-1]) ** 2).sum())
    # weights of sum 1: a row that weighs more than all others
    most = 1e3 * float(np.sqrt(len(target)))
    triangle, rest = np.linalg.qr(flat), target
    system = np.vstack([triangle.R, np.full((1, len(answers)), most)])
    weights, _ = scipy.optimize.nnls(system, np.append(triangle.Q.T @ rest, most))
    off = [((one - target) ** 2).sum() for one in (*flat.T, flat @ weights)]
    return np.array([*np.array(off[:-1]) / size, *weights, off[-1] / size])
