"""The posterior odds that are fitted to the models' weights, and what they say of a pool that was left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from mesascope.records import Figure, Line, Trace
from mesascope.theory import wurgaft2025 as theory

from .._claim import Claim, Finding, UnsettledError, presets
from .._figures import curve, one_panel
from .._intervals import above, below, mean_interval
from .._minimized import Minimum, best_of
from .._runs import seeds_of
from ._data import FULL, PAPER, Course, Tested, course, first_counted

_FITTED = 0.8  # of the checkpoints that count: the first ones
_BOUNDS = np.log([[1e-2, 2.0], [1e-2, 1.0], [1e-3, 1e3]])  # of α, β and γ
_STARTS = np.log([[0.1, 1.0], [0.05, 0.5], [0.1, 30.0]])
_SEARCHES = 8
_NEARNESS = 1e-4  # relative, of least squares


class Fit(NamedTuple):
    """The odds fitted to the models of one seed.

    Attributes:
        exponents: α, β and γ.
        predicted: size of the pool → the weight of memorizing at all checkpoints.
    """

    exponents: tuple[float, ...]
    predicted: dict[int, np.ndarray]


def fitted(
    settings: Tested,
    place: int,
    first: int,
    last: int,
    sizes: tuple[int, ...],
    constant: bool = False,
) -> Fit:
    """The odds nearest to the weights of one seed: least squares of predictions, as of the probabilities themselves.

    Args:
        settings: of the models.
        place: of the seed.
        first: the first checkpoint to fit to.
        last: the one after the last.
        sizes: the pools to fit to.
        constant: memorizing has the bits of the largest pool for all of them.

    Raises:
        UnsettledError: searches from several starts do not reach the same value.
    """
    courses = {tasks: course(settings, tasks) for tasks in settings.sizes}

    def predicted(logs: np.ndarray, tasks: int) -> np.ndarray:
        one = courses[tasks]
        bits = theory.complexities(max(settings.sizes) if constant else tasks, settings.symbols)
        odds = theory.log_odds(
            np.maximum(one.steps, 1), one.loss_gap, bits["memorizing"], bits["generalizing"], *np.exp(logs)
        )
        return np.asarray(scipy.special.expit(odds))

    def off(logs: np.ndarray) -> np.ndarray:
        rows = [
            courses[tasks].apart ** 0.5 * (predicted(logs, tasks) - courses[tasks].weights[place])[first:last]
            for tasks in sizes
        ]
        return np.concatenate(rows)

    def search(start: np.ndarray) -> Minimum:
        end = scipy.optimize.least_squares(off, start, bounds=_BOUNDS.T, xtol=1e-12, ftol=1e-12, gtol=1e-12)
        if not end.success:
            raise UnsettledError("a fit of odds did not come to an end")
        return Minimum(end.x, float(end.cost))

    rng = np.random.default_rng([settings.seed, place])
    best = best_of(search, rng.uniform(_STARTS[:, 0], _STARTS[:, 1], (_SEARCHES, 3)), _NEARNESS)
    return Fit(tuple(np.exp(best.point).tolist()), {tasks: predicted(best.point, tasks) for tasks in courses})


def _compared(
    settings: Tested, sizes: tuple[int, ...], constant: bool = False, share: float = 1.0
) -> list[Any]:
    """For each seed: the fit to the first checkpoints on some pools, and where those that count begin."""
    courses = [course(settings, tasks) for tasks in settings.sizes]
    checkpoints = len(courses[0].steps)
    found = []
    for place, first in enumerate(first_counted(courses)):
        last = int(first) + int(np.ceil(share * (checkpoints - first)))
        found.append((fitted(settings, place, int(first), last, sizes, constant), int(first)))
    return found


def _odds(settings: _Odds) -> Finding:
    """The correlation of fitted and measured weights over pools and checkpoints."""
    found = _compared(settings, settings.sizes, share=_FITTED)
    courses = {tasks: course(settings, tasks) for tasks in settings.sizes}
    each = [
        float(np.corrcoef(_joined(fit.predicted, first), _joined(_weights(courses, place), first))[0, 1])
        for place, (fit, first) in enumerate(found)
    ]
    mean, interval = mean_interval(each)
    names = ("alpha", "beta", "gamma")
    exponents = dict(zip(names, np.array([fit.exponents for fit, _ in found]).T, strict=True))
    return Finding(
        {"correlation": mean, **{name: float(np.median(one)) for name, one in exponents.items()}},
        f"a correlation above {settings.least:g}",
        None,
        above(interval, settings.least),
        {
            "interval_95": interval,
            "correlations": each,
            "exponents": exponents,
            "first_step": [int(courses[settings.sizes[0]].steps[first]) for _, first in found],
            "left_at_the_end": {str(tasks): float(one.left[:, -1].mean()) for tasks, one in courses.items()},
            "meaning": "by seed; left: mean square of the difference to the nearest mixture over that between the strategies",
        },
        {"weights": _picture(settings, courses, [fit for fit, _ in found])},
    )


def _left_out(settings: _LeftOut) -> Finding:
    """The error of weights that are predicted for the largest pool, over that of the weights on the pool before."""
    *others, largest = settings.sizes
    fits = {
        name: _compared(settings, tuple(others), constant=constant)
        for name, constant in (("odds", False), ("odds with constant complexity", True))
    }
    weights = course(settings, largest).weights
    errors = {
        name: [
            _root(fit.predicted[largest][first:] - weights[place][first:])
            for place, (fit, first) in enumerate(found)
        ]
        for name, found in fits.items()
    }
    off = course(settings, others[-1]).weights - weights
    errors["weights of the pool before"] = [
        _root(off[place][first:]) for place, (_, first) in enumerate(fits["odds"])
    ]
    mean, interval = mean_interval(np.log(errors["odds"]) - np.log(errors["weights of the pool before"]))
    return Finding(
        {
            "ratio of errors": float(np.exp(mean)),
            **{f"error of {name}": float(np.mean(one)) for name, one in errors.items()},
        },
        f"a ratio below {settings.share:g}",
        None,
        below(interval, float(np.log(settings.share))),
        {
            "interval_95": np.exp(interval).tolist(),
            "errors": errors,
            "meaning": f"root mean square over the checkpoints of K = {largest}, by seed; the ratio: geometric mean over seeds",
        },
    )


def _complexity(settings: _Complexity) -> Finding:
    """The error of the odds with a complexity that is the same for all pools, over that of the paper's."""
    courses = {tasks: course(settings, tasks) for tasks in settings.sizes}
    errors = {
        name: [
            _root(_joined(fit.predicted, first) - _joined(_weights(courses, place), first))
            for place, (fit, first) in enumerate(_compared(settings, settings.sizes, constant=constant))
        ]
        for name, constant in (("growing", False), ("constant", True))
    }
    mean, interval = mean_interval(np.log(errors["constant"]) - np.log(errors["growing"]))
    return Finding(
        {
            "ratio of errors": float(np.exp(mean)),
            **{f"error with {name} complexity": float(np.mean(one)) for name, one in errors.items()},
        },
        f"a ratio below {settings.most:g}",
        None,
        below(interval, float(np.log(settings.most))),
        {
            "interval_95": np.exp(interval).tolist(),
            "errors": errors,
            "meaning": "root mean square over pools and checkpoints, by seed; the ratio: geometric mean over seeds",
        },
    )


