"""A panel in the page: its data for plotly, its legend and description for HTML."""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from markupsafe import Markup

from mesascope.records import Band, CellMap, Heatmap, Histogram, Panel

from .._material import Entry, Material
from .._plotly import plotly_panel
from .._tex import tex_to_html, tex_to_text
from .._theme import VARIABLES

_KIND = {"band": "interval", "points": "points", "rule": "line at", "histogram": "histogram"}


def drawn(panel: Panel) -> dict[str, Any]:
    """The panel as `page.js` draws it, its height in pixels, the entries of its legend, and a description in words.

    Raises:
        ArithmeticError, ValueError: a range of the panel is beyond double precision.
    """
    figure = plotly_panel(panel, VARIABLES)
    figure["layout"]["showlegend"] = False  # the legend is HTML: it wraps on a phone and moves no axes
    return {
        "data": _rounded(figure),
        "height": figure["layout"]["height"],
        "legend": _legend(figure["data"], panel),
        "description": _described(panel),
    }


def figure_anchor(entry: Entry, name: str) -> str:
    """The anchor of a figure on the page."""
    return f"figure/{entry.folder}/{name}"


def without_undrawable(material: Material) -> Material:
    """The material without figures that cannot be drawn, each with a line in `problems`."""
    problems, entries = [*material.problems], []
    for entry in material.entries:
        kept = []
        for name, figure in entry.figures:
            try:
                for panel in figure.panels:
                    drawn(panel)
                kept.append((name, figure))
            except (ArithmeticError, ValueError) as error:
                problems.append(f"{entry.name}: figure {name} cannot be drawn ({error}); correct its numbers")
        entries.append(replace(entry, figures=tuple(kept)))
    return Material(tuple(entries), tuple(problems))


def _rounded(data: Any) -> Any:
    """Numbers rounded to seven digits, finer than a screen shows; the other digits would be a third of the page."""
    if isinstance(data, float):
        if not isfinite(data):
            raise OverflowError("a number beyond double precision")
        return float(f"{data:.7g}")
    if isinstance(data, dict):
        return {key: _rounded(value) for key, value in data.items()}
    return [_rounded(one) for one in data] if isinstance(data, list | tuple) else data


def _described(panel: Panel) -> str:
    first = panel.traces[0]
    if isinstance(first, Heatmap | CellMap):
        kind = f"Heat map of {first.colorlabel}"
    else:
        names = dict.fromkeys(_KIND.get(trace.kind, "curve") + f" {trace.label}" for trace in panel.traces)  # type: ignore[union-attr]
        kind = f"Chart of {', '.join(names)}"
    return tex_to_text(f"{panel.title}. {kind}. Across: {panel.xlabel}. Up: {panel.ylabel}.")


def _legend(data: Sequence[dict[str, Any]], panel: Panel) -> list[dict[str, Any]]:
    """The name of each entry, the numbers of its traces, and the shapes of its symbol: area below line below marker."""
    first = panel.traces[0]
    if isinstance(first, CellMap) and len(first.known) < len(first.x) * len(first.y):
        looks = [{**_AREA, "style": f"color:{VARIABLES.missing}"}]
        return [{"name": Markup(tex_to_html(first.missing)), "traces": (), "looks": looks}]
    if isinstance(first, Heatmap | CellMap):
        return []
    groups: dict[str, list[int]] = {}
    for n, trace in enumerate(data):
        groups.setdefault(trace["legendgroup"], []).append(n)
    return [
        {
            "name": Markup(data[numbers[0]]["name"]),
            "traces": numbers,
            "looks": [
                look for _, look in sorted((_look(data[n], panel.traces[n]) for n in numbers), key=_layer)
            ],
        }
        for numbers in groups.values()
    ]


_AREA = {"d": "M0 1h28v10h-28z", "fill": "currentColor"}
_LINE = {"d": "M0 6h28", "stroke": "currentColor", "stroke-width": 2}
_MARKER = {"fill": "var(--paper)", "stroke": "currentColor", "stroke-width": 1.5}
_SHAPES = {
    "circle": "M18 6a4 4 0 1 1-8 0a4 4 0 1 1 8 0z",
    "square": "M10.5 2.5h7v7h-7z",
    "triangle-up": "M14 1.5l4.5 8h-9z",
    "diamond": "M14 1.5l4.5 4.5l-4.5 4.5l-4.5-4.5z",
    "triangle-down": "M14 10.5l4.5-8h-9z",
    "cross": "M12.5 2h3v2.5h2.5v3h-2.5v2.5h-3v-2.5h-2.5v-3h2.5z",
    "x": "M10 3.5l1.5-1.5l2.5 2.5l2.5-2.5l1.5 1.5l-2.5 2.5l2.5 2.5l-1.5 1.5l-2.5-2.5l-2.5 2.5l-1.5-1.5l2.5-2.5z",
}


def _look(drawn: dict[str, Any], trace: Any) -> tuple[int, dict[str, Any]]:
    """The layer of a trace's symbol, and the attributes of its path."""
    if isinstance(trace, Band | Histogram):
        return 0, {**_AREA, "opacity": drawn["opacity"], "style": f"color:{drawn['fillcolor']}"}
    if drawn["mode"] == "markers":
        shape = _SHAPES[drawn["marker"]["symbol"]]
        return 2, {**_MARKER, "d": shape, "style": f"color:{drawn['marker']['line']['color']}"}
    line = drawn["line"]
    dashes = None if line["dash"] == "solid" else line["dash"].replace("px", "")
    return 1, {**_LINE, "stroke-dasharray": dashes, "style": f"color:{line['color']}"}


def _layer(look: tuple[int, dict[str, Any]]) -> int:
    return look[0]
