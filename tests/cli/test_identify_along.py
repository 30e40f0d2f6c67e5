"""`mesascope identify --along`."""

import json
from pathlib import Path

import pytest

from mesascope.records import RecordError

TRAINED = {
    "examples": 4,
    "weights": "every",
    "process": {"kind": "linear-regression", "dim": 2, "noise": 0.3},
    "model": {"kind": "prompt-linear-transformer", "layers": 1},
    "steps": 20,
    "batch": 16,
    "held_out": 16,
    "checkpoints_per_decade": 2,
}
ALONG_FILES = ("along.json", "along.nc", "along.pdf", "along.png", "along.csv")


def _full(figure, stem):
    raise RecordError(f"cannot write {stem}: No space left on device")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _trained(run, spec):
    assert run("train", spec(TRAINED), "--out", "here")[0] == 0
    return spec({"tasks": 100, "learners": ["zero", "gradient-descent"]})


@pytest.mark.slow
def test_every_checkpoint_of_a_run(run, spec, monkeypatch):
    judged = _trained(run, spec)
    command = ("identify", "--along", "here", "--process", judged)
    status, out, err = run(*command, "--figures", "drawn", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert [stage["step"] for stage in found["stages"]] == [0, 1, 3, 10, 20]
    assert found["figures"] == [str(Path("drawn", name).absolute()) for name in ALONG_FILES]
    assert all(Path(name).stat().st_size for name in found["figures"])
    assert found["spec"]["run"] == str(Path("here").absolute())
    status, out, err = run(*command)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("along training: nearest to ")
    rows = [line.split() for line in lines if line.split() and line.split()[0].isdecimal()]
    assert [row[0] for row in rows] == ["0", "1", "3", "10", "20"]
    shown = [f"{100 * value:.3g}" for value in found["unexplained"]["value"]]
    assert [row[-2] for row in rows] == shown
    monkeypatch.setattr("mesascope.report._along.render", _full)
    status, out, err = run(*command, "--figures", "drawn", "--json")
    assert (status, json.loads(out)["figures"]) == (1, [])
    assert "No space left" in err


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (["SPEC"], "--along names the model; give it alone, or with --process SPEC"),
        (["--model", "a:b"], "--along names the model; give it alone, or with --process SPEC"),
        (["--process", "nowhere.toml"], "nowhere.toml: no such file"),
    ],
)
def test_refused(run, more, error):
    status, out, err = run("identify", "--along", "here", *more)
    assert (status, out) == (2, "")
    assert error in err and err.count("\n") == 1


def test_no_run(run):
    status, _, err = run("identify", "--along", "here")
    assert status == 2
    assert err.startswith("mesascope identify: here: run: ") and err.count("\n") == 1