def _weights(courses: dict[int, Course], place: int) -> dict[int, np.ndarray]:
    return {tasks: one.weights[place] for tasks, one in courses.items()}


def _joined(weights: dict[int, np.ndarray], first: int) -> np.ndarray:
    return np.concatenate([one[first:] for one in weights.values()])


def _root(off: np.ndarray) -> float:
    return float(np.sqrt(np.mean(off**2)))


def _picture(settings: Tested, courses: dict[int, Course], fits: list[Fit]) -> Figure:
    """Weights along training, and the median over seeds of those that the odds give."""
    first = int(first_counted(courses.values()).min())
    traces: list[Trace] = []
    for series, (tasks, one) in enumerate(courses.items()):
        steps = one.steps[first:]
        band, line = curve(steps, one.weights[:, first:], f"K = {tasks}", series)
        traces += [band, line.model_copy(update={"style": "solid"})]
        predicted = np.median([fit.predicted[tasks][first:] for fit in fits], 0)
        traces.append(Line(x=steps, y=predicted, label=f"K = {tasks}, odds", series=series, style="dashed"))
    return one_panel(
        "Weight of memorizing in transformers on urns of a pool",
        f"S = {settings.symbols}, T = {settings.horizon}, {len(seeds_of(settings))} seeds",
        *traces,
        xlabel="steps",
        ylabel="weight of memorizing",
        xscale="log",
        caption="Lines: median over the seeds, bands: all seeds; dashed: the odds that were fitted to the first four fifths.",
    )


