"""Heat maps and cell maps as figures of plotly."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

from mesascope.records import CellMap, Heatmap, Panel

from ._cell_map import KINDS, REST, edges
from ._tex import tex_to_html
from ._theme import Theme

_LETTER = 6.4  # pixels of a letter in a name
_LINE = 17  # pixels of a line of names
_BAR = 92  # pixels that the bar of colours and its title take


def matrix_of(trace: Heatmap, theme: Theme) -> dict[str, Any]:
    """A matrix, its first row on top, in square cells."""
    rows, columns = len(trace.z), len(trace.z[0])
    low, high = trace.limits or (min(map(min, trace.z)), max(map(max, trace.z)))
    shown: list[list[float]] = [list(row) for row in trace.z]
    bar = _bar(trace.colorlabel)
    if trace.scale == "log":
        high = high if high > low else 10 * low
        shown = [[log10(value) for value in row] for row in shown]
        low, high = log10(low), log10(high)
        bar |= _decades(low, high)
    elif trace.center is not None:
        reach = max(high - trace.center, trace.center - low) or 1.0
        low, high = trace.center - reach, trace.center + reach
    elif not high > low:
        high = low + 1.0
    heat = {
        "type": "heatmap",
        "x0": 1,
        "dx": 1,
        "y0": 1,
        "dy": 1,
        "z": shown,
        "customdata": [list(row) for row in trace.z],
        "hovertemplate": "row %{y}, column %{x}: %{customdata:.6g}<extra></extra>",
        "zmin": low,
        "zmax": high,
        "colorscale": "Viridis" if trace.center is None else _scale(theme.diverging),
        "colorbar": bar,
    }
    marks: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [column for _, column in trace.marks],
        "y": [row for row, _ in trace.marks],
        "marker": {
            "symbol": "circle-open",
            "size": 10,
            "color": "#FFFFFF",
            "line": {"width": 2, "color": "#FFFFFF"},
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }
    # Dark below light: one of the two is seen on every colour.
    below = marks | {
        "marker": {**marks["marker"], "color": "#000000", "line": {"width": 4, "color": "#000000"}}
    }
    x, left_out = _names(trace.columns, columns)
    y, _ = _names(trace.rows, rows, upright=False)
    left, foot = _longest(trace.rows), min(_longest(trace.columns) * left_out, 210.0)
    return {
        "data": [heat, *([below, marks] if trace.marks else [])],
        "layout": {
            "xaxis": {
                "range": [0.5, columns + 0.5],
                "constrain": "domain",
                "constraintoward": "left",
                "showgrid": False,
                **x,
            },
            "yaxis": {
                "range": [rows + 0.5, 0.5],
                "scaleanchor": "x",
                "constrain": "domain",
                "showgrid": False,
                **y,
            },
            "height": int(
                110 + foot + min(360, max(90, 300 * rows / columns, _LINE * len(trace.rows or ())))
            ),
            "margin": {"l": int(max(52, 38 + left)), "r": _BAR, "b": int(52 + foot)},
            "shapes": _blocks(trace, theme),
        },
    }


def cells_of(trace: CellMap, panel: Panel, theme: Theme) -> dict[str, Any]:
    """Cells around places on both axes; those without a value show the grey background."""
    low, high = trace.ends
    bar = _bar(trace.colorlabel)
    shown: list[list[float | None]] = [list(row) for row in trace.z]
    scale: Any = "Viridis"
    if trace.kinds is not None:
        count = len(trace.kinds)
        low, high = -0.5, count - 0.5
        scale = _steps([*KINDS, *[REST] * count][:count])
        bar |= {"tickvals": list(range(count)), "ticktext": [tex_to_html(kind) for kind in trace.kinds]}
    elif trace.scale == "log":
        shown = [[None if value is None else log10(value) for value in row] for row in shown]
        low, high = log10(low), log10(high)
        bar |= _decades(low, high)
    heat = {
        "type": "heatmap",
        # plotly halves distances as if every axis were linear: it gets the borders of the cells
        "x": edges(trace.x, panel.xscale),
        "y": edges(trace.y, panel.yscale),
        "z": shown,
        "customdata": [list(row) for row in trace.z] if trace.kinds is None else _named(trace),
        "hovertemplate": "%{customdata}<extra></extra>",
        "hoverongaps": False,
        "zmin": low,
        "zmax": high,
        "colorscale": scale,
        "colorbar": bar,
    }
    x, left_out = _names(trace.xnames, len(trace.x), trace.x)
    y, _ = _names(trace.ynames, len(trace.y), trace.y, upright=False)
    left, foot = _longest(trace.ynames), min(_longest(trace.xnames) * left_out, 160.0)
    kinds = min(_longest(trace.kinds), 170.0)
    return {
        "data": [heat],
        "layout": {
            "plot_bgcolor": theme.missing,
            "xaxis": {"showgrid": False, **x},
            "yaxis": {"showgrid": False, **y},
            "height": int(340 + foot),
            "margin": {"l": int(max(70, 38 + left)), "r": int(_BAR + kinds), "b": int(56 + foot)},
        },
    }


def _named(trace: CellMap) -> list[list[str]]:
    kinds = trace.kinds or ()
    return [["" if value is None else tex_to_html(kinds[int(value)]) for value in row] for row in trace.z]


def _bar(label: str) -> dict[str, Any]:
    return {
        "title": {"text": tex_to_html(label), "side": "right"},
        "thickness": 12,
        "len": 1.0,
        "exponentformat": "power",
        "outlinewidth": 0,
    }


def _decades(low: float, high: float) -> dict[str, Any]:
    """Ticks of a logarithmic bar: powers of ten, every second or third of many; otherwise its ends."""
    powers = list(range(ceil(low), floor(high) + 1))
    powers = powers[:: max(1, -(-len(powers) // 6))]
    if len(powers) < 2:
        return {"tickvals": [low, high], "ticktext": [f"{10**low:.3g}", f"{10**high:.3g}"]}
    return {"tickvals": powers, "ticktext": [f"10<sup>{power}</sup>".replace("-", "−") for power in powers]}


def _scale(colors: Sequence[str]) -> list[list[Any]]:
    return [[n / (len(colors) - 1), color] for n, color in enumerate(colors)]


def _steps(colors: Sequence[str]) -> list[list[Any]]:
    """One constant colour for every category."""
    count = len(colors)
    return [[(n + end) / count, color] for n, color in enumerate(colors) for end in (0, 1)]


def _names(
    names: Sequence[str] | None, count: int, places: Sequence[float] | None = None, *, upright: bool = True
) -> tuple[dict[str, Any], bool]:
    """Ticks with names, rotated if allowed and needed; numbers where there are no names."""
    if names is None:
        return ({"tickformat": "d", "nticks": 7} if places is None else {}), False
    upright = upright and sum(map(len, names)) * _LETTER > 200
    return {
        "tickvals": list(places or range(1, count + 1)),
        "ticktext": [tex_to_html(name) for name in names],
        "tickangle": -90 if upright else 0,
        "ticks": "",
    }, upright


def _longest(names: Sequence[str] | None) -> float:
    return _LETTER * max(map(len, names)) if names else 0.0


def _blocks(trace: Heatmap, theme: Theme) -> list[dict[str, Any]]:
    if not trace.block:
        return []
    rows, columns = len(trace.z), len(trace.z[0])
    line = {"type": "line", "line": {"color": theme.lines, "width": 1}}
    return [
        {**line, "x0": at + 0.5, "x1": at + 0.5, "y0": 0.5, "y1": rows + 0.5}
        for at in range(trace.block, columns, trace.block)
    ] + [
        {**line, "x0": 0.5, "x1": columns + 0.5, "y0": at + 0.5, "y1": at + 0.5}
        for at in range(trace.block, rows, trace.block)
    ]
