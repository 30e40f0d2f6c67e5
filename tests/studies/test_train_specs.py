"""Training specifications build the right objects, and are read back unchanged."""

import json
from fractions import Fraction

import jax
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.dynamics import Optimizer
from mesascope.models import LinearAttention, linear_transformer
from mesascope.processes import (
    DiagonalUnitary,
    Empirical,
    FewShot,
    Gaussian,
    LinearAR,
    LinearRegression,
    MarkovGraph,
    MarkovTree,
    NextToken,
    NoiseRange,
    NonlinearAR,
    NonlinearRegression,
    OrthogonalAR,
    OrthonormalFeatures,
    RandomDiagonal,
    RandomFeatures,
    RotationAR,
    TwoLayerReLU,
    Uniform,
)
from mesascope.studies import TrainSpec, parse_spec, read_spec
from mesascope.theory import ahn2023, vonoswald2023

# processes by what they draw, as specified and as built
SEQUENCES = [
    (
        {"kind": "orthogonal-ar", "law": "gaussian", "dim": 2, "noise": "1/3", "basis": 4},
        OrthogonalAR(Gaussian(), 2, Fraction(1, 3), 4),
    ),
    (
        {"kind": "rotation-ar", "law": {"kind": "uniform", "scale": 2}, "dim": 2, "start": "axis"},
        RotationAR(Uniform(2), 2, "axis"),
    ),
    (
        {"kind": "linear-ar", "law": "gaussian", "state_dim": 2, "spectrum": [0.5, [-1, "1/2"]]},
        LinearAR(Gaussian(), 2, [0.5, (-1, "1/2")]),
    ),
    (
        {
            "kind": "linear-ar",
            "law": "gaussian",
            "state_dim": 3,
            "spectrum": [{"re": "1/2", "im": 0.3}, 0.5, {"re": 0.5, "im": -0.3}],
        },
        LinearAR(Gaussian(), 3, [0.5 + 0.3j, 0.5, 0.5 - 0.3j]),
    ),
    (
        {
            "kind": "linear-ar",
            "law": "gaussian",
            "state_dim": 2,
            "spectrum": {"low": -1.5, "high": 1},
            "noise": 0.1,
            "observed": 3,
            "unstable": True,
        },
        LinearAR(Gaussian(), 2, [(-1.5, 1)] * 2, 0.1, 3, True),
    ),
    (
        {"kind": "nonlinear-ar", "law": "gaussian", "dim": 2, "hidden": 3, "gain": 2, "noise": 0.1},
        NonlinearAR(Gaussian(), 2, 3, 2, 0.1),
    ),
    ({"kind": "markov-tree", "states": 3, "alpha": 0.1, "parents": "chain"}, MarkovTree.chain(4, 3, 0.1)),
    (
        {"kind": "markov-tree", "states": 3, "alpha": 0.1, "parents": "random", "seed": 2},
        MarkovTree.random(4, 3, 0.1, 2),
    ),
    (
        {"kind": "markov-tree", "states": 3, "alpha": "1/2", "parents": ["root", 0, None, "root"]},
        MarkovTree([None, 0, None, None], 3, "1/2"),
    ),
    (
        {
            "kind": "markov-graph",
            "symbols": 3,
            "concentration": "1/2",
            "parents": [[], [], [0, 1], [1, 2], [3, 0]],
        },
        MarkovGraph([[], [], [0, 1], [1, 2], [3, 0]], 3, "1/2"),
    ),
]
PROMPTS = [
    ({"kind": "linear-regression", "dim": 2}, LinearRegression(2)),
    (
        {
            "kind": "linear-regression",
            "dim": 2,
            "law": "uniform",
            "covariance": [[2, 0.5], [0.5, 1]],
            "prior": "inverse",
            "noise": 0.1,
            "sparsity": 1,
        },
        LinearRegression(2, Uniform(), [[2, 0.5], [0.5, 1]], "inverse", 0.1, 1),
    ),
    (
        {
            "kind": "linear-regression",
            "dim": 2,
            "covariance": {"law": "uniform"},
            "prior": [[2, 0], [0, 1]],
            "noise": {"largest": 5},
        },
        LinearRegression(2, Gaussian(), RandomDiagonal(Uniform()), [[2, 0], [0, 1]], NoiseRange(5)),
    ),
    (
        {"kind": "nonlinear-regression", "dim": 2, "target": {"kind": "two-layer-relu", "hidden": 3}},
        NonlinearRegression(2, TwoLayerReLU(3)),
    ),
    (
        {
            "kind": "nonlinear-regression",
            "dim": 2,
            "target": {"kind": "random-features", "features": 3, "seed": 1},
            "law": "uniform",
            "noise": {"largest": 1},
        },
        NonlinearRegression(2, RandomFeatures(3, 1), Uniform(), NoiseRange(1)),
    ),
    ({"kind": "orthonormal-features", "features": 2}, OrthonormalFeatures(2)),
    (
        {
            "kind": "orthonormal-features",
            "features": 2,
            "dim": 3,
            "probabilities": ["1/3", "2/3"],
            "law": "uniform",
        },
        OrthonormalFeatures(2, 3, ["1/3", "2/3"], Uniform()),
    ),
]


