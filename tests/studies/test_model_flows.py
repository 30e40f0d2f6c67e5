"""Losses and flows of any model from specifications: what Python computes, what is refused, and what a study keeps."""

import json

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.cli import main
from mesascope.records import RunFolders
from mesascope.studies import (
    FlowSpec,
    LossSpec,
    ModelFlowSpec,
    ModelLossSpec,
    SpecError,
    StudySpec,
    flow_spec,
    loss_spec,
    parse_spec,
    sweep,
)
from mesascope.studies._model_problem import named_weights

NEW = {"kind": "linear-regression", "dim": 2, "noise": 0.5}
POOL = {
    "process": {"kind": "task-pool", "tasks": 3, "process": NEW},
    "examples": 4,
    "model": {"kind": "prompt-linear-transformer", "layers": 1},
    "test_process": NEW,
}
CHAINS = {
    "process": {"kind": "markov-chains", "symbols": 2},
    "horizon": 4,
    "model": {"kind": "token-transformer", "layers": 1, "width": 2, "heads": 1},
}
WEIGHTS = ["network.layers[0].w_kq", "network.layers[0].w_pv"]


@pytest.fixture(scope="module")
def pool():
    """Start, pool, its process and the task of POOL, built in Python."""
    process, key = ms.LinearRegression(2, noise=0.5), ms.core.named_key(0, "init")
    start = ms.prompt_linear_transformer(2, 1, key=key)
    return start, ms.TaskPool(process, tasks=3), process, ms.FewShot(4)


@pytest.mark.slow
def test_the_loss_is_that_of_python(pool):
    start, known, new, task = pool
    result = parse_spec(POOL, loss_spec).run()
    slopes = jax.grad(lambda model: ms.population_loss(model, known, task).value)(start)
    assert result.loss == pytest.approx(float(ms.population_loss(start, known, task).value), rel=1e-14)
    assert result.test_loss == pytest.approx(float(ms.population_loss(start, new, task).value), rel=1e-14)
    assert result.standard_error == result.test_standard_error == 0
    assert list(result.gradient) == WEIGHTS
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(slopes)]
    for found, one in zip(result.gradient.values(), expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-12, atol=1e-14)
    assert result.gradient_norm == pytest.approx(np.sqrt(sum(np.sum(one**2) for one in expected)), rel=1e-12)


@pytest.mark.slow
def test_the_flow_is_that_of_python(pool):
    start, known, new, task = pool
    spec = parse_spec({**POOL, "until": 2}, flow_spec)
    result, path = spec.follow(spec.build())
    flow = ms.gradient_flow(start, known, task, until=2.0, rtol=1e-11)
    # rtol is the same, but both are compiled apart
    assert result.loss == pytest.approx(float(flow.loss[-1]), rel=1e-9)
    assert result.test_loss == pytest.approx(float(ms.population_loss(flow.model, new, task).value), rel=1e-9)
    assert (result.result, result.time, len(path.times)) == ("finished", 2, 2)
    np.testing.assert_allclose(result.weights[WEIGHTS[0]], flow.model.network.layers[0].w_kq, rtol=1e-8)


@pytest.mark.slow
def test_a_descent_takes_its_steps(pool):
    start, known, _, task = pool
    result = parse_spec({**POOL, "method": "descent", "lr": 0.1, "steps": 1}, flow_spec).run()
    slopes = jax.grad(lambda model: ms.population_loss(model, known, task).value)(start)
    expected = jax.tree.map(lambda weight, slope: weight - 0.1 * slope, start, slopes)
    np.testing.assert_allclose(result.weights[WEIGHTS[1]], expected.network.layers[0].w_pv, rtol=1e-12)
    assert (result.steps, result.time) == (1, 0.1)


@pytest.mark.slow
def test_symbols_are_enumerated_unless_samples_are_asked_for():
    exact = parse_spec(CHAINS, loss_spec)
    problem = exact.build()
    expected = ms.population_loss(problem.model, problem.process, problem.task, ms.Enumeration())
    found = exact.run()
    assert found.loss == pytest.approx(float(expected.value), rel=1e-14)
    assert (found.standard_error, found.test_loss) == (0, None)
    sampled = parse_spec({**CHAINS, "engine": {"kind": "monte-carlo", "samples": 40}}, loss_spec)
    assert sampled.build().engine == ms.MonteCarlo(40)


def test_complex_weights_are_two_arrays():
    model = ms.LinearAttention(np.eye(2) * 1j, np.eye(2)[:1])
    assert list(named_weights(model)) == ["w_kq.real", "w_kq.imag", "w_pv"]
    np.testing.assert_array_equal(named_weights(model)["w_kq.imag"], np.eye(2))


