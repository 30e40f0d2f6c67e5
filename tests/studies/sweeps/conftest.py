"""A study that takes milliseconds a run, and the command that sweeps it in a process of its own."""

import copy
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mesascope.records import RunFolders
from mesascope.studies import StudySpec, open_or_make, parse_spec
from mesascope.studies.sweeps._prepare import check, prepare

FLOW = {
    "law": {"kind": "gaussian", "scale": 1.0},
    "dim": 2,
    "horizon": 5,
    "init": {"kind": "diagonal", "a": 0.1, "b": 0.1},
}
# A loss takes a tenth of the time to compile.
LOSS = {
    "law": {"kind": "gaussian"},
    "dim": 2,
    "horizon": 5,
    "w_kq": [[0, 0, 0, 0], [0, 0, 0, 0], [0.3, 0, 0, 0], [0, 0.3, 0, 0]],
    "w_pv": [[0.7, 0, 0, 0], [0, 0.7, 0, 0]],
}


@pytest.fixture
def jobqueue():
    """dask-jobqueue; its import has Ctrl-C end the process as if all were done, and other tests press it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield pytest.importorskip("dask_jobqueue")
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def study_with():
    """The mapping of a study of flows, with changes."""
    return lambda **changes: {"name": "a-study", "kind": "flow", "base": copy.deepcopy(FLOW), **changes}


@pytest.fixture
def many_losses():
    """The mapping of a study of n losses."""

    def make(n):
        axis = {"path": "law.scale", "range": {"start": 0.5, "stop": 1.5, "count": n}}
        return {"name": "losses", "kind": "loss", "base": copy.deepcopy(LOSS), "axes": [axis]}

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
        """Wait until something is so."""
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < end, "nothing happened"
            time.sleep(0.01)

    def ended_runs(self):
        return list(self.store.glob("runs/*/*/run.json"))

    def end(self, seconds=120):
        """Exit status, the object on standard output, and standard error."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, json.loads(out) if out else None, err


@pytest.fixture
def command(tmp_path):
    """Start the command; what still runs at the end of the test is killed."""
    started = []

    def start(study, store, *options, **others):
        started.append(Command(tmp_path, study, store, *options, **others))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


@pytest.fixture
def shell_of_the_page(tmp_path):
    """Give commands of docs/studies.md, beside its files, other places than those that it names; what they print."""
    page = (Path(__file__).parents[3] / "docs" / "studies.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w+)\n(.*?)```", page, re.S)
    for text in (text for kind, text in blocks if kind == "toml"):
        (tmp_path / re.match(r"# (\S+)\n", text)[1]).write_text(text, encoding="utf-8")
    lines = [line for kind, text in blocks if kind == "sh" for line in text.splitlines()]

    def run(word, places, **environment):
        said = []
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
            said.append(done.stdout)
        return said

    return run


@pytest.fixture
def begun():
    """By run, the processes that began it."""

    def read(store):
        files = store.glob("runs/*/*/attempts.jsonl")
        return {
            f.parent.name: [json.loads(line)["pid"] for line in f.read_text().splitlines()] for f in files
        }

    return read


@pytest.fixture
def planned(study_with, tmp_path):
    """A store with one planned run, and its id."""
    study = parse_spec(study_with(), StudySpec)
    with open_or_make(tmp_path / "s") as store:
        prepared = prepare(study, check(study, lambda *_: None), store, lambda *_: None)
    return RunFolders(tmp_path / "s"), prepared.left[0]
