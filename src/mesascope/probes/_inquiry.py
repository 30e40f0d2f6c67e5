"""One inquiry into a model: what it was asked, what was fitted to its answers, and what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mesascope.core import named_key
from mesascope.learners import GradientDescent, Learner, PreconditionedGradientDescent
from mesascope.objectives import Task, task_length

from ._algebra import read_weights
from ._answers import answers
from ._candidates import Judgement, judge
from ._families import known_families
from ._fit import Evidence, Fitted
from ._identification import Identification, Ranked, Separation, Verdict, plain_hyperparameters
from ._in_parallel import in_parallel
from ._preconditioner_shape import preconditioner_shape
from ._problems import draw_problems, length_weights, of_sample, sampled
from ._reasons import reasons_of
from ._separation import Differences, Place
from ._settings import settings_beyond, telling_setting

_ROUNDS = 3  # of asking the model elsewhere
# Relative squared differences up to which learners are the same as fitted: a share of the best distance, since fits are no
# more exact than what they leave; at least rounding, and at most what is no difference to speak of.
_ALIKE, _LEAST_ALIKE, _MOST_ALIKE = 0.25, 1e-9, 1e-4


class IdentifyProgress(NamedTuple):
    """What `identify` tells while it runs.

    Attributes:
        stage: what comes next, in a few words.
        done: steps done.
        total: steps known of; a search adds some.
    """

    stage: str
    done: int
    total: int


class Inquiry:
    """One identification: what was asked, what was fitted, what is left."""

    def __init__(
        self,
        model: Any,
        process: Any,
        task: Task,
        tasks: int,
        seed: int,
        level: float,
        tolerance: float,
        tell: Callable[[IdentifyProgress], None],
    ):
        self._model, self._process, self._task, self._tasks = model, process, task, tasks
        self._seed, self._level, self._tolerance, self._tell = seed, level, tolerance, tell

    def run(self, names: Sequence[str], search: bool) -> Identification:
        """Ask, fit the learners of these ids, compare; ask elsewhere if that tells the rest apart, and name."""
        self._steps = len(names) + 2
        self._say("ask the model", 0)
        problems = draw_problems(self._process, self._task, self._tasks, self._key("tasks"))
        asked = [Evidence(problems, answers(self._model, problems))]
        fitting, fitted = self._fits(names, asked), dict[str, Fitted]()
        for done, name in enumerate(names, start=1):
            self._say(f"fit {name}", done)
            fitted[name] = next(fitting)
        self._say("compare", len(names) + 1)
        found = self._told_apart(asked, fitted, search)
        groups = found.groups
        if _is_plain_step(found.fitted) and GradientDescent.name in groups:
            groups[GradientDescent.name].append(PreconditionedGradientDescent.name)
        ranking = self._ranking(found.fitted, self._judge(found.fitted, found.asked[:1]), groups)
        verdict = self._verdict(groups, ranking)
        reasons = reasons_of(verdict, groups, ranking, found.separated, self._tolerance, search)
        if verdict == "identified" and search:
            self._say("ask beyond its data")
            reasons += self._beyond(ranking[0].algorithm)
        reading = read_weights(self._model, self._judging(found.asked)[0])
        return Identification(verdict, tuple(groups), ranking, tuple(found.separated), reasons, reading)

    def _told_apart(self, asked: list[Evidence], fitted: dict[str, Fitted], search: bool) -> _Found:
        """Who is left of the fitted learners, after asking the model where they differ for as long as that helps."""
        judgement = self._judge(fitted, asked)
        left, separated = self._left(fitted, judgement), list[Separation]()
        while True:
            groups, place = self._groups(left, fitted, judgement, [s.setting for s in separated])
            if not search or place is None or len(separated) == _ROUNDS:
                break
            self._say(f"ask elsewhere: {place.setting.describe()}")
            more = self._asked_at(place.setting, place.examples, str(len(separated)))
            if more is None:
                separated.append(Separation(*_told(place, groups), {}, False))
                break
            outcome = self._fitted_anew(left, [*asked, more])
            separated.append(self._separation(place, groups, outcome))
            if not separated[-1].decided:
                break
            asked, fitted, judgement = outcome.asked, fitted | outcome.fitted, outcome.judgement
            left = self._left(outcome.fitted, judgement)
        return _Found(asked, fitted, groups, separated)

    def _say(self, stage: str, done: int | None = None) -> None:
        """Tell what comes next, one step more than known of unless it says which."""
        if done is None:
            done, self._steps = self._steps, self._steps + 1
        self._tell(IdentifyProgress(stage, done, self._steps))

    def _key(self, *names: str) -> Any:
        return named_key(self._seed, "identify", *names)

    def _fits(self, names: Sequence[str], asked: Sequence[Evidence]) -> Iterator[Fitted]:
        """The learners of these ids fitted to the first half of the tasks."""
        evidence, families = self._fitting(asked), known_families()
        return in_parallel(lambda name: families[name].fit(evidence), names)

    def _fitting(self, asked: Sequence[Evidence]) -> list[Evidence]:
        return [e.part(0, e.problems.tasks // 2) for e in asked]

    def _judging(self, asked: Sequence[Evidence]) -> list[Evidence]:
        return [e.part(e.problems.tasks // 2, e.problems.tasks) for e in asked]

    def _judge(self, fitted: dict[str, Fitted], asked: Sequence[Evidence]) -> Judgement:
        learners = [f.learner for f in fitted.values()]
        return judge(learners, self._judging(asked), self._level, self._seed)

    def _left(self, fitted: dict[str, Fitted], judgement: Judgement) -> list[str]:
        """Who may be within tolerance and is not told apart from the nearest."""
        no_rival = PreconditionedGradientDescent.name if self._only_refines(fitted, judgement) else None
        rival = np.array([name != no_rival for name in fitted])
        best = int(np.argmin(np.where(rival, judgement.distance, np.inf)))
        low, _ = judgement.interval(self._level)
        out = judgement.further(best, self._level) | (low > self._tolerance) | ~rival
        return [name for name, is_out in zip(fitted, out, strict=True) if not is_out]

    def _only_refines(self, fitted: dict[str, Fitted], judgement: Judgement) -> bool:
        """Whether a preconditioner, of which the data determine all, adds too little to a step of descent to be a rival."""
        names = list(fitted)
        pair = (GradientDescent.name, PreconditionedGradientDescent.name)
        if not set(pair) <= set(names) or not fitted[pair[1]].determined:
            return False
        plain, flexible = (names.index(name) for name in pair)
        learner = fitted[pair[0]].learner
        assert isinstance(learner, GradientDescent)
        told_apart = judgement.further(flexible, self._level)[plain]
        return bool(learner.steps == 1) and (_is_plain_step(fitted) or not told_apart)

    def _groups(
        self, left: Sequence[str], fitted: dict[str, Fitted], judgement: Judgement, asked_at: Sequence[str]
    ) -> tuple[dict[str, list[str]], Place | None]:
        """Those left by the simplest that each is the same as, and where the groups differ most."""
        if len(left) < 2:
            return {name: [] for name in left}, None
        ordered = [name for name in known_families() if name in left]
        learners = [fitted[name].learner for name in ordered]
        differences = Differences(learners, self._process, self._task, self._key("differences"))
        alike = float(np.clip(_ALIKE * judgement.distance.min(), _LEAST_ALIKE, _MOST_ALIKE))
        determined = [fitted[name].determined for name in ordered]
        groups = _same(differences, determined, alike)
        named = {ordered[i]: [ordered[j] for j in same] for i, same in groups.items()}
        if len(groups) < 2:
            return named, None
        place = differences.best_place(list(groups), alike, asked_at)
        if place is None and not asked_at and not all(determined[i] for i in groups):
            last = int(np.flatnonzero(length_weights(self._task))[-1])
            place = Place(telling_setting(self._process), last, 0.0)
        return named, place

    def _asked_at(self, setting: Any, examples: int, name: str) -> Evidence | None:
        """What the model answers in another setting; None if it raises an exception there, or answers no finite numbers."""
        source = setting.source(self._process)
        sample = sampled(source, self._key("elsewhere", name), task_length(self._task), self._tasks)
        sample = setting.changed(sample, self._key("change", name))
        weights = np.zeros(len(length_weights(self._task)))
        weights[examples] = 1.0
        problems = of_sample(self._process, sample, weights)
        try:
            return Evidence(problems, answers(self._model, problems))
        except Exception:  # whatever a model says to data that it is not made for
            return None

    def _fitted_anew(self, left: Sequence[str], asked: list[Evidence]) -> _Outcome:
        fitted = dict(zip(left, self._fits(left, asked), strict=True))
        return _Outcome(asked, fitted, self._judge(fitted, asked), self._judge(fitted, asked[-1:]))

    def _beyond(self, learner: Learner) -> tuple[str, ...]:
        """How far the named learner, as fitted, is from the model beyond its data."""
        last = int(np.flatnonzero(length_weights(self._task))[-1])
        lines = []
        for setting in settings_beyond(self._process):
            more = self._asked_at(setting, last, setting.describe())
            where = f"beyond its data, on {setting.describe()}, after {last} examples,"
            if more is None:
                lines.append(f"{where} the model does not answer")
                continue
            distance = float(judge([learner], [more], self._level, self._seed).distance[0])
            far = distance > self._tolerance
            lines.append(
                f"{where} it is at distance {distance:.3g}" + (": the model does something else there" * far)
            )
        return tuple(lines)

    def _separation(self, place: Place, groups: dict[str, list[str]], outcome: _Outcome) -> Separation:
        distances = dict(zip(outcome.fitted, map(float, outcome.there.distance), strict=True))
        low, _ = outcome.judgement.interval(self._level)
        decided = bool(low.min() <= self._tolerance)
        return Separation(*_told(place, groups), distances, decided)

    def _ranking(
        self, fitted: dict[str, Fitted], judgement: Judgement, groups: dict[str, list[str]]
    ) -> tuple[Ranked, ...]:
        low, high = judgement.interval(self._level)
        entries = [
            Ranked(
                name,
                plain_hyperparameters(fit.learner),
                float(judgement.distance[i]),
                (float(low[i]), float(high[i])),
                tuple(groups.get(name, ())),
                fit.learner,
            )
            for i, (name, fit) in enumerate(fitted.items())
        ]
        return tuple(sorted(entries, key=lambda e: (e.learner not in groups, e.distance)))

    def _verdict(self, groups: dict[str, list[str]], ranking: Sequence[Ranked]) -> Verdict:
        if not groups:
            return "none"
        return "identified" if len(groups) == 1 and ranking[0].interval[1] <= self._tolerance else "ambiguous"


def _same(differences: Differences, determined: Sequence[bool], tolerance: float) -> dict[int, list[int]]:
    """Each candidate beside the first that it coincides with; the simplest stand first.

    What the data do not determine may be anything: that it looks the same as fitted says nothing.
    """
    groups: dict[int, list[int]] = {}
    for place, is_determined in enumerate(determined):
        same = (first for first in groups if differences.coincide(first, place, tolerance))
        first = next(same, None) if is_determined else None
        if first is None:
            groups[place] = []
        else:
            groups[first].append(place)
    return groups


class _Found(NamedTuple):
    """All evidence, the fits to it, those left by the simplest that each is the same as, and where they were told apart."""

    asked: list[Evidence]
    fitted: dict[str, Fitted]
    groups: dict[str, list[str]]
    separated: list[Separation]


class _Outcome(NamedTuple):
    """What asking the model elsewhere brought: all evidence, new fits, and distances on all of it and on the new."""

    asked: list[Evidence]
    fitted: dict[str, Fitted]
    judgement: Judgement
    there: Judgement


def _is_plain_step(fitted: dict[str, Fitted]) -> bool:
    """Whether the fitted preconditioner is, to one percent, the fitted step size: then it is no rival of it."""
    flexible, plain = (fitted.get(k.name) for k in (PreconditionedGradientDescent, GradientDescent))
    if flexible is None or plain is None or not flexible.determined:
        return False
    assert isinstance(flexible.learner, PreconditionedGradientDescent)
    assert isinstance(plain.learner, GradientDescent)
    step_size = preconditioner_shape(flexible.learner.preconditioner, flexible.learner.output_map).step_size
    same = step_size is not None and abs(step_size - plain.learner.step_size) <= 0.01 * abs(step_size)
    return bool(same and plain.learner.steps == 1)


def _told(place: Place, groups: dict[str, list[str]]) -> tuple[str, int, tuple[str, ...], float]:
    """Where candidates were asked apart, and how far they are there."""
    return place.setting.describe(), place.examples, tuple(groups), place.difference
