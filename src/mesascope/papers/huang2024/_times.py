"""How long the two phases take on balanced features, for any number of them: one gap, whose flow is an integral."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from mesascope.records import Figure, Line, Panel, Points
from mesascope.theory import huang2024 as theory

from .._claim import Claim, Finding, presets, within
from ._model import PAPER, Features, Flow, flow_of


def _times(settings: _Times) -> Finding:
    """Times of both phases by number of features, and the time of a whole flow beside the integral."""
    first = {k: _first(settings, k) for k in settings.sizes}
    second = {k: {d: _second(settings, k, 10.0**-d) for d in settings.digits} for k in settings.sizes}
    fewer, more = settings.sizes[-2:]
    last = settings.digits[-1]
    measured = {
        "whole_flow_over_the_integral": _whole(settings) - 1,
        "exponent_of_K_first": _exponent(first[fewer], first[more], fewer, more),
        "exponent_of_K_second": _exponent(second[fewer][last], second[more][last], fewer - 1, more - 1),
        "second_over_its_formula": max(
            abs(second[k][last] * 4 * 10.0**-last / (k - 1) - 1) for k in settings.sizes
        ),
    }
    expected = {
        "whole_flow_over_the_integral": 0.0,
        "exponent_of_K_first": 2.0,
        "exponent_of_K_second": 1.0,
        "second_over_its_formula": 0.0,
    }
    tolerances = (settings.whole, settings.exponents, settings.exponents, settings.late)
    names = (
        "the flow of all of Q is that of one gap",
        "the first phase grows with K²",
        "the second with K",
        "it takes (K − 1)/(4ε)",
    )
    return Finding.of_parts(
        measured,
        expected,
        None,
        {
            name: within(abs(measured[key] - expected[key]), tolerance)
            for name, key, tolerance in zip(names, measured, tolerances, strict=True)
        },
        {
            "first_phase": {f"{k}": time for k, time in first.items()},
            "first_phase_over_K_squared": {f"{k}": time / k**2 for k, time in first.items()},
            "first_phase_of_endless_prompts": {
                f"{k}": float(theory.endless_time(0.5, k)) for k in settings.sizes
            },
            "time_to_an_excess": {
                f"{k}": {f"1e-{d}": time for d, time in found.items()} for k, found in second.items()
            },
            "tolerances": dict(zip(measured, tolerances, strict=True)),
            "meaning": "first phase: until half of the attention of endless prompts is on the query's feature",
        },
        {"phase-times": _figure(settings, first, second)},
    )


def _whole(settings: _Times) -> float:
    """The length of a flow of all of Q over the time at which one gap is what it is at its end."""
    flow = Flow(features=settings.features, examples=settings.examples)
    scores = flow_of(flow).scores
    return flow.time / theory.one_gap_time(scores[0, 0] - scores[1, 0], settings.features, settings.examples)


def _first(settings: _Times, features: int) -> float:
    """The time until e^δ = K − 1: endless prompts then have half of the attention on the matching feature."""
    return theory.one_gap_time(np.log(features - 1), features, settings.per_feature * features)


def _second(settings: _Times, features: int, excess: float) -> float:
    """The time until the loss is this much above its limit."""
    examples, even = settings.per_feature * features, [1 / features] * features
    least = theory.equal_gap_loss(np.inf, 0, even, examples)

    def above(gap: float) -> float:
        return np.log(theory.equal_gap_loss(gap, 0, even, examples) - least) - np.log(excess)

    gap = scipy.optimize.brentq(above, 0.0, np.log(features) - np.log(excess), xtol=1e-8)
    return theory.one_gap_time(gap, features, examples)


def _exponent(before: float, after: float, fewer: int, more: int) -> float:
    return float(np.log(after / before) / np.log(more / fewer))


def _figure(settings: _Times, first: dict[int, float], second: dict[int, dict[int, float]]) -> Figure:
    sizes = np.array(settings.sizes)
    left = Panel(
        title="First phase",
        xlabel="features K",
        ylabel="flow time",
        xscale="log",
        yscale="log",
        traces=(
            Points(x=sizes, y=list(first.values()), label=f"N = {settings.per_feature} K"),
            Line(x=sizes, y=[float(theory.endless_time(0.5, k)) for k in sizes], label="endless prompts"),
            Line(x=sizes, y=sizes**2.0, label="$K^2$", series="theory"),
        ),
    )
    shown: list[Any] = []
    for series, k in enumerate((settings.sizes[0], settings.sizes[-1])):
        excess = 10.0 ** -np.array(settings.digits)
        shown += [
            Points(x=excess, y=list(second[k].values()), label=f"K = {k}", series=series),
            Line(x=excess, y=(k - 1) / (4 * excess), label="$(K-1)/(4ε)$", series="theory"),
        ]
    right = Panel(
        title="Until the excess loss is ε",
        xlabel="excess loss ε",
        ylabel="flow time",
        xscale="log",
        yscale="log",
        traces=tuple(shown),
    )
    return Figure(title="Times of the two phases on balanced features", panels=(left, right))


class _Times(Features):
    sizes: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256, 512)
    digits: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    per_feature: int = 20
    whole: float = 1e-6
    exponents: float = 0.1
    late: float = 0.01


CLAIMS = (
    Claim(
        id=f"{PAPER}/phase-times",
        title="The first phase takes time K², the second K/(4ε)",
        statement=(
            "On balanced features half of the attention is on the query's feature after a time of order K², and the excess "
            "loss is a small ε after (K − 1)/(4ε)."
        ),
        source=(
            "huang2024, abstract (two phases on balanced features); bounds that grow with K² are reported in reviews "
            "(second-hand); both times are derived here"
        ),
        origin="ours",
        evidence="exact",
        settings=presets(_Times()),
        check=_times,
        criterion=(
            "The flow of all of Q, K = 4 and N = 30, ends after 1000 where the integral for one gap says so, to 1e-6: it is "
            "solved to 1e-8. Between the two largest K the exponent of K is 2 and 1 to 0.1: the first time is K² + 3K log K + "
            "…, whose exponent between K = 256 and 512 is 0.04 below 2. At ε = 10⁻⁸ the time is (K − 1)/(4ε) to 0.01; what "
            "is left out falls as √(Kε); for ε above 1/(4K) the first phase decides. Prompts have N = 20K examples."
        ),
    ),
)
