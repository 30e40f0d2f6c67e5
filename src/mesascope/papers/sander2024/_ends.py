"""How far the ends of flows of heads and positions are from a minimiser, and how they look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mesascope.dynamics import Flow
from mesascope.records import Figure, Heatmap, Panel
from mesascope.theory import sander2024 as theory

from ._bare_tokens import ClosedForms, DiagonalHeads, Eigencoordinates

PAPER = "sander2024"


def loss_at_the_end(flow: Flow[DiagonalHeads], longest: int) -> float:
    """E‖x̂ − x‖² per context length at the end."""
    return 2 * float(flow.loss[-1]) / (longest - 1)


def exact_loss(layer: DiagonalHeads, process: Eigencoordinates, longest: int) -> float:
    """E‖x̂ − x‖² per context length, for contexts of 2 … `longest` tokens."""
    return 2 * float(ClosedForms(process, longest)(layer).value) / (longest - 1)


def swap(layer: DiagonalHeads) -> float:
    """The s of C = c (I + s J)."""
    heads = layer.product()
    index = np.arange(len(heads))
    return float(heads[index, index ^ 1].mean() / np.trace(heads) * len(heads))


def errors_of(layer: DiagonalHeads, swapped: float = 0.0) -> dict[str, float]:
    """Largest errors of C/c, of c·p_T, of c·p_{T−1} and of all other positions over the context lengths T.

    Args:
        layer: what is compared with the minimiser of the same c.
        swapped: s of the minimiser for conjugate pairs; 0 for that of independent eigenvalues.
    """
    dim, scale = layer.a.shape[1], layer.scale()

    def minimiser(context: int) -> tuple[np.ndarray, np.ndarray]:
        if swapped:
            return theory.rotation_minimiser(dim, context, 1.0, swapped)
        return theory.unitary_minimiser(dim, context)

    rows = []
    for context in range(2, len(layer.positions) + 1):
        off = np.abs(scale * layer.row(context) - minimiser(context)[1])
        rows.append((off[-1], off[-2], off[:-2].max(initial=0.0)))
    last, before, others = np.max(rows, axis=0).tolist()
    return {
        "error_of_C": float(np.abs(layer.product() / scale - minimiser(2)[0]).max()),
        "error_of_c_p_T": last,
        "error_of_c_p_T-1": before,
        "error_of_other_positions": others,
    }


def largest(errors: Sequence[dict[str, float]]) -> dict[str, float]:
    """The largest of several layers' errors, by name."""
    return {name: max(error[name] for error in errors) for name in errors[0]}


def picture(
    title: str,
    layer: DiagonalHeads,
    longest: int,
    caption: str = "Where the gradient flow of the exact loss ends.",
) -> Figure:
    """C and P as the paper shows them, in units that do not depend on c."""
    scale = layer.scale()
    rows = np.zeros((longest - 1, longest))
    for context in range(2, longest + 1):
        rows[context - 2, :context] = scale * layer.row(context)
    limits, names = (-1.0, 1.0), tuple(str(context) for context in range(2, longest + 1))
    heads = Heatmap(z=layer.product() / scale, colorlabel="$C/c$", center=0.0, limits=limits)
    positions = Heatmap(z=rows, colorlabel="$c\\,p_t$", center=0.0, limits=limits, rows=names)
    return Figure(
        title=title,
        panels=(
            Panel(title="heads", xlabel="coordinate", ylabel="coordinate", traces=(heads,)),
            Panel(title="positions", xlabel="token $t$", ylabel="context length $T$", traces=(positions,)),
        ),
        caption=caption,
    )
