"""Drawing cell maps: a function of two parameters, or a category for every pair of them."""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any

from mesascope.records import CellMap

from ._style import SEQUENTIAL
from ._wrap import names_across

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MANY = 5000  # more cells than this are drawn as an image inside the PDF, which stays small
_MISSING = "#E6E6E6"
# The colours of the series, lighter and darker in turns, so that neighbours differ in grey too; what else there is, is grey.
KINDS = ("#0072B2", "#E69F00", "#009E73", "#F0E442", "#56B4E9", "#D55E00", "#CC79A7")
REST = "#808080"


def cell_map_height(trace: CellMap, width: float) -> float:
    """Height in inches of a panel that is `width` inches wide, its title and labels included."""
    below = names_across(trace.xnames) if trace.xnames else 0.0
    return 0.62 * width + 0.75 + 0.5 * below


def cell_map(axes: "Axes", trace: CellMap) -> None:
    """Draw the cells, the hatch below those that are missing, and the bar of colours."""
    import numpy as np

    entries = np.ma.masked_invalid([[np.nan if entry is None else entry for entry in row] for row in trace.z])
    axes.patch.set(facecolor=_MISSING, edgecolor="white", hatch="////", linewidth=0)
    mesh = axes.pcolormesh(
        edges(trace.x, axes.get_xscale()),
        edges(trace.y, axes.get_yscale()),
        entries,
        edgecolors="face",  # no hairlines between cells in a PDF viewer
        linewidth=0.2,
        rasterized=entries.size > _MANY,
        **_colours(trace),
    )
    axes.margins(0)
    for axis, places, names in ((axes.xaxis, trace.x, trace.xnames), (axes.yaxis, trace.y, trace.ynames)):
        if names is not None:
            axis.set_ticks(places, names, minor=False)
            axis.set_tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(True)
    _bar(axes, trace, mesh)


def edges(places: Sequence[float], scale: str) -> list[float]:
    """The borders of cells: half way between places, on the axis as it is drawn."""
    log = scale == "log"
    if len(places) == 1:
        (only,) = places
        return [only / 2, only * 2] if log else [only - 0.5, only + 0.5]
    inner = [sqrt(a * b) if log else (a + b) / 2 for a, b in pairwise(places)]
    first, last = places[0], places[-1]
    if log:
        return [first**2 / inner[0], *inner, last**2 / inner[-1]]
    return [2 * first - inner[0], *inner, 2 * last - inner[-1]]


def _colours(trace: CellMap) -> dict[str, Any]:
    from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm, Normalize

    if trace.kinds is not None:
        count = len(trace.kinds)
        colours = [*KINDS, *[REST] * count][:count]
        return {
            "cmap": ListedColormap(colours),
            "norm": BoundaryNorm([k - 0.5 for k in range(count + 1)], count),
        }
    norm = LogNorm if trace.scale == "log" else Normalize
    return {"cmap": SEQUENTIAL, "norm": norm(*trace.ends)}


def _bar(axes: "Axes", trace: CellMap, mesh: Any) -> None:
    """The colour bar, with a key for missing cells above it if there are any."""
    from matplotlib.patches import Patch

    bar = axes.figure.colorbar(mesh, cax=axes.inset_axes((1.03, 0.0, 0.045, 1.0)))
    bar.set_label(trace.colorlabel)
    bar.outline.set_linewidth(0.6)
    if trace.kinds is not None:
        bar.set_ticks(range(len(trace.kinds)), labels=list(trace.kinds))
        bar.ax.tick_params(length=0)
        bar.ax.minorticks_off()
    if len(trace.known) < len(trace.x) * len(trace.y):
        hatched = Patch(facecolor=_MISSING, edgecolor="white", hatch="////", label=trace.missing)
        axes.legend(handles=[hatched], loc="lower left", handlelength=1.2)