def check_round_trip(spec):
    assert parse_spec(json.loads(spec.model_dump_json()), TrainSpec) == spec


@pytest.mark.parametrize(("process", "expected"), SEQUENCES, ids=[p["kind"] for p, _ in SEQUENCES])
def test_sequences(process, expected):
    kind = "token-transformer" if process["kind"].startswith("markov") else "transformer"
    model = {"kind": kind, "width": 2, "layers": 1, "heads": 1}
    spec = parse_spec({"process": process, "horizon": 5, "model": model}, TrainSpec)
    run = spec.build()
    assert run.process == expected and run.task == NextToken(5)
    assert spec.shape.width == run.process.dim
    check_round_trip(spec)


@pytest.mark.parametrize(("process", "expected"), PROMPTS, ids=[p["kind"] for p, _ in PROMPTS])
def test_prompts(process, expected):
    model = {"kind": "prompt-linear-transformer", "layers": 1}
    spec = parse_spec({"process": process, "examples": 5, "model": model}, TrainSpec)
    run = spec.build()
    assert run.process == expected and run.task == FewShot(5)
    assert spec.shape.width == run.process.dim
    check_round_trip(spec)


def test_diagonal_unitary_is_the_default(train_with):
    spec = parse_spec(train_with(), TrainSpec)
    assert spec.build().process == DiagonalUnitary(Gaussian(), 2)
    assert parse_spec(train_with(process="diagonal-unitary"), TrainSpec) == spec
    check_round_trip(spec)


@pytest.mark.parametrize(
    ("data", "weights", "expected"),
    [
        ("train_with", None, NextToken(5)),
        ("train_with", "every", NextToken(5)),
        ("train_with", "last", NextToken.last(5)),
        ("train_with", {"3": "1/2"}, NextToken(5, {3: "1/2"})),
        ("train_with", [1, 0, 2], NextToken(5, [1, 0, 2])),
        ("prompts_with", None, FewShot(3)),
        ("prompts_with", "last", FewShot(3)),
        ("prompts_with", "every", FewShot.every(3)),
        ("prompts_with", {"0": 1}, FewShot(3, {0: 1})),
        ("prompts_with", [0, 0, 1, 1], FewShot(3, [0, 0, 1, 1])),
    ],
)
def test_weights(data, weights, expected, request):
    spec = parse_spec(request.getfixturevalue(data)(weights=weights), TrainSpec)
    assert spec.build().task == expected
    check_round_trip(spec)


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        ("lion", Optimizer("lion")),
        ({}, Optimizer()),
        (
            {
                "method": "adamw",
                "learning_rate": "1/8",
                "schedule": "cosine",
                "warmup": 2,
                "clip": 1,
                "weight_decay": 0.5,
            },
            Optimizer("adamw", 0.125, "cosine", 2, 1.0, 0.5),
        ),
    ],
)
def test_optimizers(optimizer, expected, train_with):
    spec = parse_spec(train_with(optimizer=optimizer), TrainSpec)
    assert spec.build().settings["optimizer"] == expected
    check_round_trip(spec)


