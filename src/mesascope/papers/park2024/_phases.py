"""Which strategy transformers are nearest to, along training and over the number of chains."""

from __future__ import annotations

import numpy as np

from mesascope.records import Figure, Panel
from mesascope.theory import park2024 as theory

from .._claim import Claim, Finding, UnsettledError, presets
from .._figures import curve
from .._intervals import above, below, mean_interval, mean_intervals
from .._still_falling import fall, unless_falling
from ._data import FULL, PAPER, Course, Tested, course

UNI_RET, BI_RET, UNI_INF, BI_INF = range(len(theory.STRATEGIES))
_EARLY = 32  # steps
_LEAST = 1e-8  # of the distances that are drawn


def _unigrams(settings: _Unigrams) -> Finding:
    """The distance of the nearest bigram strategy over that of the nearest unigram strategy, early and at the end."""
    logs = {}
    for tasks in settings.sizes:
        one = course(settings, tasks, "new")
        ratios = np.log(
            one.distances[..., [BI_RET, BI_INF]].min(-1) / one.distances[..., [UNI_RET, UNI_INF]].min(-1)
        )
        logs[f"early, K = {tasks}"] = ratios[:, _place(one)]
        logs[f"at the end, K = {tasks}"] = ratios[:, -1]
    means, ends = mean_intervals(logs)
    equal = float(np.log(settings.ratio))
    smallest = f"K = {settings.sizes[0]}"
    early, (low, high) = np.exp(means[f"early, {smallest}"]), np.exp(ends[f"early, {smallest}"])
    return Finding.of_parts(
        {name: float(np.exp(mean)) for name, mean in means.items()},
        f"above {settings.ratio:g} early, below at the end",
        None,
        {
            name: above(interval, equal) if name.startswith("early") else below(interval, equal)
            for name, interval in ends.items()
            if not name.endswith(smallest)
        },
        {
            "intervals_95": {name: np.exp(interval).tolist() for name, interval in ends.items()},
            "meaning": "distance of the nearest bigram strategy over that of the nearest unigram one; geometric mean",
        },
        {"phases": _picture(settings)},
        difference=f"On the smallest pool, {smallest}, models are nearest to a bigram strategy from the beginning: "
        f"the early ratio is {early:.2f} [{low:.2f}, {high:.2f}]; the exception in the figure ends with unigrams instead."
        if early < settings.ratio
        else "",
    )


def _place(one: Course) -> int:
    """The last checkpoint within the early steps."""
    return int(np.flatnonzero(one.steps <= _EARLY)[-1])


def _diversity(settings: _Diversity) -> Finding:
    """The distance from Bi-Inf over that from Bi-Ret at the end, on few chains and on many."""
    few, many = settings.bounds
    logs = {}
    for tasks in settings.sizes:
        end = course(settings, tasks, "new").distances[:, -1]
        logs[f"K = {tasks}"] = np.log(end[:, BI_INF] / end[:, BI_RET])
    means, ends = mean_intervals(logs)
    equal = float(np.log(settings.ratio))
    return Finding.of_parts(
        {name: float(np.exp(mean)) for name, mean in means.items()},
        f"above {settings.ratio:g} for K = {few}, below for K = {many}",
        None,
        {
            f"Bi-Ret nearer, K = {few}": above(ends[f"K = {few}"], equal),
            f"Bi-Inf nearer, K = {many}": below(ends[f"K = {many}"], equal),
        },
        {
            "intervals_95": {name: np.exp(interval).tolist() for name, interval in ends.items()},
            "meaning": "distance from Bi-Inf over that from Bi-Ret at the end, on new chains; geometric mean over seeds",
        },
    )