class _Odds(Tested):
    least: float = 0.9


class _LeftOut(Tested):
    share: float = 0.5


class _Complexity(Tested):
    most: float = 1.1


_CHOICE = "The setting was chosen with the seeds 1 to 5 and other pools (seed 0), 1500 steps"

CLAIMS = (
    Claim(
        id=f"{PAPER}/odds",
        title="Posterior odds from loss and complexity fit the weights",
        evidence="measured, another model",
        origin="paper",
        statement="""Three numbers of a formula for the posterior odds of memorizing, fitted to transformers on pools of several
            sizes, describe the weight of memorizing along their training, with a correlation above 0.9.""",
        source="""wurgaft2025, abstract; the formula: `models.py:898-938`, the correlations, 0.987 and more:
            `results/categorical-sequence_bms_correlations.jsonl` of the authors' program at 7fcd0a6""",
        settings=presets(_Odds(), **FULL),
        check=_odds,
        criterion="""The 95 % interval over seeds lies above 0.9, which is ours. The three numbers are fitted for each seed to
            the first four fifths of the checkpoints from the one on where a mixture of both strategies has come near on all
            pools, as in the program. The correlation is over all checkpoints that count and all pools. Most of them were
            fitted: `left-out` asks for a prediction. The least squares are reached from three of eight starts.""",
        history=f"""{_CHOICE}; there the correlations were 0.970 to 0.981, and on the pools of seed 1 (seeds 10 to 14, 1000
            steps) 0.952 to 0.962, on those of seed 2 (seeds 20 to 24) 0.938 to 0.958.""",
        cost="about 40 min",
        papers_setting="about 15 h",
    ),
    Claim(
        id=f"{PAPER}/left-out",
        title="The odds predict the weights on a pool that was left out",
        evidence="measured, another model",
        origin="ours",
        statement="""Odds that are fitted to the smaller pools predict the weights of memorizing on the largest one with less
            than half the error that the weights on the second largest have there.""",
        source="wurgaft2025, whose formula it is: `models.py:898-938` of the authors' program at 7fcd0a6",
        settings=presets(_LeftOut(), **FULL),
        check=_left_out,
        criterion="""The 95 % interval over seeds of the ratio of root mean square errors lies below a half: what a formula
            tells must be clearly more than that neighbours are alike.""",
        history=f"""{_CHOICE}; there the errors of the odds were 0.034 to 0.047, about a quarter of those of the second
            largest pool. On the pools of seed 1 (seeds 10 to 14) the ratio was 1.28, on those of seed 2 (seeds
            20 to 24) 0.94: it was not met.""",
        cost="about 40 min",
    ),
    Claim(
        id=f"{PAPER}/constant-complexity",
        title="A complexity that ignores the pool's size fits at least as well",
        evidence="measured, another model",
        origin="ours",
        statement="""With the bits of the largest pool for memorizing on all pools, the odds fit the weights with an error at
            most a tenth larger than with bits that grow with the pool.""",
        source="wurgaft2025, whose formula it is: `models.py:898-938` of the authors' program at 7fcd0a6",
        settings=presets(_Complexity(), **FULL),
        check=_complexity,
        criterion="""The 95 % interval over seeds of the ratio of root mean square errors lies below 1.1. Both have three
            numbers, fitted to all checkpoints that count. A tenth is less than what the seeds differ by.""",
        history=f"""{_CHOICE}; there the ratios of the errors were 0.96 to 1.04, and on the pools of seed 1 (seeds 10 to 14)
            0.83, on those of seed 2 (seeds 20 to 24) 0.78.""",
        cost="about 40 min",
    ),
)
