import csv

import numpy as np
import pytest
import xarray

from mesascope.records import CellMap, Figure
from mesascope.report import phase_figure, render, write_csv
from stored_records import laid_out, panel


def diagram(numbers, first=None, **more):
    """What `phase_diagram` returns, as far as the figure reads it: the first axis along the rows of `numbers`."""
    numbers = np.asarray(numbers, float)
    axes, shape = ("scale", "horizon"), numbers.shape
    times = np.where(np.isnan(numbers), np.nan, 1.0 + np.arange(numbers.size).reshape(shape))
    nothing = np.full(shape, np.nan)
    variables = {
        "critical_point": numbers,
        "up_to_symmetry": np.where(numbers > 0, 1.0, numbers),
        "time_to_reach": times,
        "risk": nothing,
        "relative_loss": nothing,
        "loss": times,
    }
    data = xarray.Dataset(
        {name: (axes, values) for name, values in (variables | more).items()},
        {"scale": first or [0.1 * 2**n for n in range(shape[0])], "horizon": range(5, 5 + shape[1])},
    )
    data["name"] = (("point",), [f"kind {n}" for n in range(int(np.nanmax(numbers)) + 1)])
    data["time_to_reach"].attrs["fraction"] = 0.9
    return data


MIXED = [[0, 0, 0, 1], [0, 1, 2, np.nan], [1, 1, 1, 0]]


@pytest.mark.slow
def test_the_first_axis_lies_along_x_and_missing_flows_have_no_entry(tmp_path):
    figure = phase_figure(diagram(MIXED), "A diagram", xscale="log")
    kinds, times, loss = (panel.traces[0] for panel in figure.panels)
    assert kinds.kinds == ("kind 0", "kind 1", "kind 2")
    assert kinds.x == pytest.approx((0.1, 0.2, 0.4)) and kinds.y == (5, 6, 7, 8)
    assert kinds.z == ((0, 0, 1), (0, 1, 1), (0, 2, 1), (1, None, 0))
    assert times.scale == "log" and figure.panels[1].title == "Time to 90 % of the way"
    assert times.z[3] == (4, None, 12) and loss.colorlabel == "loss"
    for path in render(figure, tmp_path / "figure"):
        assert path.stat().st_size > 5000
    with write_csv(figure, tmp_path / "figure.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 11
    assert rows[2] == {
        "panel": "Critical point reached",
        "trace": "critical point",
        "x": "0.4",
        "y": "5.0",
        "low": "1.0",
        "high": "kind 1",
    }


def test_rare_critical_points_are_one_kind_and_symmetric_ones_can_be():
    many = np.arange(9.0).reshape(3, 3)
    many[0] = 0
    kinds = phase_figure(diagram(many), "Many").panels[0].traces[0]
    assert len(kinds.kinds) == 7 and kinds.kinds[0] == "kind 0"
    both = phase_figure(diagram(MIXED), "Symmetric", up_to_symmetry=True).panels[0].traces[0]
    assert both.kinds == ("kind 1", "kind 0")
    more = np.arange(12.0).reshape(3, 4)
    assert phase_figure(diagram(more), "More").panels[0].traces[0].kinds[-1] == "6 others"


@pytest.mark.slow
def test_words_on_an_axis_and_the_risk_where_there_is_one():
    data = diagram(MIXED, first=["gaussian", "sparse", "uniform"], risk=np.ones((3, 4)))
    figure = phase_figure(data, "Laws", xscale="log")
    assert figure.panels[0].xscale == "linear" and figure.panels[2].title == "Test risk"
    assert figure.panels[0].traces[0].xnames == ("gaussian", "sparse", "uniform")
    axes = laid_out(figure).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["gaussian", "sparse", "uniform"]
    with pytest.raises(ValueError, match="has no critical_point"):
        phase_figure(data.drop_vars("critical_point"), "Nothing")


@pytest.mark.slow
def test_cells_meet_half_way_on_the_axis_as_it_is_drawn():
    trace = CellMap(x=[1, 100], y=[0, 4], z=[[0.0, 1.0], [1.0, 1.0]], colorlabel="c")
    axes = laid_out(Figure(title="f", panels=(panel(trace, xscale="log"),))).axes[0]
    assert axes.get_xlim() == pytest.approx((0.1, 1000)) and axes.get_ylim() == pytest.approx((-2, 6))
    (mesh,) = axes.collections
    corners = np.asarray(mesh.get_coordinates())
    assert corners[0, :, 0] == pytest.approx([0.1, 10, 1000])
    assert corners[:, 0, 1] == pytest.approx([-2, 2, 6])


@pytest.mark.slow
def test_kinds_differ_in_colour_and_missing_cells_are_explained():
    axes = laid_out(phase_figure(diagram(MIXED), "A diagram")).axes[0]
    (mesh,) = axes.collections
    assert len({tuple(mesh.cmap(mesh.norm(kind))) for kind in range(3)}) == 3
    (text,) = axes.get_legend().get_texts()
    assert text.get_text() == "not at an end"
    whole = laid_out(phase_figure(diagram([[0, 1], [1, 0]]), "Whole")).axes[0]
    assert whole.get_legend() is None
