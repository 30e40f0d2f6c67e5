"""What docs/train-your-own.md shows is true: every block runs, and every table lists what there is."""

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.cli import main
from mesascope.studies import AnyProcessSpec, ModelSpec, OptimizerSpec, TrainSpec

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "train-your-own.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)


def _python(text, names):
    exec(compile(text, "train-your-own.md", "exec"), names)


def _pycon(text, names):
    said = []
    example = doctest.DocTestParser().get_doctest(text, names, "train-your-own.md", None, 0)
    failed = doctest.DocTestRunner().run(example, out=said.append, clear_globs=False).failed
    assert not failed, "".join(said)


def _alone(text, names):
    """What has to come before everything else, in a process of its own."""
    program = f"import jax\n{text}print(len(jax.devices()))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (finished.returncode, finished.stdout) == (0, "8\n"), finished.stderr


def _file(text, names):
    Path(re.match(r"# (\S+)\n", text).group(1)).write_text(text, encoding="utf-8")


def _commands(text, names):
    for line in text.splitlines():
        assert main(line.split()[1:]) == 0, line


def _session(text, names):
    """Commands after `$ `, each refused with the line below it."""
    for command, said in zip(text.splitlines()[::2], text.splitlines()[1::2], strict=True):
        lines = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mesascope.cli._main.say", lines.append)
            assert main(command.split()[2:]) == 2, command
        assert lines == [said]


RUNNERS = {
    "python": _python,
    "py": _alone,
    "pycon": _pycon,
    "toml": _file,
    "sh": _commands,
    "console": _session,
}


@pytest.mark.slow
def test_every_block_runs_and_gives_what_the_page_says(tmp_path, monkeypatch, capsys):
    """One test, for the blocks build upon each other and compilation takes nearly all of its time."""
    names = {"__name__": "train_your_own"}
    monkeypatch.chdir(tmp_path)
    for kind, text in BLOCKS:
        RUNNERS[kind](text, names)
    capsys.readouterr()
    _trains_to_the_best_step(names)
    _trains_from_a_file(names, capsys)
    _two_layers_beat_one(names)
    _own_models_and_many_seeds_finish(names)
    _saved_is_loaded(names)


def _trains_to_the_best_step(names):
    # 5 standard errors, and half a percent for training that stops after 1000 steps
    best = float(names["best_step"])
    assert abs(names["loss"] - best) < 5 * names["error"] + 0.005 * best
    assert names["y_hat"].shape == (4,)


def _trains_from_a_file(names, capsys):
    assert main(["train", "regression.toml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # the same task with other initial weights, and its own held-out prompts
    assert abs(found["loss"] - names["loss"]) < 5 * 2**0.5 * names["error"] + 0.005 * names["loss"]
    assert Path("regression.safetensors").exists()
    assert isinstance(names["trained"], ms.PromptModel)


def _two_layers_beat_one(names):
    two = names["two_layers"].loss
    assert float(two.value) + 5 * float(two.standard_error) < float(names["one_layer"])
    assert names["two_layers"].evaluated.tolist() == [200, 400, 600]


def _own_models_and_many_seeds_finish(names):
    assert {run.result.value for run in (names["averaged"], *names["runs"])} == {"finished"}
    assert names["averaged"].average is not None
    assert len(set(names["losses"])) == 3
    fixed, learned = names["fixed"].loss, names["learned"].loss
    assert fixed.value - learned.value > 5 * (fixed.standard_error + learned.standard_error)


def _saved_is_loaded(names):
    saved, loaded = (jax.tree.leaves(model) for model in (names["training"].model, names["again"]))
    for one, other in zip(saved, loaded, strict=True):
        np.testing.assert_array_equal(one, other)
    assert Path("model.safetensors").exists()


def _table(title):
    """Kind → Python name and fields of the table below a title, optional fields in brackets."""
    rows = re.search(rf"\n## {title}\n(.*?)(\n## |\Z)", PAGE, re.S).group(1)
    cells = [line.strip("| ").split(" | ") for line in rows.splitlines() if line.startswith("| `")]
    return {kind.strip("`"): (name.strip("`"), fields) for kind, name, _, fields in cells if kind != "`kind`"}


def _listed(specs):
    return {spec.model_fields["kind"].default: spec for spec in specs}


def _specs_of(union):
    return _listed(union.__origin__.__args__)


@pytest.mark.parametrize(
    ("title", "specs"),
    [("Processes", _specs_of(AnyProcessSpec)), ("Models", _specs_of(ModelSpec))],
)
def test_tables_list_every_kind_with_its_fields(title, specs):
    table = _table(title)
    assert list(table) == list(specs)
    for kind, spec in specs.items():
        name, fields = table[kind]
        assert hasattr(ms, name)
        if kind == "diagonal-unitary":  # the one whose fields stand at the top level
            continue
        written = {field.strip("[]`"): field.startswith("[") for field in fields.split(", ")}
        told = {n: not f.is_required() for n, f in spec.model_fields.items() if n != "kind"}
        assert written == told, kind


def test_every_part_that_is_named_exists():
    named = re.findall(r"`(?:ms\.)?([A-Z]\w+)", PAGE)
    assert not [name for name in named if not hasattr(ms, name)]


def test_every_setting_of_train_is_explained():
    section = re.search(r"\n## How to train\n(.*?)\n## ", PAGE, re.S).group(1)
    told = set(re.findall(r"`([a-z_]+)`", section)) | set(re.findall(r"`optimizer\.([a-z_]+)`", section))
    data = {"process", "law", "dim", "horizon", "examples", "model", "weights"}
    assert set(TrainSpec.model_fields) - data <= told
    assert set(OptimizerSpec.model_fields) - {"learning_rate"} <= told


def test_links_exist():
    anchors = {
        re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in re.findall(r"\n## (.*)", PAGE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif not target.startswith("http"):
            assert (ROOT / "docs" / target).exists(), target
