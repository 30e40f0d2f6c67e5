"""The command line in this process, a store of runs, and an invented paper."""

import hashlib
import json
import os
import signal
import sys
import types
from typing import NamedTuple

import pytest

from mesascope.cli import main
from mesascope.papers import Claim, Finding, Settings
from mesascope.records import (
    Figure,
    Line,
    Panel,
    PlannedRun,
    RunFolders,
    RunRecord,
    StudyAxis,
    StudyPoint,
    StudyRecord,
    provenance,
)


class Ended(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self):
        """The one object on standard output; anything else there is an error."""

        def refuse(name):
            raise AssertionError(f"{name} is not strict JSON")

        return json.loads(self.out, parse_constant=refuse)

    @property
    def refusal(self):
        """The one line that bad input gives."""
        assert self.status == 2
        assert self.out == ""
        assert len(self.err.splitlines()) == 1
        return self.err.strip()


@pytest.fixture
def run(capsys):
    def call(*arguments):
        status = main([str(argument) for argument in arguments])
        return Ended(status, *capsys.readouterr())

    return call


@pytest.fixture
def spec(tmp_path):
    def write(data, name="spec.json"):
        path = tmp_path / name
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return path

    return write


@pytest.fixture(scope="module")
def origin():
    return provenance()


@pytest.fixture
def store(tmp_path, origin):
    """A store of four done runs, a failed and a planned one, and a study of them."""
    folders = RunFolders.create(tmp_path / "store")
    points = []
    for number in range(6):
        run = hashlib.sha256(str(number).encode()).hexdigest()[:32]
        spec = {"dim": 5, "init": {"a": number / 10}}
        folders.plan(PlannedRun(id=run, kind="flow", spec=spec, code="1"))
        failed = {"error": "the flow diverged", "traceback": "Traceback …"} if number == 4 else {}
        record = RunRecord(
            id=run,
            kind="flow",
            spec=spec,
            code="1",
            status="failed" if failed else "done",
            outcome={} if failed else {"loss": 0.5 * number, "nan": float("nan"), "w": [[1.0, 2.0]]},
            started="2026-01-01T00:00:00Z",
            ended=f"2026-01-01T00:00:0{number}Z",
            seconds=1.5,
            provenance=origin,
            **failed,
        )
        if number < 5:
            folders.finish(record, {"time": ("time", [0.0, 1.0]), "loss": ("time", [1.0, 0.5])})
        points.append(StudyPoint(run=run, place=(number,)))
    axes = (StudyAxis(name="init.a", labels=tuple(number / 10 for number in range(6))),)
    folders.write_study(StudyRecord(name="six", kind="flow", spec={}, axes=axes, points=tuple(points)))
    return folders


def _line(label):
    line = Line(x=(1.0, 2.0), y=(1.0, 2.0), label=label)
    return Figure(title=label, panels=(Panel(title=label, xlabel="t", ylabel="x", traces=(line,)),))


@pytest.fixture
def invented(monkeypatch):
    """A paper whose claims are true, false, broken, or interrupted by the user; the calls of each are counted."""
    calls = []

    def claim(name, check):
        def counted(settings):
            calls.append(name)
            return check(settings)

        statement = (
            f"The claim called {name} holds, however long this sentence has to be told to fill a line."
        )
        return Claim(
            id=f"invented/{name}",
            title=f"What is called {name}",
            statement=statement,
            source="invented, Theorem 1",
            origin="paper",
            evidence="exact",
            settings={"small": Settings(), "full": Settings()},
            check=counted,
            criterion="none is needed",
        )

    def broken(settings):
        raise ValueError("a moment is missing")

    def interrupted(settings):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            while True:  # the handler runs before the next iteration
                pass
        except KeyboardInterrupt:  # as a flow does, to return its result
            return Finding(0.5, 0, 1e-8, "not met")

    module = types.ModuleType("mesascope.papers.invented")
    module.CLAIMS = (
        claim("true", lambda settings: Finding(1e-12, 0, 1e-8, "met", figures={"line": _line("a line")})),
        claim("false", lambda settings: Finding([1, 2, 3, 4.5], {"low": 0.1}, None, "not met")),
        claim("broken", broken),
        claim("interrupted", interrupted),
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr("mesascope.papers._registry.PAPERS", ("invented",))
    return calls
