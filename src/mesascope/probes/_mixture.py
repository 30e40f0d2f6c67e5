"""Whether a convex mixture of few learners explains what no single one does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mesascope.records import CurveRecord, MixturePart, MixtureRecord

from ._candidates import Judgement, answers_of, judge_answers
from ._evidence import Evidence
from ._fit import Fitted, Fitter
from ._identification import Verdict, plain_hyperparameters
from ._metrics import squared
from ._mixture_fit import FittedMixture
from ._mixture_search import by_length, fitted_part, mixtures


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
    fitters: Mapping[str, Any], fitted: Mapping[str, Fitted], halves: Halves, limits: Limits
) -> tuple[MixtureRecord, ...]:
    """Return the mixtures of the fewest learners that explain the model, and are not distinguished from the nearest of them.

    Weights that are the same after every number of examples are preferred; if no such mixture is within the tolerance, weights
    may depend on the number of examples.

    Args:
        fitters: by the ids of the learners.
        fitted: the learners, each fitted alone.
        halves: tasks to fit to and to judge by.
        limits: what they are judged by.
    """
    names = [name for name in fitters if name in fitted and fitted[name].coordinates is not None]
    kinds = [fitters[name] for name in names if isinstance(fitters[name], Fitter)]
    for size in range(2, limits.most + 1):
        constant = mixtures(kinds, [fitted[kind.kind.name] for kind in kinds], halves.fitting, size)
        for found in (constant, (by_length(one, halves.fitting, limits.tolerance) for one in constant)):
            tried = [_tried(one, halves.judging) for one in found if one is not None]
            if near := list(_near(tried, halves.judging, limits)):
                return tuple(_record(*one, halves, limits) for one in near)
    return ()


def verdict_of_mixtures(found: Sequence[MixtureRecord]) -> Verdict:
    """Return "mixture" for one whose weights the tasks tell, "ambiguous" if they do not, or for several."""
    return "mixture" if len(found) == 1 and found[0].determined else "ambiguous"


def _tried(mixture: FittedMixture, judging: Evidence) -> _Tried:
    return _Tried(mixture, answers_of(list(mixture.mixed.parts), judging.problems))


def _near(
    tried: Sequence[_Tried], judging: Evidence, limits: Limits
) -> Iterator[tuple[_Tried, float, tuple[float, float]]]:
    """Yield the mixtures within the tolerance that are not farther than the nearest, with distances and intervals.

    Of mixtures with equal predictions the first, which is the simplest, stands for all.
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
    """Return whether two mixtures have the same weights of learners that predict the same, to a hundredth of the tolerance."""
    if len(one.parts) != len(other.parts):
        return False
    pairs = [
        [_apart(a, b, judging) < tolerance / 100 for b in other.parts] for a in one.parts
    ]  # which learner of the one is which of the other
    return all(any(row) for row in pairs) and all(any(column) for column in zip(*pairs, strict=True))


def _record(
    tried: _Tried,
    distance: float,
    interval: tuple[float, float],
    halves: Halves,
    limits: Limits,
) -> MixtureRecord:
    mixture, data = tried.mixture, fitted_part(halves.fitting)
    weights = mixture.weights(data, limits.level, limits.seed)
    means = [np.atleast_2d(end).mean(0) for end in weights]
    flat = np.stack([one[:, halves.judging.problems.lengths].ravel() for one in tried.parts])
    sizes = np.linalg.norm(flat, axis=1)
    gram = (flat.conj() @ flat.T).real / np.outer(sizes, sizes)
    low, high = np.atleast_2d(weights.low), np.atleast_2d(weights.high)
    apart = [
        _apart(one, other, halves.judging) for i, one in enumerate(tried.parts) for other in tried.parts[:i]
    ]
    curves = zip(mixture.mixed.parts, *(np.atleast_2d(end).T.tolist() for end in weights), strict=True)
    return MixtureRecord(
        parts=tuple(
            MixturePart(
                learner=type(part).name,
                hyperparameters=plain_hyperparameters(part),
                weight=float(weight),
                interval=(float(least), float(greatest)),
            )
            for part, weight, least, greatest in zip(mixture.mixed.parts, *means, strict=True)
        ),
        distance=distance,
        interval=interval,
        condition=float(np.linalg.cond(gram)),
        determined=bool(min(apart) > limits.tolerance and not ((low < 0.05) & (high > 0.95)).any()),
        lengths=mixture.fitter.lengths,
        weights=tuple(
            CurveRecord(name=type(part).name, value=tuple(one), low=tuple(least), high=tuple(greatest))
            for part, one, least, greatest in curves
        )
        if mixture.fitter.rows
        else (),
    )
