import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from mesascope.records import (
    Figure,
    Line,
    Panel,
    RecordError,
    RunDirectory,
    atomic_path,
    prepare_file,
    prepare_output,
)
from mesascope.records._files import remove_leftovers, remove_leftovers_of, write_text


def files_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_content_appears_as_a_whole_and_replaces_the_old(tmp_path):
    target = tmp_path / "deep" / "file.txt"
    for text in ("first", "second"):
        with atomic_path(target) as temporary:
            assert temporary.parent == target.parent
            temporary.write_text(text)
            assert not target.exists() or target.read_text() == "first"
        assert target.read_text() == text
    assert files_below(tmp_path) == ["deep/file.txt"]


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe"])
def test_what_is_no_file_is_not_replaced(tmp_path, kind):
    target, other = tmp_path / "out.json", tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to(other)
    if kind == "link":
        other.write_text("mine")
    before = target.lstat().st_ino
    with pytest.raises(RecordError, match="lies there; remove it, or choose another place"):
        write_text(target, "{}")
    assert target.lstat().st_ino == before
    if kind == "link":
        assert other.read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} <= {"out.json", "other"}


def test_the_longest_name_of_a_file_is_written(tmp_path):
    target = tmp_path / ("x" * 255)
    with atomic_path(target) as temporary:
        temporary.write_text("whole")
    assert target.read_text() == "whole" and list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_block_that_fails_leaves_the_old_content_and_nothing_else(tmp_path, error):
    target = tmp_path / "file.txt"
    target.write_text("old")

    def write():
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        write()
    assert target.read_text() == "old"
    assert files_below(tmp_path) == ["file.txt"]


def test_files_have_the_permissions_that_the_umask_grants(tmp_path):
    previous = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "x")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_what_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        RecordError, match=r"^cannot write .*below: .*; no file can lie there: choose .*$"
    ) as caught:
        write_text(tmp_path / "file" / "below", "")
    assert "\n" not in str(caught.value)


def test_prepare_makes_the_folder_and_leaves_it_empty(tmp_path):
    folder = prepare_output(str(tmp_path / "a" / "b"))
    assert folder.is_dir() and not list(folder.iterdir())
    assert prepare_output(folder) == folder


@pytest.mark.parametrize(
    ("there", "beside", "said"),
    [
        (None, None, None),
        (b"", None, None),
        (b"PAGE of before", None, None),
        (b"a = 1", None, "exists and is not a page; name another file, or remove it"),
        (
            b'{"format": "mesascope.run/1"}',
            None,
            "is a record or checkpoint of mesascope, which would be lost",
        ),
        (b"PAGE", "planned.json", "is a file of a run of mesascope, which would be lost"),
    ],
)
def test_an_output_replaces_only_a_file_of_its_own_kind(tmp_path, there, beside, said):
    file = tmp_path / "out"
    if there is not None:
        file.write_bytes(there)
    if beside is not None:
        (tmp_path / beside).write_text("{}")
    if said is None:
        assert prepare_file(file, "a page", lambda first: first.startswith(b"PAGE")) == file
    else:
        with pytest.raises(RecordError, match=said):
            prepare_file(file, "a page", lambda first: first.startswith(b"PAGE"))
    assert not file.exists() if there is None else file.read_bytes() == there


@pytest.mark.parametrize(
    "below", ["file", "file/out", "file/deep/out", "x" * 300, "new/" + "x" * 300, "nul\0"]
)
def test_a_folder_that_cannot_be_made_is_refused_in_one_line_and_nothing_is_left(tmp_path, below):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(
        RecordError, match=r"^output folder .* cannot be written to: .*; choose another folder$"
    ):
        prepare_output(tmp_path / below)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.fixture
def ordinary_user():
    # Permission bits do not bind root, as whom tests run in many containers: be somebody else for a while.
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def locked_folder():
    # Not below tmp_path, which only its owner may enter.
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        folder = Path(parent) / "locked"
        folder.mkdir(mode=0o555)
        yield folder


