"""What the figures of several papers are drawn with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mesascope.records import Band, Figure, Heatmap, Line, Panel, Trace


def one_panel(title: str, panel: str, *traces: Trace, caption: str = "", **axes: Any) -> Figure:
    """A figure with a single panel.

    Args:
        title: of the figure.
        panel: title of the panel.
        *traces: at least one.
        caption: of the figure.
        **axes: `xlabel`, `ylabel`, `xscale` and `yscale` of the panel.
    """
    return Figure(title=title, panels=(Panel(title=panel, traces=traces, **axes),), caption=caption)


def curve(x: Any, values: Any, label: str, series: int, band: str | None = None) -> tuple[Band, Line]:
    """The range over seeds as a band, and their median as a line.

    Args:
        x: abscissas, shape (points,).
        values: one row a seed, shape (seeds, points).
        label: of the line.
        series: colour number of both.
        band: label of the band; None gives both one entry in the legend.
    """
    table = np.asarray(values)
    return (
        Band(x=x, low=table.min(0), high=table.max(0), label=band or label, series=series),
        Line(x=x, y=np.median(table, 0), label=label, series=series),
    )


def matrix_panels(
    matrices: Mapping[str, Any], xlabel: str = "column", ylabel: str = "row", **heatmap: Any
) -> tuple[Panel, ...]:
    """Title → matrix, each as a heat map in a panel of its own; `heatmap` are further fields of `Heatmap`."""
    return tuple(
        Panel(title=title, xlabel=xlabel, ylabel=ylabel, traces=(Heatmap(z=z, **heatmap),))
        for title, z in matrices.items()
    )
