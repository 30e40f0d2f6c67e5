"""Bare tokens: the loss for conjugate pairs, and where the flow ends with independent eigenvalues."""

from __future__ import annotations

from typing import Any

from mesascope.core import named_key
from mesascope.dynamics import Flow
from mesascope.theory import sander2024 as theory

from .._claim import Claim, Finding, Settings, presets
from .._identity import identity
from .._runs import require_finished
from .._shared import shared
from ._authors import LONGEST, PROGRAM
from ._bare_tokens import (
    ConjugatePairs,
    DiagonalHeads,
    IndependentEigenvalues,
    Starts,
    flows_of_heads,
    loss_over_angles,
)
from ._ends import PAPER, errors_of, largest, loss_at_the_end, picture


def _rotation_loss(settings: _RotationLoss) -> Finding:
    """The closed form against the loss of the layer, at random heads and positions."""
    errors: dict[str, float] = {}
    process = ConjugatePairs(settings.rotation_dim)
    for context in settings.contexts:
        key = named_key(settings.seed, "rotations", str(context))
        layer = DiagonalHeads.gaussian(process.dim, settings.heads, context, 1.0, key=key)
        formula = theory.rotation_loss(layer.product(), layer.row(context))
        errors[f"T = {context}"] = abs(formula / loss_over_angles(layer, process, context) - 1)
    return identity(errors, settings.tolerance)


def _unitary(settings: _Unitary) -> Finding:
    """Flows of d heads end at C = cI, p_T = 1/c."""
    dim, longest = settings.dim, settings.longest
    flows = _flows(settings, dim)
    losses = [loss_at_the_end(flow, longest) for flow in flows]
    return Finding.of_errors(
        {**largest([errors_of(flow.model) for flow in flows]), "loss": max(losses)},
        settings.tolerance,
        {
            "c": [flow.model.scale() for flow in flows],
            "losses": losses,
            "meaning": "largest errors of all starts; losses are E‖x̂ − x‖² per context length",
        },
        {"unitary": picture(f"Independent eigenvalues, {dim} heads", flows[0].model, longest)},
    )


def _fewer(settings: _Fewer) -> Finding:
    """Flows of fewer heads end at the least loss d − H."""
    dim = settings.dim
    losses = {
        heads: [loss_at_the_end(flow, settings.longest) for flow in _flows(settings, heads)]
        for heads in settings.fewer
    }
    errors = {
        f"{heads} heads": max(abs(loss - theory.unitary_least_loss(dim, heads)) for loss in found)
        for heads, found in losses.items()
    }
    return identity(errors, settings.tolerance, loss_by_heads=losses, meaning="E‖x̂ − x‖² per context length")


@shared(Starts)
def _flows(settings: Starts, heads: int) -> list[Flow[DiagonalHeads]]:
    """Flows from all starts."""
    flows = flows_of_heads(IndependentEigenvalues(settings.dim), heads, settings)
    return [require_finished(flow) for flow in flows]


class _RotationLoss(Settings):
    rotation_dim: int = 4
    contexts: tuple[int, ...] = (2, 4)
    heads: int = 3
    seed: int = 0
    tolerance: float = 1e-12


class _Unitary(Starts):
    tolerance: float = 1e-5


class _Fewer(_Unitary):
    fewer: tuple[int, ...] = (2,)


_FULL: dict[str, Any] = {"dim": 10, "longest": LONGEST, "scale": 0.1}
_REASON = """Flows of the exact loss stop where the gradient is 1e-8 of its scale; the flattest direction is 100 times flatter
    than the steepest. Every one of eight random starts counts."""

CLAIMS = (
    Claim(
        id=f"{PAPER}/rotation-loss",
        title="The authors' loss for conjugate pairs is exact",
        evidence="exact",
        origin="authors' code",
        statement="""For conjugate pairs of eigenvalues the population loss of diagonal heads with learned positions is the
            authors' polynomial in C = BᵀA and the row p of positions.""",
        source=f"sander2024, authors' program {PROGRAM}, orthogonal.py:25-31 (the same polynomial in other terms)",
        settings=presets(_RotationLoss(), rotation_dim=6, contexts=(2, 3, 4, 6)),
        check=_rotation_loss,
        criterion="""At random weights against the mean loss of the layer over all roots of unity: both are finite sums, and
            only rounding differs.""",
        cost="about 1 min",
    ),
    Claim(
        id=f"{PAPER}/unitary-minimiser",
        title="Independent eigenvalues: gradient flow finds the authors' minimiser",
        evidence="exact",
        origin="authors' code",
        statement="""For independent eigenvalues gradient flow of d heads and all positions ends, from eight random starts, at
            loss 0, with C = cI, c·p_T = 1 and all other positions 0.""",
        source=f"""sander2024, authors' program {PROGRAM}, unitary.py (:7-18, :64-68) and tensors/{{A,B,P}}_unitary.npy; the
            paper's proposition second-hand""",
        settings=presets(_Unitary(), **_FULL),
        check=_unitary,
        criterion=_REASON,
        history="The full preset had contexts of 2 to 19 tokens; the authors have 2 to 20.",
        cost="about 10 min",
    ),
    Claim(
        id=f"{PAPER}/fewer-heads",
        title="Flows of H < d heads end at loss d − H",
        evidence="exact",
        origin="ours",
        statement="""For independent eigenvalues gradient flow of H < d heads and all positions ends, from eight random starts,
            at the loss d − H for every context length, the least that there is.""",
        source="found and proved here; sander2024, authors' program has H = d = 10 (unitary.py:7, :16-17)",
        settings=presets(_Fewer(), **_FULL, fewer=(1, 4, 7)),
        check=_fewer,
        criterion=f"{_REASON} That d − H is the least loss is proved in the docstring of `unitary_least_loss`.",
        history="Part of `unitary-minimiser` before; the full preset had contexts of 2 to 19 tokens.",
        cost="about 20 min",
    ),
)
