"""Real processes are killed, interrupted and started twice: nothing is lost, and nothing is computed twice."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from mesascope.records import RunFolders, open_store
from mesascope.records.store._problems import problems
from mesascope.studies.sweeps._attempts import driver_deaths

RUNS = int(os.environ.get("MESASCOPE_FAULT_RUNS", "40"))  # 200 at full size
# Linux does not enforce this limit, but Dask takes it as the memory of the machine.
WITH_3_GB = ("sh", "-c", 'ulimit -m 2929688 && exec "$@"', "sh")
TWO = ("--scheduler", "local", "--workers", 2)


@pytest.fixture(scope="session")
def postgresql_server():
    """A real PostgreSQL, on a socket."""
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL for this Python", exc_type=ImportError)
    place = Path(tempfile.mkdtemp(prefix="ms-sw-"))  # short: the path of a socket has 100 characters
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    try:
        server = pgserver.get_server(place / "data", cleanup_mode="stop")
    except Exception as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    yield server
    server.cleanup()


@pytest.fixture
def postgresql(postgresql_server):
    """The URL of a new database: it is the index of one store."""
    name = f"sweeps_{uuid.uuid4().hex}"
    postgresql_server.psql(f"CREATE DATABASE {name}")
    return postgresql_server.get_uri(name)


def computed_once(store, begun, repeated=0):
    """Every run is done, and at most so many attempts were repeated."""
    folders = RunFolders(store)
    assert {folders.status(run) for run in folders.ids()} == {"done"}
    times = [len(pids) for pids in begun(store).values()]
    assert sum(times) <= len(times) + repeated
    with open_store(store) as opened:
        assert opened.count(["status=done"]) == len(times)
        assert opened.verify() == []


@pytest.mark.slow
def test_a_worker_is_killed_and_every_run_is_done(command, many_losses, tmp_path, begun):
    sweep = command(many_losses(RUNS), tmp_path / "s", *TWO)
    sweep.until(lambda: len(sweep.ended_runs()) > 5)
    worker = next(iter(begun(sweep.store).values()))[0]
    assert worker != sweep.process.pid
    os.kill(worker, signal.SIGKILL)
    status, result, err = sweep.end()
    assert (status, result["done"], result["failed"]) == (0, RUNS, 0), err
    computed_once(sweep.store, begun, repeated=1)
    assert not list(sweep.store.glob("drivers/*"))


@pytest.mark.slow
def test_a_worker_that_is_silent_for_a_while_is_waited_for(command, many_losses, tmp_path, begun):
    """Its heartbeats stop, as while it compiles or its machine sleeps: the others go on, and it computes nothing twice."""
    sweep = command(many_losses(RUNS), tmp_path / "s", *TWO)
    sweep.until(lambda: len({pid for pids in begun(sweep.store).values() for pid in pids}) == 2)
    silent = psutil.Process(next(iter(begun(sweep.store).values()))[0])
    assert silent.pid != sweep.process.pid
    silent.suspend()
    time.sleep(5)  # several heartbeats
    silent.resume()
    status, result, err = sweep.end()
    assert (status, result["done"], result["failed"]) == (0, RUNS, 0), err
    computed_once(sweep.store, begun)


@pytest.mark.slow
def test_the_driver_is_killed_and_the_rest_is_computed(command, many_losses, tmp_path, begun, postgresql):
    """Begun in process with SQLite, ended by two workers with PostgreSQL: the same numbers as in one go, to the last bit."""
    study = many_losses(RUNS)
    one = command(study, tmp_path / "whole")
    cut = command(study, tmp_path / "cut")
    cut.until(lambda: len(cut.ended_runs()) > 5)
    cut.process.kill()
    cut.process.communicate()
    before = len(cut.ended_runs())
    assert before < RUNS
    resumed = command(study, cut.store, "--index", postgresql, *TWO)
    addresses = set()

    def computes():
        addresses.update(resumed.listening())
        return len(cut.ended_runs()) > before

    resumed.until(computes)
    assert addresses == {"127.0.0.1"}  # nothing of a sweep can be reached from other machines
    status, result, err = resumed.end()
    assert status == 0, err
    assert (result["reused"], result["done"]) == (before, RUNS - before)
    computed_once(cut.store, begun, repeated=1)  # the run that was being computed
    assert one.end()[0] == 0
    with open_store(one.store) as alone, open_store(cut.store, postgresql) as shared:
        first, second = alone.to_xarray("losses"), shared.to_xarray("losses")
    assert first.identical(second.assign_attrs(first.attrs))
    assert np.isfinite(first.loss).all()


@pytest.mark.slow
def test_workers_end_with_a_driver_that_is_killed_and_the_rest_is_computed(
    command, many_losses, tmp_path, begun
):
    total = 2 * RUNS  # two workers end some in the time that a kill takes
    study = many_losses(total)
    cut = command(study, tmp_path / "s", *TWO)
    cut.until(lambda: len(cut.ended_runs()) > 5)
    orphans = psutil.Process(cut.process.pid).children(recursive=True)
    assert {pids[-1] for pids in begun(cut.store).values()} <= {one.pid for one in orphans}
    cut.process.kill()
    cut.process.communicate()
    end = time.monotonic() + 10
    while not all(map(has_ended, orphans)):
        assert time.monotonic() < end, orphans
        time.sleep(0.05)
    before = len(cut.ended_runs())
    assert before < total
    status, result, err = command(study, cut.store).end()
    assert (status, result["reused"], result["done"]) == (0, before, total - before), err
    computed_once(cut.store, begun, repeated=2)  # those that were being computed


def has_ended(process):
    """Whether a process has ended, also if its parent has not asked for its status yet."""
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


@pytest.mark.slow
def test_flows_are_the_same_on_both_databases(command, tmp_path, postgresql):
    """In process with SQLite, by two workers with PostgreSQL: the same ends and the same paths, to the last bit."""
    base = {"dim": 2, "horizon": 20, "law": {"kind": "gaussian", "scale": 1}, "until": 2}
    base["init"] = {"kind": "gaussian", "scale": 0.3, "seed": 0}
    axis = {"path": "init.seed", "values": [0, 1, 2, 3]}
    study = {"name": "flows", "kind": "flow", "base": base, "axes": [axis]}
    one = command(study, tmp_path / "alone")
    assert one.end()[0] == 0
    two = command(study, tmp_path / "shared", "--index", postgresql, *TWO)
    assert two.end()[0] == 0
    with open_store(one.store) as alone, open_store(two.store, postgresql) as shared:
        first, second = alone.to_xarray("flows"), shared.to_xarray("flows")
    assert first.identical(second.assign_attrs(first.attrs))
    assert len(set(first.loss.values)) == 4
    ids = RunFolders(one.store).ids()
    assert len(ids) == 4
    for run in ids:
        path = RunFolders(one.store).trajectory(run)
        assert path.identical(RunFolders(two.store).trajectory(run).assign_attrs(path.attrs))


@pytest.mark.slow
def test_two_drivers_share_the_work(command, many_losses, tmp_path, begun):
    study = many_losses(RUNS)
    both = [command(study, tmp_path / "s") for _ in range(2)]
    results = [one.end() for one in both]
    assert [status for status, _, _ in results] == [0, 0], results
    assert [r["done"] + r["reused"] for _, r, _ in results] == [RUNS, RUNS]
    assert sum(r["done"] for _, r, _ in results) == RUNS
    computed_once(tmp_path / "s", begun)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "number"),
    [((), signal.SIGINT), ((), signal.SIGTERM), (TWO, signal.SIGINT)],
    ids=["in-process", "terminated", "local"],
)
def test_ended_runs_are_kept_when_the_sweep_is_stopped(command, many_losses, tmp_path, begun, where, number):
    sweep = command(many_losses(400), tmp_path / "s", *where)
    sweep.until(lambda: len(sweep.ended_runs()) > 5)
    pressed = time.monotonic()
    sweep.process.send_signal(number)
    status, result, err = sweep.end()
    assert (status, result) == (128 + number, None)
    assert err.splitlines()[-1] == (
        "mesascope sweep: interrupted; runs that have ended are kept, and the same command resumes"
    )
    assert time.monotonic() - pressed < 20
    folders = RunFolders(sweep.store)
    statuses = [folders.status(run) for run in folders.ids()]
    assert set(statuses) == {"done", "planned"}
    assert not list(sweep.store.glob("drivers/*"))
    if not where:  # the run that was cut short does not count as killed
        assert all(
            driver_deaths(folders.folder(run), 0) == 0 for run in folders.ids() if folders.run(run) is None
        )
    with open_store(sweep.store) as store:
        assert store.count(["status=done"]) == statuses.count("done")
        assert store.verify() == []


MODELS = """
import os, signal, time
import numpy as np

