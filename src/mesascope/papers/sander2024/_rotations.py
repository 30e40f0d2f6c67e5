"""Bare tokens with conjugate pairs: where gradient flows of the exact loss end."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from mesascope.dynamics import Flow

from .._claim import Claim, Finding, Settings, UnsettledError, both, decide, within
from .._shared import shared
from ._bare_tokens import ConjugatePairs, DiagonalHeads, flow_of_heads
from ._ends import PAPER, distance, loss_at_the_end, picture, start_key, swap

_AT_REST = 1e-9  # relative fall of the loss over the second half of the saved points


class _End(NamedTuple):
    """Where one flow ended, and in which of the ways that are known."""

    kind: str
    layer: DiagonalHeads
    loss: float
    swap: float
    before: float


@shared("dim", "longest", "heads", "starts", "scale", "steps", "seed")
def _flows(settings: Settings) -> dict[str, list[Flow[DiagonalHeads]]]:
    """The flows of all starts, with fewer heads than coordinates and with as many."""
    process, longest = ConjugatePairs(settings["dim"]), settings["longest"]

    def flow(heads: int, number: int) -> Flow[DiagonalHeads]:
        key = start_key(settings["seed"], f"{heads} heads, {number}")
        return flow_of_heads(process, heads, longest, settings["scale"], key, settings["steps"])

    return {
        name: [flow(heads, number) for number in range(settings["starts"])]
        for name, heads in (("fewer_heads", settings["heads"]), ("all_heads", settings["dim"]))
    }


def _ends(settings: Settings) -> dict[str, list[_End]]:
    """Where they ended."""
    return {
        name: [_end(flow, settings["longest"], settings["zero"]) for flow in flows]
        for name, flows in _flows(settings).items()
    }


def _end(flow: Flow[DiagonalHeads], longest: int, zero: float) -> _End:
    loss = loss_at_the_end(flow, longest)
    return _End(_kind(flow, loss, zero), flow.model, loss, swap(flow.model), _before(flow.model))


def _kind(flow: Flow[DiagonalHeads], loss: float, zero: float) -> str:
    """Loss 0, at rest above it, in a valley that leads to infinity, or none of these: then it was stopped too early."""
    if loss < zero:
        return "loss 0"
    half = len(flow.times) // 2
    fallen = 1 - float(flow.loss[-1]) / float(flow.loss[half])
    if flow.converged or abs(fallen) < _AT_REST:
        return "at rest at a positive loss"
    middle = jax.tree.map(lambda path: path[half], flow.trajectory)
    return (
        "creeps" if fallen > 0 and _before(flow.model) > 1.02 * _before(middle) > 1 else "stopped too early"
    )


def _before(layer: DiagonalHeads) -> float:
    """|c p_{T−1}| of the longest context."""
    heads = layer.product()
    return abs(float(np.trace(heads)) / len(heads) * layer.row(len(layer.positions))[-2])


def _minimiser(settings: Settings) -> Finding:
    """Where flows reach loss 0, heads and positions are those of the paper, or with d heads of its family."""
    worst: dict[str, float] = {}
    counts: dict[str, int] = {}
    shown = None
    for name, ends in _ends(settings).items():
        reached = [end for end in ends if end.kind == "loss 0"]
        if not reached:
            raise UnsettledError(f"no flow reached loss 0 ({name}); take more starts or another seed")
        swaps = [1.0 if name == "fewer_heads" else end.swap for end in reached]
        errors = [distance(end.layer, s)[1] for end, s in zip(reached, swaps, strict=True)]
        worst[name] = max(max(error.values()) for error in errors)
        counts[name] = len(reached)
        shown = reached[0].layer if name == "fewer_heads" else shown
    assert shown is not None
    return Finding(
        worst,
        dict.fromkeys(worst, 0.0),
        settings["tolerance"],
        within(max(worst.values()), settings["tolerance"]),
        {
            "flows_that_reach_loss_0": counts,
            "flows": settings["starts"],
            "meaning": "largest errors of C/c, c·p_T, c·p_{T−1} and of all other positions where loss 0 is reached",
        },
        {"rotations": picture(f"Conjugate pairs, {settings['heads']} heads", shown, settings["longest"])},
    )


def _ways(settings: Settings) -> Finding:
    """How many flows end in which way."""
    ends = _ends(settings)
    kinds = {name: [end.kind for end in found] for name, found in ends.items()}
    counts: dict[str, Any] = {
        name: {kind: found.count(kind) for kind in sorted(set(found))} for name, found in kinds.items()
    }
    early = sum(found.count("stopped too early") for found in kinds.values())
    holds = set(kinds["all_heads"]) == {"loss 0"} and len(set(kinds["fewer_heads"])) > 1
    return Finding(
        counts,
        {
            "fewer_heads": "loss 0, at rest at a positive loss, or creeping; not all loss 0",
            "all_heads": "loss 0",
        },
        None,
        "inconclusive" if early else decide(holds),
        {
            "losses": {name: [end.loss for end in found] for name, found in ends.items()},
            "s": {name: [end.swap for end in found] for name, found in ends.items()},
            "size_of_c_p_T-1": {name: [end.before for end in found] for name, found in ends.items()},
            "kinds": kinds,
            "meaning": "creeping: |c p_{T−1}|, above 1, grows from the middle to the end of the time, and the loss still falls",
        },
    )


_FLOWS: dict[str, Any] = {
    "dim": 4,
    "longest": 4,
    "heads": 3,
    "starts": 6,
    "scale": 0.3,
    "steps": 40_000,
    "seed": 0,
    "zero": 1e-12,
}
_PAPER: dict[str, Any] = {
    "dim": 10,
    "longest": 19,
    "heads": 8,
    "starts": 16,
    "scale": 0.1,
    "steps": 200_000,
}

CLAIMS = (
    Claim(
        id=f"{PAPER}/rotation-minimiser",
        statement=(
            "Conjugate pairs: where gradient flow of the exact loss from random weights reaches loss 0 with d/2 ≤ H < d heads, "
            "C = c·blockdiag(1_{2×2}), c·p_T = 1, p_{T−1} = −1/(2c) and all other positions are 0 for every context length T; "
            "with d heads it is one of the family C = c(I + sJ), p_{T−1} = −s/((1 + s)c), of which that is s = 1 (quick: "
            "d = 4, T ≤ 4, H = 3 and 4, six starts each; paper: d = 10, T ≤ 19, H = 8 and 10, sixteen starts)."
        ),
        source="sander2024, section 4 (minimisers for orthogonal context matrices); the family: found here",
        settings=both({**_FLOWS, "tolerance": 1e-4}, **_PAPER),
        check=_minimiser,
        tolerance_reason=(
            "judged below a loss of 1e-12; in the flattest direction, 1000 times flatter, that is a distance of 3e-5"
        ),
    ),
    Claim(
        id=f"{PAPER}/rotation-ends",
        statement=(
            "Conjugate pairs: with d heads every gradient flow from random weights reaches loss 0; with d/2 ≤ H < d heads not "
            "every one does, the others rest at a positive loss or creep along a valley in which |p_{T−1}| grows and the loss "
            "still falls (quick: d = 4, T ≤ 4, H = 3 and 4, six starts each; paper: d = 10, T ≤ 19, H = 8 and 10, "
            "sixteen starts)."
        ),
        source="sander2024, section 4 (minimisers for orthogonal context matrices); how flows end: found here",
        origin="ours",
        settings=both(_FLOWS, **_PAPER),
        check=_ways,
        tolerance_reason="no distance: every flow is in a named class; one that was stopped too early for any decides nothing",
    ),
)
