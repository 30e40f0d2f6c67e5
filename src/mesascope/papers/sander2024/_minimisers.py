"""Bare tokens: both population losses, and where the flow ends with independent eigenvalues."""

from __future__ import annotations

from mesascope.core import named_key
from mesascope.dynamics import Flow
from mesascope.processes import NextToken
from mesascope.theory import sander2024 as theory

from .._claim import Claim, Finding, Settings, both, within
from .._identity import identity
from .._runs import settled
from .._shared import shared
from ._bare_tokens import ConjugatePairs, DiagonalHeads, EveryAngle, IndependentEigenvalues, flow_of_heads
from ._ends import PAPER, distance, loss_at_the_end, picture, start_key


def _losses(settings: Settings) -> Finding:
    """Both closed forms against the loss of the layer, at random heads and positions."""
    errors: dict[str, float] = {}
    reported = []
    for name, process, closed_form in (
        ("unitary", IndependentEigenvalues(settings["unitary_dim"]), theory.unitary_loss),
        ("rotations", ConjugatePairs(settings["rotation_dim"]), theory.rotation_loss),
    ):
        dim = process.dim
        for context in settings["contexts"]:
            key = named_key(settings["seed"], name, str(context))
            layer = DiagonalHeads.gaussian(dim, settings["heads"], context, 1.0, key=key)
            measured = 2 * float(EveryAngle().objective(process, NextToken.last(context + 1))(layer).value)
            heads, positions = layer.product(), layer.row(context)
            errors[f"{name}, T = {context}"] = abs(closed_form(heads, positions) / measured - 1)
            if name == "unitary":
                twice = positions[-2] ** 2 * (heads**2).sum()
                reported.append(abs((theory.unitary_loss(heads, positions) + twice) / measured - 1))
    return identity(
        errors,
        settings,
        relative_error_of_the_reported_unitary_loss=reported,
        reported="the authors' program has ‖p‖²‖C‖² as its first term: p_{T−1}²‖C‖² more, with the same minimisers",
    )


def _unitary(settings: Settings) -> Finding:
    """Flows of d heads end at C = cI, p_T = 1/c; of fewer heads at the least loss d − H."""
    dim, longest = settings["dim"], settings["longest"]
    flows = _flows(settings)
    losses = {heads: [loss_at_the_end(flow, longest) for flow in found] for heads, found in flows.items()}
    gap = max(
        abs(loss - theory.unitary_least_loss(dim, heads)) for heads, found in losses.items() for loss in found
    )
    scales, errors = zip(*(distance(flow.model, 0.0) for flow in flows[dim]), strict=True)
    worst = {name: max(error[name] for error in errors) for name in errors[0]}
    measured = {**worst, "largest_error_of_the_loss": gap}
    return Finding(
        measured,
        dict.fromkeys(measured, 0.0),
        settings["tolerance"],
        within(max(measured.values()), settings["tolerance"]),
        {
            "c": list(scales),
            "loss_by_heads": losses,
            "meaning": "largest errors of all starts; losses are E‖x̂ − x‖² per context length",
        },
        {"unitary": picture(f"Independent eigenvalues, {dim} heads", flows[dim][0].model, longest)},
    )


def _stored(settings: Settings) -> Finding:
    """The printed weights of the authors against the minimisers with their c, in units of what rounding allows."""
    errors: dict[str, float] = {}
    for name, minimiser in (("unitary", theory.unitary_minimiser), ("rotations", theory.rotation_minimiser)):
        scale, *printed = settings[name]
        _, row = minimiser(4, 5, scale)  # c p_T and c p_{T−1} depend on no size
        for before, value in enumerate(printed):
            exact = float(row[-1 - before])
            allowed = settings["rounding"] * (1 + abs(exact / scale))  # p = p(1)/c: dp = |p/c| dc
            errors[f"{name}, p_T" if before == 0 else f"{name}, p_T-{before}"] = abs(exact - value) / allowed
    return identity(
        errors, settings, meaning="distance of printed numbers over what their rounding can make of it"
    )


@shared("dim", "longest", "fewer", "starts", "scale", "steps", "seed")
def _flows(settings: Settings) -> dict[int, list[Flow[DiagonalHeads]]]:
    """Flows from as many starts for every number of heads."""
    process, longest = IndependentEigenvalues(settings["dim"]), settings["longest"]

    def flow(heads: int, number: int) -> Flow[DiagonalHeads]:
        key = start_key(settings["seed"], f"{heads} heads, {number}")
        return settled(flow_of_heads(process, heads, longest, settings["scale"], key, settings["steps"]))

    return {
        heads: [flow(heads, number) for number in range(settings["starts"])]
        for heads in (*settings["fewer"], settings["dim"])
    }


CLAIMS = (
    Claim(
        id=f"{PAPER}/losses",
        statement=(
            "The population losses of diagonal heads with learned positions on bare tokens are the closed forms in C = BᵀA and "
            "the row p of positions, for independent eigenvalues (with (‖p‖² − p_{T−1}²)‖C‖², not ‖p‖²‖C‖² as the authors' "
            "program has it) and for conjugate pairs: exactly, at random weights (quick: d = 2 and 4, contexts of 2 and 4 "
            "tokens; paper: d = 4 and 6, 2 to 6 tokens)."
        ),
        source="sander2024, section 4 (losses of unitary and of orthogonal context matrices)",
        settings=both(
            {
                "unitary_dim": 2,
                "rotation_dim": 4,
                "contexts": [2, 4],
                "heads": 3,
                "seed": 0,
                "tolerance": 1e-12,
            },
            unitary_dim=4,
            rotation_dim=6,
            contexts=[2, 3, 4, 6],
        ),
        check=_losses,
        tolerance_reason="both sides are finite sums; only rounding differs",
    ),
    Claim(
        id=f"{PAPER}/unitary-minimiser",
        statement=(
            "Independent eigenvalues: from each of eight starts with random weights gradient flow of the exact loss of d heads "
            "and all positions ends at C = cI, c·p_T = 1 and all other positions 0 for every context length T, with loss 0; "
            "with H < d heads it ends at loss d − H, from each of eight starts, too (quick: d = 3, T ≤ 5, H = 2 and 3; "
            "paper: d = 10, T ≤ 19, H = 1, 4, 7 and 10)."
        ),
        source="sander2024, section 4 (minimisers for unitary context matrices; orthogonality of heads)",
        settings=both(
            {
                "dim": 3,
                "longest": 5,
                "fewer": [2],
                "starts": 8,
                "scale": 0.3,
                "steps": 20_000,
                "seed": 0,
                "tolerance": 1e-5,
            },
            dim=10,
            longest=19,
            fewer=[1, 4, 7],
            scale=0.1,
        ),
        check=_unitary,
        tolerance_reason="flows stop where the gradient is 1e-8 of its scale; the flattest direction is 100 times flatter",
    ),
    Claim(
        id=f"{PAPER}/stored-weights",
        statement=(
            "The weights that the authors' program stores lie on the minimisers to their printed digits: c = −1.202, p_T = "
            "−0.832 for independent eigenvalues; c = −1.289, p_T = −0.776, p_{T−1} = 0.388 for conjugate pairs (both presets)."
        ),
        source="sander2024, stored tensors of the authors' program",
        settings=both(
            {
                "unitary": [-1.202, -0.832],
                "rotations": [-1.289, -0.776, 0.388],
                "rounding": 0.0005,
                "tolerance": 1.0,
            }
        ),
        check=_stored,
        tolerance_reason="three printed decimals of c and of the position, each rounded by at most half a unit",
    ),
)
