"""Whether a convex mixture of few learners explains what no single one does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from mesascope.learners import Learner
from mesascope.records import CurveRecord, IdentificationVerdict, MixturePart, MixtureRecord

from ._candidates import Judgement, answers_of, judge_answers
from ._evidence import Evidence
from ._fit import Fitted, Fitter
from ._identification import plain_hyperparameters
from ._metrics import inner, squared
from ._mixture_fit import FittedMixture
from ._mixture_search import by_length, mixtures
from ._weights import ENDS, smallest_change


class Halves(NamedTuple):
    """The tasks that are fitted to, and those that mixtures are judged by."""

    fitting: Evidence
    judging: Evidence


class Limits(NamedTuple):
    """What mixtures are judged by.

    Attributes:
        most: the largest number of learners, 2 or 3.
        tolerance: the largest distance of a mixture that explains.
        level: confidence level.
        seed: of the bootstrap.
    """

    most: int
    tolerance: float
    level: float
    seed: int


class _Tried(NamedTuple):
    """A fitted mixture with the predictions of its learners on the tasks that it is judged by, each (batch, N + 1, m)."""

    mixture: FittedMixture
    parts: list[np.ndarray]

    @property
    def answers(self) -> np.ndarray:
        weights = np.asarray(self.mixture.mixed.weights)
        return np.asarray(sum(weights[..., k, None] * one for k, one in enumerate(self.parts)))


def explaining_mixtures(
    fitters: Mapping[str, Any],
    fitted: Mapping[str, Fitted],
    rivals: Sequence[Learner],
    halves: Halves,
    limits: Limits,
) -> tuple[MixtureRecord, ...]:
    """Return the mixtures of the fewest learners that explain the model, and are not distinguished from the nearest of them.

    Weights that are the same after every number of examples are preferred; if no such mixture is within the tolerance, weights
    may depend on the number of examples. Not all mixtures are fitted: see `_mixture_search`.

    Args:
        fitters: by the ids of the learners.
        fitted: the learners, each fitted alone.
        rivals: learners that may be within the tolerance; there is no mixture where one is not distinguished from it.
        halves: tasks to fit to and to judge by.
        limits: what they are judged by.
    """
    kinds = [fitters[name] for name in fitted if takes_part(fitters[name])]
    singles, judging = [fitted[kind.kind.name] for kind in kinds], halves.judging
    for size in range(2, limits.most + 1):
        constant = mixtures(kinds, singles, halves.fitting, size, limits.tolerance)
        varying = (by_length(one, halves.fitting, limits.tolerance) for one in constant)
        for found in (constant, varying):
            tried = [_tried(one, judging) for one in found if one is not None and _has_parts(one)]
            if near := list(_near(tried, judging, limits)):
                nearest = min(near, key=lambda one: one[1])[0]
                all_farther = _are_farther(rivals, nearest, judging, limits)
                return tuple(_record(*one, halves, limits) for one in near) if all_farther else ()
    return ()


def _has_parts(mixture: FittedMixture) -> bool:
    """Whether all weights are convex, and none is so small that its learner is no part.

    A learner out of all scale, such as one step of size 4000, gives with the weight 0.0001 any amplitude to the others.
    """
    return mixture.convex and mixture.smallest_weight >= ENDS[0]


def takes_part(fitter: Any) -> bool:
    """Whether learners of a kind take part in mixtures: those that have no matrix or vector to be fitted."""
    return isinstance(fitter, Fitter)


def _are_farther(rivals: Sequence[Learner], nearest: _Tried, judging: Evidence, limits: Limits) -> bool:
    """Return whether learners are, with confidence, more than twice as far from the model as a mixture."""
    if not rivals:
        return True
    answers = [nearest.answers, *answers_of(list(rivals), judging.problems)]
    return bool(judge_answers(answers, judging, limits.level, limits.seed).further(0, limits.level)[1:].all())


def verdict_of_mixtures(found: Sequence[MixtureRecord]) -> IdentificationVerdict:
    """Return "mixture" for one whose weights the tasks tell, "ambiguous" if they do not, or for several."""
    return "mixture" if len(found) == 1 and found[0].determined else "ambiguous"


def _tried(mixture: FittedMixture, judging: Evidence) -> _Tried:
    return _Tried(mixture, answers_of(list(mixture.mixed.parts), judging.problems))


def _near(
    tried: Sequence[_Tried], judging: Evidence, limits: Limits
) -> Iterator[tuple[_Tried, float, tuple[float, float]]]:
    """Yield the mixtures within the tolerance that are not farther than the nearest, with distances and intervals.

    Of equal mixtures (`_coincide`) the first, which is the simplest, stands for all.
    """
    if not tried:
        return
    judgement: Judgement = judge_answers([one.answers for one in tried], judging, limits.level, limits.seed)
    further = judgement.further(int(np.argmin(judgement.distance)), limits.level)
    low, high = judgement.interval(limits.level)
    taken: list[_Tried] = []
    for k, one in enumerate(tried):
        if (
            further[k]
            or high[k] > limits.tolerance
            or any(_coincide(one, other, judging, limits.tolerance) for other in taken)
        ):
            continue
        taken.append(one)
        yield one, float(judgement.distance[k]), (float(low[k]), float(high[k]))


def _apart(one: np.ndarray, other: np.ndarray, judging: Evidence) -> float:
    """Return E‖g − h‖²/E‖f‖² of two predictions."""
    return float(np.sum(judging.weights * squared(one - other)) / judging.size)


def _coincide(one: _Tried, other: _Tried, judging: Evidence, tolerance: float) -> bool:
    """Return whether the learners of two mixtures, in some order, predict the same to a hundredth of the tolerance."""
    apart = [[_apart(a, b, judging) for b in other.parts] for a in one.parts]
    orders = permutations(range(len(other.parts)))
    return any(all(apart[i][j] < tolerance / 100 for i, j in enumerate(order)) for order in orders)


def _record(
    tried: _Tried,
    distance: float,
    interval: tuple[float, float],
    halves: Halves,
    limits: Limits,
) -> MixtureRecord:
    mixture, judging = tried.mixture, halves.judging
    weights = mixture.weights(halves.fitting, limits.level)
    low, high = weights.rows.low, weights.rows.high
    crossed = [[np.sum(judging.weights * inner(one, other)) for other in tried.parts] for one in tried.parts]
    different = smallest_change(np.array(crossed), judging.size) > limits.tolerance
    kinds = [type(part).name for part in mixture.mixed.parts]
    curves = zip(kinds, *(end.T.tolist() for end in weights.rows), strict=True)
    return MixtureRecord(
        parts=tuple(
            MixturePart(
                learner=type(part).name,
                hyperparameters=plain_hyperparameters(part),
                weight=float(weight),
                interval=(float(least), float(greatest)),
            )
            for part, weight, least, greatest in zip(mixture.mixed.parts, *weights.mean, strict=True)
        ),
        distance=distance,
        interval=interval,
        condition=_condition(tried.parts, judging),
        different=different,
        determined=different and not ((low < ENDS[0]) & (high > ENDS[1])).any(),
        lengths=mixture.fitter.lengths,
        weights=tuple(
            CurveRecord(name=name, value=tuple(one), low=tuple(least), high=tuple(greatest))
            for name, one, least, greatest in curves
        )
        if mixture.fitter.rows
        else (),
    )


def _condition(parts: Sequence[np.ndarray], judging: Evidence) -> float:
    """Return the condition number of the Gram matrix of predictions, each divided by its size; the answer 0 has none."""
    flat = np.stack([one[:, judging.problems.lengths].ravel() for one in parts])
    sizes = np.linalg.norm(flat, axis=1)
    flat = flat[sizes > 0] / sizes[sizes > 0, None]
    return float(np.linalg.cond((flat.conj() @ flat.T).real))
