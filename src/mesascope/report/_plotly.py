"""From a panel's traces to a figure of plotly: plain dictionaries, as its JavaScript reads them."""

from collections.abc import Sequence
from math import inf, log10
from typing import Any

from mesascope.records import Band, CellMap, Heatmap, Histogram, Line, Panel, Points, Rule

from ._plotly_maps import cells_of, matrix_of
from ._style import MARKERS
from ._tex import tex_to_html
from ._theme import LIGHT, Theme
from ._traces import Brush, is_whole, line_dashes
from ._wrap import wrap

Plotly = dict[str, Any]

_NAMES = "circle square triangle-up diamond triangle-down cross x"
_SYMBOLS = dict(zip(MARKERS, _NAMES.split(), strict=True))
_ACROSS, _UP = 44, 32  # letters of an axis label on one line
_LINE = 15  # pixels of a further line
_HEIGHT = 290
_MARGIN = {"l": 70, "r": 14, "t": 18, "b": 56}


def plotly_panel(panel: Panel, theme: Theme = LIGHT) -> Plotly:
    """One panel as a figure of plotly: `{"data": [...], "layout": {...}}`, plain JSON.

    The same traces that `render` draws with matplotlib, in the same colours, dashes and markers. Margins and ranges are
    fixed, so that nothing moves while it is drawn; formulas between `$` signs become letters, subscripts and superscripts.

    Args:
        panel: the panel.
        theme: its colours.

    Returns:
        `data` and `layout` for `Plotly.newPlot`, `plotly.graph_objects.Figure` or `nicegui.ui.plotly`.
    """
    first = panel.traces[0]
    if isinstance(first, Heatmap):
        drawn = matrix_of(first, theme)
    elif isinstance(first, CellMap):
        drawn = cells_of(first, panel, theme)
    else:
        drawn = _curves(panel, theme)
    layout = _layout(panel, theme)
    more = {
        side: _LINE * layout[axis]["title"]["text"].count("<br>")
        for side, axis in (("l", "yaxis"), ("b", "xaxis"))
    }
    for name in ("xaxis", "yaxis"):
        layout[name] |= drawn["layout"].pop(name, {})
    margin = _MARGIN | drawn["layout"].pop("margin", {})
    layout["margin"] = {side: width + more.get(side, 0) for side, width in margin.items()} | {
        "autoexpand": False
    }
    return {"data": drawn["data"], "layout": layout | drawn["layout"]}


def _layout(panel: Panel, theme: Theme) -> Plotly:
    axis = {
        "automargin": False,
        "exponentformat": "power",
        "gridcolor": theme.grid,
        "linecolor": theme.ink,
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": theme.ink,
        "zeroline": False,
    }
    return {
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": theme.ink},
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "height": _HEIGHT,
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": -0.28, "yanchor": "top"},
        "xaxis": axis | _axis(panel.xlabel, panel.xscale, _ACROSS),
        "yaxis": axis | _axis(panel.ylabel, panel.yscale, _UP),
    }


def _axis(label: str, scale: str, letters: int) -> Plotly:
    lines = wrap(label, letters).splitlines()
    return {"title": {"text": "<br>".join(map(tex_to_html, lines)), "standoff": 8}, "type": scale}


# Curves, points, bands, histograms and rules


def _curves(panel: Panel, theme: Theme) -> Plotly:
    brush = Brush(panel)
    ranges = {axis: _range(panel, axis) for axis in ("x", "y")}
    data: list[Plotly] = []
    named: set[str] = set()
    for trace in panel.traces:
        match trace:
            case Rule():
                series, dashes = brush.rule(trace)
                drawn = _rule(trace, theme.color(series), dashes, ranges)
            case Line():
                series = brush.series(trace)
                drawn = _line(trace, theme.color(series), series)
            case Band():
                drawn = _band(trace, theme.color(brush.series(trace)))
            case Points():
                series = brush.series(trace)
                drawn = _points(trace, theme, series)
            case Histogram():
                drawn = _histogram(trace, theme.color(brush.series(trace)))
            case _:  # maps stand alone
                raise AssertionError(trace.kind)
        # A band and its line share a name: hiding one hides the other, and the legend shows it once.
        data.append(
            {
                "name": tex_to_html(trace.label),
                "legendgroup": trace.label,
                "showlegend": trace.label not in named,
                **drawn,
            }
        )
        named.add(trace.label)
    layout = {f"{axis}axis": {"range": _drawn_range(panel, axis, ends)} for axis, ends in ranges.items()}
    for axis, ends in ranges.items():
        layout[f"{axis}axis"] |= _ticks(panel, axis, ends)
    return {"data": data, "layout": layout}


def _scatter(mode: str, x: Sequence[float], y: Sequence[float]) -> Plotly:
    return {"type": "scatter", "mode": mode, "x": list(x), "y": list(y)}


