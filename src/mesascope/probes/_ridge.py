"""Affine maps fitted by ridge regression, with the best penalty on validation tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PENALTIES = 10.0 ** np.arange(-10, 3)
"""The penalties that are tried, in units of the variance of an entry."""

_CONSTANT = 1e-10  # relative deviation below which an entry is constant up to rounding


class Split(NamedTuple):
    """A partition of the tasks; every task is in one part with all its numbers of examples.

    Attributes:
        training: half of the tasks, to which the maps are fitted.
        validation: a quarter, which selects the penalty.
        held_out: the other tasks, on which the maps are scored.
    """

    training: np.ndarray
    validation: np.ndarray
    held_out: np.ndarray


class AffineMaps(NamedTuple):
    """Maps z ↦ z A + b of one stream, one for every group of targets.

    Attributes:
        weights: A, shape (groups, width, k).
        biases: b, shape (groups, k).
        penalties: the selected penalties, shape (groups,).
    """

    weights: np.ndarray
    biases: np.ndarray
    penalties: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Return the images of streams: (tasks, n, width) → (groups, tasks, n, k)."""
        found = _rows(features) @ _columns(self.weights) + self.biases.reshape(-1)
        return np.moveaxis(found.reshape(*features.shape[:-1], *self.biases.shape), -2, 0)


def split_tasks(tasks: int, seed: int) -> Split:
    """Return a random split of the tasks."""
    order = np.random.default_rng(seed).permutation(tasks)
    return Split(*np.split(order, [tasks // 2, tasks // 2 + tasks // 4]))


def ridge_maps(features: np.ndarray, targets: np.ndarray, weights: np.ndarray, split: Split) -> AffineMaps:
    r"""Return for every group the map that minimizes $E|y - b - \tilde z B|^2 + \lambda \|B\|^2$ on the training tasks.

    $\tilde z$ are the entries standardized on these tasks, and $\lambda$ is that of `PENALTIES` with the smallest squared
    error on the validation tasks. One eigendecomposition is used for all penalties and groups.

    Args:
        features: z, shape (tasks, n, width).
        targets: y, shape (groups, tasks, n, k).
        weights: weights of the n positions, with sum 1.
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
    scored = (_rows(features[split.validation]) - mean) / scale @ vectors
    wanted = _columns(targets[:, split.validation]) - level
    over = np.tile(weights, len(split.validation))
    errors = [over @ np.abs(scored @ (cross / (values + p)) - wanted) ** 2 for p in PENALTIES]
    penalties = PENALTIES[np.argmin(np.reshape(errors, (-1, groups, k)).sum(-1), 0)]
    found = vectors @ (cross / (values + np.repeat(penalties, k))) / scale[:, None]
    maps = found.reshape(-1, groups, k).swapaxes(0, 1)
    return AffineMaps(maps, (level - mean @ found).reshape(groups, k), penalties)


def _rows(features: np.ndarray) -> np.ndarray:
    """Return features with tasks and positions as one axis: (…, width) → (rows, width)."""
    return features.reshape(-1, features.shape[-1])


def _columns(targets: np.ndarray) -> np.ndarray:
    """Return targets with groups and their entries as one axis: (groups, …, k) → (rows, groups · k)."""
    return np.moveaxis(targets, 0, -2).reshape(-1, len(targets) * targets.shape[-1])


def _deviations(x: np.ndarray, mean: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return standard deviations of the entries, infinite for constants, which are thus mapped to 0."""
    size, deviation = (np.sqrt(rows @ np.abs(a) ** 2) for a in (x, x - mean))
    return np.where(deviation > _CONSTANT * size, deviation, np.inf)
