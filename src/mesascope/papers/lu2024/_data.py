"""The data of lu2024, and the program that its claims are compared with."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mesascope.processes import FewShot, LinearRegression, TaskPool
from mesascope.theory import lu2024 as theory

PAPER = "lu2024"
PROGRAM = "Linear/Fig3_Mem_ICL_Transition_Task_Diversity/kapparuns"


def regression(dim: int, prior: str, noise_variance: float) -> LinearRegression:
    return LinearRegression(dim, covariance=np.eye(dim) / dim, prior=prior, noise=noise_variance**0.5)


def features_of(process: LinearRegression | TaskPool, examples: int) -> theory.Features:
    """The moments of the features of prompts with so many examples."""
    return theory.features(process, FewShot(examples))


@lru_cache(maxsize=512)  # those of the map are drawn once for all numbers of examples
def pool_on_the_sphere(dim: int, size: int, noise_variance: float, seed: int) -> TaskPool:
    """A pool of tasks of norm √d."""
    return TaskPool(regression(dim, "sphere", noise_variance), tasks=size, seed=seed)


def draw_prompts(
    tasks: np.ndarray, examples: int, noise_variance: float, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, features and targets of prompts, in a time that does not grow with the number of examples.

    The labels of a task are independent N(0, p), p = ‖w‖²/d + ρ. Given them Σ y_i x_i is normal with mean w Σ y_i²/(d p)
    and covariance (I − w wᵀ/(d p)) Σ y_i²/d.
    """
    dim = tasks.shape[1]
    w = tasks[rng.integers(len(tasks), size=count)]
    squares = (w**2).sum(1)
    power = squares / dim + noise_variance
    total = power * rng.chisquare(examples, count)
    normal = rng.normal(size=(count, dim))
    along = (normal * w).sum(1) / squares * (np.sqrt(1 - squares / (dim * power)) - 1)
    spread = np.sqrt(total / dim)[:, None] * (normal + along[:, None] * w)
    summed = w * (total / (dim * power))[:, None] + spread
    features = np.column_stack([dim / examples * summed, total / examples])
    x = rng.normal(size=(count, dim)) / dim**0.5
    return x, features, (x * w).sum(1) + noise_variance**0.5 * rng.normal(size=count)
