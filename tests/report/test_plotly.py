"""The renderer for browsers: what it makes is a figure of plotly and shows what the traces say."""

import json
from math import log10

import numpy as np
import pytest

from mesascope.records import CellMap, Heatmap, Histogram, Line, Points, Rule
from mesascope.report import DARK, LIGHT, plotly_panel
from stored_records import curves_figure, map_figure, panel

CELLS = CellMap(
    x=(1, 10, 100), y=(1, 2), z=[[0, 1, None], [2, 0, 1]], kinds=("a", "b", "c"), colorlabel="end"
)
PANELS = {
    "curves": curves_figure().panels[0],
    "histogram": curves_figure().panels[1],
    "map": map_figure().panels[0],
    "blocks": panel(Heatmap(z=np.eye(4, 6), colorlabel="w", block=3, marks=((1, 2),))),
    "logarithmic map": panel(Heatmap(z=[[1e-8, 1.0]], colorlabel="distance", scale="log")),
    "kinds": panel(CELLS, xscale="log"),
    "names": panel(CellMap(x=(1, 2), y=(1, 2), z=np.eye(2), xnames=("a", "b"), colorlabel="loss")),
    "logarithmic cells": panel(
        CellMap(x=(1, 2), y=(1, 2), z=[[1, 10], [None, 3]], colorlabel="t", scale="log")
    ),
    "rules alone": panel(Rule(value=0.2, label="a"), Rule(value=3.0, axis="x", label="b")),
    "one point": panel(Points(x=(1,), y=(0,), label="a"), xscale="log"),
}


@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_plotly_takes_what_is_made(name, theme):
    from plotly.graph_objects import Figure

    made = plotly_panel(PANELS[name], theme)
    Figure(made)  # refuses every unknown name and impossible value
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["layout"]["paper_bgcolor"] == theme.paper
    assert made["layout"]["margin"]["autoexpand"] is False  # else legends and labels redraw until they fit


def test_traces_keep_their_numbers_and_share_name_and_colour():
    band, line, points, rule = plotly_panel(PANELS["curves"])["data"]
    described = PANELS["curves"].traces
    assert (line["x"], line["y"]) == (list(described[1].x), list(described[1].y))
    assert band["y"] == [*described[0].high, *reversed(described[0].low)]
    assert points["error_y"]["array"] == list(described[2].yerr)
    assert band["legendgroup"] == line["legendgroup"] and (band["showlegend"], line["showlegend"]) == (
        True,
        False,
    )
    assert band["fillcolor"] == line["line"]["color"] != points["marker"]["line"]["color"]
    assert line["name"] == "exact &amp; more" and rule["name"] == "theory 1/(5σ<sup>2</sup>)"
    assert rule["line"]["color"] == LIGHT.ink


def test_everything_lies_inside_of_the_ranges_and_rules_cross_them():
    made = plotly_panel(PANELS["curves"])
    low, high = made["layout"]["yaxis"]["range"]
    drawn = [log10(y) for y in (*made["data"][0]["y"], *made["data"][1]["y"])]
    assert low < min(drawn) and high > max(drawn)
    assert made["data"][3]["x"] == made["layout"]["xaxis"]["range"]


def test_panels_in_matplotlib_and_plotly_give_series_the_same_colours():
    from mesascope.report._traces import Brush, color

    lines = panel(
        *(Line(x=(0, 1), y=(0, n), label=str(n), series=s) for n, s in enumerate((None, 0, None, "theory")))
    )
    brush = Brush(lines)
    expected = [color(brush.series(trace)) for trace in lines.traces]
    assert [trace["line"]["color"] for trace in plotly_panel(lines)["data"]] == expected


def test_rules_of_one_name_have_the_dashes_of_the_legend():
    rules = panel(
        Line(x=(0, 1), y=(0, 1), label="flow"),
        *(
            Rule(value=value, label=label)
            for value, label in ((0.1, "saddles"), (0.2, "end"), (0.3, "saddles"))
        ),
    )
    _, first, end, other = (trace["line"]["dash"] for trace in plotly_panel(rules)["data"])
    assert first == other != end


def test_a_histogram_is_the_outline_of_its_bins():
    bins = panel(Histogram(edges=(0, 1, 3), counts=(2, 5), label="a"))
    (drawn,) = plotly_panel(bins)["data"]
    assert list(zip(drawn["x"], drawn["y"], strict=True)) == [(0, 0), (0, 2), (1, 2), (1, 5), (3, 5), (3, 0)]
    assert drawn["fill"] == "toself"


def test_cells_lie_between_borders_on_logarithmic_axes():
    made = plotly_panel(PANELS["kinds"])
    assert made["data"][0]["x"] == pytest.approx([10**-0.5, 10**0.5, 10**1.5, 10**2.5])
    assert made["data"][0]["colorbar"]["ticktext"] == ["a", "b", "c"]
    assert made["layout"]["plot_bgcolor"] == LIGHT.missing


def test_long_labels_are_broken_and_get_room():
    long = panel(
        Line(x=(0, 1), y=(0, 1), label="a"), ylabel="a label of so many words that no panel is as high as it"
    )
    made, short = plotly_panel(long), plotly_panel(panel(Line(x=(0, 1), y=(0, 1), label="a")))
    assert "<br>" in made["layout"]["yaxis"]["title"]["text"]
    assert made["layout"]["margin"]["l"] > short["layout"]["margin"]["l"]


def test_texts_are_never_markup():
    hostile = panel(Line(x=(0, 1), y=(0, 1), label="<a href='javascript:x'>$y$</a>"), xlabel="<script>")
    made = plotly_panel(hostile)
    assert "<a" not in made["data"][0]["name"] and "<script" not in json.dumps(made)


def test_names_of_many_rows_stand_below_each_other_and_those_of_columns_above_the_title():
    names = tuple(f"a name of a learner {number:2}" for number in range(22))
    trace = Heatmap(z=((1.0,) * 22,) * 22, rows=names, columns=names, colorlabel="distance")
    layout = plotly_panel(panel(trace), LIGHT)["layout"]
    below = layout["margin"]["b"]
    assert layout["height"] - below - 58 >= 14 * len(names)  # pixels; 58 stand above
    assert below > 6.4 * len(names[0])
