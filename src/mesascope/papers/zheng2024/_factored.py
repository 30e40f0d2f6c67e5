"""Where keys, queries, values and projection are weights of their own: flows rest at saddles, as zhang2025's on prompts do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mesascope.core import named_key
from mesascope.dynamics import Plateaus, Rodas4, gradient_flow, plateaus
from mesascope.models import FactoredLinearAttention, LinearAttention
from mesascope.processes import DiagonalUnitary, Gaussian, NextToken
from mesascope.records import Figure, Line, Rule
from mesascope.theory import zheng2024 as theory

from .._claim import Claim, Finding, UnsettledError, presets, verdict_if, within
from .._figures import one_panel
from .._runs import Seeds, require_finished, seeds_of
from .._shared import shared
from ._common import PAPER, Sizes

Weights = Literal["merged", "one head", "heads of rank one"]
_SHOWN = 10.0  # the figure ends at so many times the time of the last fall
_ORDERS: dict[Weights, int] = {"merged": 2, "one head": 4, "heads of rank one": 4}
"""The order in which the loss falls at 0: the number of factors of a product of weights."""


class _Sequences(Sizes, Seeds):
    """Gaussian tokens."""

    dim: int = 2
    horizon: int = 20


class _One(_Sequences):
    """A flow from weights N(0, scale²)."""

    weights: Weights = "one head"
    scale: float = 0.002


class _Factored(_Sequences):
    """Starts of two sizes."""

    scales: tuple[float, float] = (0.002, 0.004)
    tolerance: float = 0.005
    tolerance_of_losses: float = 1e-9


def _start(settings: _One) -> LinearAttention | FactoredLinearAttention:
    key, d = named_key(settings.seed, "factored", settings.weights), settings.dim
    if settings.weights == "merged":
        return LinearAttention.gaussian(d, settings.scale, key=key)
    if settings.weights == "one head":
        return FactoredLinearAttention.gaussian(d, 1, settings.scale, key=key)
    return FactoredLinearAttention.gaussian(d, d, settings.scale, key=key, key_size=1, value_size=1)


def _data(settings: _Sequences) -> tuple[DiagonalUnitary, NextToken]:
    return DiagonalUnitary(Gaussian(1.0), settings.dim), NextToken(settings.horizon)


@shared(_One)
def _plateaus(settings: _One) -> Plateaus[Any]:
    flow: Any = gradient_flow(_start(settings), *_data(settings), solver=Rodas4(), rtol=1e-6, saves=2048)
    found = plateaus(require_finished(flow))
    if len(found) < 2:
        raise UnsettledError(f"seed {settings.seed}, {settings.weights}: the flow passes no saddle")
    return found


def _pairs(settings: _Factored, weights: Weights) -> list[tuple[Plateaus[Any], Plateaus[Any]]]:
    """Plateaus from the smaller and from the larger start, for every seed."""
    one = _One(dim=settings.dim, horizon=settings.horizon, weights=weights)
    small, large = settings.scales
    return [
        (_plateaus(replace(one, seed=seed, scale=small)), _plateaus(replace(one, seed=seed, scale=large)))
        for seed in seeds_of(settings)
    ]


def _losses(settings: _Sequences) -> np.ndarray:
    """The loss where heads of rank one have learned m coordinates, m = 0 … d: each head sees a sequence of dimension 1."""
    process, task = DiagonalUnitary(Gaussian(1.0), 1), _data(settings)[1]
    ends = [float(theory.diagonal_loss(process, task, c)) for c in (0, theory.limit_product(process, task))]
    learned = np.arange(settings.dim + 1)
    return settings.dim * ends[0] + learned * (ends[1] - ends[0])


def _growth(settings: _Factored, weights: Weights, pair: tuple[Plateaus[Any], Plateaus[Any]]) -> float:
    """How the time of the first plateau grows from the larger start to the smaller, over what is expected, less 1."""
    ratio = settings.scales[1] / settings.scales[0]
    small, large = (one.points[0] for one in pair)
    if weights == "merged":  # a logarithm of the start over the rate
        return float((small.leaves - large.leaves) * small.rate / np.log(ratio) - 1)
    return float(small.leaves / large.leaves / ratio**2 - 1)


def _check(settings: _Factored) -> Finding:
    """The order in which the loss falls at 0, the times at which flows leave, and the saddles of heads of rank one."""
    found = {weights: _pairs(settings, weights) for weights in _ORDERS}
    each = {weights: [one for pair in pairs for one in pair] for weights, pairs in found.items()}
    orders = {weights: sorted({one.points[0].order for one in every}) for weights, every in each.items()}
    growth = {weights: [_growth(settings, weights, pair) for pair in found[weights]] for weights in _ORDERS}
    left = [one.points[0] for one in each["one head"]]
    left += [point for one in each["heads of rank one"] for point in one.points[:-1]]
    predicted = float(np.max([abs(point.predicted / point.leaves - 1) for point in left]))
    saddles = _distance([one.losses for one in each["heads of rank one"]], _losses(settings))
    largest = {weights: float(np.abs(off).max()) for weights, off in growth.items()}
    parts = {
        "the loss falls in the order of the number of factors": verdict_if(
            orders == {weights: [order] for weights, order in _ORDERS.items()}
        ),
        "times are inverse squares of the start, logarithms for merged weights": within(
            float(np.max(list(largest.values()))), settings.tolerance
        ),
        "terms of order four predict the times": within(predicted, settings.tolerance),
        "heads of rank one learn one coordinate at a time": within(saddles, settings.tolerance_of_losses),
    }
    return Finding.of_parts(
        {"orders": orders, "growth": largest, "prediction": predicted, "losses": saddles},
        {
            "orders": {weights: [order] for weights, order in _ORDERS.items()},
            "growth": dict.fromkeys(_ORDERS, 0.0),
            "prediction": 0.0,
            "losses": 0.0,
        },
        settings.tolerance,
        parts,
        {
            "flows": {weights: [_told(one) for one in every] for weights, every in each.items()},
            "growth_of_each_seed": growth,
            "losses_of_heads_of_rank_one": _losses(settings).tolist(),
            "meaning": "flows: losses, orders, measured and predicted times at every critical point, by seed and size of start",
        },
        {"factored-plateaus": _figure(settings, {weights: pairs[0][0] for weights, pairs in found.items()})},
    )


def _distance(losses: list[np.ndarray], expected: np.ndarray) -> float:
    """The largest relative error of the losses; infinite where there are more or fewer."""
    if any(len(one) != len(expected) for one in losses):
        return np.inf
    return float(np.abs(np.array(losses) / expected - 1).max())


def _told(one: Plateaus[Any]) -> dict[str, list[float]]:
    """The critical points of a flow, without the last, which it does not leave."""
    names = ("loss", "order", "leaves", "predicted")
    return {name: [float(getattr(point, name)) for point in one.points[:-1]] for name in names}


def _figure(settings: _Factored, found: dict[Weights, Plateaus[Any]]) -> Figure:
    lines = []
    for series, (weights, one) in enumerate(found.items()):
        later = (one.flow.times > 0) & (one.flow.times < _SHOWN * one.points[-2].leaves)
        lines.append(Line(x=one.flow.times[later], y=one.flow.loss[later], label=weights, series=series))
    return one_panel(
        "Factored weights stay at saddles far longer than merged weights",
        f"Gaussian tokens, d = {settings.dim}, T = {settings.horizon}",
        *lines,
        *(Rule(value=loss, label="heads of rank one, by the formula") for loss in _losses(settings)),
        xlabel="flow time",
        ylabel="loss",
        xscale="log",
        caption=f"Flows of seed {settings.seed}, from weights of standard deviation {settings.scales[0]:g}.",
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/factored-plateaus",
        title="With factored weights, training on sequences has long plateaus",
        evidence="exact",
        origin="ours",
        statement="""With separate keys, queries, values and projection, a flow leaves 0 after a time that grows as the inverse
            square of its start. Heads of rank one learn one coordinate at a time.""",
        source="zheng2024 merges the weights; derived here, after zhang2025's plateaus on prompts",
        settings=presets(_Factored(), seeds=10),
        check=_check,
        criterion="""Five seeds (full: ten) of merged weights, of one head and of d heads of rank one. At 0 the loss falls in
            order 2, 4 and 4. From half the start the flow leaves four times later, with merged weights by log 2 over the
            escape rate later, and fourth-order terms predict when it leaves (with heads of rank one: every saddle), all
            within 0.5 %: the rise adds less than a thousandth to these times, and with merged weights nearly the same from
            both starts. Heads of rank one visit d + 1 critical points, with the losses of sequences of dimension 1 to 1e-9,
            the residual that Newton's method leaves.""",
        cost="about 3 min",
    ),
)
