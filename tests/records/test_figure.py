import numpy as np
import pytest
from pydantic import ValidationError

from mesascope.records import Band, Figure, Heatmap, Histogram, Line, Panel, Points, Rule

X = np.array([1.0, 2.0, 3.0])


def panel(*traces, **fields):
    return Panel(**{"title": "t", "xlabel": "x", "ylabel": "y", "traces": traces, **fields})


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
    ],
)
def test_what_cannot_be_drawn_or_read_is_refused(make, message):
    with pytest.raises(ValidationError, match=message):
        make()


def test_a_logarithmic_panel_takes_an_empty_bin_and_a_rule_on_the_other_axis():
    panel(
        Histogram(edges=[1, 2, 3], counts=[0, 5], label="h"),
        Rule(value=-1, axis="x", label="r"),
        yscale="log",
    )
