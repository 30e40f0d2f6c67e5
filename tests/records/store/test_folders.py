"""Folders of runs: planned, held by one, finished whole, and never outside of the store."""

import json
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import mesascope
from mesascope.records import (
    InUseError,
    PlannedRun,
    RecordError,
    RunFolders,
    StudyAxis,
    StudyPoint,
    StudyRecord,
)
from mesascope.records.store._problems import problems


def test_a_run_is_planned_then_running_then_done(folders, made):
    plan = made.planned(3)
    folders.plan(plan)
    assert folders.ids() == [plan.id] and folders.planned(plan.id) == plan
    assert folders.status(plan.id) == "planned" and folders.run(plan.id) is None
    with folders.holding(plan.id):
        assert folders.status(plan.id) == "running"
        record = folders.finish(made.ended(plan), {"time": ("time", np.arange(4.0))})
    assert folders.status(plan.id) == "done" and folders.run(plan.id) == record
    assert list(record.files) == ["trajectory.nc"]
    assert folders.trajectory(plan.id)["time"].values.tolist() == [0, 1, 2, 3]
    assert problems(folders) == []


def test_files_keep_their_names_of_fields(folders, made):
    """Older versions read what this one writes, and this one what they wrote."""
    file = folders.folder(made.compute(folders, 1)) / "run.json"
    assert '"state": "done"' in file.read_text() and '"status"' not in file.read_text()


def test_a_run_is_held_by_one(folders, made):
    folders.plan(made.planned(1))
    with folders.holding(made.planned(1).id):
        with pytest.raises(InUseError, match="in use by process"), folders.holding(made.planned(1).id):
            pass
        with pytest.raises(InUseError, match="is being computed"):
            folders.remove(made.planned(1).id)
    folders.remove(made.planned(1).id)
    assert folders.ids() == [] and not list(folders.root.glob("runs/*/*"))
    with pytest.raises(RecordError, match="no record"), folders.holding(made.planned(1).id):
        pass
    assert folders.ids() == []  # asking makes no folder


def test_what_is_done_stays_and_what_failed_is_replaced(folders, made):
    plan = made.planned(1)
    folders.plan(plan)
    folders.plan(plan)  # again: nothing changes
    data = {"x": ("x", np.arange(3.0))}
    failed = folders.finish(made.ended(plan, outcome={}, error="diverged", traceback="…"), data)
    assert folders.status(plan.id) == "failed" and failed.files
    done = folders.finish(made.ended(plan, attempts=2))
    assert done.files == {} and not (folders.folder(plan.id) / "trajectory.nc").exists()
    assert folders.finish(made.ended(plan, outcome={"loss": 7})) == done == folders.run(plan.id)
    assert problems(folders) == []


def test_a_record_is_of_what_was_planned(folders, made):
    folders.plan(made.planned(1))
    with pytest.raises(RecordError, match="is not of the run that was planned"):
        folders.finish(made.ended(made.planned(1, dim=6)))
    with pytest.raises(RecordError, match="is of another run"):
        folders.plan(made.planned(1, dim=6))


@pytest.mark.parametrize("run", ["../../etc", "A" * 32, "a" * 31, "a" * 32 + "\n", "", "/" * 32])
def test_invalid_names_are_refused(folders, run):
    for call in (folders.folder, folders.run, folders.planned, folders.remove, folders.trajectory):
        with pytest.raises(ValueError, match="32 hexadecimal digits"):
            call(run)
    if run != "a" * 31:
        with pytest.raises(ValueError, match="study name"):
            folders.study(run)
    with pytest.raises(ValueError, match="String should match"):
        PlannedRun(id=run, kind="flow", spec={}, code="")


