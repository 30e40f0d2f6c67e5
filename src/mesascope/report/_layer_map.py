"""A table of layers × steps as a heat map: how far each layer's read-out is from each step of an algorithm."""

from collections.abc import Sequence
from typing import Any

from mesascope.records import Heatmap, Panel


def layer_map(
    values: Any,
    *,
    layers: Sequence[str],
    steps: Sequence[str],
    title: str,
    steps_of: str,
    quantity: str,
    best: Sequence[int | None] | None = None,
    floor: float | None = 1e-8,
) -> Panel:
    """The panel of a table: one row a layer, one column a step, a ring around the best step of every layer.

    Args:
        values: shape (layers, steps): distances ≥ 0 on logarithmic colours, or any numbers on linear ones.
        layers: names of the rows, from the embedding upwards.
        steps: names of the columns, e.g. numbers of steps.
        title: what it shows.
        steps_of: what the columns are, e.g. "steps of gradient descent".
        quantity: what the colour means.
        best: for every row the place of its best column, from 0; None where it has none.
        floor: of logarithmic colours: what is less is drawn there; None takes linear colours.

    Raises:
        ValueError: names that are not as many as rows and columns, a mark outside, values that are not finite.
    """
    rows = [[float(value) for value in row] for row in values]
    if best is not None and len(best) != len(rows):
        raise ValueError(f"best: {len(best)} marks for {len(rows)} layers; give one for each layer, or None")
    scale: dict[str, Any] = {}
    if floor is not None:
        rows = [[max(floor, value) for value in row] for row in rows]
        scale = {"scale": "log"}
    marks = [(row, at + 1) for row, at in enumerate(best or (), start=1) if at is not None]
    trace = Heatmap(
        z=rows, rows=tuple(layers), columns=tuple(steps), colorlabel=quantity, marks=tuple(marks), **scale
    )
    return Panel(title=title, xlabel=steps_of, ylabel="layer", traces=(trace,))
