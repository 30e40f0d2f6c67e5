import numpy as np
import pytest
from pydantic import ValidationError

from mesascope.records import Band, CellMap, Figure, Heatmap, Histogram, Line, Points, Rule
from stored_records import panel

X = np.array([1.0, 2.0, 3.0])


def test_every_kind_of_trace_reads_back_from_json():
    curves = (
        Line(x=X, y=X**2, label="line", style="dotted", series=2),
        Band(x=X, low=X, high=X + 1, label="band"),
        Points(x=X, y=X, yerr=X / 10, label="points"),
        Rule(value=2, label="rule"),
        Histogram.of(np.arange(10.0), bins=3, label="histogram", density=True),
    )
    matrix = Heatmap(z=np.eye(3), colorlabel="entry", center=0, rows=("a", "b", "c"), limits=(-1, 1), block=1)
    figure = Figure(title="f", panels=(panel(*curves), panel(matrix)), caption="c", across=2)
    again = Figure.model_validate_json(figure.model_dump_json())
    assert again == figure
    assert [type(trace) for trace in again.panels[0].traces] == [type(trace) for trace in curves]


def cells(**changes):
    base = {"x": [1, 2, 4], "y": [0.1, 1.0], "z": [[0, 1, 2], [2, 1, None]], "colorlabel": "c"}
    return CellMap(**base | changes)


def test_missing_entries_of_a_cell_map_read_back_from_json_and_arrays():
    trace = cells(z=np.array([[0.5, np.nan, 2.0], [1.0, 1.0, np.nan]]))
    assert trace.z == ((0.5, None, 2.0), (1.0, 1.0, None)) and trace.known == [0.5, 2.0, 1.0, 1.0]
    figure = Figure(title="f", panels=(panel(trace, xscale="log", yscale="log"),))
    assert Figure.model_validate_json(figure.model_dump_json()) == figure


def test_histogram_counts_what_numpy_counts():
    trace = Histogram.of([0.0, 0.1, 0.9], bins=[0, 0.5, 1], label="h")
    assert trace.edges == (0.0, 0.5, 1.0) and trace.counts == (2.0, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Line(x=X, y=X, label=" "), "at least 1 character"),
        (lambda: Line(x=X, y=X), "label"),
        (lambda: Rule(value=1.0), "label"),
        (lambda: Heatmap(z=np.eye(2)), "colorlabel"),
        (lambda: panel(Rule(value=1, label="r"), xlabel=""), "xlabel"),
        (lambda: panel(Rule(value=1, label="r"), title=""), "title"),
        (lambda: panel(), "traces"),
        (lambda: Figure(title="f", panels=()), "panels"),
        (lambda: Line(x=X, y=X[:2], label="a"), "x 3, y 2"),
        (lambda: Line(x=X, y=[1, 2, np.nan], label="a"), "finite"),
        (lambda: Line(x=X, y=[1, 2, np.inf], label="a"), "finite"),
        (lambda: Line(x=X, y=X * 1j, label="a"), "y"),
        (lambda: Line(x=[], y=[], label="a"), "at least 1"),
        (lambda: Line(x=X, y=X, label="a", colour="red"), "colour"),
        (lambda: Band(x=X, low=X, high=X - 1, label="a"), "swap"),
        (lambda: Points(x=X, y=X, yerr=-X, label="a"), "negative"),
        (lambda: Points(x=X, y=X, yerr=X[:1], label="a"), "yerr 1"),
        (lambda: Heatmap(z=[[1, 2], [3]], colorlabel="c"), "rectangular"),
        (lambda: Heatmap(z=np.eye(2), colorlabel="c", rows=("a",)), "1 names for 2 rows"),
        (lambda: Heatmap(z=np.eye(2), colorlabel="c", limits=(1, 1)), "empty"),
        (lambda: Histogram(edges=[0, 1], counts=[1, 2], label="h"), "edge more"),
        (lambda: Histogram(edges=[0, 0, 1], counts=[1, 2], label="h"), "increase"),
        (
            lambda: panel(Line(x=X, y=X - 1, label="a"), yscale="log"),
            "'a' has values ≤ 0 on the logarithmic y",
        ),
        (lambda: panel(Rule(value=0, axis="x", label="a"), xscale="log"), "logarithmic x"),
        (lambda: panel(Heatmap(z=np.eye(2), colorlabel="c"), Rule(value=1, label="r")), "shares no panel"),
        (lambda: panel(Heatmap(z=np.eye(2), colorlabel="c"), xscale="log"), "linear axes"),
        (lambda: cells(z=[[0, 1], [1, 2]]), "2 rows of 3 entries"),
        (lambda: cells(z=[[0, 1, 2]]), "2 rows of 3 entries"),
        (lambda: cells(x=[1, 1, 2]), "x must increase"),
        (lambda: cells(y=[1.0, 0.1]), "y must increase"),
        (lambda: cells(xnames=("a", "b")), "2 xnames for 3 places"),
        (lambda: cells(kinds=("a", "b")), "number the 2 kinds"),
        (lambda: cells(scale="log"), "no logarithmic colour"),
        (lambda: cells(z=[[0, 1, float("inf")], [0, 1, 2]]), "finite"),
        (lambda: panel(cells(), cells()), "shares no panel"),
        (lambda: panel(cells(x=[-1, 2, 4]), xscale="log"), "values ≤ 0 on the logarithmic x axis"),
    ],
)
def test_invalid_traces_panels_and_figures_are_refused(make, message):
    with pytest.raises(ValidationError, match=message):
        make()


def test_a_logarithmic_panel_takes_an_empty_bin_and_a_rule_on_the_other_axis():
    panel(
        Histogram(edges=[1, 2, 3], counts=[0, 5], label="h"),
        Rule(value=-1, axis="x", label="r"),
        yscale="log",
    )
