"""Training from specifications: many kinds of processes and models, checkpoints, and resuming from them."""

import json

import jax
import numpy as np
import pytest

from mesascope.dynamics import CheckpointError, load_average
from mesascope.objectives import MonteCarlo, population_loss
from mesascope.studies import SpecError, TrainSpec, load_trained, parse_spec

SOFTMAX = {"width": 4, "layers": 1, "heads": 2}
AR = {"kind": "orthogonal-ar", "law": "gaussian", "dim": 2}
SEQUENCES = {
    "linear-attention": ({"init": {"kind": "gaussian", "scale": 0.1}}, "diagonal-unitary"),
    "multi-head-linear-attention": (
        {"heads": 2},
        {"kind": "nonlinear-ar", "law": "gaussian", "dim": 2, "hidden": 3},
    ),
    "factored-linear-attention": ({"key_size": 2}, "diagonal-unitary"),
    "linear-transformer": ({"layers": 2, "heads": 2}, AR),
    "factored-linear-transformer": (
        {"layers": 1, "value_size": 2},
        {"kind": "rotation-ar", "law": "gaussian", "dim": 2},
    ),
    "mesa-transformer": (
        {"regularization": 0.5},
        {
            "kind": "linear-ar",
            "law": "gaussian",
            "state_dim": 3,
            "spectrum": {"low": 0, "high": 1},
            "observed": 2,
        },
    ),
    "memory-solver": ({"rule": {"kind": "titans", "rate": 0.1}}, AR),
    "transformer": (SOFTMAX, "diagonal-unitary"),
    "token-transformer": (SOFTMAX, {"kind": "markov-tree", "states": 3, "alpha": 1, "parents": "chain"}),
}
COMPOSED = {
    "embedding": {"kind": "bare-tokens", "width": 4, "positions": "learned"},
    "layers": [{"kind": "softmax-attention", "heads": 2, "norm": True}, {"kind": "mlp", "hidden": 3}],
    "readout": {"kind": "dense", "norm": True},
}
SEQUENCES["composed"] = COMPOSED, "diagonal-unitary"
PROMPTS = {
    "prompt-linear-transformer": (
        {"layers": 2},
        {"kind": "task-pool", "tasks": 3, "process": {"kind": "linear-regression", "dim": 2, "noise": 0.1}},
    ),
    "looped-linear-transformer": (
        {"loops": 2},
        {"kind": "nonlinear-regression", "dim": 2, "target": {"kind": "random-features", "features": 3}},
    ),
    "preconditioned-linear-transformer": (
        {"layers": 2, "start": [[[0.1, 0.2], [0.0, 0.1]], [[0.3, 0.0], [0.0, 0.3]]]},
        {"kind": "linear-regression", "dim": 2},
    ),
    "prompt-memory-solver": ({"rule": "mesa-net"}, {"kind": "drifting-regression", "dim": 2}),
    "prompt-transformer": (SOFTMAX, {"kind": "orthonormal-features", "features": 2}),
}
CASES = {kind: (kind, *case) for kind, case in {**SEQUENCES, **PROMPTS}.items()}
CASES["in-weights-regression"] = (
    "prompt-linear-transformer",
    {"layers": 1},
    {"kind": "in-weights-regression", "weights": [1, -1]},
)
CASES["prompt-mixture"] = (
    "prompt-linear-transformer",
    {"layers": 1},
    {
        "kind": "prompt-mixture",
        "process": {"kind": "linear-regression", "dim": 2},
        "other": {"kind": "task-pool", "process": {"kind": "linear-regression", "dim": 2}, "tasks": 1},
    },
)
CASES["urns"] = "token-transformer", SOFTMAX, {"kind": "urns", "symbols": 4}
CASES["markov-graph"] = (
    "token-transformer",
    SOFTMAX,
    {"kind": "markov-graph", "symbols": 3, "parents": [[], [], *([i - 2, i - 1] for i in range(2, 12))]},
)
CASES["training-set"] = (
    "prompt-linear-transformer",
    {"layers": 1},
    {"kind": "training-set", "prompts": 3, "process": {"kind": "linear-regression", "dim": 2}},
)
CASES["symbol-pool"] = (
    "token-transformer",
    SOFTMAX,
    {"kind": "symbol-pool", "tasks": 3, "process": {"kind": "markov-chains", "concentration": 0.5}},
)


