"""Figures of identifications and of layers, from records alone."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from mesascope.records import (
    Figure,
    Heatmap,
    RecordError,
    read_identification,
    write_identification,
)
from mesascope.report import (
    draw_identification,
    identification_figures,
    layer_map,
    redraw_identification,
    render,
    write_csv,
)
from stored_records import curve, identification_record

NAMES = ("gradient-descent", "momentum", "ridge", "zero", "lasso", "newton", "chebyshev")
LENGTHS = (1, 2, 3, 4, 5)


def record(lengths=LENGTHS, verdict="identified", distance=1e-3, **changes):
    n = np.array(lengths, float)
    ranking = [
        {
            "learner": name,
            "hyperparameters": {"steps": 1, "step_size": 0.1},
            "distance": distance * (place + 1),
            "interval": (distance, 2 * distance),
            "contains": ("momentum",) if name == "gradient-descent" else (),
        }
        for place, name in enumerate(NAMES)
    ]
    facts = {
        "verdict": verdict,
        "candidates": () if verdict == "none" else ("gradient-descent",),
        "errors": [curve(name, 2 / n) for name in ("model", *NAMES)],
        "distances": [curve(name, distance * (place + 1) * n) for place, name in enumerate(NAMES)],
        "ranking": ranking,
    }
    return identification_record(NAMES, lengths, **{**facts, **changes})


def shown(figure, panel):
    """The traces of a panel by name and kind."""
    return {(trace.label, trace.kind): trace for trace in figure.panels[panel].traces}


@pytest.mark.slow
def test_a_record_is_read_as_it_was_written_and_drawn_again_without_jax(tmp_path):
    drawn = draw_identification(record(), tmp_path)
    assert read_identification(tmp_path / "identification.json") == record(
        provenance=read_identification(tmp_path / "identification.json").provenance
    )
    before = [path.read_bytes() for path in drawn]
    assert all(len(content) > 500 for content in before)
    code = (
        "import sys; from mesascope.report import redraw_identification; redraw_identification(sys.argv[1]); "
        "assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code, str(tmp_path)], check=True)
    assert [path.read_bytes() for path in drawn] == before


def test_curves_show_the_model_and_the_closest_that_are_neither_contained_nor_alike():
    curves = record().curves.model_dump()
    alike = np.array(curves["differences"])
    newton, zero = (curves["names"].index(name) for name in ("newton", "zero"))
    alike[newton, zero] = alike[zero, newton] = 1e-9  # the fourth of those left answers as the third
    order = (*NAMES[:4], "newton", "lasso", "chebyshev")
    ranking = sorted(record().model_dump()["ranking"], key=lambda entry: order.index(entry["learner"]))
    stored = record(curves={**curves, "differences": alike}, ranking=ranking)
    figure = identification_figures(stored)["by-length"]
    errors, distances = shown(figure, 0), shown(figure, 1)
    closest = {"gradient-descent", "ridge", "zero", "lasso"}
    assert {name for name, _ in errors} == {"the model", *closest}
    assert {name for name, _ in distances} == {"tolerance", *closest}
    for name in closest:
        assert (
            errors[name, "line"].series
            == distances[name, "line"].series
            != errors["the model", "points"].series
        )
        np.testing.assert_allclose(distances[name, "band"].low, 0.9 * np.array(distances[name, "line"].y))
    assert distances["tolerance", "rule"].value == 0.01
    np.testing.assert_allclose(errors["the model", "points"].y, 2 / np.array(LENGTHS))
    np.testing.assert_allclose(errors["the model", "points"].yerr, 0.2 / np.array(LENGTHS))


@pytest.mark.parametrize("distance", [0.0, 1e-30, 1e250, float("inf"), float("nan")])
def test_any_distance_is_drawn_within_the_figure(tmp_path, distance):
    stored = record(distance=distance, verdict="none")
    write_identification(tmp_path / "identification.json", stored)
    figure = identification_figures(read_identification(tmp_path / "identification.json"))["by-length"]
    lines = [trace for trace in figure.panels[1].traces if trace.kind == "line"]
    assert {y for line in lines for y in line.y} == {1e-8 if distance < 1 else 1e4}


@pytest.mark.slow
def test_a_single_number_of_examples_is_shown_by_points(tmp_path):
    single = record(lengths=(7,))
    traces = identification_figures(single)["by-length"].panels[1].traces
    assert {trace.kind for trace in traces} == {"points", "rule"}
    assert all(path.stat().st_size > 500 for path in draw_identification(single, tmp_path))


def test_indistinguishable_learners_are_dark():
    (panel,) = identification_figures(record())["confusion"].panels
    (trace,) = panel.traces
    assert trace.scale == "log" and trace.limits == (1e-8, 4.0)
    assert trace.rows == trace.columns == ("the model", *NAMES)
    assert np.diag(trace.z).tolist() == [1e-8] * 8 and trace.z[0][1] == 0.1


def test_records_without_curves_are_not_drawn(tmp_path):
    with pytest.raises(ValueError, match="holds no curves to draw"):
        draw_identification(record(curves=None), tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(RecordError, match="no record at"):
        redraw_identification(tmp_path)


def test_curves_of_another_length_are_refused():
    curves = record().curves.model_dump()
    with pytest.raises(ValueError, match="curve 'model': give one value for each of 4 lengths"):
        record(curves={**curves, "lengths": (1, 2, 3, 4)})
    with pytest.raises(ValueError, match="give a square matrix with one row for each of 7 names"):
        record(curves={**curves, "names": NAMES})
    for field, end in (("errors", "errors: give one curve"), ("distances", "distances: give one curve")):
        with pytest.raises(ValueError, match=end):
            record(curves={**curves, field: curves[field][1:]})
    with pytest.raises(ValueError, match="curves: give those of the model and of every learner"):
        record(ranking=record().ranking[1:])


def rows_of(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_tables_hold_every_number(tmp_path):
    figures = identification_figures(record())
    rows = rows_of(write_csv(figures["by-length"], tmp_path / "a.csv"))
    ridge = [row for row in rows if row["trace"] == "ridge" and row["y"]]
    assert [float(row["x"]) for row in ridge] == [*LENGTHS, *LENGTHS]
    line = shown(figures["by-length"], 1)["ridge", "line"]
    assert [float(row["y"]) for row in ridge][5:] == list(line.y)
    assert (
        len([row for row in rows if row["low"]]) == 2 * 4 * 5 + 5
    )  # bands of four learners, bars of the model
    cells = rows_of(write_csv(figures["confusion"], tmp_path / "b.csv"))
    assert len(cells) == 64 and (cells[1]["trace"], cells[1]["x"], cells[1]["y"]) == (
        "the model",
        "gradient-descent",
        "0.1",
    )


STEPS = tuple(str(k) for k in range(1, 7))
LAYERS = ("embedding", "layer 1", "layer 2", "layer 3")
TABLE = np.array(
    [
        [10.0 ** (abs(layer - step) - 4) if layer != step else 0.0 for step in range(1, 7)]
        for layer in range(4)
    ]
)


def mapped(**changes):
    arguments = {
        "layers": LAYERS,
        "steps": STEPS,
        "title": "Layers",
        "steps_of": "steps of gradient descent",
        "quantity": "relative distance",
        "best": (None, 0, 1, 2),
        **changes,
    }
    return layer_map(TABLE, **arguments)


@pytest.mark.slow
def test_a_table_of_layers_and_steps(tmp_path):
    (trace,) = mapped().traces
    assert trace.marks == ((2, 1), (3, 2), (4, 3))
    assert trace.z[1][0] == 1e-8 and trace.z[0][5] == 1e2
    assert (trace.rows, trace.columns) == (LAYERS, STEPS)
    for number, panel in enumerate((mapped(), mapped(floor=None, best=None))):
        for path in render(Figure(title="t", panels=(panel,)), tmp_path / str(number)):
            assert path.stat().st_size > 2000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": LAYERS[:3]}, "3 names for 4 rows"),
        ({"steps": STEPS[:3]}, "3 names for 6 columns"),
        ({"best": (0, 1)}, "best: 2 marks for 4 layers"),
        ({"best": (0, 1, 2, 6)}, r"no entry \(4, 7\) to mark in 4 rows and 6 columns"),
        ({"floor": 0.0}, "values ≤ 0 have no logarithmic colour"),
    ],
)
def test_tables_that_cannot_be_drawn_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        mapped(**changes)


def test_logarithmic_colours_have_no_center():
    with pytest.raises(ValueError, match="logarithmic colours have no center"):
        Heatmap(z=[[1.0]], colorlabel="c", scale="log", center=1.0)
    with pytest.raises(ValueError, match="values ≤ 0 have no logarithmic colour"):
        Heatmap(z=[[1.0]], colorlabel="c", scale="log", limits=(0.0, 1.0))
