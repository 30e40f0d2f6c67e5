"""The files of a store of runs, for the harness."""

import json
import os

import mutants
import stored_records as stored
from harness.files import Kind, data_text, text
from mesascope.records import RunFolders, StudyAxis, StudyPoint, StudyRecord, open_store
from mesascope.records._folder_lock import _holder
from mesascope.studies.sweeps import _attempts
from mesascope.studies.sweeps._status import _FOLDER, Driver, _host, drivers


def _store(tmp, name, read, forge=mutants.resealed_record, **more):
    root = stored.store(tmp / "store", failed=[(1, 1)])
    folders, run = RunFolders(root), stored.run_id((0, 0))
    places = {"run": folders.folder(run), "store": root}
    file = next(place / name for place in places.values() if (place / name).exists())
    return Kind(file, lambda: text(read(folders, run)), forge, **more)


def run(tmp):
    return _store(tmp, "run.json", lambda folders, run: folders.finished(run))


def planned(tmp):
    return _store(tmp, "planned.json", lambda folders, run: folders.planned(run))


def trajectory(tmp):
    return _store(
        tmp, "trajectory.nc", lambda folders, run: data_text(folders.trajectory(run)), mutants.resealed_data
    )


def study(tmp):
    return _store(tmp, "studies/grid.json", lambda folders, run: folders.study("grid"))


def store(tmp):
    return _store(tmp, "store.json", lambda folders, run: RunFolders(folders.root).identity)


def attempts(tmp):
    folder = tmp / "run"
    folder.mkdir()
    for driver in "ab":
        _attempts.begin_attempt(folder, driver, batch=2)
        _attempts.abandon_attempt(folder, "it needs too much")
    readers = (_attempts.attempts, _attempts.last_driver, _attempts.has_advanced)

    def read():
        found = [reader(folder) for reader in readers]
        return text([*found, _attempts.why_unbatched(folder, "a"), _attempts.driver_deaths(folder, 0)])

    return Kind(folder / "attempts.jsonl", read, mutants.changed_lines, False)


def driver(tmp):
    here = Driver(study="grid", host=_host(), pid=os.getpid(), scheduler="local", dashboard=None, total=3)
    file = tmp / _FOLDER / "here.json"
    file.parent.mkdir()
    file.write_text(here.model_dump_json())
    return Kind(file, lambda: text(drivers(tmp, "grid")), mutants.changed_json, False)


def lock(tmp):
    file = tmp / ".run.lock"
    file.write_text(json.dumps({"pid": 1, "host": "here", "since": "2026-01-01 10:00:00"}))
    return Kind(file, lambda: _holder(file), mutants.changed_json, False)


def index(tmp):
    root, axis = tmp / "store", StudyAxis(name="init.a", labels=(0.1, 0.2))
    folders = RunFolders.create(root)
    points = tuple(StudyPoint(run=stored.finish(folders, place), place=place) for place in ((0,), (1,)))
    folders.write_study(StudyRecord(name="grid", kind="flow", spec={}, axes=(axis,), points=points))
    for path in (*root.glob("runs/*"), *root.glob("studies/*")):
        os.utime(path, (1, 1))  # at rest: an index that is whole is not written when it is opened
    open_store(root).close()

    def read():
        with open_store(root) as opened:
            return text([opened.rows(), opened.studies(), opened.to_xarray("grid").to_dict()])

    return Kind(root / "index.sqlite", read)


STORES = (run, planned, trajectory, study, store, index, attempts, driver, lock)