def _line(trace: Line, color: str, series: int | None) -> Plotly:
    return {
        **_scatter("lines", trace.x, trace.y),
        "line": {"color": color, "width": 2, "dash": _dash(line_dashes(trace, series))},
    }


def _dash(dashes: Any) -> str:
    """Matplotlib's dashes, in widths of the line, as pixels."""
    return "solid" if dashes == "-" else ",".join(f"{2 * length:g}px" for length in dashes[1])


def _band(trace: Band, color: str) -> Plotly:
    hatched = {"fillpattern": {"shape": "/", "fgcolor": color, "size": 7, "solidity": 0.15}, "opacity": 0.9}
    return {
        **_scatter("lines", [*trace.x, *reversed(trace.x)], [*trace.high, *reversed(trace.low)]),
        "fill": "toself",
        "fillcolor": color,
        "opacity": 0.25,
        "line": {"width": 0, "color": color},
        "hoverinfo": "skip",
        **(hatched if trace.hatched else {}),
    }


def _points(trace: Points, theme: Theme, series: int | None) -> Plotly:
    color = theme.color(series)
    bars = (
        {"type": "data", "array": list(trace.yerr), "color": color, "thickness": 1.2, "width": 3}
        if trace.yerr
        else {}
    )
    return {
        **_scatter("markers", trace.x, trace.y),
        "error_y": bars,
        "marker": {
            "symbol": _SYMBOLS[MARKERS[(series or 0) % len(MARKERS)]],
            "size": 7,
            "color": theme.paper,  # hollow: a curve below stays visible
            "line": {"color": color, "width": 1.6},
        },
    }


def _histogram(trace: Histogram, color: str) -> Plotly:
    """The filled outline of all bins; bars would hide each other where histograms overlap."""
    bins = zip(trace.edges, trace.edges[1:], trace.counts, strict=False)
    corners = [corner for left, right, count in bins for corner in ((left, count), (right, count))]
    first, last = trace.edges[0], trace.edges[-1]
    outline = [(first, 0.0), *corners, (last, 0.0)]
    return {
        **_scatter("lines", *zip(*outline, strict=True)),
        "fill": "toself",
        "fillcolor": color,
        "opacity": 0.55,
        "line": {"color": color, "width": 1.6},
    }


def _rule(trace: Rule, color: str, dashes: Any, ranges: dict[str, tuple[float, float]]) -> Plotly:
    """A line from one edge of the panel to the other; a trace, not a shape, so that the legend hides it."""
    along = "x" if trace.axis == "y" else "y"
    ends, value = list(ranges[along]), [trace.value] * 2
    return {
        **_scatter("lines", *((ends, value) if along == "x" else (value, ends))),
        "line": {"color": color, "width": 1.6, "dash": _dash(dashes)},
    }


def _range(panel: Panel, axis: str) -> tuple[float, float]:
    """The range of the data with a margin, so that no curve lies on the frame."""
    log = _scale(panel, axis) == "log"
    low, high = inf, -inf
    for trace in panel.traces:
        ends = [value for value in _extent(trace, axis) if value > 0 or not log]
        low, high = min([low, *ends]), max([high, *ends])
    if low > high:  # rules alone
        return (0.1, 1.0) if log else (0.0, 1.0)
    share = 0.03 if axis == "x" else 0.05
    if log:
        more = (high / low) ** share if high > low else 2.0
        return low / more, high * more
    more = share * (high - low) if high > low else abs(high) / 10 or 1.0
    floor = 0.0 if axis == "y" and any(isinstance(one, Histogram) for one in panel.traces) else low - more
    return floor, high + more


def _extent(trace: Any, axis: str) -> list[float]:
    match trace:
        case Rule():
            return [trace.value] if trace.axis == axis else []
        case Histogram():
            return list(trace.edges) if axis == "x" else [0.0, *trace.counts]
        case Band():
            return list(trace.x) if axis == "x" else [*trace.low, *trace.high]
        case Points() if axis == "y" and trace.yerr:
            pairs = list(zip(trace.y, trace.yerr, strict=True))
            return [y + sign * bar for y, bar in pairs for sign in (-1, 0, 1)]
        case _:
            return list(trace.x if axis == "x" else trace.y)


def _ticks(panel: Panel, axis: str, ends: tuple[float, float]) -> Plotly:
    """Ticks that plotly would choose badly: powers of ten over several decades, integers where all points are integers."""
    if _scale(panel, axis) == "log":
        decades = log10(ends[1] / ends[0])
        if decades > 1.5:
            return {"dtick": max(1, round(decades / 6))}
        return {"dtick": "D2"} if decades > 0.7 else {}
    return {"dtick": 1} if axis == "x" and is_whole(panel) and ends[1] - ends[0] < 12 else {}


def _drawn_range(panel: Panel, axis: str, ends: tuple[float, float]) -> list[float]:
    return [log10(end) for end in ends] if _scale(panel, axis) == "log" else list(ends)


def _scale(panel: Panel, axis: str) -> str:
    return panel.xscale if axis == "x" else panel.yscale
