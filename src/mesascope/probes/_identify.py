"""Which algorithm a model runs in context: learners fitted to it, compared with it, and told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from mesascope.core import integer_at_least, named_key, require_x64
from mesascope.learners import GradientDescent, Learner, PreconditionedGradientDescent
from mesascope.objectives import Task, task_length

from ._algebra import read_weights
from ._answers import answers
from ._candidates import Judgement, judge
from ._families import FAMILIES, fitting_families
from ._fit import Evidence, Fitted
from ._identification import Identification, Ranked, Separation, Verdict, plain_hyperparameters
from ._intervals import check_level
from ._preconditioner_shape import preconditioner_shape
from ._problems import draw_problems, length_weights, of_sample
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


def identify(
    model: Any,
    process: Any,
    task: Task,
    *,
    tasks: int = 2000,
    seed: int = 0,
    tolerance: float = 1e-2,
    level: float = 0.95,
    learners: Sequence[str] | None = None,
    search: bool = True,
    progress: Callable[[IdentifyProgress], None] | None = None,
) -> Identification:
    r"""Name the algorithm that a model runs in context, with its hyperparameters, or say that it cannot be told.

    The hyperparameters of every learner are fitted to the model's predictions $f$ on one half of the tasks; on the other
    half its predictions $g$ are at the relative distance $E\|f - g\|^2 / E\|f\|^2$ from them, with a bootstrap interval.
    Tasks whose $\|f\|^2$ is more than ten times the median count ten medians: algorithms that diverge on rare tasks would
    else be fitted to the errors of those few.

    - A learner is told apart from the nearest one if it is, with confidence, more than twice as far from the model.
    - Learners that could not be told apart are the same algorithm if, as fitted, they answer alike in 40 settings of data:
      inputs of other scales and conditions, with noise, and without the law of the process; symbols, some of them or all
      replaced at random. The simplest gives the name.
      A preconditioner is no rival of one step of descent if it is a multiple of the identity to 1 %, or not told apart
      from it; one with entries that the data say nothing about is not the same as any other learner.
    - If more than one is left, the model is asked in the setting where they differ most, and all that are left are fitted
      anew to all its answers: an algorithm explains all of them by one set of hyperparameters. If none does, the model
      runs no such algorithm there, and what it does on its own data stays ambiguous.

    - A name holds for the data that were asked about. How far the model is from the named learner beyond them, on inputs of
      twice the size and on badly conditioned ones, is told among the reasons.

    Args:
        model: a model of ours, or what `as_callable` takes: a function of contexts (batch, t, d) → (batch, d), or of
            prompts (x (batch, n + 1, d), y (batch, n)) → (batch,), or of symbols (batch, t) → probabilities (batch, states).
        process: what draws sequences of tokens or symbols, or prompts. Symbols are one-hot vectors for learners.
        task: `NextToken` or `FewShot`: says which context lengths count, and how much.
        tasks: how many are drawn, for each setting of data; at least 4/(1 − level) and 40.
        seed: of the tasks and of the bootstrap.
        tolerance: the distance up to which a learner counts as what the model does.
        level: of the intervals, and of every comparison.
        learners: ids of the learners to compare with; by default all that read such data.
        search: whether the model may be asked on other data.
        progress: called before every step.

    Returns:
        Verdict, ranking, what separated candidates, reasons; `print` shows a table.

    Raises:
        TypeError: a model that cannot be called, a task that does not fit the process.
        ValueError: predictions of another shape, not finite or not reproducible; too few tasks for the level; an unknown
            learner; a tolerance that is not in (0, 1); JAX in 32-bit mode.
    """
    require_x64("identify")
    tasks = _checked_tasks(tasks, level)
    if not 0 < tolerance < 1:
        raise ValueError(
            f"tolerance must lie strictly between 0 and 1, got {tolerance}; write e.g. tolerance=0.01"
        )
    names = _checked_names(learners, process)
    study = _Study(model, process, task, tasks, seed, level, tolerance, progress or (lambda _: None))
    return study.run(names, search)


class _Study:
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
        total = len(names) + 2
        self._tell(IdentifyProgress("ask the model", 0, total))
        problems = draw_problems(self._process, self._task, self._tasks, self._key("tasks"))
        asked = [Evidence(problems, answers(self._model, problems))]
        fitted: dict[str, Fitted] = {}
        for done, name in enumerate(names, start=1):
            self._tell(IdentifyProgress(f"fit {name}", done, total))
            fitted[name] = FAMILIES[name].fit(self._fitting(asked))
        self._tell(IdentifyProgress("compare", total - 1, total))
        judgement = on_its_data = self._judge(fitted, asked)
        left = self._left(fitted, judgement)
        separated: list[Separation] = []
        for attempt in range(_ROUNDS + 1):
            groups, place = self._groups(left, fitted, judgement, [s.setting for s in separated])
            if len(groups) < 2 or not search or place is None or attempt == _ROUNDS:
                break
            self._tell(IdentifyProgress(f"ask elsewhere: {place.setting.describe()}", total, total + 1))
            more = self._asked_at(place.setting, place.examples, str(attempt))
            if more is None:
                separated.append(Separation(*_told(place, groups), {}, False))
                break
            outcome = self._fitted_anew(left, [*asked, more])
            separated.append(self._separation(place, groups, outcome))
            if not separated[-1].decided:
                break
            asked, fitted = outcome.asked, fitted | outcome.fitted
            judgement = outcome.judgement
            on_its_data = self._judge(fitted, asked[:1])
            left = self._left(outcome.fitted, judgement)
        if _is_plain_step(fitted) and GradientDescent.name in groups:
            groups[GradientDescent.name].append(PreconditionedGradientDescent.name)
        ranking = self._ranking(fitted, on_its_data, groups)
        verdict = self._verdict(groups, ranking)
        reasons = reasons_of(verdict, groups, ranking, separated, self._tolerance, search)
        if verdict == "identified" and search:
            self._tell(IdentifyProgress("ask beyond its data", total, total + 1))
            reasons += self._beyond(ranking[0].algorithm)
        return Identification(
            verdict,
            tuple(groups),
            ranking,
            tuple(separated),
            reasons,
            read_weights(self._model, self._judging(asked)[0]),
        )

    def _key(self, *names: str) -> Any:
        return named_key(self._seed, "identify", *names)

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
        return learner.steps == 1 and (_is_plain_step(fitted) or not told_apart)

    def _groups(
        self, left: Sequence[str], fitted: dict[str, Fitted], judgement: Judgement, asked_at: Sequence[str]
    ) -> tuple[dict[str, list[str]], Place | None]:
        """Those left by the simplest that each is the same as, and where the groups differ most."""
        if len(left) < 2:
            return {name: [] for name in left}, None
        ordered = [name for name in FAMILIES if name in left]
        learners = [fitted[name].learner for name in ordered]
        weights = length_weights(self._task)
        differences = Differences(learners, self._process, self._task, self._key("differences"), weights)
        alike = float(np.clip(_ALIKE * judgement.distance.min(), _LEAST_ALIKE, _MOST_ALIKE))
        groups: dict[str, list[str]] = {}
        for place, name in enumerate(ordered):
            same = (n for n in groups if differences.coincide(ordered.index(n), place, alike))
            # what the data do not determine may be anything: that it looks the same as fitted says nothing
            first = next(same, None) if fitted[name].determined else None
            if first is None:
                groups[name] = []
            else:
                groups[first].append(name)
        if len(groups) < 2:
            return groups, None
        found = differences.best_place([ordered.index(n) for n in groups], alike, asked_at)
        if found is None and not asked_at and not all(fitted[name].determined for name in groups):
            found = Place(telling_setting(self._process), int(np.flatnonzero(weights)[-1]), 0.0)
        return groups, found

    def _asked_at(self, setting: Any, examples: int, name: str) -> Evidence | None:
        """What the model answers in another setting; None if it raises an exception there, or answers no finite numbers."""
        sample = self._process.sample(self._key("elsewhere", name), task_length(self._task), self._tasks)
        sample = setting.changed(sample, self._key("change", name))
        weights = np.zeros(len(length_weights(self._task)))
        weights[examples] = 1.0
        problems = of_sample(self._process, sample, weights)
        try:
            return Evidence(problems, answers(self._model, problems))
        except Exception:  # whatever a model says to data that it is not made for
            return None

    def _fitted_anew(self, left: Sequence[str], asked: list[Evidence]) -> _Outcome:
        fitted = {name: FAMILIES[name].fit(self._fitting(asked)) for name in left}
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


def _checked_tasks(tasks: int, level: float) -> int:
    tasks = integer_at_least("tasks", tasks, 2)
    try:
        check_level(level, tasks // 2)
    except ValueError as error:
        raise ValueError(f"{error} (one half of the {tasks} tasks is fitted to)") from None
    return tasks


def _checked_names(learners: Sequence[str] | None, process: Any) -> list[str]:
    fitting = fitting_families(process)
    if learners is None:
        return list(fitting)
    learners = learners if isinstance(learners, str) else list(learners)
    if isinstance(learners, str) or not learners:
        raise ValueError(f"learners: must list at least one id such as 'ridge', got {learners!r}")
    for name in learners:
        if name not in FAMILIES:
            near = get_close_matches(str(name), FAMILIES, n=1, cutoff=0.5)
            mend = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(FAMILIES)}"
            raise ValueError(f"learners: no learner {name!r}; {mend}")
        if name not in fitting:
            raise ValueError(
                f"learners: {name!r} reads symbols, and {type(process).__name__} draws none; leave it out"
            )
    return [name for name in FAMILIES if name in learners]
