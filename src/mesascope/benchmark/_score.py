"""How right the answers of a method are: names, hyperparameters, and intervals of weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import scipy
from pydantic import BaseModel

from mesascope.records import Provenance
from mesascope.specs import SpecError, error_path, known_kinds, show, unknown

from ._benchmark import Benchmark
from ._cases import GROUPS, SAME, Truth
from ._files import Answer, Answers

Mark = Literal["right", "open", "missed", "wrong"]
"""What an answer is given."""
MARKS: tuple[Mark, ...] = ("right", "open", "missed", "wrong")
"""Right: names the learner, or the learners of a mixture, or none for a decoy. Open: names several, the right one among
them. Missed: names none though there is one, or several without the right one. Wrong: names one learner, or one mixture, that
is not right."""
_LEVEL = 0.95


class Score(BaseModel, frozen=True, extra="forbid"):
    """How right the answers of a method are.

    Attributes:
        method: its name.
        benchmark: `id` of the benchmark.
        seed, draws: of the benchmark.
        counts: number of models by group and mark; the group "all" has all of them.
        hyperparameters: how many hyperparameters of rightly named learners were compared.
        within: the share of them that is within 1 %.
        largest_error: the largest relative error of one.
        intervals: how many weights of rightly named mixtures have an interval; without noise there is none to speak of.
        covered: the share of these intervals that hold the weight.
        coverage: 95 % interval of that share.
        seconds: median of the seconds for a model.
        wrong: the numbers of the models that it names wrongly, with what it names.
        provenance: the versions that answered, if the answers say so.
    """

    method: str
    benchmark: str
    seed: int
    draws: int
    counts: dict[str, dict[Mark, int]]
    hyperparameters: int
    within: float
    largest_error: float
    intervals: int
    covered: float
    coverage: tuple[float, float]
    seconds: float
    wrong: dict[str, tuple[str, ...]]
    provenance: Provenance | None

    @property
    def accuracy(self) -> float:
        """The share of models with a right answer."""
        return self.counts["all"]["right"] / sum(self.counts["all"].values())

    def describe(self) -> str:
        """Return what was counted besides right and wrong names, in one sentence."""
        parts = []
        if self.hyperparameters:
            share = f"{100 * self.within:.1f} % of {self.hyperparameters} hyperparameters within 1 %"
            parts.append(f"{share}, the largest error {100 * self.largest_error:.2g} %")
        if self.intervals:
            low, high = (100 * end for end in self.coverage)
            share = f"{100 * self.covered:.1f} % [{low:.1f}, {high:.1f}]"
            parts.append(f"{share} of {self.intervals} intervals of weights hold the weight")
        return "; ".join(parts) or "no hyperparameters or weights are compared"


def score(benchmark: Benchmark, answers: Answers) -> Score:
    """Return how right answers are.

    Raises:
        ValueError: they are answers to another benchmark, or not to all its models, or hold a hyperparameter that is no number.
    """
    if answers.benchmark != benchmark.id:
        raise ValueError("the answers are to another benchmark (its digest differs); answer this one")
    missing = [name for name in benchmark.names if name not in answers.answers]
    if missing or len(answers.answers) != len(benchmark.names):
        what = f"no answer to model {missing[0]}" if missing else "answers to models that it does not have"
        raise ValueError(f"the answers have {what}; answer all {len(benchmark.names)} models, and no other")
    counts: dict[str, dict[Mark, int]] = {group: dict.fromkeys(MARKS, 0) for group in (*GROUPS, "all")}
    errors: list[float] = []
    held: list[bool] = []
    wrong: dict[str, tuple[str, ...]] = {}
    known = sorted(known_kinds("learner"))
    for name, entry in benchmark.key.models.items():
        answer = answers.answers[name]
        others = [one for one in answer.learners if one not in known]
        if others:
            raise SpecError(unknown("learner", others[0], known), "answers", name, "learners")
        given = mark(answer, entry.truth)
        for group in (entry.group, "all"):
            counts[group][given] += 1
        if given == "wrong":
            wrong[name] = answer.learners
        if given == "right":
            with error_path("answers", name, "hyperparameters"):
                errors += _errors(answer, entry.truth)
            held += _held(answer, entry.truth) if entry.noise else []
    within = float(np.mean([error <= 0.01 for error in errors])) if errors else float("nan")
    seconds = float(np.median([answer.seconds for answer in answers.answers.values()]))
    covered, coverage = _share(held)
    return Score(
        method=answers.method,
        benchmark=benchmark.id,
        seed=benchmark.manifest.seed,
        draws=benchmark.manifest.draws,
        counts=counts,
        hyperparameters=len(errors),
        within=within,
        largest_error=max(errors, default=float("nan")),
        intervals=len(held),
        covered=covered,
        coverage=coverage,
        seconds=seconds,
        wrong=wrong,
        provenance=answers.provenance,
    )


def mark(answer: Answer, truth: Truth) -> Mark:
    """Return the mark of one answer."""
    named, right = {SAME.get(one, one) for one in answer.learners}, set(truth.learners)
    if answer.verdict in ("identified", "mixture"):
        return "right" if right and named == right and len(answer.learners) == len(right) else "wrong"
    if answer.verdict == "none":
        return "missed" if right else "right"
    return "open" if right and right <= named else "missed"


def _errors(answer: Answer, truth: Truth) -> list[float]:
    """Return the relative errors of the hyperparameters that both have; of arrays relative to the largest entry."""
    found = []
    for learner, values in truth.hyperparameters.items():
        given = answer.hyperparameters.get(learner, {})
        for name, value in values.items():
            if name in given:
                right = _numbers(value)
                with error_path(learner, name):
                    found.append(_error(_numbers(given[name]), right))
    return found


def _error(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape:
        return float("inf")
    with np.errstate(over="ignore"):  # an absurd answer is infinitely wrong
        return float(np.abs(one - other).max() / np.abs(other).max())


def _numbers(value: Any) -> np.ndarray:
    """Return a number or an array; a matrix for the diagonal of one.

    Raises:
        ValueError: there is something else than finite numbers in it.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)  # rows of different lengths
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise SpecError(f"must be a finite number, a matrix of them or its diagonal, got {show(value)}")
    return np.diag(array) if array.ndim == 1 else array


def _held(answer: Answer, truth: Truth) -> list[bool]:
    """Return which intervals hold the weight; of all but the last learner, since the weights have the sum 1."""
    names = sorted(truth.weights)[:-1]
    intervals: Mapping[str, tuple[float, float, float]] = answer.weights
    return [
        intervals[name][1] <= truth.weights[name] <= intervals[name][2] for name in names if name in intervals
    ]


def _share(held: list[bool]) -> tuple[float, tuple[float, float]]:
    """Return the share of true ones, and its interval by Clopper and Pearson."""
    if not held:
        return float("nan"), (float("nan"), float("nan"))
    found = scipy.stats.binomtest(sum(held), len(held)).proportion_ci(_LEVEL, method="exact")
    return float(np.mean(held)), (float(found.low), float(found.high))
