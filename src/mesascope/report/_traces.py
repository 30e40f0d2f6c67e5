"""One function a kind of trace: from data to matplotlib artists."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mesascope.records import Band, CellMap, Heatmap, Histogram, Line, Panel, Points, Rule

from ._cell_map import cell_map, cell_map_height
from ._legend import Entries
from ._style import DASHES, DIVERGING, MARKERS, PALETTE, RULE_DASHES, SEQUENTIAL, STYLES, THEORY
from ._wrap import names_across

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UPRIGHT = 0.28  # inches between names below which slanted ones, at half that distance, would touch
_MANY = 5000  # more points or cells than this are drawn as an image inside the PDF, which stays small


class Brush:
    """Colours, dashes and markers of one panel's traces, assigned in their order."""

    def __init__(self, panel: Panel) -> None:
        named = {trace.series for trace in panel.traces if not isinstance(trace, Heatmap | CellMap)}
        self._free = (number for number in range(len(panel.traces) + len(named)) if number not in named)
        self._rules: dict[str, int] = {}

    def series(self, trace: Line | Band | Points | Histogram) -> int | None:
        """Return the colour number of a trace; None is theory."""
        if trace.series == "theory":
            return None
        return next(self._free) if trace.series is None else trace.series

    def rule(self, trace: Rule) -> tuple[int | None, Any]:
        """Return colour number and dashes of a rule: black ones of other names differ."""
        if isinstance(trace.series, int):
            return trace.series, STYLES["dashed"]
        number = self._rules.setdefault(trace.label, len(self._rules))
        return None, RULE_DASHES[number % len(RULE_DASHES)]


def line_dashes(trace: Line, series: int | None) -> Any:
    """Return the dashes of a line."""
    return STYLES[trace.style] if trace.style else DASHES[(series or 0) % len(DASHES)]


def is_whole(panel: Panel) -> bool:
    """Whether the places of all lines, points and bands along x are integers."""
    lines = [trace for trace in panel.traces if isinstance(trace, Line | Points | Band)]
    return bool(lines) and all(x.is_integer() for trace in lines for x in trace.x)


def color(series: int | None) -> str:
    """Return the colour of a series."""
    return THEORY if series is None else PALETTE[series % len(PALETTE)]


def panel_height(panel: Panel, width: float) -> float:
    """Height in inches of a panel that is `width` inches wide, its title and labels included."""
    first = panel.traces[0]
    if isinstance(first, CellMap):
        return cell_map_height(first, width)
    if isinstance(first, Heatmap):
        # What names, labels and colour bar leave of the width, at equal cells.
        left, below = (names_across(names) if names else 0.0 for names in (first.rows, first.columns))
        cell = (width - 1.2 - left) / len(first.z[0])
        turned = 0.0 if below < cell else 0.2 + 0.5 * below if cell > _UPRIGHT else below
        return min(max(cell * len(first.z), 0.5), 1.2 * width) + 0.75 + turned
    return min(0.45 * width + 0.85, 2.7)


def number_whole(axes: "Axes", panel: Panel) -> None:
    """Put integer ticks on a linear x axis where all points are integers."""
    from matplotlib.ticker import MaxNLocator

    if panel.xscale == "linear" and is_whole(panel):
        axes.xaxis.set_major_locator(
            MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True, min_n_ticks=1)
        )


