"""`mesascope identify`."""

import csv
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from mesascope.records import RecordError

LEARNERS = ["zero", "gradient-descent", "ridge"]
QUESTION = {"law": "gaussian", "dim": 2, "horizon": 6, "tasks": 100, "learners": LEARNERS}
ONE_STEP = {"kind": "linear-attention", "init": {"kind": "diagonal", "a": 0.5, "b": 0.4}}
SPEC = {**QUESTION, "model": ONE_STEP}
FIELDS = {"verdict", "candidates", "ranking", "separated_by", "reasons", "reading", "process", "task"}
FIELDS |= {
    "headline",
    "beyond",
    "mixtures",
    "tasks",
    "seed",
    "tolerance",
    "level",
    "spec",
    "provenance",
    "figures",
}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_one_object(run, spec):
    ended = run("identify", spec(SPEC), "--json")
    assert (ended.status, ended.err) == (0, "")
    found = ended.json
    assert set(found) == FIELDS
    assert (found["verdict"], found["candidates"]) == ("identified", ["gradient-descent"])
    assert {entry["learner"] for entry in found["ranking"]} == set(LEARNERS)
    for entry in found["ranking"]:
        names = {"learner", "hyperparameters", "distance", "interval", "contains", "or_more", "diverges"} | {
            "of_symbols"
        }
        assert set(entry) == names
        assert entry["interval"][0] <= entry["distance"] <= entry["interval"][1]
    best = found["ranking"][0]
    assert best["hyperparameters"]["steps"] == 1
    # the product of the two diagonals; fits stop when a step gains less than rounding of the cost
    assert best["hyperparameters"]["step_size"] == pytest.approx(0.2, rel=1e-6)
    assert found["reading"]["algorithm"] == "gradient-descent"
    assert found["reading"]["step_size"] == pytest.approx(0.2, rel=1e-12)
    assert found["separated_by"] == [] and found["figures"] == []
    assert found["seed"] == 0 and found["spec"]["model"]["kind"] == "linear-attention"
    assert found["provenance"]["packages"]["jax"]


@pytest.mark.slow
def test_for_people(run, spec):
    ended = run("identify", spec(SPEC, "mine.json"))
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("identified: gradient-descent (step_size 0.2, steps 1): ")
    assert "\n  gradient-descent is at distance " in ended.out
    lines = ended.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split() == ["learner", "distance", "95", "%", "interval"] for line in lines)
    assert any(line.startswith("  step_size 0.2, steps 1") for line in lines)
    assert "\nweights: gradient-descent, step size 0.2;" in ended.out


@pytest.mark.slow
def test_candidates_are_separated_on_other_data(run, spec):
    """On one-hot tokens a step of this size is least squares too: the model is compared on other data."""
    law, learners = {"kind": "sparse", "scale": 1.0}, ["gradient-descent", "least-squares"]
    step = {"kind": "linear-attention", "init": {"kind": "diagonal", "a": 1.0, "b": 1.0}}
    found = run("identify", spec({**SPEC, "law": law, "model": step, "learners": learners}), "--json").json
    assert (found["verdict"], found["candidates"]) == ("identified", ["gradient-descent"])
    (separation,) = found["separated_by"]
    assert set(separation) == {"setting", "examples", "candidates", "difference", "distances", "decided"}
    assert separation["decided"] is True
    assert separation["distances"]["least-squares"] > 0.01 > separation["distances"]["gradient-descent"]
    unsearched = {**SPEC, "law": law, "model": step, "learners": learners, "search": False}
    ended = run("identify", spec(unsearched), "--json")
    assert (ended.status, ended.json["verdict"], ended.json["separated_by"]) == (0, "ambiguous", [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"taks": 5}, "unknown field 'taks'; did you mean 'tasks'?"),
        ({"tasks": 60}, "tasks: an interval of level 0.95 needs at least 40 tasks to be judged by, got 30;"),
        ({"learners": ["rigde"]}, "learners: unknown learner 'rigde'; did you mean 'ridge'"),
        ({"horizon": 2}, "horizon: must be at least 3, got 2"),
        ({"tasks": 10**8, "horizon": 10**4}, "tasks: 100000000 samples for NextToken(T=10000) take "),
        ({"model": {"kind": "checkpoint", "path": "nowhere"}}, "model.path: "),
    ],
)
def test_refused(run, spec, tmp_path, changes, message):
    path = spec({**SPEC, **changes})
    refused = run("identify", path, "--json").refusal
    assert refused.startswith(f"mesascope identify: {path}: {message}")
    assert list(tmp_path.iterdir()) == [path]


def test_options_that_exclude_each_other(run, spec):
    path = spec(SPEC)
    for arguments in ((), (path, "--model", "a:b"), ("--model", "a:b"), (path, "--process", path)):
        assert (
            "give SPEC, or --model PACKAGE.MODULE:NAME with --process SPEC, or --along RUN"
            in run("identify", *arguments).refusal
        )
    message = run("identify", "--model", "a:b", "--process", path).refusal
    assert "model: is in the file and is given in addition; leave out one of the two" in message
    assert "--figures is empty; name a folder" in run("identify", path, "--figures", "").refusal
    assert "output folder" in run("identify", path, "--figures", path / "figures").refusal


