"""An index that was lost, damaged, exchanged or changed by something else is noticed and built again from the folders."""

import random
import re
import shutil
import sqlite3
import warnings
from contextlib import closing

import pytest

from mesascope.records import RecordError, RunFolders, StudyAxis, StudyPoint, StudyRecord, open_store


@pytest.mark.slow
def test_an_index_that_was_deleted_is_rebuilt_equal(folders, made, index):
    for number in range(20):
        made.compute(folders, number)
    folders.plan(made.planned(20))
    axes = (StudyAxis(name="a", labels=tuple(range(20))),)
    points = tuple(StudyPoint(run=made.planned(k).id, place=(k,)) for k in range(20))
    folders.write_study(StudyRecord(name="s", kind="flow", spec={}, axes=axes, points=points))
    with open_store(folders.root, index) as store:
        before, data = store.rows(), store.to_xarray("s")
        assert len(before) == 21 and store.reindex() == 21 and store.rows() == before
    if index is None:
        for file in folders.root.glob("index.sqlite*"):
            file.unlink()
    else:
        _drop_everything(index)
    with open_store(folders.root, index) as store:
        assert store.rows() == before and store.to_xarray("s").identical(data) and store.verify() == []


def _drop_everything(url):
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


def test_an_index_that_is_damaged_is_built_again(folders, made, tmp_path):
    made.compute(folders, 1)
    open_store(folders.root).close()
    for file in folders.root.glob("index.sqlite*"):
        file.write_bytes(b"not a database at all" * 500)
    with pytest.warns(UserWarning, match=r"not a database\); it is built again from the folders"):
        store = open_store(folders.root)
    with store:
        assert store.count(["status=done"]) == 1 and store.verify() == []
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("kept" * 5000)
    with pytest.raises(
        RecordError, match=r"not a database\); remove it, and the next command builds it again"
    ):
        open_store(folders.root, f"sqlite:///{thesis}")
    assert thesis.read_text() == "kept" * 5000


_ADDED = (
    "CREATE TEMP TABLE one AS SELECT * FROM runs WHERE id = 'RUN'; UPDATE one SET id = replace(id, '0', '1');"
)
CHANGES = {
    "status": "UPDATE runs SET status = 'failed' WHERE id = 'RUN'",
    "planned": "UPDATE runs SET status = 'planned' WHERE id = 'RUN'",
    "brief": "UPDATE runs SET brief = replace(brief, '0.5', '7.5') WHERE id = 'RUN'",
    "specification": "UPDATE runs SET spec = '{}' WHERE id = 'RUN'",
    "seconds": "UPDATE runs SET seconds = 7 WHERE id = 'RUN'",
    "kind": "UPDATE runs SET kind = 'train' WHERE id = 'RUN'",
    "removed": "DELETE FROM runs WHERE id = 'RUN'",
    "added": f"{_ADDED} INSERT INTO runs SELECT * FROM one",
    "exchanged": f"{_ADDED} DELETE FROM runs WHERE id = 'RUN'; INSERT INTO runs SELECT * FROM one",
    "twice": """CREATE TABLE copy AS SELECT * FROM runs; DROP TABLE runs; ALTER TABLE copy RENAME TO runs;
        INSERT INTO runs SELECT * FROM runs LIMIT 1""",
    "place": "UPDATE study_points SET place = 5 - place WHERE run <> 'RUN'",
    "left the study": "DELETE FROM study_points WHERE run = 'RUN'",
    "axes": "UPDATE studies SET axes = replace(axes, '3', '4')",
    "number of rows": "UPDATE tally SET rows = rows + 1",
    "no numbers of rows": "DELETE FROM tally",
    "outcome": "UPDATE outcomes SET outcome = '{\"loss\": 7.0}' WHERE run = 'RUN'",
    "no outcome": "DELETE FROM outcomes WHERE run = 'RUN'",
}
READERS = {
    "rows": lambda store: store.rows(),
    "the last": lambda store: store.rows(limit=1),
    "done": lambda store: store.rows(["status=done"]),
    "by outcome": lambda store: store.rows(["outcome.loss<0.6"]),
    "count": lambda store: store.count(["status=done", "study=all"]),
    "known": lambda store: store.refuse_unknown(["outcome.loss=0.5", "spec.seed=1", "study=all"]),
    "studies": lambda store: store.studies(),
    "to_xarray": lambda store: store.to_xarray("all").to_dict(),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_an_index_that_something_else_has_changed_is_built_again_before_it_answers(folders, made, change):
    runs = [made.compute(folders, number) for number in (1, 2, 3)]
    axis = StudyAxis(name="seed", labels=(1, 2, 3))
    points = tuple(StudyPoint(run=run, place=(at,)) for at, run in enumerate(runs))
    with open_store(folders.root) as store:
        store.write_study(StudyRecord(name="all", kind="flow", spec={}, axes=(axis,), points=points))
        answers = {name: read(store) for name, read in READERS.items()}
    file = folders.root / "index.sqlite"
    written = file.read_bytes()
    for name, read in READERS.items():
        file.write_bytes(written)
        with closing(sqlite3.connect(file)) as database:
            database.executescript(CHANGES[change].replace("RUN", runs[0]))
        with open_store(folders.root) as store, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert read(store) == answers[name], (change, name)
        assert all("it is built again from the folders" in str(one.message) for one in said)
        # outcomes are compared where they are shown
        shows = {"rows", "done", "by outcome", "to_xarray"}
        assert said or ("outcome" in change and name not in shows), (change, name)


def test_a_store_that_is_open_notices_a_change_of_its_index(folders, made):
    run = made.compute(folders, 1)
    with open_store(folders.root) as store:
        rows = store.rows(["status=done"])
        with closing(sqlite3.connect(folders.root / "index.sqlite")) as database, database:
            database.execute("UPDATE runs SET status = 'failed'")
        with pytest.warns(
            UserWarning, match=r"its rows are not those that were written\); it is built again"
        ):
            assert store.rows(["status=done"]) == rows
        store.enter([run])  # what this process writes is no such change
        made.compute(store.folders, 2)
        store.refresh()
        assert len(store.rows(["status=done"])) == 2


def test_an_index_elsewhere_that_something_else_has_changed_is_refused(folders, made, tmp_path):
    made.compute(folders, 1)
    file = tmp_path / "elsewhere.sqlite"
    open_store(folders.root, f"sqlite:///{file}").close()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DELETE FROM runs")
    with open_store(folders.root, f"sqlite:///{file}") as store:
        for read in (store.rows, store.reindex):
            with pytest.raises(
                RecordError, match=r"not those that were written\); remove it, and the next command"
            ):
                read()


def test_the_index_of_another_store_in_the_place_of_ones_own_is_built_again(folders, made, tmp_path):
    made.compute(folders, 1)
    other = RunFolders.create(tmp_path / "other")
    open_store(other.root).close()
    shutil.copy(other.root / "index.sqlite", folders.root)
    with pytest.warns(UserWarning, match=r"is of the store at .*other, not of .*; it is built again"):
        store = open_store(folders.root)
    with store:
        assert store.count() == 1 and store.verify() == []


@pytest.mark.slow
def test_an_index_with_rotten_bytes_is_rebuilt(folders, made):
    runs = [made.compute(folders, number) for number in range(3)]
    with open_store(folders.root) as store:
        rows = store.rows()
    file = folders.root / "index.sqlite"
    whole, rot = file.read_bytes(), random.Random(1)
    for _ in range(8):
        rotten = bytearray(whole)
        for _ in range(rot.choice((3, 30, 300))):
            rotten[rot.randrange(len(whole))] = rot.randrange(256)
        file.write_bytes(rotten)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "index .* it is built again")
            with open_store(folders.root) as store:
                assert store.reindex() == len(runs)
        with open_store(folders.root) as store:
            assert store.rows() == rows and store.verify() == []


