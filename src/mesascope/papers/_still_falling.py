"""Trainings that had not converged: a loss that is too high refutes nothing while it still falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mesascope.records import Decision

from ._claim import all_of
from ._intervals import above, below

LARGEST_FALL = 0.1
"""Largest share of the loss that the second half of a training may take off where the rest refutes a claim."""


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
    """The decision on trained models, but undecided where a loss that still fell by more than a tenth would refute.

    It is for parts of claims that more training can only support. A loss below what is claimed refutes in any case:
    it falls further away.

    Args:
        decision: by the models at the end.
        share: `fall` of their loss; one that is not a number excuses nothing.
    """
    return "undecided" if decision == "not met" and share > LARGEST_FALL else decision


def loss_between(interval: Sequence[float], least: float, most: float, share: float) -> Decision:
    """Whether the loss of trained models lies in [least, most], where one that is too high and still falls decides nothing.

    Args:
        interval: of the loss at the end.
        least: as for `between`.
        most: as for `between`.
        share: as for `unless_falling`.
    """
    return all_of(above(interval, least), unless_falling(below(interval, most), share))