@pytest.mark.slow
def test_a_trained_model_is_identified_on_its_own_data(run, spec):
    training = {**QUESTION, "model": ONE_STEP, "steps": 2, "batch": 4, "held_out": 4, "precision": "float64"}
    del training["tasks"], training["learners"]
    assert run("train", spec(training, "mine.json")).status == 0
    asking = {"model": {"kind": "checkpoint", "path": "runs/mine"}, "tasks": 100, "learners": LEARNERS}
    found = run("identify", spec(asking), "--json").json
    data = ("DiagonalUnitary(Gaussian(scale=1), dim=2)", "NextToken(T=6)")
    assert (found["process"], found["task"]) == data
    assert found["reading"]["algorithm"] == "gradient-descent"
    other_data = {**asking, "law": {"kind": "uniform", "scale": 1}, "horizon": 8}
    other = run("identify", spec(other_data), "--json").json
    assert other["process"].startswith("DiagonalUnitary(Uniform(") and other["task"] == "NextToken(T=8)"
    last = {"kind": "checkpoint", "path": str(next(Path("runs/mine").glob("*.checkpoint")))}
    assert run("identify", spec({**asking, "model": last}), "--json").json["ranking"] == found["ranking"]
    refusal = run("identify", spec({**asking, "dim": 3}), "--json").refusal
    assert "model.path: was trained on complex tokens of dimension 2, and does not read complex" in refusal


def test_the_end_of_a_flow(run, spec):
    from mesascope import DiagonalUnitary, Gaussian, NextToken
    from mesascope.theory.zheng2024 import limit_product

    flow = {"kind": "flow", "init": {"kind": "diagonal", "a": 0.1, "b": 0.1}}
    found = run("identify", spec({**SPEC, "model": flow}), "--json").json
    limit = float(limit_product(DiagonalUnitary(Gaussian(1.0), 2), NextToken(6)))
    assert found["candidates"] == ["gradient-descent"]
    assert found["ranking"][0]["hyperparameters"]["step_size"] == pytest.approx(limit, rel=1e-6)


@pytest.mark.slow
def test_a_flow_that_does_not_end_is_a_failed_run(run, spec, tmp_path):
    flow = {"kind": "flow", "init": {"kind": "diagonal", "a": 1e60, "b": 1e60}}
    ended = run("identify", spec({**SPEC, "model": flow}), "--json", "--figures", "figures")
    assert (ended.status, ended.out) == (1, "")
    assert (
        ended.err.startswith("mesascope identify: the flow to it ended with ") and ended.err.count("\n") == 1
    )
    assert not (tmp_path / "figures").exists()


@pytest.mark.slow
def test_figures(run, spec, tmp_path):
    from mesascope.records import read_identification

    folder = tmp_path / ("a folder with a long name " * 4).strip()
    found = run("identify", spec(SPEC), "--figures", folder, "--json").json
    names = [f"{name}.{form}" for name in ("by-length", "confusion") for form in ("pdf", "png", "csv")]
    assert found["figures"] == [str(folder / name) for name in ("identification.json", *names)]
    assert {path.name for path in folder.iterdir()} == {*names, "identification.json"}
    assert all((folder / name).stat().st_size > 1000 for name in names)
    record = read_identification(folder / "identification.json")
    assert record.verdict == "identified" and record.curves.lengths == (1, 2, 3, 4)
    assert record.model_dump(exclude={"curves"})["ranking"][0]["distance"] == found["ranking"][0]["distance"]
    with (folder / "by-length.csv").open() as file:
        traces = {row["trace"] for row in csv.DictReader(file)}
    beyond = {one.setting for one in record.beyond}
    assert len(beyond) == 3 and traces == {"the model", *LEARNERS, "tolerance", *beyond}


def test_paths_of_figures_are_on_lines_of_their_own(run, spec, monkeypatch):
    from mesascope import report

    long = Path("/a", "long folder " * 10, "by-length.pdf")
    monkeypatch.setattr(report, "draw_identification", lambda record, folder: (long,))
    assert run("identify", spec(SPEC), "--figures", "figures").out.splitlines()[-1] == str(long)


def test_no_room_for_the_figures(run, spec, monkeypatch):
    from mesascope import report

    def full(record, folder):
        raise RecordError(f"cannot write {folder}: No space left on device; free space")

    monkeypatch.setattr(report, "draw_identification", full)
    ended = run("identify", spec(SPEC), "--figures", "figures", "--json")
    assert ended.status == 1 and ended.err.startswith("mesascope identify: cannot write /")
    found = json.loads(ended.out)  # what was computed is not lost
    assert found["verdict"] == "identified" and found["figures"] == []
    assert "/figures: No space left" in ended.err


@pytest.mark.slow
def test_a_terminal_of_ascii(spec):
    done = subprocess.run(
        [sys.executable, "-m", "mesascope", "identify", spec(SPEC)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2026" in done.stdout


def test_progress_on_a_terminal(run, spec, monkeypatch):
    from rich.console import Console

    shown = StringIO()
    monkeypatch.setattr(
        "mesascope.cli._identify.progress", lambda: Console(file=shown, force_terminal=True, width=100)
    )
    assert run("identify", spec(SPEC), "--json").json["verdict"] == "identified"
    assert "building the model" in shown.getvalue() and "compare" in shown.getvalue()


def test_complex_hyperparameters_are_written_as_numbers():
    from mesascope.cli._identify import _short

    assert _short([{"re": -0.5, "im": 0.25}, {"re": 2.0, "im": -1e-5}]) == "[-0.5+0.25i, 2-1e-05i]"
    assert _short([{"re": 1.0, "im": 0.0}] * 50) == "50 numbers"
