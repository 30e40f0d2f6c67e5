"""A record that cannot be read: every reader says so, and none takes the copy in the index for it."""

import json
import os
import signal
from contextlib import nullcontext

import pytest

from mesascope.records import (
    RecordError,
    RunFolders,
    UnreadableError,
    open_store,
)


def _cut(file):
    file.write_bytes(file.read_bytes()[:100])


def _flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _replace(old, new):
    def damage(file):
        content = file.read_text()
        assert old in content
        file.write_text(content.replace(old, new))

    return damage


def _link(file):
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def _folder(file):
    file.unlink()
    file.mkdir()


def _pipe(file):
    file.unlink()
    os.mkfifo(file)


DAMAGES = {
    "cut": _cut,
    "flipped": _flip,
    "digest": _replace('"sha256": "', '"sha256": "0'),
    "NaN": _replace('"loss": 0.5', '"loss": NaN'),
    "link": _link,
    "folder": _folder,
    "pipe": _pipe,
}
newer = _replace("mesascope.run/1", "mesascope.run/9")


@pytest.fixture(autouse=True)
def in_time():
    """A named pipe that is waited for ends the test, and not the patience of whoever waits."""
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("it hangs")))
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [*DAMAGES.values(), newer], ids=[*DAMAGES, "newer"])
def test_no_reader_takes_the_index_for_a_record(filled, made, damage):
    store, (damaged, other), file = filled
    damage(file)
    (found,) = [row for row in store.rows() if row.id == damaged]
    assert found == store.find(damaged[:8])
    assert found.status == store.folders.status(damaged) == "unreadable"
    assert found.outcome == {} and found.spec == made.planned(1).spec
    assert str(file) in found.error and ";" in found.error and "\n" not in found.error
    assert (
        [row.id for row in store.rows(["status=done"])] == [other] == [row.id for row in store.rows(limit=1)]
    )
    assert [row.id for row in store.unreadable(["study=both", "outcome.loss>0", "status=done"])] == [damaged]
    assert store.unreadable(["spec.seed=2"]) == []
    assert store.studies() == {"both": {"done": 1, "unreadable": 1}}
    assert store.to_xarray("both")["status"].values.tolist() == ["unreadable", "done"]
    with pytest.raises(RecordError):
        store.folders.run(damaged)
    assert store.reindex() == 2 and store.count(["status=unreadable"]) == 1
    assert len([problem for problem in store.verify() if str(file) in problem]) == 1


@pytest.mark.parametrize(
    "filters", [["status=unreadable"], ["status!=done"], ["status=unreadable", "study=both"], ["seconds=0"]]
)
def test_filters_find_what_has_changed_since_the_index_was_made(filled, filters):
    store, (damaged, _), file = filled
    _cut(file)
    found = [row.id for row in store.rows(filters)]
    assert found == ([] if filters == ["seconds=0"] else [damaged])
    assert store.count(["status=unreadable"]) == 1  # any of them has brought the index up to date


def test_filters_find_a_run_whose_record_was_removed(filled):
    store, (removed, _), file = filled
    file.unlink()
    assert [row.id for row in store.rows(["status=planned"])] == [removed]


def test_a_record_that_is_repaired_is_seen(filled):
    store, (damaged, _), file = filled
    whole = file.read_bytes()
    for damage in (_cut, newer):
        damage(file)
        store.confirm(["status=done"])
        assert store.count(["status=unreadable"]) == 1
        file.write_bytes(whole)
        store.refresh()
        assert store.find(damaged).status == "done" and store.count(["status=done"]) == 2


def test_a_damaged_plan_is_told(store, made):
    store.folders.plan(made.planned(1))
    store.refresh()
    _cut(store.folders.folder(made.planned(1).id) / "planned.json")
    store.reindex()
    (row,) = store.rows()
    assert row.status == "unreadable" and "planned.json is torn" in row.error


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_computing_again_keeps_the_damaged_file(folders, made, damage):
    run = made.compute(folders, 1)
    record, file = folders.run(run), folders.folder(run) / "run.json"
    for kept in ("run.json.damaged", "run.json.damaged2"):
        damage(file)
        assert folders.reusable(run) is None
        made.compute(folders, 1)
        assert os.path.lexists(file.with_name(kept))
        assert folders.run(run).outcome == record.outcome


