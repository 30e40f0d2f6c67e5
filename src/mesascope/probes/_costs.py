"""The losses of several sets of predictions, and their distances from a reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._intervals import Measured, bootstrapped, ratio
from ._metrics import squared
from ._problems import Problems


class Costs(NamedTuple):
    r"""Losses $\frac12 E\|f_i - y\|^2$ and distances $E\|f_i - f\|^2/E\|f\|^2$ from a reference $f$, shapes (r,)."""

    loss: Measured
    distance: Measured


def costs(found: np.ndarray, reference: np.ndarray, problems: Problems, level: float, seed: int) -> Costs:
    """Return losses and distances, pooled over the numbers of examples with their weights, with intervals over tasks.

    Args:
        found: predictions f_i, shape (r, batch, N + 1, m).
        reference: predictions f, shape (batch, N + 1, m).
        problems: the problems.
        level: confidence level of the intervals.
        seed: seed of the resampling of tasks.

    Raises:
        ValueError: predictions of another shape than the targets, or too few tasks for the level.
    """
    targets = np.asarray(problems.targets)
    if found.shape[1:] != targets.shape:
        raise ValueError(
            f"predictions: must have shape {targets.shape} like the targets of the problems, got {found.shape[1:]}; give the "
            "problems of these predictions"
        )
    off = np.concatenate([squared(found - targets), squared(found - reference), squared(reference)[None]])
    cuts = [len(found), 2 * len(found)]

    def statistic(means: np.ndarray) -> np.ndarray:
        losses, distances, size = np.split(means, cuts, -1)
        return np.concatenate([losses / 2, ratio(distances, size)], -1)

    return Costs(*bootstrapped((off @ problems.weights).T, statistic, level=level, seed=seed).split(2))
