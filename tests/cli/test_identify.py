"""`mesascope identify`."""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from io import StringIO
from itertools import count
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
STEP = """
import numpy as np

def step(contexts):
    x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]
    return 0.2 / x.shape[1] * np.einsum("bim,bip,bp->bm", y, x.conj(), query)
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


_numbers = count()


@pytest.fixture
def module(tmp_path):
    """Write a module with a new name in the current folder; return the name."""

    def write(text):
        name = f"my_models_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


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


def test_every_verdict_is_an_answer(run, spec, module):
    body = "    return np.sin(3 * contexts[:, -1]) + contexts[:, 0] ** 2\n"
    name = module(f"import numpy as np\ndef odd(contexts):\n{body}")
    command = ("identify", "--model", f"{name}:odd", "--process", spec(QUESTION))
    ended = run(*command, "--json")
    assert (ended.status, ended.json["verdict"], ended.json["candidates"]) == (0, "none", [])
    assert re.match(r"none: .* unexplained.*\n  the nearest", run(*command).out, re.S)


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


def test_a_function_in_place_of_a_model(run, spec, module):
    name = module(STEP)
    by_option = run("identify", "--model", f"{name}:step", "--process", spec(QUESTION), "--json").json
    question = {**QUESTION, "model": {"kind": "function", "name": f"{name}:step"}}
    by_file = run("identify", spec(question), "--json").json
    for found in (by_option, by_file):
        del found["provenance"]
    assert by_option == by_file
    assert by_option["candidates"] == ["gradient-descent"] and by_option["reading"] is None


def test_modules_beside_the_specification_are_found(run, spec, module, tmp_path, monkeypatch):
    name = module(STEP)
    path = spec({**QUESTION, "model": {"kind": "function", "name": f"{name}:step"}})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    before = list(sys.path)
    assert run("identify", path, "--json").status == 0
    assert sys.path == before


def test_models_and_modules_can_be_named(run, spec, module):
    named = module(
        "import mesascope as ms\nmodel = ms.LinearAttention.diagonal(2, 0.5, 0.4)\n"
        "import equinox as eqx\ncompiled = eqx.filter_jit(model)\n"
    )
    ours = run("identify", "--model", f"{named}:model", "--process", spec(QUESTION), "--json").json
    assert ours["reading"]["algorithm"] == "gradient-descent"
    compiled = run("identify", "--model", f"{named}:compiled", "--process", spec(QUESTION), "--json").json
    assert compiled["candidates"] == ours["candidates"] == ["gradient-descent"]


def test_a_module_of_torch_can_be_named(run, spec, module):
    pytest.importorskip("torch")
    name = module(
        "import torch\nclass Step(torch.nn.Module):\n    def forward(self, contexts):\n"
        "        x, y, query = contexts[:, :-1], contexts[:, 1:], contexts[:, -1]\n"
        "        return 0.2 / x.shape[1] * torch.einsum('bim,bip,bp->bm', y, x.conj(), query)\nmodel = Step()\n"
    )
    found = run("identify", "--model", f"{name}:model", "--process", spec(QUESTION), "--json").json
    assert found["candidates"] == ["gradient-descent"]


NOISY = f"""
import os, subprocess, sys
print("imported")
{STEP}
def noisy(contexts):
    print("called")
    os.write(1, b"past Python\\n")
    subprocess.run(["echo", "of a child"])
    return step(contexts)
