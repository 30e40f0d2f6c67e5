"""Drawing the figures of a run directory."""

import os

import pytest

from mesascope.records import Figure, Line, Panel, RecordError, RunDirectory
from mesascope.report import render_run


def figure(height):
    line = Line(x=(1.0, 2.0), y=(1.0, height), label="a line")
    return Figure(title="A figure", panels=(Panel(title="A panel", xlabel="t", ylabel="x", traces=(line,)),))


@pytest.mark.slow
def test_every_figure_once(tmp_path):
    run = RunDirectory.create(tmp_path / "run")
    assert render_run(run.path) == ()
    for name in ("paper/one", "two"):
        run.write_figure(name, figure(2.0))
    drawn = render_run(run.path)
    assert [path.relative_to(run.path).as_posix() for path in drawn] == [
        f"figures/{name}.{form}" for name in ("paper/one", "two") for form in ("pdf", "png")
    ]
    before = {path: path.stat().st_mtime_ns for path in drawn}
    assert render_run(str(run.path)) == drawn
    assert {path: path.stat().st_mtime_ns for path in drawn} == before


@pytest.mark.slow
def test_what_changed_or_is_missing_is_drawn_again(tmp_path):
    run = RunDirectory.create(tmp_path)
    run.write_figure("one", figure(2.0))
    run.write_figure("two", figure(2.0))
    first = {path: path.read_bytes() for path in render_run(run.path)}
    run.write_figure("one", figure(3.0))
    (tmp_path / "figures" / "two.png").unlink()
    second = {path: path.read_bytes() for path in render_run(run.path)}
    changed = {path.name for path in first if first[path] != second[path]}
    assert changed == {"one.pdf", "one.png"}
    # a drawing torn by another program, and a source and a drawing of one age
    (tmp_path / "figures" / "one.pdf").write_bytes(b"")
    for path in (tmp_path / "figures" / "two.json", tmp_path / "figures" / "two.png"):
        os.utime(path, (2**31, 2**31))
    assert {path: path.read_bytes() for path in render_run(run.path)} == second
    assert (tmp_path / "figures" / "two.png").stat().st_mtime < 2**31


def test_no_run(tmp_path):
    with pytest.raises(RecordError, match="no run directory"):
        render_run(tmp_path / "none")
    run = RunDirectory.create(tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "torn.json").write_text("{")
    with pytest.warns(UserWarning, match=r"a figure is left out: .*torn.json is torn"):
        assert render_run(run.path) == ()
