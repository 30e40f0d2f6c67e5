"""Families of learners that differ in their number of steps, with all other hyperparameters fitted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mesascope.core import integer_at_least
from mesascope.learners import Learner, Newton, Zero
from mesascope.specs import show

from ._candidates import answers_of
from ._evidence import Evidence
from ._fit import Fitter
from ._fitters import known_learners
from ._problems import Problems


class StepFamily(NamedTuple):
    """Learners of one kind that differ only in their number of steps.

    Attributes:
        name: the id of the kind.
        steps: the numbers of steps, ascending, shape (K,).
        learners: one learner for each number.
    """

    name: str
    steps: np.ndarray
    learners: tuple[Learner, ...]


def step_family(
    name: str, steps: Iterable[int], problems: Problems, answers: Any, *, fitted_at: int
) -> StepFamily:
    """Return the learners of a kind for different numbers of steps, with the step size fitted to a model.

    Step size, momentum, start … are fitted such that `fitted_at` steps are closest to the answers. To compare layers of a
    model with steps, give its number of layers, so that the fit is to its last layer.

    Args:
        name: "gradient-descent", "newton", "conjugate-gradients" or another id of a learner that takes steps.
        steps: numbers of steps, ≥ 0 and ascending. 0 steps are the learner "zero", for "newton" its initial matrix.
        problems: the problems.
        answers: predictions of a model, shape (batch, N + 1, m), such as `LogitLens.predictions[-1]`.
        fitted_at: a number of steps ≥ 1.

    Raises:
        TypeError: steps that are not integers.
        ValueError: an id without steps, steps that are not ascending, or answers of another shape.
    """
    fitter, counts = _checked_fitter(name), _checked_steps(steps)
    fitted_at, given = integer_at_least("fitted_at", fitted_at, 1), np.asarray(answers)
    if given.shape != problems.targets.shape:
        raise ValueError(
            f"answers: must have shape {problems.targets.shape} like the targets, got {given.shape}"
        )
    fixed = (*fitter.fitting.fixed, ("steps", fitted_at))
    one = replace(fitter, fitting=replace(fitter.fitting, integer=None, largest=1, fixed=fixed))
    fitted = one.fit([Evidence(problems, given)]).learner if one.fitting.scalars else one.build((), 1)
    return StepFamily(name, np.array(counts), tuple(_with_steps(fitted, count) for count in counts))


def _with_steps(learner: Learner, steps: int) -> Learner:
    if steps == 0 and not isinstance(learner, Newton):
        return Zero()
    return type(learner)(**{**learner.hyperparameters, "steps": steps})


def _checked_fitter(name: str) -> Fitter:
    stepping = {kind.name: kind for kind in known_learners() if kind.fitting.integer == "steps"}
    if name not in stepping:
        raise ValueError(f"name: {show(name)} is not a learner with steps; use one of {', '.join(stepping)}")
    return Fitter(stepping[name], stepping[name].fitting)


def _checked_steps(steps: Iterable[int]) -> list[int]:
    counts = [integer_at_least("steps", count, 0) for count in steps]
    if not counts or counts != sorted(set(counts)):
        raise ValueError(f"steps: must be ascending, such as range(1, 9), got {counts}")
    return counts


def family_answers(family: StepFamily, problems: Problems) -> np.ndarray:
    """Return the predictions of all learners of a family, shape (K, batch, N + 1, m)."""
    return np.stack(answers_of(family.learners, problems))