def good(contexts):
    return contexts[:, -1]

def also_good(contexts):
    return contexts[:, 0]

def raises(contexts):
    raise RuntimeError("poison")

def dies(contexts):
    os.kill(os.getpid(), signal.SIGKILL)

def takes_all_memory(contexts):
    taken = []
    for _ in range(100):
        taken.append(np.ones(2**24))  # 128 MB
        time.sleep(0.1)  # Dask measures workers ten times a second
"""


def identified(*names):
    """A study that identifies these functions."""
    values = [{"label": name, "value": f"models_of_faults:{name}"} for name in names]
    base = {
        "process": {"kind": "orthogonal-ar", "dim": 2, "law": "gaussian"},
        "horizon": 4,
        "model": {"kind": "function"},
        "tasks": 80,
        "learners": ["zero", "last-token"],
        "search": False,
    }
    return {
        "name": "poison",
        "kind": "identify",
        "base": base,
        "axes": [{"path": "model.name", "values": values}],
    }


@pytest.mark.slow
def test_runs_that_raise_or_kill_workers_fail_alone(command, tmp_path, begun):
    (tmp_path / "models_of_faults.py").write_text(MODELS)
    study = identified("good", "raises", "dies", "takes_all_memory", "also_good")
    sweep = command(study, tmp_path / "s", *TWO, "--retries", 1, before=WITH_3_GB)
    status, result, err = sweep.end()
    assert status == 1, err
    assert (result["done"], result["failed"]) == (2, 3)
    assert "2 workers on 3.0 GB: one that takes more than 1.5 GB is killed" in err
    reasons = {one["error"].partition(":")[0]: one for one in result["failures"]}
    assert {name: one["count"] for name, one in reasons.items()} == {"SpecError": 1, "KilledWorker": 2}
    folders = RunFolders(sweep.store)
    for name, one in reasons.items():
        record = folders.finished(one["run"])
        if name == "KilledWorker":
            assert len(begun(sweep.store)[one["run"]]) == 2 and record.outcome == {"failure": "machine"}
            assert "died 2 times while it computed this" in record.error
        else:
            assert "poison" in record.error and "in raises" in record.traceback
            assert record.outcome == {"failure": "computation"}
    # runs that only waited at the worker that died have not failed
    with open_store(sweep.store) as store:
        assert store.to_xarray("poison").status.values.tolist() == ["done", *["failed"] * 3, "done"]


@pytest.mark.slow
def test_a_run_that_kills_the_driver_comes_last_and_fails(command, tmp_path):
    (tmp_path / "models_of_faults.py").write_text(MODELS)
    study = identified("dies", "raises", "good")
    first = command(study, tmp_path / "s", "--retries", 0).end()
    assert first[0] == -signal.SIGKILL
    status, result, err = command(study, tmp_path / "s", "--retries", 0).end()
    assert (status, result["done"], result["failed"]) == (1, 1, 2), err
    assert sorted(one["error"].partition(":")[0] for one in result["failures"]) == [
        "KilledDriver",
        "SpecError",
    ]
    again = command(study, tmp_path / "s").end()
    assert (again[0], again[1]["failed"], again[1]["reused"]) == (1, 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("where", [(), TWO], ids=["in-process", "local"])
def test_a_full_disk_ends_the_sweep_at_once(command, many_losses, tmp_path, where):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        sweep = command(many_losses(60), disk / "s", *where)
        sweep.until(lambda: len(sweep.ended_runs()) > 3)
        with suppress(OSError), open(disk / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        status, result, err = sweep.end()
        assert (status, result) == (1, None)
        assert "No space left on device" in err and "the same command resumes" in err.splitlines()[-1]
        assert problems(RunFolders(sweep.store)) == []
        (disk / "filler").unlink()
        status, result, err = command(many_losses(60), disk / "s").end()
        assert (status, result["failed"]) == (0, 0), err
        assert 3 < result["reused"] < 60
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.slow
def test_workers_of_another_scheduler_import_functions_that_were_edited(command, tmp_path, servers):
    """A scheduler that runs already, with one worker, and a function that is edited between two sweeps."""
    where = servers.scheduler()
    servers.worker(where)
    named = []
    for edit in (MODELS, MODELS.replace("contexts[:, -1]", "0 * contexts[:, -1]")):
        (tmp_path / "models_of_faults.py").write_text(edit)
        store = tmp_path / f"s{len(named)}"
        status, result, err = command(identified("good"), store, "--scheduler", where).end()
        assert status == 0, err
        named.append(RunFolders(store).finished(result["ids"][0]).outcome["learner"])
    assert named == ["last-token", "zero"]


@pytest.mark.slow
def test_the_page_on_a_shared_database(shell_of_the_page, postgresql, tmp_path):
    places = {"postgresql://ada@db.example.org/runs": postgresql, "/shared/runs": tmp_path / "shared"}
    computed, listed = shell_of_the_page("postgresql://", places)
    assert computed.startswith("products: 6 done, 0 failed, 0 reused, of 6 runs")
    assert listed.count(" done ") == 6
