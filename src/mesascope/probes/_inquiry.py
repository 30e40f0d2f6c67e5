"""The procedure of `identify`: evaluate the model, fit learners to its predictions, compare and distinguish them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mesascope.core import Progress
from mesascope.learners import GradientDescent, Learner, PreconditionedGradientDescent
from mesascope.objectives import task_length
from mesascope.records import (
    DIVERGENT,
    Beyond,
    IdentificationVerdict,
    MixtureRecord,
    Separation,
    SymbolDistances,
)

from ._algebra import read_weights
from ._answers import answers
from ._candidates import Judgement, judge
from ._equivalence import fitted_numbers, grouped, special_case
from ._evidence import Evidence
from ._fit import Fitted
from ._fitters import fitters, with_special_cases
from ._headline import headline, headline_of_mixtures
from ._identification import Identification, Ranked, plain_hyperparameters
from ._identification_curves import Curves, identification_curves
from ._in_parallel import in_parallel
from ._mixture import Halves, Limits, explaining_mixtures, takes_part, verdict_of_mixtures
from ._preconditioner_shape import preconditioner_shape
from ._problems import length_weights, of_sample, sampled
from ._question import Question
from ._reasons import (
    beyond_in_words,
    mixtures_in_words,
    of_a_large_pool,
    of_a_pool_without_noise,
    reasons_of,
)
from ._separation import Differences, Place
from ._settings import informative_setting, settings_beyond
from ._symbol_distances import symbol_distances

_ROUNDS = 3  # evaluations of the model on other data
# Relative squared differences up to which fitted learners are equivalent: a fraction of the smallest distance, which limits
# the accuracy of fits, between a minimum for rounding and a maximum.
_SAME, _MIN_SAME, _MAX_SAME = 0.25, 1e-9, 1e-4


class Inquiry:
    """One identification of a model."""

    def __init__(self, model: Any, question: Question, progress: Callable[[Progress], None]):
        self._model, self._question, self._progress = model, question, progress
        self._process, self._task = question.process, question.task
        self._seed, self._level, self._tolerance = question.seed, question.level, question.tolerance
        self._fitters = fitters(question.process)
        self._steps = len(question.learners) + 2

    def run(self, search: bool) -> Identification:
        """Evaluate the model, fit the learners to it, compare and distinguish them; return the result."""
        self._report("ask the model", 0)
        problems = self._question.problems()
        return self.explain(Evidence(problems, answers(self._model, problems)), search)

    def explain(self, given: Evidence, search: bool) -> Identification:
        """Fit the learners to predictions of the model, compare and distinguish them; return the result."""
        names, evidence = self._question.learners, [given]
        fitting, fitted = self._fits(names, evidence), dict[str, Fitted]()
        for done, name in enumerate(names, start=1):
            self._report(f"fit {name}", done)
            fitted[name] = next(fitting)
        fitted = with_special_cases(fitted, self._fitters, self._fitting(evidence))
        self._report("compare", len(names) + 1)
        found = self._distinguish(evidence, fitted, search)
        groups = found.groups
        if _is_plain_step(found.fitted) and GradientDescent.name in groups:
            groups[GradientDescent.name].append(PreconditionedGradientDescent.name)
        judgement = self._judge(found.fitted, found.evidence[:1])
        ranking = self._ranking(found.fitted, judgement, groups, self._judging(found.evidence)[0])
        verdict, mixtures = self._verdict(groups, ranking), tuple[MixtureRecord, ...]()
        explained = any(entry.interval[1] <= self._tolerance for entry in ranking)
        if self._question.parts > 1 and not explained:
            self._report("fit mixtures")
            mixtures = self._mixtures(found)
        if mixtures:
            verdict, groups = verdict_of_mixtures(mixtures), {}
        reasons = reasons_of(verdict, groups, ranking, found.separated, self._tolerance, search)
        kinds = sum(takes_part(self._fitters[name]) for name in names)
        reasons += () if explained else mixtures_in_words(mixtures, self._question.parts, kinds)
        reasons += of_a_large_pool(self._process) + of_a_pool_without_noise(self._process, ranking)
        beyond: tuple[Beyond, ...] = ()
        if search and not mixtures:
            self._report("ask beyond its data")
            beyond = tuple(self._beyond(ranking[0].algorithm))
            reasons += beyond_in_words(ranking[0], beyond, self._tolerance)
        judged = self._judging(found.evidence)[0]
        reading = read_weights(self._model, judged)
        near = groups or self._near(found.fitted, judgement)
        line = headline_of_mixtures(mixtures) if mixtures else headline(verdict, ranking, near)
        named = {part.learner: None for one in mixtures for part in one.parts}
        return Identification(
            verdict,
            tuple(groups or named),
            ranking,
            tuple(found.separated),
            reasons,
            reading,
            line,
            beyond,
            self._question.asked(),
            mixtures,
            self._comparison(judged, [entry.algorithm for entry in ranking]),
        )

    def _mixtures(self, found: _Found) -> tuple[MixtureRecord, ...]:
        """Return the mixtures of the fewest learners that explain the model on the data of its process."""
        (fitting,), (judging,) = self._fitting(found.evidence[:1]), self._judging(found.evidence[:1])
        limits = Limits(self._question.parts, self._tolerance, self._level, self._seed)
        rivals = [found.fitted[name].learner for name in found.groups]
        return explaining_mixtures(self._fitters, found.fitted, rivals, Halves(fitting, judging), limits)

    def _comparison(self, judged: Evidence, fitted: Sequence[Learner]) -> Callable[[], Curves]:
        """Return what evaluates the model again, for curves."""
        alone = Evidence(replace(judged.problems), judged.answers)  # without the features that it keeps
        return partial(identification_curves, self._model, alone, fitted, seed=self._seed, level=self._level)

    def _near(self, fitted: dict[str, Fitted], judgement: Judgement) -> list[str]:
        """Return the learners that are not distinguished from the nearest."""
        out = judgement.further(int(np.argmin(judgement.distance)), self._level)
        return [name for name, is_out in zip(fitted, out, strict=True) if not is_out]

    def _distinguish(self, evidence: list[Evidence], fitted: dict[str, Fitted], search: bool) -> _Found:
        """Return the remaining learners, after evaluations of the model where they differ, as long as these help."""
        judgement = self._judge(fitted, evidence)
        remaining, separated = self._remaining(fitted, judgement), list[Separation]()
        while True:
            groups, place = self._groups(remaining, fitted, judgement, [s.setting for s in separated])
            if not search or place is None or len(separated) == _ROUNDS:
                break
            self._report(f"ask elsewhere: {place.setting.describe()}")
            more = self._evidence_at(place.setting, place.examples, str(len(separated)))
            if more is None:
                separated.append(self._separation(place, groups, None))
                break
            outcome = self._refit(remaining, [*evidence, more])
            separated.append(self._separation(place, groups, outcome))
            if not separated[-1].decided:
                break
            evidence, fitted, judgement = outcome.evidence, fitted | outcome.fitted, outcome.judgement
            remaining = self._remaining(outcome.fitted, judgement)
        return _Found(evidence, fitted, groups, separated)

    def _report(self, stage: str, done: int | None = None) -> None:
        """Report the next step; a step is added to the total unless `done` is given."""
        if done is None:
            done, self._steps = self._steps, self._steps + 1
        self._progress(Progress(done, self._steps, stage=stage))

    def _fits(self, names: Sequence[str], evidence: Sequence[Evidence]) -> Iterator[Fitted]:
        """Return the learners of these ids, fitted to the first half of the tasks."""
        training = self._fitting(evidence)
        return in_parallel(lambda name: self._fitters[name].fit(training), names)

    def _fitting(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        return [e.part(0, e.problems.tasks // 2) for e in evidence]

    def _judging(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        return [e.part(e.problems.tasks // 2, e.problems.tasks) for e in evidence]

    def _judge(self, fitted: dict[str, Fitted], evidence: Sequence[Evidence]) -> Judgement:
        learners = [f.learner for f in fitted.values()]
        return judge(learners, self._judging(evidence), self._level, self._seed)

    def _remaining(self, fitted: dict[str, Fitted], judgement: Judgement) -> list[str]:
        """Return the learners that may be within tolerance and are not distinguished from the nearest."""
        excluded = PreconditionedGradientDescent.name if self._only_refines(fitted, judgement) else None
        compared = np.array([name != excluded for name in fitted])
        best = int(np.argmin(np.where(compared, judgement.distance, np.inf)))
        low, _ = judgement.interval(self._level)
        out = judgement.further(best, self._level) | (low > self._tolerance) | ~compared
        return [name for name, is_out in zip(fitted, out, strict=True) if not is_out]

    def _only_refines(self, fitted: dict[str, Fitted], judgement: Judgement) -> bool:
        """Return whether a fully determined preconditioner is excluded in favour of one step of descent."""
        names = list(fitted)
        pair = (GradientDescent.name, PreconditionedGradientDescent.name)
        if not set(pair) <= set(names) or not fitted[pair[1]].determined:
            return False
        plain, flexible = (names.index(name) for name in pair)
        learner = fitted[pair[0]].learner
        assert isinstance(learner, GradientDescent)
        _, high = judgement.interval(self._level)
        if high[flexible] <= self._tolerance < high[plain]:
            return False  # only the preconditioner explains the predictions
        distinguished = judgement.further(flexible, self._level)[plain]
        return bool(learner.steps == 1) and (_is_plain_step(fitted) or not distinguished)

    def _groups(
        self,
        remaining: Sequence[str],
        fitted: dict[str, Fitted],
        judgement: Judgement,
        asked_at: Sequence[str],
    ) -> tuple[dict[str, list[str]], Place | None]:
        """Return groups of equivalent learners by the simplest of each, and where the groups differ most."""
        if len(remaining) < 2:
            return {name: [] for name in remaining}, None
        ordered = sorted(
            (name for name in self._fitters if name in remaining),
            key=lambda name: fitted_numbers(fitted[name].learner),
        )
        learners = [fitted[name].learner for name in ordered]
        differences = Differences(learners, self._process, self._question.everywhere)
        tolerance = float(np.clip(_SAME * judgement.distance.min(), _MIN_SAME, _MAX_SAME))
        determined = [fitted[name].determined for name in ordered]
        kinds = [self._fitters[name].kind.fitting for name in ordered]
        special = [special_case(learner) for learner in learners]
        groups = grouped(
            differences,
            determined,
            kinds,
            tolerance,
            [ordered.index(s) if s in ordered else None for s in special],
        )
        by_name = {ordered[i]: [ordered[j] for j in same] for i, same in groups.items()}
        if len(groups) < 2:
            return by_name, None
        place = differences.best_place(list(groups), tolerance, asked_at)
        if place is None and not asked_at and not all(determined[i] for i in groups):
            last = int(np.flatnonzero(length_weights(self._task))[-1])
            place = Place(informative_setting(self._process), last, 0.0)
        return by_name, place

    def _evidence_at(self, setting: Any, examples: int, name: str) -> Evidence | None:
        """Return the predictions in another setting; None if the model raises an error or they are not finite."""
        source = setting.source(self._process)
        length = task_length(self._task) * setting.longer
        sample = sampled(source, self._question.key("elsewhere", name), length, self._question.tasks)
        sample = setting.changed(sample, self._question.key("change", name))
        weights = np.zeros(len(length_weights(self._task)) + length - task_length(self._task))
        weights[examples] = 1.0
        problems = of_sample(self._process, sample, weights)
        try:
            return Evidence(problems, answers(self._model, problems))
        except Exception:  # a model may raise any error on data for which it is not made
            return None

    def _refit(self, names: Sequence[str], evidence: list[Evidence]) -> _Outcome:
        fitted = dict(zip(names, self._fits(names, evidence), strict=True))
        fitted = with_special_cases(fitted, self._fitters, self._fitting(evidence))
        return _Outcome(evidence, fitted, self._judge(fitted, evidence), self._judge(fitted, evidence[-1:]))

    def _beyond(self, learner: Learner) -> Iterator[Beyond]:
        """Yield the distance of a learner from the model on other data."""
        last = int(np.flatnonzero(length_weights(self._task))[-1])
        for setting in settings_beyond(self._process):
            examples = last + (setting.longer - 1) * task_length(self._task)
            try:
                more = self._evidence_at(setting, examples, setting.describe())
            except ValueError:
                if setting.longer == 1:
                    raise
                continue  # the process has no such length
            if more is None:
                distance, interval = np.nan, (np.nan, np.nan)
            else:
                found = judge([learner], [more], self._level, self._seed)
                low, high = found.interval(self._level)
                distance, interval = float(found.distance[0]), (float(low[0]), float(high[0]))
            yield Beyond(setting=setting.describe(), examples=examples, distance=distance, interval=interval)

    def _separation(self, place: Place, groups: dict[str, list[str]], outcome: _Outcome | None) -> Separation:
        """Return what the data of a place showed; the model's predictions are not finite there without an outcome."""
        distances, decided = {}, False
        if outcome is not None:
            distances = dict(zip(outcome.fitted, map(float, outcome.there.distance), strict=True))
            low, _ = outcome.judgement.interval(self._level)
            decided = bool(low.min() <= self._tolerance)
        return Separation(
            setting=place.setting.describe(),
            examples=place.examples,
            candidates=tuple(groups),
            difference=place.difference,
            distances=distances,
            decided=decided,
        )

    def _ranking(
        self, fitted: dict[str, Fitted], judgement: Judgement, groups: dict[str, list[str]], judged: Evidence
    ) -> tuple[Ranked, ...]:
        low, high = judgement.interval(self._level)
        learners = [fit.learner for fit in fitted.values()]
        others: list[SymbolDistances | None] = [None] * len(learners)
        if judged.problems.symbols:
            others = list(symbol_distances(learners, judged, self._level, self._seed))
        entries = [
            Ranked(
                learner=name,
                hyperparameters=plain_hyperparameters(fit.learner),
                distance=float(judgement.distance[i]),
                interval=(float(low[i]), float(high[i])),
                contains=tuple(groups.get(name, ())),
                or_more=fit.or_more,
                diverges=bool(judgement.distance[i] > DIVERGENT),
                of_symbols=others[i],
                algorithm=fit.learner,
            )
            for i, (name, fit) in enumerate(fitted.items())
        ]
        return tuple(sorted(entries, key=lambda e: (e.learner not in groups, e.distance)))

    def _verdict(self, groups: dict[str, list[str]], ranking: Sequence[Ranked]) -> IdentificationVerdict:
        if not groups:
            return "none"
        return "identified" if len(groups) == 1 and ranking[0].interval[1] <= self._tolerance else "ambiguous"


class _Found(NamedTuple):
    """All evidence, the fits to it, groups of equivalent learners by the simplest, and the additional data."""

    evidence: list[Evidence]
    fitted: dict[str, Fitted]
    groups: dict[str, list[str]]
    separated: list[Separation]


class _Outcome(NamedTuple):
    """The result of an additional evaluation: all evidence, new fits, and distances on all of it and on the new."""

    evidence: list[Evidence]
    fitted: dict[str, Fitted]
    judgement: Judgement
    there: Judgement


def _is_plain_step(fitted: dict[str, Fitted]) -> bool:
    """Return whether the fitted preconditioner is, to one percent, a multiple of the identity with the fitted step size."""
    flexible, plain = (fitted.get(k.name) for k in (PreconditionedGradientDescent, GradientDescent))
    if flexible is None or plain is None or not flexible.determined:
        return False
    assert isinstance(flexible.learner, PreconditionedGradientDescent)
    assert isinstance(plain.learner, GradientDescent)
    step_size = preconditioner_shape(flexible.learner.preconditioner, flexible.learner.output_map).step_size
    same = step_size is not None and abs(step_size - plain.learner.step_size) <= 0.01 * abs(step_size)
    return bool(same and plain.learner.steps == 1)