def leaves(model):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(model)]


def assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(leaves(one), leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_training_is_read_back(case, tmp_path, train_with, prompts_with):
    """Models and processes of many kinds; every kind is tested in test_kinds.py and tests/processes."""
    kind, model, process = CASES[case]
    data = prompts_with() if kind in PROMPTS else train_with()
    if isinstance(process, dict):
        data = {**data, "law": None, "dim": None}
    spec = parse_spec({**data, "model": {"kind": kind, **model}, "process": process}, TrainSpec)
    run = spec.build()
    training = run.train(tmp_path)
    assert training.result.value == "finished" and np.isfinite(training.loss.value)
    moved = [not np.array_equal(a, b) for a, b in zip(leaves(run.model), leaves(training.model), strict=True)]
    assert any(moved)
    assert_same(load_trained(training.checkpoint), training.model)
    assert_same(load_trained(training.checkpoint.parent), training.model)
    assert parse_spec(json.loads((tmp_path / "spec.json").read_text()), TrainSpec) == spec


@pytest.mark.slow
def test_the_result_of_a_training(tmp_path, train_with):
    data = train_with(steps=6, record_every=2, evaluate_every=3, held_out=200, optimizer="sgd")
    seen = []
    spec = parse_spec(data, TrainSpec)
    result = spec.run(tmp_path, seen.append)
    assert (result.result, result.succeeded, result.steps) == ("finished", True, 6)
    assert [one.steps for one in result.losses] == [now.done for now in seen] == [2, 4, 6]
    assert [one.loss for one in result.losses] == [now.values["loss"] for now in seen]
    assert [one.steps for one in result.evaluations] == [3, 6]
    assert result.loss == result.evaluations[-1].loss > 0
    assert result.checkpoint == str(tmp_path / "step-000000006.checkpoint")
    # the held-out loss is a mean over samples of the law: the same as another sample's, within both errors
    run = spec.build()
    other = population_loss(
        load_trained(result.checkpoint), run.process, run.task, MonteCarlo(2000, seed=77, precision="float32")
    )
    error = np.hypot(result.loss_standard_error, other.standard_error)
    assert abs(result.loss - other.value) < 5 * error


@pytest.mark.slow
def test_nothing_is_written_without_a_folder(train_with, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = parse_spec(train_with(), TrainSpec).run()
    assert result.checkpoint is None and result.steps == 3
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_resumed_run_has_the_same_bits(tmp_path, train_with):
    def run(folder, **changes):
        data = train_with(record_every=1, average=0.9, **changes)
        return parse_spec(data, TrainSpec).run(tmp_path / folder)

    whole = run("whole", steps=6)
    run("parts", steps=2)
    parts = run("parts", steps=6, evaluate_every=2)  # fields that do not affect the run may change
    assert whole.losses == parts.losses
    assert_same(load_trained(whole.checkpoint), load_trained(parts.checkpoint))
    assert [one.steps for one in parts.evaluations] == [4, 6]
    again = run("whole", steps=6)
    assert again == whole


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"dim": 3}, "dim is 2 there and 3 here"),
        ({"law": "sparse"}, "law is 'gaussian' there and 'sparse' here"),
        ({"optimizer": {"learning_rate": 0.1}}, "optimizer.learning_rate is 0.001 there and 0.1 here"),
        (
            {
                "model": {
                    "kind": "linear-attention",
                    "init": {"kind": "diagonal", "a": 0.3, "b": 0.2},
                    "rho": "t",
                }
            },
            "model.init.a is 0.1 there and 0.3 here",
        ),
        ({"held_out": 8}, "held_out is 4 there and 8 here"),
        ({"weights": {"3": 1}}, "weights is none there and a table here"),
    ],
)
def test_a_folder_of_another_run(tmp_path, train_with, changes, message):
    parse_spec(train_with(), TrainSpec).run(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CheckpointError) as caught:
        parse_spec(train_with(**changes), TrainSpec).run(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'spec.json'}: is of another run: {message}; choose")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_a_refused_run_changes_nothing(tmp_path, train_with):
    """The library refuses it, not the comparison of specifications: a schedule with another end."""
    optimizer = {"schedule": "cosine"}
    parse_spec(train_with(optimizer=optimizer), TrainSpec).run(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CheckpointError, match="schedule, which ends with the run"):
        parse_spec(train_with(optimizer=optimizer, steps=6), TrainSpec).run(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_extended_run_stores_its_new_specification(tmp_path, train_with):
    parse_spec(train_with(), TrainSpec).run(tmp_path)
    parse_spec(train_with(steps=6), TrainSpec).run(tmp_path)
    assert json.loads((tmp_path / "spec.json").read_text())["steps"] == 6


@pytest.mark.slow
def test_the_loss_of_the_average(tmp_path, train_with):
    run = parse_spec(train_with(average=0.5, optimizer={"learning_rate": 0.1}), TrainSpec).build()
    training = run.train(tmp_path)
    result = run.result(training)
    engine = MonteCarlo(4, 0, 2, "float32")
    with jax.enable_x64(False):
        average = load_average(training.checkpoint, run.model)
        expected = population_loss(average, run.process, run.task, engine)
        last = population_loss(training.model, run.process, run.task, engine)
    assert result.average_loss == float(expected.value) != result.loss
    assert result.average_loss_standard_error == float(expected.standard_error)
    assert result.loss == float(last.value)  # on the same samples
    without = parse_spec(train_with(), TrainSpec).run()
    assert without.average_loss is None and without.average_loss_standard_error is None


@pytest.mark.slow
def test_seeds_are_runs_of_their_own(tmp_path, train_with):
    def data(**seeds):
        model = {"kind": "linear-attention", "init": {"kind": "gaussian", "scale": 0.1}}
        return train_with(model=model, average=0.9, **seeds)

    seen = set()
    runs = parse_spec(data(seeds=[3, 0]), TrainSpec).build_many()
    many = runs.result(runs.train(tmp_path, lambda seed, now: seen.add((seed, now.done))))
    assert many.seeds == [3, 0] and seen == {(3, 3), (0, 3)}
    assert (many.result, many.succeeded) == ("finished", True)
    for seed, one in zip(many.seeds, many.runs, strict=True):
        alone = parse_spec(data(seed=seed), TrainSpec)
        assert one.checkpoint == str(tmp_path / f"seed-{seed}" / "step-000000003.checkpoint")
        # it equals the run of that seed alone: finished in this folder, and with the same result elsewhere
        assert alone.run(tmp_path / f"seed-{seed}") == one
        assert alone.run().model_copy(update={"checkpoint": one.checkpoint}) == one
        assert_same(load_trained(one.checkpoint), alone.build().train().model)
    for name in ("loss", "average_loss"):
        losses = [getattr(one, name) for one in many.runs]
        assert losses[0] != losses[1]
        assert getattr(many, name) == np.mean(losses)
        np.testing.assert_allclose(
            getattr(many, f"{name}_standard_error"), np.std(losses, ddof=1) / 2**0.5, rtol=1e-12
        )
    with pytest.raises(CheckpointError, match=r"seed-3/spec\.json: is of another run: batch is 2 there"):
        parse_spec({**data(seeds=[3, 0]), "batch": 4}, TrainSpec).build_many().train(tmp_path)


def test_one_seed_has_no_error_over_seeds(train_with):
    spec = parse_spec(train_with(seeds=[1]), TrainSpec)
    runs = spec.build_many()
    many = runs.result(runs.train())
    assert many.loss == many.runs[0].loss and many.loss_standard_error is None
    assert many.average_loss is None
    assert parse_spec(json.loads(spec.model_dump_json()), TrainSpec) == spec


def test_a_folder_without_checkpoints_can_be_used(tmp_path, train_with):
    parse_spec(train_with(), TrainSpec).run(tmp_path)
    (tmp_path / "step-000000003.checkpoint").unlink()
    assert parse_spec(train_with(seed=1), TrainSpec).run(tmp_path).succeeded


def test_checkpoints_without_specification(tmp_path, train_with):
    result = parse_spec(train_with(), TrainSpec).run(tmp_path)
    (tmp_path / "spec.json").unlink()
    with pytest.raises(CheckpointError, match="holds checkpoints of a run not started from a specification"):
        parse_spec(train_with(), TrainSpec).run(tmp_path)
    with pytest.raises(SpecError, match=r"spec\.json: no such file"):
        load_trained(result.checkpoint)


def test_damaged_checkpoints(tmp_path, train_with):
    result = parse_spec(train_with(), TrainSpec).run(tmp_path)
    path = tmp_path / "step-000000003.checkpoint"
    path.write_bytes(path.read_bytes()[:-1])
    for attempt in (
        lambda: load_trained(result.checkpoint),
        lambda: parse_spec(train_with(), TrainSpec).run(tmp_path),
    ):
        with pytest.raises(CheckpointError, match="is truncated"):
            attempt()
    with pytest.raises(CheckpointError, match="no such file or folder"):
        load_trained(tmp_path / "step-000000004.checkpoint")


@pytest.mark.slow
def test_float64(tmp_path, train_with):
    spec = parse_spec(train_with(precision="float64"), TrainSpec)
    result = spec.run(tmp_path)
    assert {leaf.dtype for leaf in leaves(load_trained(result.checkpoint))} == {np.dtype("float64")}
    with jax.enable_x64(False):
        for attempt in (lambda: spec.run(tmp_path / "none"), lambda: load_trained(result.checkpoint)):
            with pytest.raises(ValueError, match="64-bit"):
                attempt()
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_divergence(tmp_path, train_with):
    data = train_with(optimizer={"method": "sgd", "learning_rate": 1e30}, record_every=1, steps=20)
    result = parse_spec(data, TrainSpec).run(tmp_path)
    assert (result.result, result.succeeded) == ("diverged", False)
    assert all(np.isfinite(leaf).all() for leaf in leaves(load_trained(result.checkpoint)))


@pytest.mark.slow
def test_a_loss_that_vanishes_is_explained(train_with):
    # squares of 1e-30 are 0 in float32, not in float64
    tiny = train_with(law={"kind": "gaussian", "scale": 1e-30})
    result = parse_spec(tiny, TrainSpec).run()
    assert result.loss == 0 and "a loss of exactly 0 means that its terms vanish" in result.message
    wide = parse_spec({**tiny, "precision": "float64"}, TrainSpec).run()
    assert wide.loss > 0 and "exactly 0" not in wide.message


def test_an_interrupted_run_keeps_its_result(tmp_path, train_with):
    def stop(now):
        if now.done == 2:
            raise KeyboardInterrupt

    spec = parse_spec(train_with(record_every=1), TrainSpec)
    result = spec.run(tmp_path, stop)
    assert (result.result, result.steps, result.succeeded) == ("interrupted", 2, False)
    assert spec.run(tmp_path) == spec.run(tmp_path / "whole").model_copy(
        update={"checkpoint": str(tmp_path / "step-000000003.checkpoint")}
    )


def test_other_files_are_refused_by_name(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    for path, message in ((tmp_path, "holds no checkpoint"), (tmp_path / "nope", "no such file or folder")):
        with pytest.raises(CheckpointError, match=rf"{path.name}: .*{message}"):
            load_trained(path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "step-000000003.checkpoint").write_bytes(b"")
    with pytest.raises(CheckpointError, match=rf"the folder of a run, such as {tmp_path}/mine"):
        load_trained(tmp_path)
    with pytest.raises(CheckpointError, match=r"safetensors: is not a checkpoint"):
        load_trained(tmp_path / "model.safetensors")