@pytest.mark.parametrize("which", ["runs", "part", "run"])
def test_no_symbolic_link_is_followed_out_of_the_store(folders, made, tmp_path, which):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("keep")
    plan = made.planned(1)
    folder = folders.folder(plan.id)
    link = {"runs": folder.parent.parent, "part": folder.parent, "run": folder}[which]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    for call in (
        lambda: folders.plan(plan),
        lambda: folders.remove(plan.id),
        lambda: folders.running(plan.id),
        lambda: folders.run(plan.id),
    ):
        with pytest.raises(RecordError, match="symbolic link"):
            call()
    assert folders.reusable(plan.id) is None
    assert any("symbolic link" in problem for problem in problems(folders))
    assert [path.name for path in outside.iterdir()] == ["precious"]


def test_links_inside_of_a_run_are_refused(folders, made, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("keep")
    run = made.compute(folders, 1)
    folder = folders.folder(run)
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "weights").symlink_to(outside)
    assert [problem for problem in problems(folders) if "leads out of the store" in problem]
    with pytest.raises(RecordError, match="leads out of the store"):
        folders.remove(run)
    assert folders.run(run) is not None and outside.read_text() == "keep"
    (folder / "checkpoint" / "weights").unlink()
    (folder / ".run.lock").symlink_to(outside)
    with pytest.raises(RecordError, match="symbolic link"), folders.holding(run):
        pass
    (folder / ".run.lock").unlink()
    (folder / "trajectory.nc").rename(tmp_path / "moved.nc")
    (folder / "trajectory.nc").symlink_to(tmp_path / "moved.nc")
    assert folders.reusable(run) is None
    assert outside.read_text() == "keep"


def test_damage_is_reported(folders, made):
    runs = [made.compute(folders, number) for number in range(5)]
    file = folders.folder(runs[0]) / "run.json"
    file.write_text(file.read_text().replace('"loss": 0.0', '"loss": 9.0'))
    cut = folders.folder(runs[1]) / "run.json"
    cut.write_bytes(cut.read_bytes()[:200])
    other = folders.folder(runs[2]) / "trajectory.nc"
    other.write_bytes((folders.folder(runs[3]) / "trajectory.nc").read_bytes())
    (folders.folder(runs[4]) / "trajectory.nc").unlink()
    (folders.root / "runs" / "zz").mkdir()
    (folders.root / "runs" / "00" / "left").mkdir(parents=True)
    (folders.root / "studies").mkdir()
    (folders.root / "studies" / "one.json").write_text("{")
    reported = problems(folders)
    assert [run for run in runs if folders.reusable(run) is None] == [runs[0], runs[1], runs[4]]
    with pytest.raises(RecordError, match="was changed"):
        folders.trajectory(runs[2])
    for words in (
        "its digest differs",
        "is torn",
        "was changed after",
        "is missing",
        "'left'",
        "'zz'",
        "one.json is torn",
    ):
        assert [problem for problem in reported if words in problem], (words, reported)
    assert len(reported) == 7 and folders.trajectory(runs[3]) is not None


def test_a_record_of_a_newer_version_is_left_alone(folders, made):
    run = made.compute(folders, 1)
    file = folders.folder(run) / "run.json"
    file.write_text(file.read_text().replace("mesascope.run/1", "mesascope.run/2"))
    for call in (
        lambda: folders.run(run),
        lambda: folders.finish(made.ended(made.planned(1))),
        lambda: folders.trajectory(run),
    ):
        with pytest.raises(
            RecordError, match=r"'mesascope.run/2', expected .* newer version of mesascope; upgrade"
        ):
            call()
    assert len(problems(folders)) == 1 and "mesascope.run/2" in file.read_text()


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, '{"format": 1}', '"\\ud800"', "\0"])
def test_invalid_records_are_reported(folders, made, text):
    run = made.compute(folders, 1)
    (folders.folder(run) / "run.json").write_text(text)
    assert folders.reusable(run) is None and len(problems(folders)) == 1


def test_half_characters_are_escaped_or_refused(folders, made):
    """Names of files that are not UTF-8 reach Python so, and what exceptions say of them."""
    plan = made.planned(1)
    folders.plan(plan)
    failed = folders.finish(made.ended(plan, error="no file a\udc80", traceback="…\udc80"))
    assert failed.error == "no file a\\udc80" and folders.run(plan.id) == failed
    with pytest.raises(RecordError, match=r"'.udc80' is half a character"):
        folders.plan(made.planned(2, path="a\udc80"))
    assert not folders.is_planned(made.planned(2).id)


