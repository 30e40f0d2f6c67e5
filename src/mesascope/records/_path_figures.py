"""Figures of training: losses over steps, and what changes along a flow or descent."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._figure import Band, Figure, Line, Panel, Trace

Floats = Sequence[Any] | np.ndarray
_TWO_SIDED_95 = 1.96  # standard errors
LOSS_LABEL = r"loss $\sum_t w_t L_t$"
"""The label of axes of losses: L_t is the loss of a context length, or of a number of examples."""
MAX_CURVES = 6
"""The most curves in a panel: as many as there are colours."""
_EQUAL = 1e-9  # relative; coordinates that differ by less are one curve
_SETTLED = 0.01  # share of the whole change that is left when a curve counts as settled


def training_figure(title: str, batches: tuple[Floats, ...], held_out: tuple[Floats, ...]) -> Figure | None:
    """Losses over steps: those of the batches, and those on held-out samples with their intervals; None without any.

    Args:
        title: of the figure.
        batches: steps and losses.
        held_out: steps, losses and standard errors.
    """
    traces: list[Trace] = []
    if len(batches[0]):
        traces.append(
            Line(x=batches[0], y=batches[1], label="batches, mean since the point before", series=1)
        )
    if len(held_out[0]):
        steps, values, errors = held_out
        reach = [_TWO_SIDED_95 * error for error in errors]
        low = [value - more for value, more in zip(values, reach, strict=True)]
        high = [value + more for value, more in zip(values, reach, strict=True)]
        traces.append(Band(x=steps, low=low, high=high, label="held-out, 95 % interval", series=0))
        traces.append(Line(x=steps, y=values, label="held-out", series=0, style="solid"))
    if not traces:
        return None
    drawn = [y for trace in traces for y in (trace.low if isinstance(trace, Band) else trace.y)]  # type: ignore[union-attr]
    log = min(drawn) > 0 and max(drawn) > 10 * min(drawn)
    panel = Panel(
        title="Loss",
        xlabel="step",
        ylabel=LOSS_LABEL,
        yscale="log" if log else "linear",
        traces=tuple(traces),
    )
    return Figure(title=title, panels=(panel,), caption="Losses of a training run over its steps.")


def path_figure(
    title: str, steps: tuple[str, np.ndarray], loss: np.ndarray, products: np.ndarray | None
) -> Figure:
    """The loss along a flow or descent and, for linear attention, the products a_j b_j, until both are settled.

    Args:
        title: of the figure.
        steps: name and values of what is along x: flow time, or steps; shape (n,).
        loss: shape (n,).
        products: shape (n, d); None for models that have none.

    Raises:
        ValueError: no point is finite.
    """
    label, x = steps
    curves = [loss[:, None]] if products is None else [loss[:, None], products]
    finite = np.isfinite(np.concatenate(curves, axis=1)).all(axis=1)  # what diverges is drawn until it does
    x, curves = x[finite], [curve[finite] for curve in curves]
    if not len(x):
        raise ValueError(f"{title}: no point has a finite loss; start from smaller weights")
    shown = settled_window(x, *curves)
    loss_curve = Line(x=x[shown], y=curves[0][shown, 0], label="loss", style="solid", series=0)
    panels = [Panel(title="Loss", xlabel=label, ylabel=LOSS_LABEL, traces=(loss_curve,))]
    for values in curves[1:]:
        traces = tuple(product_curves(x[shown], values[shown]))
        panels.append(Panel(title="Products", xlabel=label, ylabel="product $a_j b_j$", traces=traces))
    return Figure(title=title, panels=tuple(panels), caption=f"Loss and products over {label}.")


def product_curves(x: np.ndarray, products: np.ndarray) -> list[Line]:
    """One curve where all coordinates agree, else one each for the first few.

    Args:
        x: shape (n,).
        products: a_j b_j, shape (n, d).
    """
    name = "$a_j b_j$"
    if coordinates_agree(products):
        return [Line(x=x, y=products[:, 0], label=f"{name}, equal for all j", style="solid", series=0)]
    return [
        Line(x=x, y=products[:, j], label=f"{name}, j = {j + 1}", series=j)
        for j in range(min(products.shape[1], MAX_CURVES))
    ]


def coordinates_agree(values: np.ndarray) -> bool:
    """Return whether all columns of values of shape (n, d) are the same up to rounding."""
    return bool(np.ptp(values, axis=1).max() <= _EQUAL * max(1.0, np.abs(values).max()))


def settled_window(times: np.ndarray, *curves: np.ndarray) -> slice:
    """The points up to 1.6 times the time at which all curves are settled; a flow itself is longer.

    Args:
        times: shape (n,), increasing.
        *curves: each of shape (n, d).
    """
    end = 1.6 * max(_settled(times, values) for values in curves) or times[-1]
    return slice(0, max(2, int(np.searchsorted(times, end, side="right"))))


def _settled(times: np.ndarray, values: np.ndarray) -> float:
    """The last time at which some value is farther from its end than a hundredth of the largest distance; 0 if none moves."""
    distance = np.abs(values - values[-1]).max(1)
    moving = np.flatnonzero(distance > _SETTLED * distance.max()) if distance.max() > 0 else np.array([0])
    return float(times[moving[-1]])
