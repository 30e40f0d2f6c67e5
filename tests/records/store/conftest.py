"""Stores, a real PostgreSQL, and processes that write and are killed."""

import atexit
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from mesascope.records import RunFolders, StudyAxis, StudyPoint, StudyRecord, open_store

PROCESSES = Path(__file__).with_name("processes.py")


@pytest.fixture(scope="session")
def made():
    """The functions of `processes.py`: what they make can be planned here and written there."""
    spec = importlib.util.spec_from_file_location("store_processes", PROCESSES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def forks():
    """Run a function of `processes.py` in a process of its own, to its end or in the background."""
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", PROCESSES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def call(how, *words):
        server.stdin.write(" ".join(map(str, (how, *words))) + "\n")
        server.stdin.flush()
        said = []
        while not (line := server.stdout.readline().strip()).lstrip("-").isdecimal():
            assert line, "the server of processes has ended"
            said.append(line)
        return int(line), said

    yield call
    server.stdin.close()
    server.wait()
    server.stdout.close()


@pytest.fixture
def folders(tmp_path):
    return RunFolders.create(tmp_path / "store")


@pytest.fixture(scope="session")
def server():
    """The address of a PostgreSQL on a socket, without its database; its folder ends with the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where XDG_RUNTIME_DIR is not set
        pgserver = pytest.importorskip(
            "pgserver", reason="no PostgreSQL for this Python", exc_type=ImportError
        )
    place = Path(tempfile.mkdtemp(prefix="ms-pg-"))  # short: the path of a socket has 100 characters
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    try:
        started = pgserver.get_server(place / "data", cleanup_mode="stop")
    except Exception as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    yield started
    started.cleanup()


@pytest.fixture
def postgresql(server):
    """The URL of an empty database."""
    name = f"store{next(_names)}"
    server.psql(f"CREATE DATABASE {name}")
    return server.get_uri(name)


_names = (f"{os.getpid()}_{number}" for number in itertools.count())


@pytest.fixture(params=["sqlite", "postgresql"])
def index(request):
    """The index by default, and one on PostgreSQL."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgresql")


@pytest.fixture
def store(folders, index):
    with open_store(folders.root, index) as opened:
        yield opened


@pytest.fixture
def filled(store, made):
    """A store with a study of two runs that are done, and the record of the first."""
    runs = [made.compute(store.folders, number) for number in (1, 2)]
    axis = StudyAxis(name="seed", labels=(1, 2))
    points = tuple(StudyPoint(run=run, place=(at,)) for at, run in enumerate(runs))
    store.enter(runs)
    store.write_study(StudyRecord(name="both", kind="flow", spec={}, axes=(axis,), points=points))
    assert len(store.rows(["status=done"])) == 2
    return store, runs, store.folders.folder(runs[0]) / "run.json"
