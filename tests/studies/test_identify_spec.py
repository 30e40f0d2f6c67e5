"""Specifications of identifications."""

import copy
import json
import sys

import jax
import pytest

from mesascope.studies import (
    FailedFlowError,
    IdentifySpec,
    SpecError,
    TrainSpec,
    load_trained,
    parse_spec,
    read_spec,
)

DIAGONAL = {"kind": "diagonal", "a": 0.5, "b": 0.4}
ASKED = {
    "law": {"kind": "gaussian", "scale": 1.0},
    "dim": 2,
    "horizon": 6,
    "model": {"kind": "linear-attention", "init": DIAGONAL},
    "tasks": 100,
    "learners": ["zero", "gradient-descent"],
}
TRAINED = {
    "process": {"kind": "linear-regression", "dim": 2},
    "examples": 4,
    "weights": "every",
    "model": {"kind": "prompt-linear-transformer", "layers": 1},
    "steps": 2,
    "batch": 2,
    "held_out": 4,
}


def model(kind, **fields):
    return {"model": {"kind": kind, **fields}}


def asked(**changes):
    return {**copy.deepcopy(ASKED), **changes}


def refusal(folder=".", **changes):
    with pytest.raises(SpecError) as caught:
        parse_spec(asked(**changes), IdentifySpec, folder=folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_defaults():
    spec = parse_spec({**ASKED, "tasks": 100, "learners": ["zero"]}, IdentifySpec)
    assert (spec.seed, spec.tolerance, spec.level, spec.search) == (0, 0.01, 0.95, True)
    assert IdentifySpec.model_fields["tasks"].default == 2000
    assert IdentifySpec.model_fields["learners"].default is None


def test_a_specification_is_read_back_unchanged():
    for model in (
        ASKED["model"],
        {"kind": "function", "name": "a.b:c"},
        {"kind": "flow", "init": DIAGONAL, "until": "1/3", "mask": "off-diagonal", "rho": "t"},
    ):
        spec = parse_spec(asked(model=model, tolerance="1/50"), IdentifySpec)
        assert parse_spec(json.loads(json.dumps(spec.model_dump(mode="json"))), IdentifySpec) == spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tolerence": 0.1}, "unknown field 'tolerence'; did you mean 'tolerance'?"),
        ({"tolerance": 0}, "tolerance: must be greater than 0 and less than 1, got 0"),
        ({"level": 1.0}, "level: must be greater than 0 and less than 1"),
        ({"tasks": 0}, "tasks: must be at least 1, got 0"),
        ({"learners": []}, "learners: must have at least 1 entries, got 0"),
        ({"learners": "zero"}, "learners: must be a list, got 'zero'"),
        ({"search": 1}, "search: must be true or false, got 1"),
        ({"seed": -1}, "seed: must be at least 0, got -1"),
        ({"horizon": None}, "horizon: missing; process 'diagonal-unitary' draws sequences and needs horizon"),
        ({"model": "linear-attention"}, "model.init: missing; add it"),
        (model("functoin"), "model.kind: unknown kind 'functoin'; did you mean 'function'?"),
        (model("function"), "model.name: missing; add it"),
        (model("checkpoint"), "model.path: missing; add it"),
        (model("checkpoint", path=""), "model.path: must be the path of a run or of a checkpoint, got ''"),
        (model("checkpoint", path="x", step=3), "model: unknown field 'step'; use one of kind, path"),
        (model("flow", init={"kind": "diagonal", "a": 1}), "model.init.b: missing; add it"),
        (model("flow", init=DIAGONAL, until=-1), "model.until: must be greater than 0, got -1"),
        (
            model("flow", init={"kind": "explicit", "w_kq": [[1]], "w_pv": [[1]]}),
            "model.init.w_kq: has shape (1, 1), expected (4, 4)",
        ),
        (
            {"model": {"kind": "flow", "init": DIAGONAL}, "weights": {"7": 1}},
            "weights.7: context lengths are 2 … 5",
        ),
        (
            {
                "model": {"kind": "flow", "init": DIAGONAL},
                "process": {"kind": "rotation-ar", "law": "gaussian", "dim": 2},
                "law": None,
                "dim": None,
            },
            "model.kind: ends of flows are computed for process 'diagonal-unitary', not 'rotation-ar'; train",
        ),
        (
            model("prompt-linear-transformer", layers=1),
            "model.kind: 'prompt-linear-transformer' does not read the complex tokens of process 'diagonal-unitary'; use one "
            "of checkpoint, function, composed, factored-linear-attention",
        ),
    ],
)
def test_refused(changes, message):
    assert refusal(**changes).startswith(message)


def test_a_law_without_moments_has_no_flow(tmp_path):
    law = {"kind": "studentt", "df": 5}
    spec = parse_spec(asked(law=law, model={"kind": "flow", "init": DIAGONAL}), IdentifySpec)
    with pytest.raises(SpecError, match=r"^law: E x\^6 does not exist for StudentT"):
        spec.build()
    assert parse_spec(asked(law=law), IdentifySpec).build().process.dim == 2  # other models need none


