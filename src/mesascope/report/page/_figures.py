"""A figure in the page: its panels as data for plotly, its legend and caption as HTML."""

import json
from collections.abc import Sequence
from typing import Any

from mesascope.records import Band, CellMap, Figure, Heatmap, Histogram, Panel

from .._plotly import plotly_panel
from .._tex import tex_to_html, tex_to_text
from .._theme import VARIABLES
from ._html import Markup, tag


def figure_html(identifier: str, figure: Figure) -> Markup:
    """The figure; `page.js` draws the data in its script.

    Args:
        identifier: of the element, one in the page; also the name of downloaded files.
        figure: the traces.
    """
    panels = [_panel(f"{identifier}:{n}", panel) for n, panel in enumerate(figure.panels, start=1)]
    return tag(
        "figure",
        tag("p", Markup(tex_to_html(figure.title)), class_="figure-title") if len(panels) > 1 else None,
        tag("div", *panels, class_="panels"),
        tag("figcaption", Markup(tex_to_html(figure.caption))) if figure.caption else None,
        id=identifier,
    )


def _panel(name: str, panel: Panel) -> Markup:
    drawn = plotly_panel(panel, VARIABLES)
    drawn["layout"]["showlegend"] = False  # the legend is HTML: it wraps on a phone and moves no axes
    return tag(
        "div",
        tag("p", Markup(tex_to_html(panel.title)), class_="panel-title"),
        _legend(drawn["data"], panel),
        tag(
            "div",
            tag("script", embedded(drawn), type="application/json"),
            class_="plot",
            role="group",
            aria_label=_described(panel),
            data_name=name.replace("/", "-").replace(":", "-"),
            style=f"height:{drawn['layout']['height']}px",
        ),
        class_="panel",
    )


def embedded(data: Any) -> Markup:
    """Data as JSON in a script element, escaped so that no text can end the element."""
    written = json.dumps(_rounded(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(written)


def _rounded(data: Any) -> Any:
    """Numbers rounded to seven digits, finer than a screen shows; the other digits would be a third of the page."""
    if isinstance(data, float):
        return float(f"{data:.7g}")
    if isinstance(data, dict):
        return {key: _rounded(value) for key, value in data.items()}
    return [_rounded(one) for one in data] if isinstance(data, list | tuple) else data


def _described(panel: Panel) -> str:
    """A description of the figure in words."""
    first = panel.traces[0]
    if isinstance(first, Heatmap | CellMap):
        kind = f"Heat map of {first.colorlabel}"
    else:
        names = dict.fromkeys(_KIND.get(trace.kind, "curve") + f" {trace.label}" for trace in panel.traces)  # type: ignore[union-attr]
        kind = f"Chart of {', '.join(names)}"
    told = f"{panel.title}. {kind}. Across: {panel.xlabel}. Up: {panel.ylabel}."
    return tex_to_text(told)


_KIND = {"band": "interval", "points": "points", "rule": "line at", "histogram": "histogram"}


# The legend


def _legend(data: Sequence[dict[str, Any]], panel: Panel) -> Markup | None:
    first = panel.traces[0]
    if isinstance(first, CellMap) and len(first.known) < len(first.x) * len(first.y):
        patch = _swatch([{"fill": True, "color": VARIABLES.missing}])
        return tag("ul", tag("li", patch, tex_to_html(first.missing)), class_="legend")
    if isinstance(first, Heatmap | CellMap):
        return None
    groups: dict[str, list[int]] = {}
    for n, trace in enumerate(data):
        groups.setdefault(trace["legendgroup"], []).append(n)
    items = [
        tag(
            "li",
            tag(
                "button",
                _swatch([_look(data[n], panel.traces[n]) for n in numbers]),
                Markup(data[numbers[0]]["name"]),
                type="button",
                aria_pressed="true",
                data_traces=",".join(map(str, numbers)),
            ),
        )
        for numbers in groups.values()
    ]
    return tag("ul", *items, class_="legend")


def _look(drawn: dict[str, Any], trace: Any) -> dict[str, Any]:
    if isinstance(trace, Band | Histogram):
        return {"fill": True, "color": drawn["fillcolor"], "opacity": drawn["opacity"]}
    if drawn["mode"] == "markers":
        return {"symbol": drawn["marker"]["symbol"], "color": drawn["marker"]["line"]["color"]}
    dash = drawn["line"]["dash"]
    return {"dash": None if dash == "solid" else dash.replace("px", ""), "color": drawn["line"]["color"]}


_SHAPES = {
    "circle": "M18 6a4 4 0 1 1-8 0a4 4 0 1 1 8 0z",
    "square": "M10.5 2.5h7v7h-7z",
    "triangle-up": "M14 1.5l4.5 8h-9z",
    "diamond": "M14 1.5l4.5 4.5l-4.5 4.5l-4.5-4.5z",
    "triangle-down": "M14 10.5l4.5-8h-9z",
    "cross": "M12.5 2h3v2.5h2.5v3h-2.5v2.5h-3v-2.5h-2.5v-3h2.5z",
    "x": "M10 3.5l1.5-1.5l2.5 2.5l2.5-2.5l1.5 1.5l-2.5 2.5l2.5 2.5l-1.5 1.5l-2.5-2.5l-2.5 2.5l-1.5-1.5l2.5-2.5z",
}


def _swatch(looks: Sequence[dict[str, Any]]) -> Markup:
    """The symbol of a legend entry: area below line below marker."""
    drawn = []
    for look in sorted(looks, key=lambda one: ("symbol" in one, "dash" in one)):
        style = f"color:{look['color']}"
        if "fill" in look:
            shape = tag(
                "path", d="M0 1h28v10h-28z", fill="currentColor", opacity=look.get("opacity", 1), style=style
            )
        elif "symbol" in look:
            path = _SHAPES[look["symbol"]]
            shape = tag(
                "path", d=path, fill="var(--paper)", stroke="currentColor", stroke_width=1.5, style=style
            )
        else:
            shape = tag(
                "path",
                d="M0 6h28",
                stroke="currentColor",
                stroke_width=2,
                stroke_dasharray=look["dash"],
                style=style,
            )
        drawn.append(shape)
    return tag("svg", *drawn, width=28, height=12, viewBox="0 0 28 12", aria_hidden="true")
