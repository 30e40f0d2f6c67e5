import errno
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from mesascope.records import Band, Figure, Heatmap, Histogram, Line, Points, RecordError, Rule
from mesascope.report import render
from mesascope.report._wrap import wrap
from stored_records import laid_out, panel

X = np.linspace(1.0, 10.0, 50)
TRACES = {
    "line": Line(x=X, y=1 / X, label="$1/x$"),
    "band": Band(x=X, low=0.5 / X, high=2 / X, label="95 %"),
    "points": Points(x=X[::7], y=1 / X[::7], yerr=0.1 / X[::7], label="sampled"),
    "many points": Points(x=np.linspace(1, 9, 6000), y=np.linspace(1, 9, 6000), label="cloud"),
    "rule": Rule(value=0.2, label=r"theory $\frac{1}{5\sigma^2}$"),
    "vertical rule": Rule(value=2.0, axis="x", label="start"),
    "histogram": Histogram.of(np.sqrt(X), bins=7, label="ratios"),
    "diverging": Heatmap(z=np.eye(3, 6) - 0.2, colorlabel="entry", center=0, block=3),
    "sequential": Heatmap(
        z=np.eye(2), colorlabel="entry", rows=("a", "b"), columns=("a long name", "another long")
    ),
    "constant": Heatmap(z=[[0.0]], colorlabel="entry", center=0),
    "large": Heatmap(z=np.random.default_rng(0).normal(size=(90, 80)), colorlabel="entry"),
}


def figure(*panels, **fields):
    return Figure(title="The whole", panels=panels, **fields)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRACES)
def test_every_kind_of_trace_becomes_a_pdf_and_a_png(tmp_path, kind):
    paths = render(figure(panel(TRACES[kind])), tmp_path / "new" / "figure-1.5")
    assert [path.name for path in paths] == ["figure-1.5.pdf", "figure-1.5.png"]
    pdf, png = (path.read_bytes() for path in paths)
    assert pdf.startswith(b"%PDF-") and pdf.rstrip().endswith(b"%%EOF") and len(pdf) > 2000
    assert b"/Type3" not in pdf and b"/CIDFontType2" in pdf
    assert png.startswith(b"\x89PNG") and len(png) > 2000
    assert len(pdf) < 400_000  # thousands of cells or points lie in it as an image
    assert {path.name for path in (tmp_path / "new").iterdir()} == {path.name for path in paths}


@pytest.mark.slow
def test_the_width_is_that_of_a_column_or_a_page(tmp_path):
    from PIL import Image

    for described, inches in (
        (figure(panel(TRACES["line"])), 3.25),
        (figure(panel(TRACES["line"]), panel(TRACES["band"])), 6.75),
        (figure(panel(TRACES["line"]), width="page"), 6.75),
        (figure(panel(TRACES["line"]), panel(TRACES["band"]), width="column"), 3.25),
    ):
        (path,) = render(described, tmp_path / "f", formats=("png",))
        with Image.open(path) as image:
            assert image.width == round(inches * 300)
            assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)


SCRIPT = """
import sys
from pathlib import Path
from mesascope.records import Figure
from mesascope.report import render
stem = Path(sys.argv[1])
render(Figure.model_validate_json(stem.with_suffix('.json').read_text()), stem)
assert 'jax' not in sys.modules and 'matplotlib.pyplot' not in sys.modules
"""


@pytest.mark.slow
def test_equal_figures_are_equal_files_also_from_another_process_at_another_time(tmp_path):
    curves = panel(*(TRACES[kind] for kind in ("line", "band", "points", "rule")))
    described = figure(curves, panel(TRACES["diverging"]), panel(TRACES["histogram"]))
    here = [path.read_bytes() for path in render(described, tmp_path / "here")]
    (tmp_path / "there.json").write_text(described.model_dump_json())
    subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path / "there")], check=True)
    there = [(tmp_path / f"there.{name}").read_bytes() for name in ("pdf", "png")]
    assert here == there
    assert re.search(rb"/(CreationDate|ModDate)", here[0]) is None


@pytest.mark.slow
def test_the_callers_settings_neither_leak_in_nor_change(tmp_path):
    import matplotlib

    described = figure(panel(TRACES["line"]))
    plain = render(described, tmp_path / "plain")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        other = render(described, tmp_path / "other")
        assert matplotlib.rcParams["font.size"] == 30
    assert [path.read_bytes() for path in plain] == [path.read_bytes() for path in other]


def overlaps(box, frame):
    return box.x0 < frame.x1 and frame.x0 < box.x1 and box.y0 < frame.y1 and frame.y0 < box.y1


@pytest.mark.slow
def test_a_legend_takes_a_free_corner():
    falling = laid_out(figure(panel(Line(x=X, y=1 / X, label="falling"))))
    rising = laid_out(figure(panel(Line(x=X, y=-1 / X, label="rising"))))
    for canvas, right in ((falling, True), (rising, False)):
        (axes,) = canvas.axes
        box, frame = axes.get_legend().get_window_extent(), axes.get_window_extent()
        assert overlaps(box, frame)
        assert (box.x0 > frame.x0 + frame.width / 2) == right


