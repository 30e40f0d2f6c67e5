"""Affine maps fitted by ridge regression, with the penalty that serves other tasks best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._metrics import squared

PENALTIES = 10.0 ** np.arange(-10, 3)
"""Penalties that are tried, in units of the variance of an entry."""

_CONSTANT = 1e-10  # relative deviation below which an entry is a constant: what is left of it is rounding


class Split(NamedTuple):
    """Tasks for three purposes; every task serves one of them, with all its numbers of examples.

    Attributes:
        training: half of them: the maps are fitted to these.
        validation: a quarter: these choose the penalty.
        held_out: the rest: the maps are judged by these.
    """

    training: np.ndarray
    validation: np.ndarray
    held_out: np.ndarray


class AffineMaps(NamedTuple):
    """Maps z ↦ z A + b of one stream, one for every group of targets.

    Attributes:
        weights: A, shape (groups, width, k).
        biases: b, shape (groups, k).
        penalties: that were chosen, shape (groups,).
    """

    weights: np.ndarray
    biases: np.ndarray
    penalties: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Streams (tasks, n, width) → (groups, tasks, n, k)."""
        return np.einsum("tnw,gwk->gtnk", features, self.weights) + self.biases[:, None, None]


def split_tasks(tasks: int, seed: int) -> Split:
    """A random split of the tasks."""
    order = np.random.default_rng(seed).permutation(tasks)
    return Split(*np.split(order, [tasks // 2, tasks // 2 + tasks // 4]))


def ridge_maps(features: np.ndarray, targets: np.ndarray, weights: np.ndarray, split: Split) -> AffineMaps:
    r"""For every group the map with the least $E|y - b - \tilde z B|^2 + \lambda \|B\|^2$ on the tasks for training.

    $\tilde z$ are the entries with mean 0 and variance 1 on these tasks, and $\lambda$ is that of `PENALTIES` with the least
    squared error on the tasks for validation. One eigendecomposition serves all penalties and all groups.

    Args:
        features: z, shape (tasks, n, width).
        targets: y, shape (groups, tasks, n, k).
        weights: of the n positions, of sum 1.
        split: the tasks for training and validation.
    """
    fitted, chosen = features[split.training], features[split.validation]
    rows = np.tile(weights, len(fitted)) / len(fitted)
    x = fitted.reshape(-1, fitted.shape[-1])
    y = targets[:, split.training].reshape(len(targets), -1, targets.shape[-1])
    mean, level = rows @ x, np.einsum("r,grk->gk", rows, y)
    scale = _deviations(x, mean, rows)
    root = np.sqrt(rows)[:, None]
    z = root * (x - mean) / scale
    values, vectors = np.linalg.eigh(z.conj().T @ z)
    values = np.maximum(values, 0)
    cross = np.einsum("ru,grk->guk", (z @ vectors).conj(), root * (y - level[:, None]))
    judged = (chosen - mean) / scale @ vectors
    wanted = targets[:, split.validation] - level[:, None, None]
    errors = np.stack(
        [
            _error(np.einsum("tnu,guk->gtnk", judged, cross / (values[:, None] + p)), wanted, weights)
            for p in PENALTIES
        ]
    )
    penalties = PENALTIES[np.argmin(errors, 0)]
    shrunk = cross / (values[:, None] + penalties[:, None, None])
    found = np.einsum("wu,guk->gwk", vectors, shrunk) / scale[:, None]
    return AffineMaps(found, level - np.einsum("w,gwk->gk", mean, found), penalties)


def _deviations(x: np.ndarray, mean: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Standard deviations of the entries; infinite for constants, which so become 0."""
    size, deviation = (np.sqrt(rows @ np.abs(a) ** 2) for a in (x, x - mean))
    return np.where(deviation > _CONSTANT * size, deviation, np.inf)


def _error(found: np.ndarray, wanted: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean squared errors of the groups."""
    return (squared(found - wanted) @ weights).mean(-1)
