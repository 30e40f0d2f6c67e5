"""Exact losses and gradient flows: balanced features, the rate at the end, imbalanced features in stages."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import jax.numpy as jnp
import numpy as np

from mesascope.processes import FewShot, OrthonormalFeatures
from mesascope.records import Figure, Line, Panel
from mesascope.theory import huang2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if
from .._identity import identities, identity
from ._model import (
    PAPER,
    CountedPrompts,
    FeatureAttention,
    FeatureFlow,
    Flow,
    Imbalanced,
    first_below,
    flow_of,
)


def _exact_loss(settings: _Sums) -> Finding:
    """The sum over counts against one binomial sum, and against all prompts."""
    gaps: dict[str, float] = {}
    prompts: dict[str, float] = {}
    for number, probabilities in enumerate(settings.laws):
        size, task = len(probabilities), FewShot(settings.examples)
        process = OrthonormalFeatures(size, probabilities=probabilities)
        objective = CountedPrompts().objective(process, task)
        for gap in settings.gaps:
            summed = float(objective(FeatureAttention(gap * jnp.eye(size))).value)
            closed = sum(
                p * theory.equal_gap_loss(gap, k, probabilities, task.examples)
                for k, p in enumerate(probabilities)
            )
            gaps[f"p = {list(probabilities)}, δ = {gap}"] = abs(summed / closed - 1)
        scores = np.random.default_rng([settings.seed, number]).normal(size=(size, size))
        model = FeatureAttention(jnp.asarray(scores))
        short = CountedPrompts().objective(process, FewShot(settings.enumerated))
        listed = _loss_of_all_prompts(model, probabilities, settings.enumerated)
        prompts[f"p = {list(probabilities)}, random Q"] = abs(float(short(model).value) / listed - 1)
    errors = {"one gap: a binomial sum": gaps, "any scores: all prompts": prompts}
    return identities(errors, settings.tolerance)


def _loss_of_all_prompts(model: FeatureAttention, probabilities: Any, examples: int) -> float:
    """½ E (ŷ − y_q)² over every sequence of features, with every w = √K e_k, which has the second moments of w ~ N(0, I)."""
    size = len(probabilities)
    places = np.array(list(product(range(size), repeat=examples + 1)))  # (prompts, N + 1)
    chances = np.prod(np.asarray(probabilities)[places], 1)
    x = jnp.asarray(np.eye(size)[places])
    labels = np.sqrt(size) * np.moveaxis(np.eye(size)[places], 2, 0)
    squares = [(model(x, y[:, :-1]) - y[:, -1]) ** 2 for y in labels]
    return float(chances @ np.mean(squares, 0) / 2)


def _balanced(settings: _Balanced) -> Finding:
    """Loss and attention at the end of the flow on balanced features."""
    flow = flow_of(settings)
    left, matching = float(flow.loss[-1] / flow.loss[0]), float(flow.matching[-1].min())
    parts = {
        "near-zero error in finite time": verdict_if(left < settings.left),
        "attention on the query's feature": verdict_if(matching > settings.matching),
    }
    return Finding.of_parts(
        {"loss_over_that_at_the_start": left, "least_attention_to_the_matching_feature": matching},
        {
            "loss_over_that_at_the_start": f"below {settings.left}",
            "least_attention_to_the_matching_feature": f"above {settings.matching}",
        },
        None,
        parts,
        {
            "loss_with_an_infinite_gap": float(
                np.mean(theory.least_losses(_even(settings.features), settings.examples))
            ),
            "end": float(flow.loss[-1]),
            "difference_between_features": float(np.ptp(np.diag(flow.scores))),
            "time_to_half_the_loss": first_below(flow.times, flow.loss / flow.loss[0], 0.5),
        },
        {"balanced": _figure("Balanced features", flow, settings, _even(settings.features))},
    )


def _even(features: int) -> list[float]:
    return [1 / features] * features


def _late_rate(settings: _LateRate) -> Finding:
    """T (L − L_∞) at two late times, extrapolated to no gap correction."""
    ratios: dict[str, list[float]] = {}
    for size, examples in settings.cases:
        least = float(np.mean(theory.least_losses(_even(size), examples)))
        found = []
        for time in (settings.time / 4, settings.time):
            end = flow_of(Flow(features=size, examples=examples, time=time)).loss[-1]
            found.append(float((end - least) / theory.late_excess(time, size)))
        ratios[f"K = {size}, N = {examples}"] = found
    return identity(
        {name: 2 * late - early - 1 for name, (early, late) in ratios.items()},
        settings.tolerance,
        ratios_at_a_quarter_of_the_time_and_at_the_end=ratios,
        meaning="(L − L_∞) over (K − 1)/(4t) less 1; what is left out falls as 1/√t, as the extrapolation assumes",
    )


def _stages(settings: _Stages) -> Finding:
    """The times at which every excess is halved and near zero, and the progress of the others when the first is halved."""
    flow, p = flow_of(settings), settings.probabilities
    halves, nearly, hundredths = (_times(flow, level) for level in (0.5, settings.left, 0.01))
    gone = [1 - float(np.interp(halves[0], flow.times, flow.excess[:, k])) for k in range(len(p))]
    behind = [part / gone[0] for part in gone[1:]]
    end = float(flow.excess[-1].max())
    parts = {
        "a stage of its own": verdict_if(max(behind) < settings.behind),
        "dominant feature near zero first": verdict_if(nearly[0] < min(nearly[1:])),
        "all near zero in the end": verdict_if(end < settings.left),
    }
    before = sum(time < hundredths[0] for time in hundredths[1:])
    return Finding.of_parts(
        {
            "time_to_half": halves,
            "way_of_the_others_over_that_of_the_dominant": behind,
            "time_to_near_zero": nearly,
            "excess_left_at_the_end": end,
        },
        {
            "way_of_the_others_over_that_of_the_dominant": f"below {settings.behind}",
            "time_to_near_zero": "least for the dominant feature",
            "excess_left_at_the_end": f"below {settings.left}",
        },
        None,
        parts,
        {
            "probabilities": p,
            "speeds_over_that_of_the_dominant": [q / p[0] for q in p[1:]],
            "time_to_a_hundredth": hundredths,
            "attention_when_the_first_is_half_done": [
                float(np.interp(halves[0], flow.times, flow.matching[:, k])) for k in range(len(p))
            ],
            "meaning": (
                "excess: L_k minus that for an infinite gap, relative to the start; way: 1 minus it, at the first half; near "
                f"zero: {settings.left} of the excess"
            ),
        },
        {"stages": _figure("Imbalanced features: one after the other", flow, settings, p)},
        difference=(
            f"At 1 % of the initial excess the order is another: {before} of the {len(p) - 1} rare features get there before "
            "the dominant one."
            if before
            else ""
        ),
    )


def _order(settings: _Order) -> Finding:
    """The times at which the excess of every feature falls to given levels."""
    flow, p = flow_of(settings), settings.probabilities
    times = {str(level): _times(flow, level) for level in settings.levels}
    in_order = {level: verdict_if(_in_order(found, p)) for level, found in times.items()}
    return Finding.of_parts(
        {"times": times},
        {"times": "finite, and the earlier the more probable"},
        None,
        {f"order at {level} of the excess": decision for level, decision in in_order.items()},
        {"probabilities": p},
    )


def _times(flow: FeatureFlow, level: float) -> list[float]:
    """The times at which the excess of every feature first falls to a level."""
    return [first_below(flow.times, values, level) for values in flow.excess.T]


def _in_order(times: list[float], probabilities: Any) -> bool:
    """Whether more probable features are always earlier, and all times are finite."""
    ranked = sorted(zip(probabilities, times, strict=True), reverse=True)
    return all(a < b for (q, a), (r, b) in pairwise(ranked) if q > r) and max(times) < np.inf


def _figure(title: str, flow: FeatureFlow, settings: Flow, p: Any) -> Figure:
    shown = [
        k for k in range(len(p)) if k == 0 or p[k] != p[k - 1]
    ]  # features of equal probability have the same curve
    later = flow.times > 0

    def panel(title: str, ylabel: str, values: np.ndarray) -> Panel:
        x, label = flow.times[later], "feature of probability"
        curves = (Line(x=x, y=values[later, k], label=f"{label} {p[k]:.2g}", series=k) for k in shown)
        return Panel(title=title, xlabel="flow time", ylabel=ylabel, xscale="log", traces=tuple(curves))

    loss = f"Loss by feature, K = {settings.features}, N = {settings.examples}"
    return Figure(
        title=title,
        panels=(
            panel(loss, "excess loss / that at the start", flow.excess),
            panel("Attention to examples of the query's feature", "attention", flow.matching),
        ),
        caption="Exact gradient flow of Q from 0.",
    )


class _Sums(Settings):
    laws: tuple[tuple[float, ...], ...] = ((0.5, 0.5), (0.25, 0.25, 0.25, 0.25), (0.6, 0.3, 0.1))
    gaps: tuple[float, ...] = (0.0, 1.0, 5.0, 12.0)
    examples: int = 20
    enumerated: int = 5
    seed: int = 0
    tolerance: float = 1e-12


class _Balanced(Flow):
    left: float = 0.01
    matching: float = 0.95


class _LateRate(Settings):
    cases: tuple[tuple[int, int], ...] = ((2, 20), (4, 30))
    time: float = 1e5
    tolerance: float = 0.005


class _Stages(Flow, Imbalanced):
    behind: float = 0.5
    left: float = 0.05


class _Order(Flow, Imbalanced):
    levels: tuple[float, ...] = (0.5, 0.05)


CLAIMS = (
    Claim(
        id=f"{PAPER}/exact-loss",
        title="The loss is a sum over how often features occur",
        evidence="exact",
        statement=(
            "The loss of softmax attention on orthonormal features is a sum over counts of features, and a binomial sum where "
            "all scores off the diagonal lie one gap below those on it."
        ),
        source="huang2024, setting (second-hand, reviews of the ICLR 2024 submission); both sums are derived here",
        origin="ours",
        settings=presets(_Sums()),
        check=_exact_loss,
        criterion=(
            "Both identities hold to a relative error of 1e-12: rounding of double precision in sums over at most 1771 vectors "
            "of counts or 4096 sequences of features. Random scores are compared with the layer's own answers to all "
            "prompts of five examples; one gap with the binomial sum at N = 20."
        ),
        history=(
            "The second part was a comparison with 20 000 drawn prompts (seed 0), which lay within 0.8 standard errors; "
            "it is now a sum over all prompts."
        ),
    ),
    Claim(
        id=f"{PAPER}/balanced",
        title="On balanced features the error nearly vanishes in finite time",
        evidence="exact",
        origin="paper, second-hand",
        statement=(
            "On balanced features the training of one softmax attention layer reaches near-zero error in finite time, with the "
            "attention of every query on examples of its own feature."
        ),
        source=(
            "huang2024, abstract (near-zero error in finite time on balanced features); attention on the matching feature is "
            "second-hand (notes on the first phase)"
        ),
        settings=presets(_Balanced(), examples=100),
        check=_balanced,
        criterion=(
            "At time 1000 of the exact gradient flow from Q = 0 less than 0.01 of the loss is left, and every query gives "
            "examples of its feature, where there are any, above 0.95 of its attention. The flow is solved to 1e-8; both "
            "thresholds are ours, since no number for near-zero was found."
        ),
        cost="about 1 min",
    ),
    Claim(
        id=f"{PAPER}/late-rate",
        title="On balanced features the error ends as one over time",
        evidence="exact",
        statement=(
            "On balanced features the flow ends as L − L_∞ ≃ (K − 1)/(4t) whatever the number of examples, so that an error ε "
            "takes time of order 1/ε."
        ),
        source=(
            "huang2024, abstract (balanced features, the second of two phases); the rate and its constant are derived here"
        ),
        settings=presets(_LateRate(), cases=((2, 20), (4, 30), (3, 100))),
        check=_late_rate,
        origin="ours",
        criterion=(
            "4t(L − L_∞)/(K − 1) at t = 10⁵ and a quarter of it, extrapolated linearly in 1/√t, is 1 to 0.005. The "
            "extrapolation leaves out terms of order K²N/t, at most 0.005."
        ),
        cost="about 1 min",
    ),
    Claim(
        id=f"{PAPER}/stages",
        title="The dominant feature is learned first, under-represented ones later",
        evidence="exact",
        origin="paper",
        statement=(
            "On imbalanced features training goes in stages: the error for queries of the dominant feature comes near zero "
            "first, and that for queries of under-represented features later."
        ),
        source="huang2024, abstract (stage-wise convergence); sizes and thresholds are ours",
        settings=presets(_Stages(), examples=100),
        check=_stages,
        criterion=(
            "In the exact gradient flow from Q = 0 the dominant feature's excess loss falls below 0.05 before that of any "
            "other, and all do by time 1000. When the dominant one is halved, none of the others has come half as far: "
            "features that are learned together come equally far, and speeds p_k alone would give a sixth. Excess: the "
            "loss above that of attention on matching examples alone, relative to the start. Near zero is 0.05 here, our "
            "choice; the order at 0.01 is a difference that the finding reports."
        ),
        history=(
            "The order was judged by halves of the excess alone, and among all features; the order among the rare ones is "
            "now a claim of its own."
        ),
        cost="about 1 min",
    ),
    Claim(
        id=f"{PAPER}/order-of-features",
        title="Down to a twentieth, features are learned by their probabilities",
        evidence="exact",
        origin="ours",
        statement=(
            "The flow halves the excess losses of imbalanced features, and takes them to a twentieth, in the order of "
            "the features' probabilities, also among those that are rare."
        ),
        source="huang2024, abstract (stage-wise convergence); the order among under-represented features was found here",
        settings=presets(_Order(), examples=100),
        check=_order,
        criterion=(
            "At both levels of the excess every feature is earlier than all less probable ones. No tolerance: times of an "
            "exact flow that are a fifth apart or more."
        ),
        cost="about 1 min",
    ),
)