def write_plainly(axes: "Axes") -> None:
    """Write the numbers of logarithmic axes without powers of ten where they lie between 0.001 and 10000."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Plain(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            text = super().__call__(x, pos)  # empty where there is no room for a number
            assert self.axis is not None  # set_major_formatter has set it
            low, high = sorted(self.axis.get_view_interval())
            return f"{x:g}" if text and low > 0.9e-3 and high < 1.1e4 else text

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(Plain())
            axis.set_minor_formatter(Plain())


def draw(axes: "Axes", panel: Panel) -> Entries:
    """Draw every trace of a panel; return the artists that its legend shows, by label."""
    brush = Brush(panel)
    shown: Entries = {}
    for trace in panel.traces:
        series = None
        match trace:
            case Heatmap():
                _heatmap(axes, trace)
                continue
            case CellMap():
                cell_map(axes, trace)
                continue
            case Rule():
                series, dashes = brush.rule(trace)
                artist = _rule(axes, trace, series, dashes)
            case Line():
                artist = _line(axes, trace, series := brush.series(trace))
            case Band():
                artist = _band(axes, trace, series := brush.series(trace))
            case Points():
                artist = _points(axes, trace, series := brush.series(trace))
            case Histogram():
                artist = _histogram(axes, trace, series := brush.series(trace))
        alike = shown.setdefault(trace.label, [])
        if all((type(artist), series) != (type(other), its) for other, its in alike):
            alike.append((artist, series))
    return shown


def _line(axes: "Axes", trace: Line, series: int | None) -> Any:
    (artist,) = axes.plot(trace.x, trace.y, color=color(series), linestyle=line_dashes(trace, series))
    return artist


def _band(axes: "Axes", trace: Band, series: int | None) -> Any:
    if trace.hatched:
        look: dict[str, Any] = {
            "facecolor": "none",
            "edgecolor": color(series),
            "hatch": "////",
            "linewidth": 0,
            "alpha": 0.35,
        }
        return axes.fill_between(trace.x, trace.low, trace.high, zorder=2.4, **look)
    return axes.fill_between(
        trace.x, trace.low, trace.high, color=color(series), alpha=0.22, linewidth=0, zorder=1.5
    )


def _points(axes: "Axes", trace: Points, series: int | None) -> Any:
    return axes.errorbar(
        trace.x,
        trace.y,
        yerr=trace.yerr,
        color=color(series),
        linestyle="none",
        marker=MARKERS[(series or 0) % len(MARKERS)],
        markerfacecolor="white",  # hollow: a curve below stays visible
        markeredgewidth=0.8,
        elinewidth=0.8,
        capsize=1.5,
        rasterized=len(trace.x) > _MANY,
        zorder=2.5,
    )


def _histogram(axes: "Axes", trace: Histogram, series: int | None) -> Any:
    axes.stairs(trace.counts, trace.edges, color=color(series), linewidth=0.9)
    return axes.stairs(trace.counts, trace.edges, fill=True, color=color(series), alpha=0.3, linewidth=0)


def _rule(axes: "Axes", trace: Rule, series: int | None, dashes: Any) -> Any:
    at = axes.axhline if trace.axis == "y" else axes.axvline
    return at(trace.value, color=color(series), linestyle=dashes, linewidth=1.0, zorder=2.2)


def _heatmap(axes: "Axes", trace: Heatmap) -> None:
    from matplotlib.ticker import MaxNLocator

    count, width = len(trace.z), len(trace.z[0])
    mesh = axes.pcolormesh(
        [column + 0.5 for column in range(width + 1)],
        [row + 0.5 for row in range(count + 1)],
        trace.z,
        norm=_norm(trace),
        cmap=SEQUENTIAL if trace.center is None else DIVERGING,
        edgecolors="face",  # no hairlines between cells in a PDF viewer
        linewidth=0.2,
        rasterized=count * width > _MANY,
    )
    axes.set_aspect("equal")
    axes.invert_yaxis()
    for axis, names in ((axes.xaxis, trace.columns), (axes.yaxis, trace.rows)):
        if names is None:
            axis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
        else:
            axis.set_ticks(range(1, len(names) + 1), names)
        axis.set_tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(True)
    if trace.block:
        for boundary in range(trace.block, width, trace.block):
            axes.axvline(boundary + 0.5, color=THEORY, linewidth=0.6)
        for boundary in range(trace.block, count, trace.block):
            axes.axhline(boundary + 0.5, color=THEORY, linewidth=0.6)
    for row, column in trace.marks:
        _ring(axes, row, column)
    # An inset, unlike an axes of its own, is as high as the cells whatever their aspect.
    bar = axes.figure.colorbar(mesh, cax=axes.inset_axes((1.03, 0.0, 0.045, 1.0)))
    bar.set_label(trace.colorlabel)
    if trace.scale == "linear":
        bar.locator = MaxNLocator(nbins=5, steps=[1, 2, 5, 10])
    bar.outline.set_linewidth(0.6)


def _norm(trace: Heatmap) -> Any:
    from matplotlib.colors import CenteredNorm, LogNorm, Normalize

    low, high = trace.limits or (min(map(min, trace.z)), max(map(max, trace.z)))
    if trace.center is not None:
        reach = max(high - trace.center, trace.center - low)
        return CenteredNorm(trace.center, reach if reach > 0 else 1.0)
    if trace.scale == "log":
        return LogNorm(low, high if high > low else 10 * low)
    return Normalize(low, high if high > low else low + 1.0)


def _ring(axes: "Axes", row: int, column: int) -> None:
    """White on black, which is visible on every colour."""
    for color, width in (("black", 2.0), ("white", 1.0)):
        axes.plot(
            column, row, marker="o", markersize=4, markerfacecolor="none", color=color, markeredgewidth=width
        )


def turn_crowded_names(figure: "Figure") -> None:
    """Rotate the names of columns that would overlap: by 30°, or by 90° if that is not enough."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        if any(left.x1 + 0.06 * figure.dpi > right.x0 for left, right in pairwise(boxes)):
            gap = min(right.x0 + right.x1 - left.x0 - left.x1 for left, right in pairwise(boxes)) / 2
            upright = gap < _UPRIGHT * figure.dpi
            axes.tick_params("x", labelrotation=90 if upright else 30)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("right")
                label.set_verticalalignment("center" if upright else "top")
                label.set_rotation_mode("anchor")
