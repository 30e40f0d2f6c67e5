"""Memorizing and learning in context: the best key-query matrix of linear attention for pools of few and of many tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.processes import FewShot, LinearRegression, TaskPool
from mesascope.theory import lu2024

from ._jobs import Report

DIM, EXAMPLES, NOISE = 10, 20, 0.5  # x ~ N(0, I/d), tasks on the sphere |w|² = d, noise of the labels
_POOLS, _TASKS = 8, 256  # pools that are averaged over, and their tasks


def pools(progress: Report) -> dict[str, Any]:
    """Errors E(ŷ − y)² of the exact minimum for the first K tasks of a pool: on these tasks, and on new ones."""
    progress("the best layer for every pool")
    fresh = LinearRegression(DIM, covariance=np.eye(DIM) / DIM, prior="sphere", noise=NOISE)

    task = FewShot(EXAMPLES)
    new = lu2024.features(fresh, task)
    sizes = np.unique(np.round(2 ** np.arange(0, np.log2(_TASKS) + 0.1, 0.25)).astype(int))
    tables = [TaskPool(fresh, tasks=_TASKS, seed=seed).table for seed in range(_POOLS)]
    errors = np.empty((len(sizes), _POOLS, 2))
    for row, size in enumerate(sizes):
        for column, table in enumerate(tables):
            pool = lu2024.features(TaskPool(fresh, vectors=table[:size]), task)
            best = pool.minimum
            errors[row, column] = pool.error(best), new.error(best)
    on_pool, on_new = errors.mean(1).T
    return {
        "sizes": sizes,
        "pool": on_pool,
        "new": on_new,
        "zero": new.power,  # of the answer 0
        "pools": _POOLS,
    }
