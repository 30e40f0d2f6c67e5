"""Which learners are the same, as fitted to a model: on their data, or because one is a special case of the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mesascope.learners import Fitting, Learner

from ._identification import plain_hyperparameters
from ._separation import Differences


def grouped(
    differences: Differences,
    determined: Sequence[bool],
    kinds: Sequence[Fitting],
    tolerance: float,
    special: Sequence[int | None],
) -> dict[int, list[int]]:
    """Return every candidate in the group of the first with which it coincides; the candidates are sorted by simplicity.

    A candidate that was fitted as its special case is in the group of that: it adds nothing.

    Candidates that the data do not determine are in groups of their own, since equality of the fits is accidental.
    """
    groups: dict[int, list[int]] = {}
    for place, is_determined in enumerate(determined):
        same = (
            first
            for first in groups
            if special[place] in (first, *groups[first])
            or (may_be_same(kinds[first], kinds[place]) and differences.coincide(first, place, tolerance))
        )
        first = next(same, None) if is_determined else None
        if first is None:
            groups[place] = []
        else:
            groups[first].append(place)
    return groups


def special_case(learner: Learner) -> str | None:
    """Return the id of the special case that a learner is with its hyperparameters, such as ridge regression."""
    extends = type(learner).fitting.extends
    values = learner.hyperparameters
    if extends is None or not extends[1]:  # nothing fixed: it has more numbers than its special case
        return None
    is_special = all(np.all(np.asarray(values[name]) == value) for name, value in extends[1])
    return extends[0] if is_special else None


def fitted_numbers(learner: Learner) -> int:
    """Return how many real numbers were fitted: of equivalent learners the one with the fewest is the simplest."""
    values = plain_hyperparameters(learner).values()
    return sum(np.size(value) for value in values if not isinstance(value, int))


def may_be_same(one: Fitting, other: Fitting) -> bool:
    """Return whether equal answers make two learners the same: not if one has the tasks of a pool only, the other none of them.

    Where a pool is so large that these agree, it does not tell which of the two a model does.
    """
    return not any(a.memorizes and not b.of_process for a, b in ((one, other), (other, one)))