@pytest.mark.slow
def test_a_legend_without_a_free_place_goes_below_and_takes_no_room_from_the_data():
    waves = [Line(x=X, y=np.sin(X * 3 + phase) * 10, label=f"start number {phase}") for phase in range(6)]
    crowded, single = laid_out(figure(panel(*waves))), laid_out(figure(panel(waves[0])))
    (axes,) = crowded.axes
    box, frame = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert box.y1 <= axes.xaxis.get_tightbbox().y0 + 1 and box.y0 >= 0
    assert box.x0 >= 0 and box.x1 <= crowded.bbox.x1
    assert frame.height == pytest.approx(single.axes[0].get_window_extent().height, rel=0.1)


def test_panels_that_name_the_same_traces_share_one_legend():
    canvas = laid_out(figure(panel(TRACES["line"], TRACES["rule"]), panel(TRACES["line"], TRACES["rule"])))
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == [TRACES["line"].label, TRACES["rule"].label]
    assert all(axes.get_legend() is None for axes in canvas.axes)
    assert not any(overlaps(legend.get_window_extent(), axes.get_tightbbox()) for axes in canvas.axes)


def test_traces_of_one_name_share_an_entry_and_of_one_series_a_colour():
    curves = [Line(x=X, y=X + i, label="exact", series=i % 2) for i in range(4)]
    canvas = laid_out(
        figure(panel(*curves, Band(x=X, low=X - 1, high=X + 1, label="exact", series=0), TRACES["rule"]))
    )
    (axes,) = canvas.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["exact", TRACES["rule"].label]
    colors = [line.get_color() for line in axes.get_lines()]
    assert colors[0] == colors[2] != colors[1] == colors[3] and colors[4] == "#000000"


def test_unnamed_series_take_colours_that_no_trace_asked_for():
    curves = [Line(x=X, y=X, label="a"), Line(x=X, y=X, label="b", series=0), Line(x=X, y=X, label="c")]
    (axes,) = laid_out(figure(panel(*curves))).axes
    assert len({line.get_color() for line in axes.get_lines()}) == 3


@pytest.mark.slow
def test_a_diverging_map_is_white_at_its_centre_and_cells_are_square():
    described = figure(panel(Heatmap(z=[[-1.0, 0.5, 3.0], [0.5, 0.5, 0.5]], colorlabel="c", center=0.5)))
    (axes,) = laid_out(described).axes
    (mesh,) = axes.collections
    assert mesh.norm(0.5) == pytest.approx(0.5) and mesh.norm(3.0) == pytest.approx(1.0)
    assert min(mesh.cmap(0.5)[:3]) > 0.95
    frame = axes.get_window_extent()
    assert frame.width / 3 == pytest.approx(frame.height / 2, rel=1e-3)
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row is on top


@pytest.mark.slow
def test_nothing_is_clipped_at_the_border():
    described = figure(
        panel(
            TRACES["line"], title="A long title " * 5, xlabel="a long label " * 6, ylabel="a long label " * 6
        ),
        panel(TRACES["sequential"]),
        panel(*(Line(x=X, y=np.sin(X * 5 + i), label="long name " * 5 + str(i)) for i in range(4))),
    )
    canvas = laid_out(described)
    for axes in canvas.axes:
        box = axes.get_tightbbox()
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= canvas.bbox.x1 + 1 and box.y1 <= canvas.bbox.y1 + 1


@pytest.mark.parametrize("letters", [8, 20, 200])
def test_wrapping_keeps_formulas_whole_and_words_in_order(letters):
    text = r"the product $a_j b_j \to \frac{1}{5 \sigma^2}$ over $T$ steps and $T$ again"
    wrapped = wrap(text, letters)
    assert wrapped.replace("\n", " ") == text
    assert all(line.count("$") % 2 == 0 for line in wrapped.split("\n"))


def test_bad_mathematics_formats_and_folders_are_refused_and_leave_nothing(tmp_path):
    bad = figure(panel(Line(x=X, y=X, label=r"$\nonsense{$")))
    with pytest.raises(
        ValueError, match=r"figure 'The whole' cannot be drawn .*; correct its numbers, or the text between"
    ) as caught:
        render(bad, tmp_path / "f")
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="no format 'svg'; use 'pdf' or 'png'"):
        render(figure(panel(TRACES["line"])), tmp_path / "f", formats=("svg",))
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot write"):
        render(figure(panel(TRACES["line"])), tmp_path / "file" / "f")


def test_a_disk_that_is_full_is_told_whatever_the_library_makes_of_it(tmp_path, monkeypatch):
    """Where a file cannot be ended its writer fails a second time, with an error of its own."""
    described = figure(panel(TRACES["line"]))

    def full(*_, **__):
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            raise AttributeError("'Stream' object has no attribute 'pos'")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(RecordError, match=r"cannot write .*f: No space left on device; free space"):
        render(described, tmp_path / "f", formats=("pdf",))