def test_the_seed_of_the_run_draws_the_weights(train_with):
    def model(**changes):
        return parse_spec(train_with(**changes), TrainSpec).build_model()

    drawn = model(seed=3, model={"kind": "linear-transformer", "layers": 1})
    assert same(drawn, model(seed=4, model={"kind": "linear-transformer", "layers": 1, "seed": 3}))
    assert not same(drawn, model(seed=4, model={"kind": "linear-transformer", "layers": 1}))
    init = {"kind": "gaussian", "scale": 0.1}
    attention = model(seed=3, model={"kind": "linear-attention", "init": init})
    again = model(seed=4, model={"kind": "linear-attention", "init": {**init, "seed": 3}})
    assert same(attention, again)
    assert not same(attention, model(seed=4, model={"kind": "linear-attention", "init": init}))


def test_weights_do_not_depend_on_the_mode(train_with):
    # in 64-bit mode, which these tests are in, JAX draws other numbers from the same key
    spec = parse_spec(train_with(model={"kind": "linear-transformer", "layers": 1}), TrainSpec)
    with jax.enable_x64(False):
        short = linear_transformer(2, 1, key=named_key(0, "init"))
        assert same(spec.build_model(), short)
    assert same(spec.build_model(), short)
    long = parse_spec(train_with(precision="float64"), TrainSpec).build_model()
    assert long.w_kq.dtype == np.float64


def test_linear_attention_starts_where_flows_do(train_with):
    model = parse_spec(train_with(), TrainSpec).build_model()
    expected = LinearAttention.diagonal(2, 0.1, 0.2, "t")
    assert model.normalizer == "t"
    np.testing.assert_allclose(model.w_kq, expected.w_kq, rtol=1e-7)  # float32
    np.testing.assert_allclose(model.w_pv, expected.w_pv, rtol=1e-7)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (
            {"kind": "gradient-descent", "step_sizes": ["1/2", 0.25]},
            vonoswald2023.gradient_descent(2, [0.5, 0.25]),
        ),
        (
            {"kind": "gradient-descent++", "step_sizes": [0.5, 0.25], "curvatures": [1, 0]},
            vonoswald2023.gradient_descent_plus_plus(2, [0.5, 0.25], [1, 0]),
        ),
        (
            {"kind": "preconditioned", "preconditioners": [[[1, 2], [3, 4]], [[0, 1], [0, 1]]]},
            ahn2023.preconditioned_gradient_descent([[[1, 2], [3, 4]], [[0, 1], [0, 1]]]),
        ),
    ],
)
def test_prompt_transformers_start_as_algorithms(start, expected, prompts_with):
    spec = parse_spec(
        prompts_with(model={"kind": "prompt-linear-transformer", "layers": 2, "start": start}), TrainSpec
    )
    check_round_trip(spec)
    model = spec.build_model()
    for layer, w_kq, w_pv in zip(model.network.layers, *expected, strict=True):
        np.testing.assert_array_equal(layer.w_kq, w_kq)
        np.testing.assert_array_equal(layer.w_pv, w_pv)
        assert (layer.normalizer, layer.context) == ("t-1", "examples")
    drawn = parse_spec(prompts_with(model={"kind": "prompt-linear-transformer", "layers": 2}), TrainSpec)
    shapes = [leaf.shape for leaf in jax.tree.leaves(drawn.build_model())]
    assert [leaf.shape for leaf in jax.tree.leaves(model)] == shapes


def test_files_of_samples_are_found_from_any_folder(tmp_path, train_with, monkeypatch):
    (tmp_path / "s.csv").write_text("1\n-1\n")
    (tmp_path / "a.json").write_text(json.dumps(train_with(law={"kind": "empirical", "file": "s.csv"})))
    with monkeypatch.context() as there:
        there.chdir(tmp_path)
        stored = read_spec("a.json", TrainSpec).model_dump_json()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "spec.json").write_text(stored)
    spec = read_spec(tmp_path / "elsewhere" / "spec.json", TrainSpec)
    assert spec.build().process == DiagonalUnitary(Empirical([1, -1]), 2)


def same(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
