"""Stores whose files were moved, removed, linked or dated by others."""

import os
import shutil

import pytest

from mesascope.records import RecordError, open_store


def test_a_run_whose_arrays_were_removed_is_not_done(filled):
    """Also where the index knows that it was done, and its record is as it was."""
    store, (run, other), _ = filled
    arrays = store.folders.folder(run) / "trajectory.nc"
    assert arrays.exists() and store.find(run).status == "done"
    arrays.unlink()
    assert (store.find(run).status, store.find(other).status) == ("unreadable", "done")
    assert "trajectory.nc is missing" in store.find(run).error


def test_times_beyond_those_of_the_index_are_read(filled):
    """The year 2300, in nanoseconds, has more than 63 bits."""
    store, runs, _ = filled
    for run in runs:
        folder = store.folders.folder(run)
        for path in (folder / "run.json", folder.parent):
            os.utime(path, (10_413_792_000, 10_413_792_000))
    with open_store(store.folders.root) as again:
        assert {row.id for row in again.rows()} == set(runs)
        again.reindex()
        assert {row.status for row in again.rows()} == {"done"}


@pytest.mark.parametrize("name", ["runs", "studies"])
def test_a_store_is_not_opened_through_links(filled, tmp_path, name):
    store, _, _ = filled
    root = store.folders.root
    os.rename(root / name, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", root / name)
    with pytest.raises(RecordError, match=f"{name} is a symbolic link; a store follows none"):
        open_store(root)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("notes.txt", "holds 'notes.txt', which is not of a store; keep it elsewhere"),
        ("runs/zz", "holds 'zz', which is no folder of runs; remove it"),
        ("RUN/run.json.old", "holds 'run.json.old', which is not of a run; remove it"),
    ],
)
def test_a_foreign_file_is_told(filled, place, told):
    store, _, _ = filled
    folders = store.folders
    for damaged in ("", "2"):  # what the store itself has set aside
        (folders.folder(folders.ids()[0]) / f"run.json.damaged{damaged}").write_text("torn")
    assert store.verify() == []
    (folders.root / place.replace("RUN", str(folders.folder(folders.ids()[0])))).write_text("mine")
    (problem,) = store.verify()
    assert told in problem


def test_the_index_of_a_store_is_not_that_of_its_copy(folders, made, tmp_path):
    made.compute(folders, 1)
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"
    for index in (None, elsewhere):
        open_store(folders.root, index).close()
    copy = shutil.copytree(folders.root, tmp_path / "copy")
    made.compute(folders, 2)
    with pytest.raises(RecordError, match=r"store, of which .*copy is a copy; give every store a database"):
        open_store(copy, elsewhere)
    with open_store(copy) as store:  # its own was copied with it
        assert store.count() == 1
    with open_store(folders.root, elsewhere) as store:
        assert store.count() == 2
