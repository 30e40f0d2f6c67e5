"""Long commands are stopped at random moments and started again: the end is that of an undisturbed run, bit for bit.

`MESASCOPE_KILLS` is how often. From 100 on all commands take part, and the figures go into `kills.json`, of which docs/store.md
has the table (`python docs/write_harness.py`).
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import write_harness

from mesascope.records import RunDirectory, folder_lock, open_store, read_checkpoint, write_text

KILLS = int(os.environ.get("MESASCOPE_KILLS", "3"))
FULL = 100
RECORD = Path(__file__).with_name("kills.json")
SEED = 20
COLUMNS = ("tried", "refused", "recovered", "lost")
IN_A_ROW = 3  # kills of one run at most, before it may end
PROGRAM = [sys.executable, "-m", "mesascope"]

PROBLEM = {"law": {"kind": "gaussian", "scale": 1.0}, "dim": 2, "horizon": 5}
START = {"init": {"kind": "diagonal", "a": 0.1, "b": 0.2}}
TRAINED = {
    **PROBLEM,
    "model": {"kind": "linear-attention", "init": {"kind": "gaussian", "scale": 0.1}},
    **{"steps": 1500, "batch": 4, "held_out": 8, "record_every": 10, "checkpoint_every": 25},
}
DIAGRAM = """
import sys, jax, mesascope as ms
jax.config.update("jax_enable_x64", True)
def make(scale, variance, key):
    start = ms.LinearAttention.gaussian(2, scale, key=key)
    return start, ms.DiagonalUnitary(ms.Gaussian(variance), 2), ms.NextToken(5)
axes = {"scale": [0.1 * n for n in range(1, 13)], "variance": [0.5, 1.0, 2.0]}
found = ms.phase_diagram(make, axes, until=5.0, folder="diagram", workers=1)
if (found.status == "interrupted").any():
    sys.exit(128 + 2)