def test_a_newer_record_is_never_computed_again(folders, made):
    run = made.compute(folders, 1)
    file = folders.folder(run) / "run.json"
    newer(file)
    content = file.read_bytes()
    with pytest.raises(UnreadableError, match="newer version of mesascope; upgrade"):
        made.compute(folders, 1)
    assert file.read_bytes() == content


@pytest.mark.parametrize("name", ["planned.json", "attempts.jsonl", ".run.lock"])
@pytest.mark.parametrize("damage", [_folder, _pipe], ids=["folder", "pipe"])
def test_odd_files_of_a_run_are_not_waited_for(folders, made, name, damage):
    run = made.compute(folders, 1)
    file = folders.folder(run) / name
    file.touch()
    damage(file)
    with open_store(folders.root) as store:
        assert not folders.running(run) and [row.id for row in store.rows()] == [run]
        reported = [problem for problem in store.verify() if str(file) in problem]
        assert len(reported) == (name != ".run.lock")


@pytest.mark.parametrize("damage", [_folder, _pipe], ids=["folder", "pipe"])
def test_an_index_that_is_no_file_is_refused(folders, made, damage):
    made.compute(folders, 1)
    file = folders.root / "index.sqlite"
    file.touch()
    damage(file)
    with pytest.raises(RecordError, match="in the place of the index and is not a file; move it away"):
        open_store(folders.root)
    file.rename(folders.root / "moved")
    with open_store(folders.root) as store:
        assert store.count() == 1


def test_verify_finds_garbage_of_attempts_and_studies(folders, made):
    run = made.compute(folders, 1)
    folder = folders.folder(run)
    (folder / "attempts.jsonl").write_text(f"{json.dumps({'pid': 1})}\n\0garbage\n")
    (folders.root / "studies").mkdir()
    (folders.root / "studies" / "<img src=x>.json").write_text("{}")
    os.mkfifo(folders.root / "studies" / "one.json")
    with open_store(folders.root) as store:
        reported = store.verify()
    assert len(reported) == 3, reported
    for words in ("attempts.jsonl, line 2", "'<img src=x>.json', which is not a study", "one.json"):
        assert [problem for problem in reported if words in problem]


def test_a_store_that_is_no_regular_file_is_refused(tmp_path):
    RunFolders.create(tmp_path / "store")
    _pipe(tmp_path / "store" / "store.json")
    with pytest.raises(RecordError, match="is not a regular file"):
        RunFolders(tmp_path / "store")


def test_a_plan_of_another_run_is_none_and_is_written_again(folders, made):
    first, second = made.planned(1), made.planned(2)
    for run in (first, second):
        folders.plan(run)
    there, other = (folders.folder(run.id) / "planned.json" for run in (first, second))
    there.write_bytes(other.read_bytes())
    with pytest.raises(RecordError, match=f"is the plan of run {second.id}; remove it"):
        folders.planned(first.id)
    folders.plan(first)
    assert folders.planned(first.id) == first


def test_a_study_that_cannot_be_read_is_told_wherever_it_is_asked_for(filled):
    store, _, _ = filled
    file = store.folders.root / "studies" / "both.json"
    _cut(file)
    store.refresh()
    told = str(file)
    for ask in (lambda: store.refuse_unknown(["study=both"]), lambda: store.to_xarray("both")):
        with pytest.raises(RecordError, match="torn or no JSON") as caught:
            ask()
        assert told in str(caught.value)
    assert list(store.damaged_studies()) == ["both"] and told in store.damaged_studies()["both"]
    store.reindex()
    assert list(store.damaged_studies()) == ["both"]


def test_a_store_whose_file_is_torn_is_opened_again_after_its_removal(filled, index):
    store, runs, _ = filled
    root, file = store.folders.root, store.folders.root / "store.json"
    store.close()
    _cut(file)
    with pytest.raises(RecordError, match="and give the sweep again: the runs beside it stay"):
        RunFolders(root)
    file.unlink()
    folders = RunFolders.create(root)
    assert folders.ids() == sorted(runs)
    own = (
        pytest.warns(UserWarning, match="is of a store that was here before")
        if index is None
        else nullcontext()
    )
    with own:
        open_store(root).close()
    (root / "runs" / "notes").mkdir()
    file.unlink()
    with pytest.raises(RecordError, match="holds 'runs' and is not a store"):
        RunFolders.create(root)
