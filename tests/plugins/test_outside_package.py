"""Kinds of an external package are used like those of mesascope, without changes elsewhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OUTSIDE = Path(__file__).parent / "outside"
HALVING = "import numpy as np\ndef halve_the_last(tokens): return 0.5 * np.asarray(tokens)[:, -1]\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the installed package."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(OUTSIDE, folder / "outside", ignore=shutil.ignore_patterns("__pycache__"))
    about = folder / "outside-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[mesascope]\noutside = outside\n")
    (folder / "models_of_others.py").write_text(HALVING)
    return folder


def found_in(folder):
    """The environment of a process that finds the packages in a folder."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@pytest.fixture
def command(installed, tmp_path):
    def run(*arguments, spec=None):
        if spec is not None:
            (tmp_path / "spec.json").write_text(json.dumps(spec))
            arguments = (arguments[0], "spec.json", *arguments[1:])
        done = subprocess.run(
            [sys.executable, "-m", "mesascope", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=found_in(installed),
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.slow
def test_kinds_are_listed_with_their_fields(command):
    families = command("kinds", "--json")["families"]
    assert families["law"]["triangular"]["fields"] == [
        {"name": "scale", "text": "h > 0.", "required": False, "default": 1.0}
    ]
    assert families["process"]["sinusoids"]["example"] == {"kind": "sinusoids", "dim": 2, "fastest": 3.0}
    rate = families["layer"]["decaying-sum"]["fields"][0]
    assert (rate["name"], rate["text"]) == ("rate", "λ > 0 at the start.")
    assert families["learner"]["last-times"]["summary"] == "Predicts c times the last output."


@pytest.mark.slow
def test_the_flow_of_a_law_ends_where_theory_says(command):
    start = {"kind": "diagonal", "a": 0.5, "b": 0.3}
    end = command("flow", "--json", spec={"law": "triangular", "dim": 2, "horizon": 6, "init": start})
    assert end["converged"]
    assert end["product"] == pytest.approx([end["limit_product"]] * 2, rel=1e-9)  # Theorem 4.1 of zheng2024


@pytest.mark.slow
def test_a_process_and_a_layer_are_trained_and_identified(command, tmp_path):
    layers = [{"kind": "decaying-sum", "rate": "1/4"}, "layer-norm"]
    model = {"kind": "composed", "embedding": "bare-tokens", "layers": layers, "readout": "dense"}
    training = {"process": {"kind": "sinusoids", "dim": 1}, "horizon": 5, "model": model, "steps": 20}
    trained = command("train", "--json", "--out", "run", spec=training)
    assert trained["steps"] == 20
    asked = {"model": {"kind": "checkpoint", "path": "run"}, "tasks": 80, "learners": ["last-times", "zero"]}
    found = command("identify", "--json", spec=asked)
    ranking = {entry["learner"]: entry for entry in found["ranking"]}
    assert set(ranking) == {"last-times", "zero"}
    low, high = ranking["last-times"]["interval"]
    assert 0 < low <= ranking["last-times"]["distance"] <= high  # the trained model is another one


TRAINING = {
    "process": {"kind": "sinusoids", "dim": 1},
    "task": {"kind": "discounted", "horizon": 5, "discount": "1/4"},
    "model": {"kind": "two-terms", "scale": 0.2},
    "steps": 20,
}


@pytest.mark.slow
def test_a_model_is_trained_on_a_task(command, tmp_path):
    trained = command("train", "--json", "--out", "run", spec=TRAINING)
    assert trained["steps"] == 20
    written = json.loads((tmp_path / "run" / "spec.json").read_text())
    assert written["task"] == TRAINING["task"]
    # of an identification the task is that of the run
    asked = {"model": {"kind": "checkpoint", "path": "run"}, "tasks": 80, "learners": ["last-token", "zero"]}
    assert command("identify", "--json", spec=asked)["spec"]["task"] == TRAINING["task"]


@pytest.mark.slow
def test_two_workers_sweep_over_models_and_tasks(command):
    axes = [{"path": "model.scale", "values": [0.1, 0.3]}, {"path": "task.discount", "values": ["1/2", 1]}]
    study = {"name": "terms", "kind": "train", "base": TRAINING, "axes": axes}
    done = command(
        "sweep", "--json", "--store", "store", "--scheduler", "local", "--workers", "2", spec=study
    )
    assert (done["done"], done["failed"]) == (4, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "process", [{"kind": "sinusoids"}, {"kind": "orthogonal-ar", "law": "triangular"}], ids=["process", "law"]
)
def test_a_learner_is_identified(command, process):
    asked = {
        "model": {"kind": "function", "name": "models_of_others:halve_the_last"},
        "process": {**process, "dim": 2},
        "horizon": 5,
        "tasks": 80,
        "learners": ["last-times", "last-token", "zero"],
    }
    found = command("identify", "--json", spec=asked)
    assert found["verdict"] == "identified"
    assert found["ranking"][0]["learner"] == "last-times"
    assert found["ranking"][0]["hyperparameters"]["factor"] == pytest.approx(0.5, rel=1e-6)


@pytest.mark.slow
def test_two_workers_sweep_over_laws_of_a_package_and_of_a_file(command, tmp_path):
    source = (OUTSIDE / "triangular.py").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(
        source.replace('"triangular"', '"mine"').replace("class Triangular", "class Mine")
    )
    start = {"kind": "diagonal", "a": 0.5, "b": 0.3}
    base = {"dim": 2, "horizon": 5, "init": start, "plugins": ["mine.py"]}
    laws = [{"kind": kind, "scale": "1/2"} for kind in ("triangular", "mine")]
    axes = [{"path": "law", "values": laws}, {"path": "until", "values": [1, 2]}]
    study = {"name": "laws", "kind": "flow", "base": base, "axes": axes}
    done = command(
        "sweep", "--json", "--store", "store", "--scheduler", "local", "--workers", "2", spec=study
    )
    assert (done["done"], done["failed"]) == (4, 0)
    begun = [json.loads(file.read_text()) for file in (tmp_path / "store").rglob("attempts.jsonl")]
    assert len(begun) == 4 and len({one["pid"] for one in begun}) == 2
    assert not any(one["alone"] for one in begun)  # not in the process of the command


@pytest.mark.slow
def test_its_kinds_are_in_the_forms_of_the_lab(installed):
    code = f"""
import json
from mesascope.lab.models._training_form import read_training, training_form, training_of
training = read_training({ {name: one for name, one in TRAINING.items() if name != "task"} | {"horizon": 5}!r})
form = training_form(training)
same = training_of(form) == training and training_of(form | {{"process.fastest": "2"}}).process.fastest == 2
from mesascope.lab._form import form_of, kind_fields, setting_of
from mesascope.lab._setting import DEFAULT, read_setting
form = form_of(read_setting({{**DEFAULT, "law": "triangular"}}))
fields = [(field.name, field.label) for field in kind_fields("law", "triangular")]
print(json.dumps([same, fields, setting_of(form | {{"law.scale": "1/4"}}).law.describe()]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=found_in(installed)
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, [["law.scale", "h > 0"]], "Triangular(scale=1/4)"]