def test_a_read_only_folder_is_refused(locked_folder, ordinary_user):
    for folder in (locked_folder, locked_folder / "new", locked_folder / "new" / "deep"):
        with pytest.raises(RecordError, match="Permission denied"):
            prepare_output(folder)


def test_a_file_system_that_refuses_is_refused():
    with pytest.raises(RecordError, match="cannot be written to"):
        prepare_output("/proc/self/out")  # takes no files from anyone, root included


def test_leftovers_of_dead_writers_go_and_those_of_live_ones_stay(tmp_path):
    with atomic_path(tmp_path / "live") as alive:
        alive.write_text("half")
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        dead = tmp_path / alive.name.replace(f"-{os.getpid()}-", f"-{gone.pid}-")
        foreign = tmp_path / ".live.elsewhere-1-0123abcd.tmp"
        ancient = tmp_path / ".old.elsewhere-1-0123abcd.tmp"
        unrelated = tmp_path / ".notes.tmp"
        for path in (dead, foreign, ancient, unrelated):
            path.write_text("half")
        os.utime(ancient, (0, time.time() - 2 * 24 * 3600))
        remove_leftovers_of(tmp_path / "other")
        assert dead.exists()
        remove_leftovers_of(tmp_path / "live")
        assert alive.exists() and foreign.exists() and ancient.exists() and not dead.exists()
        dead.write_text("half")
        remove_leftovers(tmp_path)
        assert alive.exists() and foreign.exists() and unrelated.exists()
        assert not dead.exists() and not ancient.exists()


WRITER = """
    import os, pathlib, sys, time
    from mesascope.records import Figure, Line, Panel, RunDirectory

    def stop(*arguments):
        print("now", flush=True)
        time.sleep(60)

    def stop_halfway(path, text, **options):
        path.write_bytes(text.encode()[: len(text) // 2])
        stop()

    def new_value(run, kind):
        if kind == "data":
            return run.write_data("d", {"n": (("i",), [2.0] * 1000)})
        line = Line(x=range(1000), y=[2.0] * 1000, label="n")
        panel = Panel(title="t", xlabel="x", ylabel="y", traces=(line,))
        return run.write_figure("f", Figure(title="f", panels=(panel,)))

    folder, kind, moment = sys.argv[1:]
    if moment == "half written":
        pathlib.Path.write_text = stop_halfway
    elif moment == "before it is flushed":
        os.fsync = stop
    elif moment == "before it is renamed":
        os.replace = stop
    new_value(RunDirectory(folder), kind)
    stop()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "moment", "kept"),
    [
        ("figure", "half written", 1.0),
        ("figure", "before it is flushed", 1.0),
        ("figure", "before it is renamed", 1.0),
        ("figure", "after", 2.0),
        ("data", "before it is flushed", 1.0),
        ("data", "after", 2.0),
    ],
)
def test_kill_at_any_moment_of_writing_leaves_the_old_or_the_new(tmp_path, kind, moment, kept):
    run = RunDirectory.create(tmp_path)
    line = Line(x=range(1000), y=[1.0] * 1000, label="n")
    run.write_figure(
        "f", Figure(title="f", panels=(Panel(title="t", xlabel="x", ylabel="y", traces=(line,)),))
    )
    run.write_data("d", {"n": (("i",), [1.0] * 1000)})

    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path), kind, moment], stdout=subprocess.PIPE
    )
    with writer:
        assert writer.stdout.readline() == b"now\n"
        writer.send_signal(signal.SIGKILL)
    interrupted = moment != "after"
    assert len(files_below(tmp_path)) == 2 + interrupted  # the half is there, under another name

    run = RunDirectory.create(tmp_path)
    assert files_below(tmp_path) == ["data/d.nc", "figures/f.json"]
    assert run.problems() == []
    read = run.read_data("d")["n"].values if kind == "data" else run.read_figure("f").panels[0].traces[0].y
    assert set(read) == {kept}