print({name: found[name].values.tolist() for name in ("loss", "end", "steps", "time")})
"""


@dataclass
class Long:
    """A long command, the files that it needs, and what must be equal at its end.

    `result` is called with the folder, and what the command printed.
    """

    command: list[str]
    files: dict = field(default_factory=dict)
    result: object = lambda folder, out: out
    prepare: list[list[str]] = field(default_factory=list)


def trained(folder, out):
    """Results, and the arrays of the last checkpoints."""
    last = [max(run.glob("step-*")) for run in {file.parent for file in folder.glob("run/**/step-*")}]
    arrays = {str(file.relative_to(folder)): read_checkpoint(file)[1] for file in last}
    return re.sub(r'"checkpoint": "[^"]*"', "", out), arrays


def stored(folder, out):
    """All runs of the store by its index, which agrees with the files."""
    with open_store(folder / "store") as store:
        assert store.verify() == []
        return sorted((row.id, row.status, json.dumps(row.outcome)) for row in store.rows([]))


def claimed(folder, out):
    """What the records of the claims say, without times."""
    run = RunDirectory(folder / "out" / "small")
    found = [record.model_dump(exclude={"seconds", "provenance"}) for record in run.claims()]
    return json.dumps(found), sorted(str(path.relative_to(folder)) for path in folder.glob("out/**/*.csv"))


def identified(folder, out):
    """The verdict and its numbers."""
    assert json.loads((folder / "figures" / "identification.json").read_text())
    return {key: value for key, value in json.loads(out).items() if key not in ("provenance", "figures")}


def reported(folder, out):
    """The page, without the moment and the place at which it was written."""
    page = (folder / "report.html").read_text().replace(str(folder), "")
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+(\+00:00|Z)", "", page)


def listed(values):
    return [{"path": "law.scale", "values": values}]


SWEEP = {
    "name": "flows",
    "kind": "flow",
    "base": {**PROBLEM, **START},
    "axes": listed([0.5, 0.75, 1, 1.25, 1.5, 2]),
}
CLAIMS = [
    *("zheng2024/conservation", "zheng2024/trajectory", "zheng2024/one-product", "zheng2024/random-starts"),
    *(
        "giannou2024/exact-law",
        "fu2024/root-two",
        "gatmiry2024/loops-in-closed-form",
        "ahn2023/input-updates",
    ),
]
COMMANDS = {
    "train": Long(["train", "spec.json", "--out", "run", "--json"], {"spec.json": TRAINED}, trained),
    "train, two seeds": Long(
        ["train", "spec.json", "--out", "run", "--json"],
        {"spec.json": {**TRAINED, "steps": 1000, "seeds": [0, 1]}},
        trained,
    ),
    "flow": Long(
        ["flow", "spec.json", "--json"], {"spec.json": {**PROBLEM, **START, "dim": 4, "horizon": 30}}
    ),
    "descent": Long(
        ["flow", "spec.json", "--json"],
        {"spec.json": {**PROBLEM, **START, "method": "descent", "lr": 0.001, "steps": 20_000}},
    ),
    "identify": Long(
        ["identify", "spec.json", "--figures", "figures", "--json"],
        {
            "spec.json": {
                **PROBLEM,
                "model": {"kind": "flow", "init": {"kind": "diagonal", "a": 0.1, "b": 0.1}},
                "tasks": 80,
                "learners": ["zero", "gradient-descent", "ridge"],
            }
        },
        identified,
    ),
    "phase diagram": Long(["-c", DIAGRAM]),
    "sweep": Long(["sweep", "spec.json", "--store", "store", "--json"], {"spec.json": SWEEP}, stored),
    "reproduce": Long(["reproduce", *CLAIMS, "--out", "out", "--json"], {}, claimed),
    "report": Long(
        ["report", "out", "--out", "report.html"], {}, reported, [["reproduce", *CLAIMS[:4], "--out", "out"]]
    ),
    "runs reindex": Long(
        ["runs", "reindex", "--store", "store"],
        {"spec.json": SWEEP},
        stored,
        [["sweep", "spec.json", "--store", "store"]],
    ),
}


class Runs:
    """Runs of one command, each in a folder of its own."""

    def __init__(self, name, long, place):
        self.name, self.long, self.place = name, long, place
        self.random = random.Random(f"{SEED} {name}")
        self.kills = []

    def folder(self, name):
        """A new folder with what the command needs."""
        folder, prepared = self.place / name, self.place / "prepared"
        if not prepared.exists():
            prepared.mkdir()
            for file, content in self.long.files.items():
                (prepared / file).write_text(json.dumps(content))
            for command in self.long.prepare:
                process = self._start(prepared, command)
                _, err = process.communicate()
                assert process.returncode == 0, (self.name, err)
        shutil.copytree(prepared, folder)
        return folder

    def whole(self, folder):
        """The result of the command, which ends, and how long it took."""
        begun = time.monotonic()
        process = self._start(folder, self.long.command)
        out, err = process.communicate()
        assert process.returncode == 0, (self.name, err)
        return self.long.result(folder, out), time.monotonic() - begun

    def killed(self, folder, seconds):
        """Whether it was stopped by a signal at some moment; False if it had ended before."""
        after = self.random.uniform(0.25, 1.0) * seconds
        number = self.random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        process = self._start(folder, self.long.command)
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        _, err = process.communicate(timeout=120)
        told = (self.name, number.name, round(after, 3), process.returncode, err)
        if process.returncode == 0:
            return False
        assert process.returncode in (-number, 128 + number, 128 + signal.SIGINT), told
        assert "Traceback" not in err or process.returncode == -number, told  # before the command has begun
        self.kills.append(f"{number.name} {after:.2f}")
        return True

    def stop_and_compare(self, kills):
        """Stop runs so many times, start them again, and count those that end as an undisturbed run."""
        self.whole(self.folder("first"))  # which compiles
        expected, seconds = self.whole(self.folder("whole"))
        recovered = number = 0
        while len(self.kills) < kills:
            assert number < 5 * kills, f"{self.name} ends before it can be stopped"
            folder, before = self.folder(f"cut-{number}"), len(self.kills)
            number += 1
            for _ in range(min(self.random.randint(1, IN_A_ROW), kills - before)):
                if not self.killed(folder, seconds):
                    break
            result, _ = self.whole(folder)
            assert result == expected, (self.name, self.kills[before:])
            recovered += len(self.kills) - before
        tried = len(self.kills)
        return dict(zip(COLUMNS, (tried, 0, recovered, tried - recovered), strict=True))

    def _start(self, folder, command):
        program = PROGRAM[:1] if command[0] == "-c" else PROGRAM
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*program, *command], cwd=folder, env=environment, **pipes)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS if len(COMMANDS) <= KILLS else ["train"])
def test_a_command_that_is_stopped_ends_as_an_undisturbed_one(name, tmp_path):
    wanted = -(-KILLS // len(COMMANDS)) if len(COMMANDS) <= KILLS else KILLS
    runs = Runs(name, COMMANDS[name], tmp_path)
    found = runs.stop_and_compare(wanted)
    assert found["lost"] == 0 and found["recovered"] == found["tried"] == wanted
    if KILLS >= FULL:
        write_figures(name, {**found, "signals and seconds": runs.kills})


def write_figures(name, found):
    """Write what was found of one command into the record."""
    with folder_lock(RECORD.parent, "kills", wait=60):
        before = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"commands": {}}
        known = {**before["commands"], name: found}
        commands = {one: known[one] for one in COMMANDS if one in known}
        total = {one: sum(each[one] for each in commands.values()) for one in COLUMNS}
        write_text(RECORD, f"{json.dumps({'seed': SEED, 'total': total, 'commands': commands}, indent=1)}\n")


def test_the_table_of_the_documentation_is_that_of_the_figures():
    page = write_harness.PAGE.read_text(encoding="utf-8")
    assert write_harness.written(page) == page
