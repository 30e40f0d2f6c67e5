"""Trainings that had not converged: a claim that is not met by a loss that still falls is undecided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mesascope.records import Decision

from ._claim import all_of
from ._intervals import above, below

LARGEST_FALL = 0.1
"""If the loss fell by more than this share in the second half of a training, a claim that is not met is undecided."""


def halves(steps: int) -> list[int]:
    """The numbers of steps of the middle and of the end of a training, as `recorded_models` takes them."""
    return [steps // 2, steps]


def fall(middle: Any, end: Any) -> float:
    """1 − E L_end/E L_middle: the share of the loss that the second half of the training took off.

    Where the rate falls during training, part of it is the rate's: the share is rather too large.

    Args:
        middle: losses of the models half way, one per seed, above the least that is possible where that is known.
        end: those at the end.
    """
    return 1 - float(np.mean(end)) / float(np.mean(middle))


def unless_falling(decision: Decision, share: float) -> Decision:
    """The decision on trained models, but undecided if it is not met and the loss still fell by more than a tenth.

    Only for parts of claims that more training can only support; a loss below what is claimed is not met in any case,
    since it falls further away.

    Args:
        decision: by the models at the end.
        share: `fall` of their loss; NaN changes nothing.
    """
    return "undecided" if decision == "not met" and share > LARGEST_FALL else decision


def loss_between(interval: Sequence[float], least: float, most: float, share: float) -> Decision:
    """Whether the loss of trained models lies in [least, most]; undecided if it is too high and still falls.

    Args:
        interval: of the loss at the end.
        least: as for `between`.
        most: as for `between`.
        share: as for `unless_falling`.
    """
    return all_of(above(interval, least), unless_falling(below(interval, most), share))
