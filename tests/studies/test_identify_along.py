"""A run whose algorithm is identified at every checkpoint: its checkpoints, and the specification."""

import json
from shutil import copytree

import numpy as np
import pytest

import mesascope as ms
from mesascope.dynamics import CheckpointError
from mesascope.specs import SpecError
from mesascope.studies import AlongSpec, TrainSpec, parse_spec

RUN = {
    "examples": 4,
    "weights": "every",
    "process": {"kind": "linear-regression", "dim": 2, "noise": 0.3},
    "model": {"kind": "prompt-linear-transformer", "layers": 1},
    "steps": 20,
    "batch": 16,
    "held_out": 16,
    "checkpoints_per_decade": 2,
}
JUDGED = {"tasks": 100, "learners": ["zero", "gradient-descent"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    parse_spec(RUN, TrainSpec).run(folder)
    return folder


@pytest.mark.slow
def test_checkpoints_are_models_by_their_steps(folder):
    found = ms.Checkpoints(folder)
    assert list(found) == [0, 1, 3, 10, 20]
    assert 3 in found and 4 not in found
    for step in (0, 20):
        one = ms.load_trained(folder / f"step-{step:09}.checkpoint")
        np.testing.assert_array_equal(
            *(m.predictions(np.ones((1, 3, 2)), np.ones((1, 2))) for m in (found[step], one))
        )
    assert found.process == ms.LinearRegression(2, noise=0.3)
    assert found.task == ms.FewShot.every(4)
    assert "5, after 0 to 20 steps" in repr(found)
    with pytest.raises(KeyError):
        found[4]


@pytest.mark.slow
def test_a_specification_follows_its_run(folder):
    run = parse_spec({"run": str(folder), **JUDGED}, AlongSpec).build()
    found = run.identify_along()
    assert found.steps == (0, 1, 3, 10, 20)
    models = ms.Checkpoints(folder)
    alone = ms.identify_along(models, models.process, models.task, **JUDGED)
    for step, one in found.found.items():
        assert [e.distance for e in one.ranking] == [e.distance for e in alone.found[step].ranking]
    record = run.record(found)
    assert record.spec["run"] == str(folder)
    assert record.spec["process"]["dim"] == 2
    assert parse_spec(record.spec, AlongSpec) == run.spec


def test_other_data_take_the_place_of_those_of_the_run(folder):
    process = {"kind": "linear-regression", "dim": 2, "noise": 1.0}
    spec = parse_spec({"run": str(folder), "process": process, "examples": 3, **JUDGED}, AlongSpec)
    assert spec.build().process == ms.LinearRegression(2, noise=1.0)
    assert spec.build().task == ms.FewShot.every(3)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"run": "nowhere"}, "run: .*nowhere"),
        ({"run": 3}, "run: must be the path of a run"),
        ({"run": None}, "run: must be the path of a run"),
        ({"process": {"kind": "linear-regression", "dim": 5}}, "run: was trained on .* of dimension"),
        ({"tasks": 10}, "tasks"),
        ({"parts": 4}, "parts"),
        ({"search": True}, "search"),
    ],
)
def test_refused(folder, changes, error):
    with pytest.raises(SpecError, match=error) as caught:
        parse_spec({"run": str(folder), **JUDGED} | changes, AlongSpec).build().identify_along()
    assert "\n" not in str(caught.value)


def test_no_run(tmp_path):
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        ms.Checkpoints(tmp_path)
    with pytest.raises(
        CheckpointError, match="there is no such folder; name one that mesascope train has filled"
    ):
        ms.Checkpoints(tmp_path / "nowhere")


def test_a_run_with_one_checkpoint(tmp_path):
    parse_spec({**RUN, "checkpoints_per_decade": None, "steps": 2}, TrainSpec).run(tmp_path)
    with pytest.raises(SpecError, match="at least two checkpoints, got 1"):
        parse_spec({"run": str(tmp_path), **JUDGED}, AlongSpec).build().identify_along()


def test_a_checkpoint_of_another_step_than_its_name_is_refused(folder, tmp_path):
    copy = tmp_path / "run"
    copytree(folder, copy)
    (copy / "step-000000003.checkpoint").rename(copy / "step-000000060.checkpoint")
    told = "step-000000060.checkpoint: was written after 3 steps, and its name says 60"
    with pytest.raises(CheckpointError, match=told):
        ms.Checkpoints(copy)[60]
    with pytest.raises(CheckpointError, match=told):
        ms.load_trained(copy)
    with pytest.raises(CheckpointError, match=told):
        parse_spec({**RUN, "steps": 60}, TrainSpec).run(copy)


def test_a_run_whose_specification_was_changed_is_refused(folder, tmp_path):
    copy = tmp_path / "run"
    copytree(folder, copy)
    changed = json.loads((copy / "spec.json").read_text())
    changed["process"]["noise"] = 3.0
    (copy / "spec.json").write_text(json.dumps(changed))
    told = r"checkpoint of something else: process is .*noise=0\.3.* there and .*noise=3\.0.* here"
    with pytest.raises(CheckpointError, match=told):
        ms.load_trained(copy)
    with pytest.raises(CheckpointError, match=told):
        ms.Checkpoints(copy)[20]


def test_plugins_that_a_run_names_are_not_executed(folder, tmp_path):
    copy, trace = tmp_path / "run", tmp_path / "executed"
    copytree(folder, copy)
    (tmp_path / "theirs.py").write_text(f"open({str(trace)!r}, 'w').close()")
    named = json.loads((copy / "spec.json").read_text()) | {"plugins": [str(tmp_path / "theirs.py")]}
    (copy / "spec.json").write_text(json.dumps(named))
    ms.load_trained(copy)
    named["process"] = {"kind": "their-process"}
    (copy / "spec.json").write_text(json.dumps(named))
    with pytest.raises(
        SpecError, match=r"process\.kind: unknown kind 'their-process'.*--plugin .*theirs\.py"
    ):
        ms.load_trained(copy)
    assert not trace.exists()


def test_files_of_other_names_are_no_checkpoints(folder, tmp_path):
    copy = tmp_path / "run"
    copytree(folder, copy)
    (copy / "step-copy.checkpoint").write_text("of the user")
    assert list(ms.Checkpoints(copy)) == [0, 1, 3, 10, 20]
    ms.load_trained(copy)
    for file in copy.glob("step-0*"):
        file.unlink()
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        ms.Checkpoints(copy)


def test_a_torn_checkpoint_is_told_before_the_first_comparison(folder, tmp_path, monkeypatch):
    copytree(folder, tmp_path / "run")
    torn = tmp_path / "run" / "step-000000010.checkpoint"
    torn.write_bytes(torn.read_bytes()[:-1])
    run = parse_spec({"run": str(tmp_path / "run"), **JUDGED}, AlongSpec).build()
    monkeypatch.setattr("mesascope.probes.identify_along", lambda *given, **more: pytest.fail("it began"))
    with pytest.raises(CheckpointError, match="step-000000010"):
        run.identify_along()
