"""Bare tokens with conjugate pairs: where gradient flows of the exact loss end."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from mesascope.dynamics import Flow
from mesascope.records import Decision

from .._claim import Claim, Finding, UnsettledError, presets, verdict_if, within
from .._shared import shared
from ._authors import DIM, LONGEST, PROGRAM
from ._bare_tokens import ConjugatePairs, DiagonalHeads, Starts, flows_of_heads
from ._ends import PAPER, errors_of, largest, loss_at_the_end, picture, swap

_AT_REST = 1e-9  # relative fall of the loss over the second half of the saved points


class _End(NamedTuple):
    """Where one flow ended, and in which of the ways that are known."""

    kind: str
    layer: DiagonalHeads
    loss: float
    swap: float
    before: float


class _Flows(Starts):
    dim: int = 4
    longest: int = 4
    heads: int = 3
    starts: int = 6
    steps: int = 40_000


class _Ends(_Flows):
    zero: float = 1e-12
    tolerance: float = 1e-4


@shared(_Flows)
def _flows(settings: _Flows) -> dict[str, list[Flow[DiagonalHeads]]]:
    """The flows of all starts, with fewer heads than coordinates and with as many."""
    process, counts = ConjugatePairs(settings.dim), {"fewer_heads": settings.heads, "all_heads": settings.dim}
    return {name: flows_of_heads(process, heads, settings) for name, heads in counts.items()}


def _ends(settings: _Ends) -> dict[str, list[_End]]:
    """Where they ended."""
    return {
        name: [_end(flow, settings.longest, settings.zero) for flow in flows]
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
    return abs(layer.scale() * layer.row(len(layer.positions))[-2])


def _minimiser(settings: _Ends) -> Finding:
    """Where flows of fewer heads than coordinates reach loss 0, heads and positions are those of the authors."""
    found = _ends(settings)["fewer_heads"]
    reached = [end for end in found if end.kind == "loss 0"]
    if not reached:
        raise UnsettledError("no flow reached loss 0; take more starts or another seed")
    title = f"Conjugate pairs, {settings.heads} heads"
    return Finding.of_errors(
        largest([errors_of(end.layer, 1.0) for end in reached]),
        settings.tolerance,
        {
            "flows_that_reach_loss_0": len(reached),
            "flows": len(found),
            "meaning": "largest errors of C/c, c·p_T, c·p_{T−1} and of all other positions where loss 0 is reached",
        },
        {"rotations": picture(title, reached[0].layer, settings.longest)},
    )


def _ways(settings: _Ends) -> Finding:
    """How many flows end in which way, and where those of d heads are."""
    ends = _ends(settings)
    kinds = {name: [end.kind for end in found] for name, found in ends.items()}
    counts: dict[str, Any] = {
        name: {kind: found.count(kind) for kind in sorted(set(found))} for name, found in kinds.items()
    }
    at_zero = [errors_of(end.layer, end.swap) for end in ends["all_heads"] if end.kind == "loss 0"]
    worst = max(largest(at_zero).values()) if at_zero else np.nan
    parts: dict[str, Decision] = {
        "d heads reach loss 0": _known(kinds["all_heads"], set(kinds["all_heads"]) == {"loss 0"}),
        "d heads end in the family": within(worst, settings.tolerance),
        "fewer heads do not always": _known(kinds["fewer_heads"], len(set(kinds["fewer_heads"])) > 1),
    }
    return Finding.of_parts(
        {**counts, "distance_from_the_family": worst},
        {
            "fewer_heads": "loss 0, at rest at a positive loss, or creeping; not all loss 0",
            "all_heads": "loss 0",
            "distance_from_the_family": 0.0,
        },
        settings.tolerance,
        parts,
        {
            "losses": {name: [end.loss for end in found] for name, found in ends.items()},
            "s": {name: [end.swap for end in found] for name, found in ends.items()},
            "size_of_c_p_T-1": {name: [end.before for end in found] for name, found in ends.items()},
            "kinds": kinds,
            "meaning": "creeping: |c p_{T−1}|, above 1, grows from the middle to the end of the time, and the loss still falls",
        },
    )


def _known(kinds: list[str], holds: bool) -> Decision:
    """Undecided where a flow was stopped too early."""
    return "undecided" if "stopped too early" in kinds else verdict_if(holds)


_FULL: dict[str, Any] = {
    "dim": DIM,
    "longest": LONGEST,
    "heads": 8,
    "starts": 16,
    "scale": 0.1,
    "steps": 200_000,
}
_REASON = """Loss 0 is a loss below 1e-12; in the flattest direction, 1000 times flatter than the steepest, that is a distance
    of 3e-5."""
_COST = "about 2 h"

CLAIMS = (
    Claim(
        id=f"{PAPER}/rotation-minimiser",
        title="Conjugate pairs: loss 0 is reached at the authors' minimiser",
        evidence="exact",
        origin="authors' code",
        statement="""For conjugate pairs and d/2 ≤ H < d heads, gradient flow that reaches loss 0 has C = c·blockdiag(1_{2×2}),
            c·p_T = 1, c·p_{T−1} = −1/2 and all other positions 0.""",
        source=f"""sander2024, authors' program {PROGRAM}, orthogonal.py (:7-9, :63-71) and tensors/{{A,B,P}}_orthogonal.npy;
            the paper's proposition second-hand""",
        settings=presets(_Ends(), **_FULL),
        check=_minimiser,
        criterion=f"{_REASON} Flows from six random starts, sixteen in the full preset.",
        history="Contexts in the full preset were 2 to 19 tokens; the authors have 2 to 20.",
        cost=_COST,
    ),
    Claim(
        id=f"{PAPER}/rotation-ends",
        title="Conjugate pairs: d heads reach loss 0, fewer not always",
        evidence="exact",
        origin="ours",
        statement="""With d heads each of the flows tried reaches loss 0 at some C = c(I + sJ), p_{T−1} = −s/((1 + s)c); with
            d/2 ≤ H < d heads some do not.""",
        source="found here; sander2024 (its minimiser is s = 1; the authors' program has H = 8, d = 10, one start)",
        settings=presets(_Ends(), **_FULL),
        check=_ways,
        criterion=f"""{_REASON} J exchanges partners. A flow that does not reach loss 0 has to be at rest above it, or to creep
            along a valley in which |p_{{T−1}}| grows and the loss still falls; one that was stopped before either decides
            nothing.""",
        history="The family of minimisers with d heads was part of `rotation-minimiser` before.",
        cost=_COST,
    ),
)