def _first(settings: _First) -> Finding:
    """The distance from Uni-Inf over that from Uni-Ret, where a unigram strategy is the nearest for the last time."""
    one = course(settings, settings.many, "new")
    nearest = np.isin(one.distances.argmin(-1), (UNI_RET, UNI_INF))
    if not nearest.any(1).all():
        raise UnsettledError(
            f"{int((~nearest.any(1)).sum())} of {len(nearest)} models are never nearest to a unigram strategy; take other seeds"
        )
    places = [int(np.flatnonzero(row)[-1]) for row in nearest]
    at = one.distances[np.arange(len(places)), places]
    mean, interval = mean_interval(np.log(at[:, UNI_INF] / at[:, UNI_RET]))
    return Finding(
        {"Uni-Inf over Uni-Ret": float(np.exp(mean)), "step": float(np.median(one.steps[places]))},
        f"below {settings.ratio:g}",
        None,
        below(interval, float(np.log(settings.ratio))),
        {
            "interval_95": np.exp(interval).tolist(),
            "steps": [int(one.steps[place]) for place in places],
            "distances": at,
            "meaning": f"distances on new chains, K = {settings.many}; geometric mean over seeds; step: median",
        },
    )


def _mixture(settings: _Mixture) -> Finding:
    """What the nearest mixture of the four strategies leaves at the end."""
    ends, falls, weights = {}, {}, {}
    for tasks in settings.sizes:
        one = course(settings, tasks, "pool")
        middle = int(np.flatnonzero(one.steps <= settings.steps // 2)[-1])
        ends[f"K = {tasks}"] = mean_interval(one.left[:, -1])
        falls[f"K = {tasks}"] = fall(one.left[:, middle], one.left[:, -1])
        weights[f"K = {tasks}"] = dict(
            zip(theory.STRATEGIES, one.weights[:, -1].mean(0).tolist(), strict=True)
        )
    return Finding.of_parts(
        {name: mean for name, (mean, _) in ends.items()},
        f"at most {settings.most:g}",
        settings.most,
        {
            name: unless_falling(below(interval, settings.most), falls[name])
            for name, (_, interval) in ends.items()
        },
        {
            "intervals_95": {name: interval for name, (_, interval) in ends.items()},
            "fall_in_the_second_half": falls,
            "weights": weights,
            "meaning": "mean square of the model's difference from the nearest mixture, over that of its difference from 1/S",
        },
    )


def _picture(settings: Tested) -> Figure:
    panels = []
    for tasks in settings.sizes:
        one = course(settings, tasks, "new")
        traces = [
            trace
            for series, name in enumerate(theory.STRATEGIES)
            for trace in curve(one.steps + 1, np.maximum(one.distances[..., series], _LEAST), name, series)
        ]
        panels.append(
            Panel(
                title=f"K = {tasks}",
                xlabel="steps + 1",
                ylabel="distance",
                xscale="log",
                yscale="log",
                traces=tuple(traces),
            )
        )
    return Figure(
        title=f"Transformers on chains of a pool, asked about new chains: S = {settings.symbols}, T = {settings.horizon}",
        panels=tuple(panels),
        caption="Lines: median over the seeds, bands: all seeds.",
    )


class _Unigrams(Tested):
    ratio: float = 1.0


class _Diversity(Tested):
    bounds: tuple[int, int] = (2, 128)
    ratio: float = 1.0


class _First(Tested):
    many: int = 128
    ratio: float = 1.0


class _Mixture(Tested):
    most: float = 0.1


_CHOICE = """The setting was chosen with one or two seeds from 1 on and another pool (seed 0), by the time it takes, until
    models reached bigram strategies"""
_FIGURE = "park2024, `assets/phases.png` of the authors' program at e36d2d3"

CLAIMS = (
    Claim(
        id=f"{PAPER}/unigrams-first",
        title="Unigram strategies come before bigram strategies",
        evidence="measured, another model",
        origin="authors' code",
        statement="""A transformer trained on chains of a pool that is not the smallest is, on new chains, after 32 steps
            nearest to a strategy by unigrams and at the end to one by bigrams.""",
        source=f"{_FIGURE}, panels b and c and the cube; there the smallest pool is an exception that ends with unigrams",
        settings=presets(_Unigrams(), **FULL),
        check=_unigrams,
        criterion="""95 % intervals over seeds of the distance of the nearest bigram strategy over that of the nearest
            unigram one lie above 1 after 32 steps and below 1 at the end, for every pool but the smallest. What differs there
            is said as a difference. The pools are the same for all seeds.""",
        history=f"""{_CHOICE}; there it was so. It was first asked for every pool: on those of seed 1, seeds 10 to 14, 1000
            steps, the ratio on two chains after 32 steps was 0.70 [0.61, 0.81], and it was not met; on 16 and 128 chains it
            was. Then the smallest pool was left out, with new pools and seeds, and 1500 steps.""",
        cost="about 2 h",
        papers_setting="about 12 days",
    ),
    Claim(
        id=f"{PAPER}/diversity",
        title="On few chains models retrieve, on many they infer",
        evidence="measured, another model",
        origin="authors' code",
        statement="""At the end of training a transformer is, on new chains, nearer to Bi-Ret than to Bi-Inf if its pool had
            few chains, and nearer to Bi-Inf if it had many.""",
        source=f"{_FIGURE}, panel a and the cube",
        settings=presets(_Diversity(), **FULL, bounds=(4, 256)),
        check=_diversity,
        criterion="""95 % intervals over seeds of the distance from Bi-Inf over that from Bi-Ret lie above 1 for the smallest
            pool and below 1 for the largest. The pools are the same for all seeds.""",
        history=f"{_CHOICE}; there it was so, and on the pools of seed 1 (seeds 10 to 14, 1000 steps).",
        cost="about 2 h",
        papers_setting="about 12 days",
    ),
    Claim(
        id=f"{PAPER}/uni-inf-first",
        title="The first strategy on many chains is Uni-Inf",
        evidence="measured, another model",
        origin="authors' code",
        statement="""Before a transformer trained on many chains is nearest to a bigram strategy, it is nearer to Uni-Inf
            than to Uni-Ret.""",
        source=f"{_FIGURE}, panels b and c and the cube, except for contexts of few symbols",
        settings=presets(_First(), **FULL, many=256),
        check=_first,
        criterion="""At the last checkpoint at which one of both unigram strategies is the nearest on new chains: the 95 %
            interval over seeds of the distance from Uni-Inf over that from Uni-Ret lies below 1.""",
        history=f"""{_CHOICE}; there it was not so: 0.49 against 0.32 on 128 chains after 147 steps; on those of
            seed 1 (seeds 10 to 14, 1000 steps) the ratio was 1.22 [1.02, 1.45].""",
        cost="about 2 h",
        papers_setting="about 12 days",
    ),
    Claim(
        id=f"{PAPER}/mixture",
        title="A mixture of four strategies explains trained models",
        evidence="measured, another model",
        origin="paper",
        statement="""At the end of training the nearest mixture of the four strategies leaves at most a tenth of a transformer's
            predictions on chains of its pool unexplained.""",
        source="park2024, abstract (that the four explain a model's behaviour); the tenth is ours",
        settings=presets(_Mixture(), **FULL),
        check=_mixture,
        criterion="""For every pool the 95 % interval over seeds of what is left lies below a tenth. What is left is the mean
            square of the difference between the model's probabilities and the mixture's, divided by that between the model's
            and 1/S. An interval that does not lie below, of what fell by more than a tenth in the second half of the
            training, decides nothing.""",
        history=f"""{_CHOICE}; there 0.06 and 0.07 were left on 2 and 128 chains. On the pools of seed 1 (seeds 10 to 14,
            1000 steps) 16 chains left 0.13 [0.08, 0.19], which fell: it was undecided.""",
        cost="about 2 h",
        papers_setting="about 12 days",
    ),
)