@pytest.mark.slow
def test_a_copy_of_a_value_in_a_search_tree_of_the_index_is_never_shown(folders, made):
    """SQLite reads `ended` and `id` from its trees, where a disk may rot them, and not from the rows that have sums."""
    made.compute(folders, 1)
    with open_store(folders.root) as store:
        (row,) = store.rows()
    file = folders.root / "index.sqlite"
    whole = file.read_bytes()
    for value in (row.id, row.ended):
        places = [found.start() for found in re.finditer(re.escape(value).encode(), whole)]
        assert len(places) > 2  # the row, and two trees
        for place in places:
            rotten = bytearray(whole)
            rotten[place + 3] ^= 1
            file.write_bytes(rotten)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "index .* it is built again")
                with open_store(folders.root) as store:
                    assert store.rows() == store.rows(["status=done"]) == [row]


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("runs", "id", "NULL"),
        ("runs", "id", "'../../..'"),
        ("runs", "status", "'dne'"),
        ("runs", "spec", "5"),
        ("runs", "seconds", "'x'"),
        ("parts", "part", "NULL"),
        ("store", "folder", "NULL"),
        ("outcomes", "outcome", "5"),
    ],
)
def test_a_value_that_has_rotted_is_noticed_and_the_index_is_built_again(folders, made, table, column, value):
    """The file is whole to SQLite, but what stands in one row is none of its column."""
    run = made.planned(1).id
    folders.plan(made.planned(1))
    points = (StudyPoint(run=run, place=(0,)),)
    axis = StudyAxis(name="a", labels=(1,))
    folders.write_study(StudyRecord(name="s", kind="flow", spec={}, axes=(axis,), points=points))
    open_store(folders.root).close()
    with closing(sqlite3.connect(folders.root / "index.sqlite")) as file, file:
        file.execute("PRAGMA writable_schema = ON")
        file.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
    with closing(sqlite3.connect(folders.root / "index.sqlite")) as file, file:
        file.execute(f"UPDATE {table} SET {column} = {value}")

    def asked():
        with open_store(folders.root) as store:
            return [row.id for row in store.rows()], store.to_xarray("s").run.item()

    with pytest.warns(UserWarning, match=r"is damaged, or no index \(.*it is built again from the folders"):
        assert asked() == ([run], run)
    assert asked() == ([run], run)  # without a warning


def test_an_index_that_is_wrong_is_noticed(folders, made):
    import sqlite3

    for number in range(3):
        made.compute(folders, number)
    open_store(folders.root).close()
    connection = sqlite3.connect(folders.root / "index.sqlite")
    run = made.planned(0).id
    connection.execute("UPDATE runs SET seconds = 77 WHERE id = ?", (run,))
    connection.execute("DELETE FROM runs WHERE id = ?", (made.planned(1).id,))
    connection.execute("UPDATE parts SET written = ?", (folders.root.stat().st_mtime_ns,))
    for part in folders.parts():
        at = (folders.root / "runs" / part).stat().st_mtime_ns
        connection.execute("UPDATE parts SET written = ? WHERE part = ?", (at, part))
    connection.commit()
    connection.close()
    with open_store(folders.root) as store:
        reported = store.verify()
        assert len(reported) == 2 and run in reported[0] and made.planned(1).id in reported[1]
        with pytest.warns(UserWarning, match="it is built again"):
            store.reindex()
        assert store.verify() == []