@pytest.mark.slow
def test_a_checkpoint_is_judged_in_double_precision(tmp_path):
    from mesascope.studies import TrainSpec, load_trained

    data = {name: POOL[name] for name in ("process", "examples", "model")}
    parse_spec({**data, "steps": 2, "batch": 8, "held_out": 8}, TrainSpec).run(tmp_path / "run")
    result = parse_spec(
        {**POOL, "model": {"kind": "checkpoint", "path": "run"}}, loss_spec, folder=tmp_path
    ).run()
    model = jax.tree.map(lambda leaf: leaf.astype(float), load_trained(tmp_path / "run"))
    process = ms.LinearRegression(2, noise=0.5)
    expected = ms.population_loss(model, ms.TaskPool(process, tasks=3), ms.FewShot(4)).value
    assert result.loss == pytest.approx(float(expected), rel=1e-14)


def test_a_model_or_prompts_choose_the_specification(loss_with, flow_with):
    assert parse_spec(loss_with(), loss_spec) == LossSpec(**loss_with())
    assert parse_spec(flow_with(), flow_spec) == FlowSpec(**flow_with())
    assert isinstance(parse_spec(POOL, loss_spec), ModelLossSpec)
    spec = parse_spec({**POOL, "until": 1}, flow_spec)
    assert isinstance(spec, ModelFlowSpec)
    assert parse_spec(json.loads(spec.model_dump_json()), flow_spec) == spec


REFUSED = {
    "model: missing; add it; `mesascope kinds model` shows what it may be": {"model": None},
    "model.kind: 'function' has no weights that are known here; give a checkpoint": {
        "model": {"kind": "function", "name": "a:b"}
    },
    "model.kind: 'token-transformer' does not read the prompts of process 'task-pool'": {
        "model": CHAINS["model"]
    },
    "engine: model: ExactMoments supports regression prompts for prompt_linear_transformer with one layer": {
        "model": {"kind": "prompt-linear-transformer", "layers": 2}
    },
    "engine: model: ExactMoments supports more than three preconditioned steps, layers times loops, for step_size_": {
        "model": {"kind": "preconditioned-linear-transformer", "layers": 2, "loops": 2}
    },
    "model.start: has 1 entries, but layers is 2; make them equal": {
        "model": {"kind": "preconditioned-linear-transformer", "layers": 2, "start": [[[1, 0], [0, 1]]]}
    },
    "model.start: must be 1 matrices of shape (2, 2), one for each layer": {
        "model": {"kind": "preconditioned-linear-transformer", "layers": 1, "start": [[[1]]]}
    },
    "test_process: draws prompts of dimension 3, but the model reads prompts of dimension 2": {
        "test_process": {**NEW, "dim": 3}
    },
    "test_process: draws symbols of dimension 2, but the model reads prompts": {
        "test_process": CHAINS["process"]
    },
    "test_process: ExactMoments supports": {
        "test_process": {
            "kind": "nonlinear-regression",
            "dim": 2,
            "target": {"kind": "two-layer-relu", "hidden": 2},
        }
    },
    "horizon: process 'task-pool' draws prompts; give examples instead": {"horizon": 4},
    "lr: belongs to method = 'descent', but method is 'flow'": {"lr": 0.1},
    "unknown field 'init'": {"init": {"kind": "diagonal", "a": 1, "b": 1}},
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    fields = {name: value for name, value in {**POOL, **REFUSED[message]}.items() if value is not None}
    with pytest.raises(SpecError) as refusal:
        parse_spec(fields, flow_spec).run()
    assert str(refusal.value).startswith(message)


@pytest.mark.slow
def test_what_diverges_names_fields_of_the_specification():
    model = {"kind": "prompt-linear-transformer", "layers": 1, "scale": 1e120}
    result = parse_spec({**POOL, "model": model, "until": 1}, flow_spec).run()
    assert not result.succeeded and "smaller weights in model, or smaller data in process" in result.message


@pytest.mark.slow
def test_the_commands_print_both_losses(tmp_path, capsys):
    (tmp_path / "pool.json").write_text(json.dumps({**POOL, "until": 1}))
    (tmp_path / "loss.json").write_text(json.dumps(POOL))
    assert main(["flow", str(tmp_path / "pool.json")]) == 0
    shown = capsys.readouterr().out
    assert "\ntest loss     " in shown and f"{WEIGHTS[0]}  1 × 3 × 3" in shown
    assert main(["loss", str(tmp_path / "loss.json"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == parse_spec(POOL, loss_spec).run().model_dump()


@pytest.mark.slow
def test_a_study_over_the_size_of_a_pool(tmp_path):
    study = {
        "name": "sizes",
        "kind": "flow",
        "base": {**POOL, "until": 1},
        "axes": [{"path": "process.tasks", "values": [1, 4]}],
    }
    ids = sweep(parse_spec(study, StudySpec), tmp_path / "store").ids
    for run, tasks in zip(ids, (1, 4), strict=True):
        folder = RunFolders(tmp_path / "store")
        record, path = folder.finished(run), folder.trajectory(run)
        process = {**POOL["process"], "tasks": tasks}
        alone = parse_spec({**POOL, "process": process, "until": 1}, flow_spec).run()
        assert record.outcome == alone.model_dump()
        assert path["test_loss"].values[-1] == pytest.approx(alone.test_loss, rel=1e-14)
        assert path[WEIGHTS[0]].shape == (len(path["time"]), 1, 3, 3)
