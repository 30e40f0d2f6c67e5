"""What the claims of raventos2023 share: pools, transformers trained on them, and their distances from both estimators."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.models import PromptModel, prompt_transformer
from mesascope.processes import FewShot, LinearRegression, TaskPool
from mesascope.theory import raventos2023 as theory

from .._claim import Settings
from .._recorded import Trainings, recorded_trainings
from .._runs import seeds_of
from .._shared import shared
from .._still_falling import fall

PAPER = "raventos2023"
PARTS = 8  # of a training, with models behind each of them

Measured = dict[str, dict[str, np.ndarray]]
"""Law of the tasks, "pool" or "new" → what is measured on prompts with such tasks → one number per seed, shape (seeds,).

"dmmse" and "ridge" are the distances Δ of the model from both estimators, "answers" is that of ridge from the answer 0.
"loss" is the normalized loss of the model, "loss of dmmse" and "loss of ridge" are those of the estimators on the same prompts.
"""


class Pools(Settings):
    """Prompts with tasks of pools of several sizes K."""

    dim: int = 2
    examples: int = 8
    noise: float = 0.5
    sizes: tuple[int, ...] = (2, 8, 32)
    pool_seed: int = 0


class Training(Pools, Trainings):
    """The transformers that are trained on them, five for every pool."""

    width: int = 32
    layers: int = 2
    heads: int = 4
    rate: float = 0.006
    batch: int = 16
    steps: int = 8000
    seed: int = 1


class Tested(Training):
    """On how many prompts models are compared with the estimators."""

    prompts: int = 2000


FULL: dict[str, Any] = {
    "dim": 4,
    "sizes": (2, 16, 64, 512),
    "layers": 3,
    "heads": 8,
    "steps": 16_000,
}
"""Sizes of the full preset, nearer to the paper's."""


def pool(settings: Pools, tasks: int) -> TaskPool:
    """The pool of so many tasks, the same for the models of all seeds."""
    return TaskPool(
        LinearRegression(settings.dim, noise=settings.noise), tasks=tasks, seed=settings.pool_seed
    )


def recorded(settings: Training) -> list[int]:
    """The numbers of steps after which there are models: eighths of the training."""
    return [settings.steps // PARTS * part for part in range(1, PARTS + 1)]


@shared(Training)
def trained(settings: Training, tasks: int) -> dict[int, list[PromptModel]]:
    """Steps → one transformer per seed, trained on a pool of so many tasks; every prediction counts."""
    sizes = (settings.dim, settings.width, settings.layers, settings.heads, settings.examples)
    return recorded_trainings(
        lambda key: prompt_transformer(*sizes, key=key),
        pool(settings, tasks),
        FewShot.every(settings.examples),
        recorded(settings),
        settings,
        warmup=settings.steps // 10,
        clip=1.0,
    )


@shared(Tested)
def measured(settings: Tested, tasks: int, part: int = PARTS) -> Measured:
    """Distances and losses of the models of all seeds after so many eighths of their training on a pool."""
    models = trained(settings, tasks)[recorded(settings)[part - 1]]
    table: dict[str, Any] = {}
    for law in ("pool", "new"):
        rows = [
            _on_prompts(model, settings, tasks, law, seed)
            for model, seed in zip(models, seeds_of(settings), strict=True)
        ]
        table[law] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return table


def fall_of(settings: Tested, tasks: int, law: str, name: str) -> float:
    """`fall` of something measured, from the middle of the training to its end."""
    return fall(*(measured(settings, tasks, part)[law][name] for part in (PARTS // 2, PARTS)))


def _on_prompts(model: Any, settings: Tested, tasks: int, law: str, seed: int) -> dict[str, float]:
    """Means over prompts with tasks of one law; each seed has prompts of its own, the same at all steps."""
    of_pool = pool(settings, tasks)
    process = of_pool if law == "pool" else of_pool.process
    prompts = process.sample(named_key(seed, f"{law} prompts"), settings.examples, settings.prompts)
    x, y = (np.asarray(part, float) for part in (prompts.x, prompts.y))
    variance, dim = settings.noise**2, settings.dim
    answers = np.array(_answers(model, x, y[:, :-1]), dtype=float)
    best = theory.ridge(x, y, variance)
    memory = theory.dmmse(of_pool.table, x, y, variance)
    pairs = {
        "dmmse": (answers, memory),
        "ridge": (answers, best),
        "answers": (np.zeros_like(best), best),
        "loss": (answers, y),
        "loss of dmmse": (memory, y),
        "loss of ridge": (best, y),
    }
    return {name: float(theory.distance(*pair, dim).mean()) for name, pair in pairs.items()}


@eqx.filter_jit
def _answers(model: Any, x: Any, y: Any) -> Array:
    found: Array = model.predictions(x, y)
    return found