@pytest.mark.slow
def test_the_end_of_a_flow_is_that_of_the_flow():
    import mesascope as ms

    flow = {"kind": "flow", "init": DIAGONAL, "until": 0.1, "rho": "t"}
    run = parse_spec(asked(model=flow, weights="last"), IdentifySpec).build()
    start = ms.LinearAttention.diagonal(2, 0.5, 0.4, "t")
    expected = ms.gradient_flow(start, run.process, ms.NextToken.last(6), until=0.1, rtol=1e-11).model
    assert run.task == ms.NextToken.last(6)
    for found, wanted in zip(jax.tree.leaves(run.model), jax.tree.leaves(expected), strict=True):
        assert abs(found - wanted).max() < 1e-12


def test_flows_that_fail_or_are_interrupted(monkeypatch):
    from mesascope.studies import FlowResult, FlowSpec

    spec = parse_spec(asked(model={"kind": "flow", "init": DIAGONAL}), IdentifySpec)
    ended = {"w_kq": [], "w_pv": [], "loss": 0.0, "product": [], "limit_product": None, "limit_reason": ""}
    ended |= {"gradient_norm": 1.0, "converged": False, "time": 0.0, "steps": 1, "message": "take more steps"}
    for result, error in (("step limit", FailedFlowError), ("interrupted", KeyboardInterrupt)):
        monkeypatch.setattr(FlowSpec, "run", lambda self, result=result: FlowResult(**ended, result=result))
        with pytest.raises(error):
            spec.build()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run below it, in `runs/mine`."""
    folder = tmp_path_factory.mktemp("trained")
    parse_spec(TRAINED, TrainSpec).run(folder / "runs" / "mine")
    return folder


def of_the_run(folder, **changes):
    return parse_spec(
        {"model": {"kind": "checkpoint", "path": "runs/mine"}, **changes}, IdentifySpec, folder=folder
    )


@pytest.mark.slow
def test_a_trained_model_takes_the_data_of_its_run(folder):
    spec = of_the_run(folder)
    trained = parse_spec(TRAINED, TrainSpec)
    for name in ("process", "law", "dim", "horizon", "examples", "weights"):
        assert getattr(spec, name) == getattr(trained, name)
    run = spec.build()
    assert (run.process, run.task) == trained.build_data()
    for one, other in zip(
        jax.tree.leaves(run.model), jax.tree.leaves(load_trained(folder / "runs" / "mine")), strict=True
    ):
        assert (one == other).all()


def test_given_fields_replace_those_of_the_run(folder):
    noisy = {"kind": "linear-regression", "dim": 2, "noise": 0.5}
    spec = of_the_run(folder, process=noisy, examples=7, weights="last")
    assert (spec.process.noise, spec.examples, spec.weights) == (0.5, 7, "last")
    assert of_the_run(folder, examples=7).weights == "every"


def test_a_horizon_makes_the_examples_of_the_run_void(folder):
    sequences = {"process": {"kind": "diagonal-unitary", "law": "gaussian", "dim": 2}, "horizon": 6}
    with pytest.raises(SpecError, match=r"was trained on .* does not read"):
        of_the_run(folder, **sequences)


def test_a_specification_of_a_run_is_read_again_from_anywhere(folder, tmp_path):
    written = of_the_run(folder).model_dump(mode="json")
    assert parse_spec(written, IdentifySpec, folder=tmp_path) == parse_spec(written, IdentifySpec)
    (tmp_path / "spec.json").write_text(json.dumps(written))
    assert read_spec(tmp_path / "spec.json", IdentifySpec).build().model is not None


def test_data_that_a_trained_model_does_not_read(folder):
    def refused(**changes):
        with pytest.raises(SpecError) as caught:
            of_the_run(folder, **changes)
        return str(caught.value)

    wide = {"kind": "linear-regression", "dim": 3}
    assert refused(process=wide) == (
        "model.path: was trained on prompts of dimension 2, and does not read prompts of dimension 3; choose a process "
        "that draws data as in training"
    )
    assert (
        refused(law="gaussian") == "law: is a field of 'linear-regression'; move it into the table of process"
    )


def test_runs_that_cannot_be_read(folder, tmp_path):
    missing = {"kind": "checkpoint", "path": "none"}
    assert refusal(tmp_path, model=missing).startswith(f"model.path: {tmp_path}/none: ")
    (tmp_path / "empty").mkdir()
    empty = {"kind": "checkpoint", "path": "empty"}
    message = refusal(tmp_path, model=empty)
    assert message.startswith(
        f"model.path: {tmp_path}/empty: this folder holds no checkpoint; give the folder"
    )
    (tmp_path / "empty" / "step-000000002.checkpoint").write_bytes(b"")
    message = refusal(tmp_path, model=empty)
    missing = f"{tmp_path}/empty/spec.json: no such file: it was not copied with the checkpoints, or this"
    assert message.startswith(f"model.path: {missing}")
    (tmp_path / "empty" / "spec.json").write_text("{}")
    assert refusal(tmp_path, model=empty).startswith("model.path: ")
    (tmp_path / "empty" / "spec.json").write_text(json.dumps(TRAINED))
    spec = parse_spec({"model": empty}, IdentifySpec, folder=tmp_path)
    with pytest.raises(SpecError, match=r"^model\.path: .*/step-000000002\.checkpoint: "):
        spec.build()


def test_fields_given_in_addition_to_the_file(tmp_path):
    path = tmp_path / "question.json"
    path.write_text(json.dumps({name: value for name, value in ASKED.items() if name != "model"}))
    assert read_spec(path, IdentifySpec, given={"model": ASKED["model"]}) == parse_spec(ASKED, IdentifySpec)
    with pytest.raises(
        SpecError, match=r"question\.json: dim: is in the file and is given in addition; leave out one"
    ):
        read_spec(path, IdentifySpec, given={"dim": 3})


@pytest.mark.slow
def test_a_function_in_a_specification(tmp_path, monkeypatch):
    (tmp_path / "asked_by_name.py").write_text("def last(contexts):\n    return contexts[:, -1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = parse_spec(asked(model={"kind": "function", "name": "asked_by_name:last"}), IdentifySpec)
    seen = []
    found = spec.run(seen.append)
    assert found.verdict in ("none", "ambiguous", "identified")
    assert found.ranking[0].learner in ("zero", "gradient-descent")
    assert seen[0].stage == "ask the model"
    del sys.modules["asked_by_name"]


def test_64_bit_mode_is_needed():
    with jax.enable_x64(False), pytest.raises(ValueError, match="64-bit"):
        parse_spec(ASKED, IdentifySpec).build()


@pytest.mark.slow
def test_the_record_holds_the_result_and_the_curves_of_figures():
    run = parse_spec(asked(), IdentifySpec).build()
    found = run.identify()
    curves, record = found.curves, run.record(found)
    assert run.record(found, curves=False).curves is None
    assert record.verdict == found.verdict == "identified"
    assert record.ranking[0].distance == found.ranking[0].distance
    assert record.reading.step_size == found.reading.step_size
    assert parse_spec(record.spec, IdentifySpec) == run.spec
    assert record.curves.lengths == (1, 2, 3, 4) and curves.errors["model"].value.shape == (4,)
    assert record.curves.names == ("model", "zero", "gradient-descent")
    assert curves.differences[0, 1] == pytest.approx(2.0)  # E|f|² / ½E|f|²
    assert curves.distances["zero"].value == pytest.approx(1.0)
    assert curves.differences[0, 2] < 1e-20
    assert (curves.differences == curves.differences.T).all()


@pytest.mark.slow
def test_figures_and_ranking_measure_the_same_distances():
    """If a single number of examples counts, there is one distance with one interval."""
    run = parse_spec(
        asked(weights="last", learners=["zero", "ridge", "gradient-descent"]), IdentifySpec
    ).build()
    found = run.identify()
    for entry in found.ranking:
        ends = [float(end[-1]) for end in found.curves.distances[entry.learner]]
        assert ends == pytest.approx([entry.distance, *entry.interval], rel=1e-12)


@pytest.mark.slow
def test_a_pool_is_identified_on(tmp_path):
    process = {
        "kind": "task-pool",
        "tasks": 3,
        "process": {"kind": "linear-regression", "dim": 2, "noise": 0.5},
    }
    fields = {
        "process": process,
        "examples": 5,
        "model": {"kind": "prompt-linear-transformer", "layers": 1},
        "tasks": 100,
        "learners": ["memorizing", "ridge"],
        "search": False,
    }
    run = parse_spec(fields, IdentifySpec).build()
    assert run.process.weights_of_tasks.shape == (3, 2)
    assert {entry.learner for entry in run.identify().ranking} == {"memorizing", "ridge"}


HALF = """
import numpy as np

