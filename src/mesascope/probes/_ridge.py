"""Affine maps fitted by ridge regression, with the penalty that serves other tasks best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
        found = _rows(features) @ _columns(self.weights) + self.biases.reshape(-1)
        return np.moveaxis(found.reshape(*features.shape[:-1], *self.biases.shape), -2, 0)


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
    features = features.astype(np.result_type(features, np.float64))
    groups, k = len(targets), targets.shape[-1]
    rows = np.tile(weights, len(split.training)) / len(split.training)
    x, y = _rows(features[split.training]), _columns(targets[:, split.training])
    mean, level = rows @ x, rows @ y
    scale = _deviations(x, mean, rows)
    root = np.sqrt(rows)[:, None]
    z = root * (x - mean) / scale
    values, vectors = np.linalg.eigh(z.conj().T @ z)
    values = np.maximum(values, 0)[:, None]
    cross = (z @ vectors).conj().T @ (root * (y - level))  # (width, groups · k)
    judged = (_rows(features[split.validation]) - mean) / scale @ vectors
    wanted = _columns(targets[:, split.validation]) - level
    over = np.tile(weights, len(split.validation))
    errors = [over @ np.abs(judged @ (cross / (values + p)) - wanted) ** 2 for p in PENALTIES]
    penalties = PENALTIES[np.argmin(np.reshape(errors, (-1, groups, k)).sum(-1), 0)]
    found = vectors @ (cross / (values + np.repeat(penalties, k))) / scale[:, None]
    maps = found.reshape(-1, groups, k).swapaxes(0, 1)
    return AffineMaps(maps, (level - mean @ found).reshape(groups, k), penalties)


def _rows(features: np.ndarray) -> np.ndarray:
    """Tasks and positions as one axis: (…, width) → (rows, width)."""
    return features.reshape(-1, features.shape[-1])


def _columns(targets: np.ndarray) -> np.ndarray:
    """Groups and their entries as one axis: (groups, …, k) → (rows, groups · k)."""
    return np.moveaxis(targets, 0, -2).reshape(-1, len(targets) * targets.shape[-1])


def _deviations(x: np.ndarray, mean: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Standard deviations of the entries; infinite for constants, which so become 0."""
    size, deviation = (np.sqrt(rows @ np.abs(a) ** 2) for a in (x, x - mean))
    return np.where(deviation > _CONSTANT * size, deviation, np.inf)
