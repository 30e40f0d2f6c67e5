"""Studies that take milliseconds a run, and the command that sweeps them in a process of its own."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from mesascope.records import RunFolders
from mesascope.studies import StudySpec, open_or_make, parse_spec
from mesascope.studies.sweeps._prepare import check, prepare


@pytest.fixture
def jobqueue():
    """dask-jobqueue; importing it changes the handler of Ctrl-C, which other tests press."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield pytest.importorskip("dask_jobqueue")
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def study_with(flow_with):
    """The mapping of a study of flows, with changes."""
    return lambda **changes: {"name": "a-study", "kind": "flow", "base": flow_with(), **changes}


@pytest.fixture
def many_losses(loss_with):
    """The mapping of a study of n losses, which take a tenth of the time of flows to compile."""

    def make(n):
        axis = {"path": "law.scale", "range": {"start": 0.5, "stop": 1.5, "count": n}}
        return {"name": "losses", "kind": "loss", "base": loss_with(), "axes": [axis]}

    return make


MESASCOPE = ("-m", "mesascope")


class Command:
    """`mesascope sweep` in a process of its own."""

    def __init__(self, folder, study, store, *options, before=(), program=MESASCOPE, **environment):
        self.file = folder / f"{study['name']}.json"
        self.file.write_text(json.dumps(study))
        self.store = store
        arguments = [*program, "sweep", self.file, "--store", store, "--json", *options]
        self.process = subprocess.Popen(
            [*before, sys.executable, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, **environment},
        )

    def until(self, condition, seconds=60):
        """Wait until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < end, "nothing happened"
            time.sleep(0.01)

    def ended_runs(self):
        return list(self.store.glob("runs/*/*/run.json"))

    def listening(self, *others):
        """The addresses on which the command, its children and other processes listen; some may end meanwhile."""
        pids = {self.process.pid, *others}
        with suppress(psutil.NoSuchProcess):
            pids |= {child.pid for child in psutil.Process(self.process.pid).children(recursive=True)}
        for pid in pids:
            with suppress(psutil.NoSuchProcess):
                connections = psutil.Process(pid).net_connections("inet")
                yield from (one.laddr.ip for one in connections if one.status == psutil.CONN_LISTEN)

    def end(self, seconds=120):
        """Exit status, the object on standard output, and standard error."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, json.loads(out) if out else None, err


@pytest.fixture
def command(tmp_path):
    """Start the command; it is killed if it still runs at the end of the test."""
    started = []

    def start(study, store, *options, **others):
        started.append(Command(tmp_path, study, store, *options, **others))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


QUIET = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--host", "127.0.0.1")


@pytest.fixture
def servers(tmp_path):
    """Start `dask scheduler`, whose address it returns, and `dask worker`; they end with the test."""
    started = []

    def start(program, *options):
        arguments = [sys.executable, "-m", f"distributed.cli.dask_{program}", *QUIET, *options]
        started.append(subprocess.Popen(arguments, stderr=subprocess.DEVNULL, cwd=tmp_path))

    def scheduler():
        file, end = tmp_path / "scheduler.json", time.monotonic() + 60
        start("scheduler", "--port", "0", "--scheduler-file", str(file))
        while not (file.exists() and file.read_text()):
            assert time.monotonic() < end
            time.sleep(0.1)
        return json.loads(file.read_text())["address"]

    yield SimpleNamespace(scheduler=scheduler, worker=lambda at: start("worker", at, "--nthreads", "1"))
    for server in started[::-1]:
        server.terminate()
        server.wait(30)


@pytest.fixture
def shell_of_the_page(tmp_path):
    """Run commands of docs/studies.md in a folder with its files, with other places than it names; return their output."""
    page = (Path(__file__).parents[3] / "docs" / "studies.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w+)\n(.*?)```", page, re.S)
    for text in (text for kind, text in blocks if kind == "toml"):
        (tmp_path / re.match(r"# (\S+)\n", text)[1]).write_text(text, encoding="utf-8")
    lines = [line for kind, text in blocks if kind == "sh" for line in text.replace("\\\n", "").splitlines()]

    def run(word, places, **environment):
        outputs = []
        for line in (line for line in lines if word in line):
            for named, place in places.items():
                line = line.replace(named, str(place))
            command = [sys.executable, "-m", "mesascope", *shlex.split(line)[1:]]
            done = subprocess.run(
                command,
                cwd=tmp_path,
                env=os.environ | environment,
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, done.stderr
            outputs.append(done.stdout)
        return outputs

    return run


@pytest.fixture
def begun():
    """Run → the processes that began it."""

    def read(store):
        files = store.glob("runs/*/*/attempts.jsonl")
        return {
            f.parent.name: [json.loads(line)["pid"] for line in f.read_text().splitlines()] for f in files
        }

    return read


def plan(study, folder):
    """Plan the runs of a study in a store; return its folders and the ids."""
    spec = parse_spec(study, StudySpec)
    with open_or_make(folder) as store:
        return RunFolders(folder), prepare(spec, check(spec), store).left


@pytest.fixture
def planned(study_with, tmp_path):
    """A store with one planned run, and its id."""
    folders, (run,) = plan(study_with(), tmp_path / "s")
    return folders, run
