"""Methods of this package that answer a benchmark: `identify`, and the nearest of the same fits."""

from __future__ import annotations

import time
from typing import Any

from mesascope.probes import Identification, Predictor, identify

from ._data import Setting
from ._files import Answer

_TASKS, _SEED = 400, 1
_PARTS, _TOLERANCE = 3, 1e-3  # what is added to predictions is at most 4e-4 of their mean square


def identified(model: Predictor, setting: Setting) -> Answer:
    """Return what `identify` says of a model, with mixtures of up to three learners."""
    begin = time.monotonic()
    found = identify(
        model, setting.process, setting.task, tasks=_TASKS, seed=_SEED, tolerance=_TOLERANCE, parts=_PARTS
    )
    return _answer(found, time.monotonic() - begin)


def nearest(model: Predictor, setting: Setting) -> Answer:
    """Return the learner whose predictions, with fitted hyperparameters, are nearest: always one, without an interval.

    Papers compare in this way, usually with two to four learners; here with all.
    """
    begin = time.monotonic()
    found = identify(model, setting.process, setting.task, tasks=_TASKS, seed=_SEED, search=False)
    best = min(found.ranking, key=lambda entry: entry.distance)
    return Answer(
        verdict="identified",
        learners=(best.learner,),
        hyperparameters={best.learner: best.hyperparameters},
        seconds=time.monotonic() - begin,
    )


def _answer(found: Identification, seconds: float) -> Answer:
    if found.verdict == "mixture":
        parts = found.mixtures[0].parts
        weights = {part.learner: (part.weight, *part.interval) for part in parts}
        fitted: dict[str, Any] = {part.learner: part.hyperparameters for part in parts}
        return Answer(
            verdict="mixture",
            learners=tuple(weights),
            hyperparameters=fitted,
            weights=weights,
            seconds=seconds,
        )
    fitted = {name: found.entry(name).hyperparameters for name in found.candidates if not found.mixtures}
    return Answer(verdict=found.verdict, learners=found.candidates, hyperparameters=fitted, seconds=seconds)


METHODS = {"identify": identified, "nearest": nearest}
"""The methods by name."""