def half_a_step(x, y):
    scores = np.einsum("bip,bp->bi", x[:, :-1], x[:, -1])
    step = np.einsum("bi,bi->b", scores, y) / max(y.shape[1], 1)
    return 0.5 * step + 0.5 * (y.mean(1) if y.shape[1] else 0.0)
"""


@pytest.mark.slow
def test_mixtures_are_asked_for_by_parts(tmp_path, monkeypatch):
    """Half a step of gradient descent of size 1 and half the average of the labels."""
    (tmp_path / "half_models.py").write_text(HALF)
    monkeypatch.syspath_prepend(tmp_path)
    question = {
        **model("function", name="half_models:half_a_step", interface="context"),
        "process": {"kind": "linear-regression", "dim": 2, "noise": 0.3},
        "examples": 4,
        "tasks": 100,
        "learners": ["average", "gradient-descent"],
    }
    assert parse_spec(question, IdentifySpec).run().mixtures == ()
    found = parse_spec({**question, "parts": 2}, IdentifySpec).run()
    (mixture,) = found.mixtures
    assert {one.learner: round(one.weight, 6) for one in mixture.parts} == {
        "average": 0.5,
        "gradient-descent": 0.5,
    }


@pytest.mark.parametrize("parts", [0, 4, 1.5, "two", True])
def test_other_numbers_of_parts_are_refused(parts):
    assert refusal(parts=parts).startswith("parts: ")
