"""The data of lu2024, and the program that its claims are compared with."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mesascope.processes import LinearRegression, TaskPool
from mesascope.theory import lu2024 as theory

PAPER = "lu2024"
PROGRAM = "Linear/Fig3_Mem_ICL_Transition_Task_Diversity/kapparuns"


def regression(dim: int, prior: str, noise_variance: float) -> LinearRegression:
    return LinearRegression(dim, covariance=np.eye(dim) / dim, prior=prior, noise=noise_variance**0.5)


def features_of(
    process: LinearRegression | TaskPool, examples: int, noise_variance: float
) -> theory.Features:
    return theory.features(_moments(process), examples, noise_variance)


@lru_cache(maxsize=2048)
def _moments(process: LinearRegression | TaskPool) -> np.ndarray:
    return process.weight_moments(np.eye(process.dim) / process.dim)


def pool_on_the_sphere(dim: int, size: int, noise_variance: float, seed: int) -> TaskPool:
    """A pool of tasks of norm √d."""
    return TaskPool(regression(dim, "sphere", noise_variance), tasks=size, seed=seed)