def test_a_file_in_place_of_a_run_is_reported(folders, made):
    folder = folders.folder(made.planned(1).id)
    folder.parent.mkdir(parents=True)
    folder.write_text("no run")
    assert folders.reusable(made.planned(1).id) is None and not folders.is_planned(made.planned(1).id)
    assert problems(folders) == [f"{folder} is not a folder; remove it"]


def test_a_store_is_made_once_and_nowhere_else(tmp_path, made):
    with pytest.raises(RecordError, match="is not a store"):
        RunFolders(tmp_path / "none")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    with pytest.raises(RecordError, match=r"holds 'thesis.tex' and is not a store"):
        RunFolders.create(tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]
    first = RunFolders.create(tmp_path / "new")
    made.compute(first, 1)
    again = RunFolders.create(tmp_path / "new")
    assert again.identity == first.identity and len(again.ids()) == 1
    os.rename(tmp_path / "new", tmp_path / "moved")
    assert RunFolders(tmp_path / "moved").identity == first.identity


def test_studies(folders, made):
    run = made.compute(folders, 1)
    axes = (
        StudyAxis(name="init.a", labels=(0.1, 2, "x", True)),
        StudyAxis(name="zip", coordinates={"p": (1,), "q": ("a",)}),
    )
    study = StudyRecord(
        name="first", kind="flow", spec={"x": 1}, axes=axes, points=(StudyPoint(run=run, place=(3, 0)),)
    )
    folders.write_study(study)
    assert folders.studies() == ["first"] and folders.study("first") == study
    assert [type(label) for label in folders.study("first").axes[0].labels] == [float, int, str, bool]
    with pytest.raises(RecordError, match=r"no study 'second' in .* it has: first"):
        folders.study("second")
    for wrong, reported in (
        ({"points": (StudyPoint(run=run, place=(4, 0)),)}, "lies outside"),
        ({"points": (StudyPoint(run=run, place=(0,)),)}, "lies outside"),
        ({"points": (StudyPoint(run=run, place=(0, 0)),) * 2}, "the same place"),
        ({"axes": (axes[0], axes[0])}, "the same name"),
        ({"name": "../x"}, "should match"),
    ):
        with pytest.raises(ValueError, match=reported):
            StudyRecord(**{**study.model_dump(), **wrong})
    for wrong in (
        {"name": "a"},
        {"name": "a", "coordinates": {"p": (1,), "q": (1, 2)}},
        {"name": "a/b", "labels": (1,)},
    ):
        with pytest.raises(ValueError, match=r"one length|should match"):
            StudyAxis(**wrong)


def test_reading_a_store_never_unpickles(folders, made, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a pickle was loaded")

    run = made.compute(folders, 1)
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(np, "load", refuse)
    from mesascope.records import open_store

    with open_store(folders.root) as store:
        assert store.folders.trajectory(run) is not None and store.verify() == [] and len(store.rows()) == 1
    kinds = {path.suffix for path in folders.root.rglob("*") if path.is_file()} - {".sqlite"}
    assert kinds <= {".json", ".nc", ".sqlite-shm", ".sqlite-wal"}
    for path in folders.root.rglob("*.json"):
        json.loads(path.read_text())


def test_nothing_in_the_package_reads_pickles():
    """Not from stores, and not from samples, weights or modules of others."""
    forbidden = re.compile(
        r"^\s*(import|from) (pickle|cloudpickle|dill|joblib|shelve|marshal)\b|torch\.load|allow_pickle=True|read_pickle",
        re.MULTILINE,
    )
    sources = list(Path(mesascope.__file__).parent.rglob("*.py"))
    assert len(sources) > 100 and forbidden.search("x = 1\nimport pickle\n")
    assert [source for source in sources if forbidden.search(source.read_text(encoding="utf-8"))] == []
