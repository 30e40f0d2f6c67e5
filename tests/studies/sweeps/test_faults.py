"""Real processes that are killed, interrupted and started twice: nothing is lost, and nothing is computed twice."""

import atexit
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from mesascope.records import RunFolders, open_store

RUNS = 40
TWO = ("--scheduler", "local", "--workers", 2)


@pytest.fixture(scope="session")
def postgresql():
    """The URL of a database of a real PostgreSQL, on a socket."""
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL for this Python", exc_type=ImportError)
    place = Path(tempfile.mkdtemp(prefix="ms-sw-"))  # short: the path of a socket has 100 characters
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    try:
        server = pgserver.get_server(place / "data", cleanup_mode="stop")
    except Exception as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    server.psql("CREATE DATABASE sweeps")
    yield server.get_uri("sweeps")
    server.cleanup()


def computed_once(store, begun, but=0):
    """Every run is done, and only so many were begun more than once."""
    folders = RunFolders(store)
    assert {folders.state(run) for run in folders.ids()} == {"done"}
    times = [len(pids) for pids in begun(store).values()]
    assert sum(times) <= len(times) + but
    with open_store(store) as opened:
        assert opened.count(["state=done"]) == len(times)
        assert opened.verify() == []


@pytest.mark.slow
def test_a_worker_is_killed_and_every_run_is_done(command, many_losses, tmp_path, begun):
    sweep = command(many_losses(RUNS), tmp_path / "s", *TWO)
    sweep.until(lambda: len(sweep.ended_runs()) > 5)
    worker = next(iter(begun(sweep.store).values()))[0]
    assert worker != sweep.process.pid
    os.kill(worker, signal.SIGKILL)
    status, result, said = sweep.end()
    assert (status, result["done"], result["failed"]) == (0, RUNS, 0), said
    computed_once(sweep.store, begun, but=1)
    assert not list(sweep.store.glob("drivers/*"))


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
    shared = command(study, cut.store, "--index", postgresql, *TWO)
    shared.until(lambda: len(cut.ended_runs()) > before)
    listening_on_loopback(shared.process.pid)
    status, result, said = shared.end()
    assert status == 0, said
    assert (result["reused"], result["done"]) == (before, RUNS - before)
    computed_once(cut.store, begun, but=1)  # the one that was under way
    assert one.end()[0] == 0
    with open_store(one.store) as alone, open_store(cut.store, postgresql) as both:
        first, second = alone.to_xarray("losses"), both.to_xarray("losses")
    assert first.identical(second.assign_attrs(first.attrs))
    assert np.isfinite(first.loss).all()


def listening_on_loopback(pid):
    """Nothing of a sweep can be reached from other machines."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    listening = []
    for process in processes:
        for one in process.net_connections("inet"):
            if one.status == psutil.CONN_LISTEN:
                listening.append(one.laddr.ip)
    assert set(listening) == {"127.0.0.1"}


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
@pytest.mark.parametrize("where", [(), TWO], ids=["in-process", "local"])
def test_ctrl_c_keeps_what_has_ended(command, many_losses, tmp_path, begun, where):
    sweep = command(many_losses(400), tmp_path / "s", *where)
    sweep.until(lambda: len(sweep.ended_runs()) > 5)
    pressed = time.monotonic()
    sweep.process.send_signal(signal.SIGINT)
    status, result, said = sweep.end()
    assert (status, result) == (130, None)
    assert said.splitlines()[-1] == (
        "mesascope sweep: interrupted; runs that have ended are kept, and the same command resumes"
    )
    assert time.monotonic() - pressed < 20
    folders = RunFolders(sweep.store)
    states = [folders.state(run) for run in folders.ids()]
    assert set(states) == {"done", "planned"}
    assert not list(sweep.store.glob("drivers/*"))
    with open_store(sweep.store) as store:
        assert store.count(["state=done"]) == states.count("done")
        assert store.verify() == []


MODELS = """
import os, signal
import numpy as np

def good(contexts):
    return contexts[:, -1]

def also_good(contexts):
    return contexts[:, 0]

def raises(contexts):
    raise RuntimeError("poison")

def dies(contexts):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_poison_fails_alone(command, tmp_path, begun):
    (tmp_path / "models_of_poison.py").write_text(MODELS)
    names = [{"label": n, "value": f"models_of_poison:{n}"} for n in ("good", "raises", "dies", "also_good")]
    base = {
        "process": {"kind": "orthogonal-ar", "dim": 2, "law": "gaussian"},
        "horizon": 4,
        "model": {"kind": "function"},
        "tasks": 80,
        "learners": ["zero", "last-token"],
        "search": False,
    }
    axes = [{"path": "model.name", "values": names}]
    study = {"name": "poison", "kind": "identify", "base": base, "axes": axes}
    sweep = command(study, tmp_path / "s", *TWO, "--retries", 1)
    status, result, said = sweep.end()
    assert status == 1, said
    assert (result["done"], result["failed"]) == (2, 2)
    reasons = {one["error"].partition(":")[0]: one for one in result["failures"]}
    assert {name: one["count"] for name, one in reasons.items()} == {"SpecError": 1, "KilledWorker": 1}
    folders = RunFolders(sweep.store)
    for name, one in reasons.items():
        record = folders.finished(one["run"])
        if name == "KilledWorker":
            assert len(begun(sweep.store)[one["run"]]) == 2 and record.outcome == {"failure": "machine"}
            assert "died 2 times while it computed this" in record.error
        else:
            assert "poison" in record.error and "in raises" in record.traceback
            assert record.outcome == {"failure": "computation"}
    # who only waited at the worker that died is not blamed
    with open_store(sweep.store) as store:
        assert store.to_xarray("poison").state.values.tolist() == ["done", "failed", "failed", "done"]


@pytest.mark.slow
def test_slurm(command, many_losses, tmp_path, begun):
    """Where a queue of Slurm is at hand."""
    if shutil.which("sbatch") is None or os.system("sinfo >/dev/null 2>&1"):
        pytest.skip("no Slurm here")
    settings = tmp_path / "dask" / "jobqueue.yaml"
    settings.parent.mkdir()
    settings.write_text(
        "jobqueue:\n  slurm:\n    cores: 1\n    memory: 2GB\n    processes: 1\n    walltime: '00:10:00'\n"
        f"    python: {sys.executable}\n"
    )
    options = ("--scheduler", "slurm", "--workers", 1)
    sweep = command(many_losses(5), tmp_path / "s", *options, DASK_CONFIG=str(settings.parent))
    status, result, said = sweep.end(180)
    assert (status, result["done"]) == (0, 5), said
    computed_once(sweep.store, begun)
    assert all(pids[0] != sweep.process.pid for pids in begun(sweep.store).values())
