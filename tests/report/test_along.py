"""The figure of an identification along training, and its part of a report, from records alone."""

import csv

import numpy as np
import pytest

import mesascope as ms
import stored_records as stored
from mesascope.records import read_along
from mesascope.report import along_figure, draw_along, plotly_panel, write_report

RECORD = stored.along_record()


def traces(panel, kind):
    return [one for one in panel.traces if one.kind == kind]


def test_weights_are_stacked():
    weights, distances = along_figure(RECORD).panels
    lower, upper, interval, _ = traces(weights, "band")
    np.testing.assert_array_equal(lower.low, [0, 0, 0])
    np.testing.assert_array_equal(lower.high, upper.low)
    np.testing.assert_array_equal(upper.high, [1, 1, 1])
    assert interval.label == "95 % interval" and (interval.low, interval.high) == (
        RECORD.sums[0].low,
        RECORD.sums[0].high,
    )
    assert [one.label for one in traces(distances, "line")] == ["zero", "ridge", "the nearest mixture"]
    assert min(distances.traces[2].low + distances.traces[3].y) == 1e-8  # a distance of 0 has no logarithm


def test_steps_start_at_1_on_a_logarithmic_axis():
    weights, _ = along_figure(RECORD).panels
    assert (weights.xscale, weights.xlabel) == ("log", "training steps + 1")
    assert weights.traces[0].x == (1, 11, 1001)


def test_steps_of_one_size_have_a_linear_axis():
    weights, _ = along_figure(stored.along_record(steps=(0, 10, 20))).panels
    assert (weights.xscale, weights.xlabel) == ("linear", "training steps")
    assert weights.traces[0].x == (0, 10, 20)


@pytest.mark.parametrize(
    ("determined", "stretches"),
    [
        ((False, True, True), [(1, 11**0.5)]),
        ((True, False, True), [(11**0.5, 11011**0.5)]),
        ((False, True, False), [(1, 11**0.5), (11011**0.5, 1001)]),
        ((False, False, False), [(1, 1001)]),
        ((True, True, True), []),
    ],
)
def test_weights_that_are_not_determined_are_hatched(determined, stretches):
    """Up to half way to the next checkpoint, in the logarithm."""
    hatched = [
        one for one in traces(along_figure(stored.along_record(determined)).panels[0], "band") if one.hatched
    ]
    assert [one.x for one in hatched] == [pytest.approx(one) for one in stretches]
    assert all((one.low, one.high) == ((0, 0), (1, 1)) for one in hatched)


def test_plotly_hatches_too():
    drawn = plotly_panel(along_figure(RECORD).panels[0])["data"]
    (hatched,) = (one for one in drawn if one["name"] == "not determined")
    assert hatched["fillpattern"]["shape"] == "/"
    assert not any("fillpattern" in one for one in drawn if one["name"] != "not determined")


@pytest.mark.slow
def test_files(tmp_path):
    drawn = draw_along(RECORD, tmp_path)
    assert [path.name for path in drawn] == [f"along.{end}" for end in ("json", "nc", "pdf", "png", "csv")]
    assert all(path.stat().st_size > 500 for path in drawn)
    assert read_along(drawn[0]) == RECORD
    with drawn[-1].open() as file:
        rows = list(csv.DictReader(file))
    assert {row["trace"] for row in rows} >= {
        "zero",
        "ridge",
        "the nearest mixture",
        "not determined",
        "tolerance",
    }


@pytest.mark.slow
def test_it_is_plotted(tmp_path):
    assert len(ms.plot(RECORD)) == 2


def test_a_report_shows_every_checkpoint(tmp_path):
    for what in (stored.along(tmp_path / "training"), tmp_path / "training" / "along.json"):
        written = write_report(str(what), out=tmp_path / "report.html")
        assert (written.identifications, written.figures) == (1, 1)
        page = written.file.read_text()
        assert "Which algorithm, when: nearest to zero, then ridge from step 10 [0, 1000]" in page
        rows = [
            " ".join(row.split("<td>")[1:])
            for row in page.split("<tr>")
            if "<td>none" in row or "<td>id" in row
        ]
        assert "?" in rows[0] and "0.00" in rows[1] and "1.00" in rows[1]