"""


@pytest.mark.slow
def test_the_output_of_functions_goes_to_standard_error(spec, module):
    # -P: Python itself does not look in the current directory
    name, path = module(NOISY), spec({**QUESTION, "learners": ["zero", "gradient-descent"]})
    done = subprocess.run(
        [
            sys.executable,
            *["-P", "-m", "mesascope", "identify", "--model"],
            f"{name}:noisy",
            "--process",
            path,
            "--json",
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["candidates"] == ["gradient-descent"]
    assert {"imported", "called", "past Python", "of a child"} == set(done.stderr.split("\n")) - {""}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "return contexts[:, -1, 0]",
            "model: must answer contexts of shape (100, 2, 2) with predictions of shape (100, 2)",
        ),
        (
            "return contexts[:, -1] * np.nan",
            "model: its predictions are infinite or nan for 1 of the tasks; fix",
        ),
        (
            "return np.random.normal(size=contexts[:, -1].shape)",
            "model: answers the same contexts differently when asked again; switch off dropout",
        ),
        (
            "return contexts[:, -1] / helper()",
            "model: {name}:predict raised ZeroDivisionError in {name}.py:6: division by zero; fix it there",
        ),
        (
            "raise SystemExit('enough')",
            "model: {name}:predict raised SystemExit in {name}.py:4: enough; fix it there",
        ),
    ],
)
def test_functions_that_cannot_be_used(run, spec, module, tmp_path, body, message):
    name = module(
        f"import numpy as np\n\ndef predict(contexts):\n    {body}\ndef helper():\n    return 1 / 0\n"
    )
    path = spec(QUESTION)
    refused = run(
        "identify", "--model", f"{name}:predict", "--process", path, "--json", "--figures", "figures"
    ).refusal
    assert refused.startswith(f"mesascope identify: {path}: {message.format(name=name)}")


@pytest.mark.parametrize(
    ("text", "attribute", "message"),
    [
        ("", "predict", "module {name} has no 'predict'"),
        (
            "import no_such_package",
            "predict",
            "{name}:predict needs the package 'no_such_package', which is not installed;",
        ),
        (
            "\nx = 1 / 0",
            "predict",
            "{name}:predict raised ZeroDivisionError in {name}.py:2: division by zero; fix it there",
        ),
        ("def predict(:", "predict", "{name}:predict raised SyntaxError in {name}.py:1: "),
        ("\n\nimport sys; sys.exit(3)", "predict", "{name}:predict raised SystemExit in {name}.py:3: 3; fix"),
        (
            "def make():\n    return 1",
            "make",
            "{name}:make takes no arguments, so that it cannot answer contexts; write model",
        ),
        (
            "class Net:\n    pass",
            "Net",
            "{name}:Net is a class, not a model; write model = Net(…) in {name}, and name",
        ),
        ("net = 3", "net", "must be a model, or a function of contexts (batch, t, d), got int"),
    ],
)
def test_names_without_a_model(run, spec, module, tmp_path, text, attribute, message):
    name, path = module(text), spec(QUESTION)
    refused = run(
        "identify", "--model", f"{name}:{attribute}", "--process", path, "--figures", "figures", "--json"
    ).refusal
    assert refused.startswith(f"mesascope identify: {path}: model.name: {message.format(name=name)}")
    assert not (tmp_path / "figures").exists()


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
    assert ended.err.startswith("mesascope identify: the flow ended with ") and ended.err.count("\n") == 1
    assert not (tmp_path / "figures").exists()


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
    from mesascope.records import RecordError

    def full(record, folder):
        raise RecordError(f"cannot write {folder}: No space left on device; free space")

    monkeypatch.setattr(report, "draw_identification", full)
    ended = run("identify", spec(SPEC), "--figures", "figures", "--json")
    assert ended.status == 1 and ended.err.startswith("mesascope identify: cannot write /")
    found = json.loads(ended.out)  # what was computed is not lost
    assert found["verdict"] == "identified" and found["figures"] == []
    assert "/figures: No space left" in ended.err


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


class TestAlong:
    def trained(self, run, spec):
        assert run("train", spec(TRAINED), "--out", "here")[0] == 0
        return spec({"tasks": 100, "learners": ["zero", "gradient-descent"]})

    def test_every_checkpoint_of_a_run(self, run, spec, monkeypatch):
        judged = self.trained(run, spec)
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
    def test_refused(self, run, more, error):
        status, out, err = run("identify", "--along", "here", *more)
        assert (status, out) == (2, "")
        assert error in err and err.count("\n") == 1

    def test_no_run(self, run):
        status, _, err = run("identify", "--along", "here")
        assert status == 2
        assert err.startswith("mesascope identify: here: run: ") and err.count("\n") == 1


def test_interrupted(run, spec, module):
    name = module(
        "import os, signal\ndef slow(contexts):\n    try:\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "        for _ in range(10**9):\n            pass\n    except Exception:\n        return contexts[:, -1]\n"
    )
    ended = run("identify", "--model", f"{name}:slow", "--process", spec(QUESTION), "--json")
    assert (ended.status, ended.out, ended.err) == (130, "", "mesascope identify: interrupted\n")


def test_interrupted_while_compiled_code_calls_a_function_of_python(run, spec, module):
    """Compiled code turns the exception into another one."""
    name = module(
        "import os, signal, jax, numpy as np\ndef press(x):\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "    for _ in range(10**9):\n        pass\n"
        "def slow(contexts):\n    x = jax.numpy.asarray(contexts[:, -1])\n"
        "    return np.asarray(jax.jit(lambda x: jax.pure_callback(press, x, x))(x))\n"
    )
    ended = run("identify", "--model", f"{name}:slow", "--process", spec(QUESTION), "--json")
    assert (ended.status, ended.out, ended.err) == (130, "", "mesascope identify: interrupted\n")


def as_a_command(arguments, redirection="", **environment):
    """Run the command in a shell."""
    line = " ".join(shlex.quote(str(a)) for a in (sys.executable, "-m", "mesascope", "identify", *arguments))
    return subprocess.run(
        f"{line} {redirection}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environment},
    )


@pytest.mark.slow
def test_a_closed_standard_error(spec, module):
    name, path = module(NOISY), spec({**QUESTION, "learners": ["zero", "gradient-descent"]})
    done = as_a_command(["--model", f"{name}:noisy", "--process", path, "--json"], "2>&-")
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == "identified"
    done = as_a_command(["--model", "no.module:here", "--process", path], "2>&-")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.slow
def test_a_terminal_of_ascii(spec):
    done = as_a_command([spec(SPEC)], PYTHONIOENCODING="ascii")
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
