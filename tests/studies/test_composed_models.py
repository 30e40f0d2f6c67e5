"""Models composed of any parts: what they build, and that all parts of `mesascope.models` can be named."""

import json

import jax
import numpy as np
import pytest

import mesascope.models as parts
from mesascope.specs import known_kinds
from mesascope.studies import TrainSpec, parse_spec

OTHER = {"law": None, "dim": None}
TREE = {**OTHER, "process": {"kind": "markov-tree", "states": 3, "alpha": 1, "parents": "chain"}}
REAL = {**OTHER, "process": {"kind": "orthogonal-ar", "law": "gaussian", "dim": 2}}


def built(data, **model):
    """The model, after its specification was written and read again."""
    spec = parse_spec({**data, "model": {"kind": "composed", **model}}, TrainSpec)
    assert parse_spec(json.loads(spec.model_dump_json()), TrainSpec) == spec
    with jax.enable_x64(False):
        return spec.build(), spec.build_model()


def kinds_of(model):
    found = set()

    def note(node):
        found.add(type(node).__name__)
        return False

    jax.tree.leaves(model, is_leaf=note)
    return found


def predictions(run, model):
    with jax.enable_x64(False):
        sample = run.process.sample(jax.random.key(0), run.spec.shape.length, 2)
        if hasattr(sample, "x"):
            return model.predictions(sample.x, sample.y[:, :-1])
        return model.predictions(sample[:, :-1])


LINEAR = [
    "linear-attention",
    {"kind": "factored-linear-attention", "key_size": 2, "heads": 2},
    {"kind": "mesa", "regularization": 0.5},
    {"kind": "diagonal-attention", "scale": 0.3},
]
SOFT = [
    {"kind": "softmax-attention", "heads": 1, "norm": True},
    {"kind": "mlp", "hidden": 5, "activation": "relu", "residual": False},
    "layer-norm",
]
MEMORIES = [{"kind": "memory", "rule": name} for name in known_kinds("rule")]
# data, model, the parts that it must contain, shape and type of its predictions
CASES = {
    "complex": (
        {},
        {"embedding": "paired-tokens", "layers": LINEAR, "readout": "first-block"},
        {"PairedTokens", "LinearAttentionStack", "FactoredLinearSelfAttention", "MesaLayer", "FirstBlock"}
        | {"DiagonalSelfAttention"},
        ((2, 3, 2), "complex64"),
    ),
    "real form": (
        {},
        {
            "embedding": {"kind": "paired-tokens", "width": 7, "positions": "learned"},
            "layers": [LINEAR[0], *SOFT],
            "readout": "first-block",
        },
        {"RealForm", "Projected", "WithPositions", "LearnedPositions", "ComplexPairs", "FirstBlock"}
        | {"Stack", "Residual", "PreNorm", "SoftmaxSelfAttention", "MLP", "LayerNorm"},
        ((2, 3, 2), "complex64"),
    ),
    "real": (
        REAL,
        {
            "embedding": {"kind": "bare-tokens", "positions": "sinusoidal"},
            "layers": LINEAR[2:],
            "readout": {"kind": "dense", "norm": True},
        },
        {"BareTokens", "SinusoidalPositions", "NormedDense", "LinearAttentionStack"},
        ((2, 3, 2), "float32"),
    ),
    "table": (
        TREE,
        {"embedding": {"kind": "token-table", "width": 4}, "layers": SOFT, "readout": "dense", "loops": 2},
        {"TokenTable", "Looped", "Dense"},
        ((2, 3, 3), "float32"),
    ),
    "one-hot": (
        TREE,
        {"embedding": "one-hot", "layers": LINEAR[:1], "readout": "first-block"},
        {"OneHot", "FirstBlock"},
        ((2, 3, 3), "float32"),
    ),
    "memories": (
        {},  # complex tokens, for layers of which two take real streams only
        {
            "embedding": "paired-tokens",
            "layers": [*MEMORIES, {**MEMORIES[0], "keys": "free", "feature_map": "silu"}],
            "readout": "first-block",
        },
        {"MemoryLayer", "RealForm", "ComplexPairs", "LinearAttentionStack", "MesaNet", "TTTLinear", "Titans"},
        ((2, 3, 2), "complex64"),
    ),
    "memories of prompts": (
        None,
        {
            "embedding": "stacked-prompt",
            "layers": MEMORIES[:2],
            "readout": {"kind": "last-entry", "sign": 1},
        },
        {"MemoryLayer"},
        ((2, 4), "float32"),
    ),
    "stacked": (
        None,
        {
            "embedding": "stacked-prompt",
            "layers": [*LINEAR[:2], {"kind": "low-rank-linear-attention", "rank": 2}],
            "loops": 2,
            "readout": {"kind": "last-entry", "sign": 1},
        },
        {"StackedPrompt", "Looped", "LinearAttentionStack", "LinearSelfAttention", "LastEntry"}
        | {"LowRankLinearSelfAttention"},
        ((2, 4), "float32"),
    ),
    "a builder of its own": (  # its layer exists in no composed model
        None,
        {"kind": "preconditioned-linear-transformer", "layers": 2},
        {"PreconditionedLinearAttention"},
        ((2, 4), "float32"),
    ),
    "a builder with step sizes": (
        None,
        {"kind": "step-size-transformer", "layers": 2, "start": [0.5, "1/3"], "metric": [[2, 0], [0, 1]]},
        {"StepSizeAttention"},
        ((2, 4), "float32"),
    ),
    "interleaved": (
        None,
        {
            "embedding": {"kind": "interleaved-prompt", "width": 4, "positions": "learned"},
            "layers": SOFT[:2],
            "readout": "dense",
        },
        {"InterleavedPrompt", "Projected", "LearnedPositions"},
        ((2, 4), "float32"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_parts(case, train_with, prompts_with):
    changes, model, expected, (shape, dtype) = CASES[case]
    data = prompts_with() if changes is None else train_with(**changes)
    run, made = built(data, **model)
    assert expected <= kinds_of(made)
    predicted = predictions(run, made)
    assert (predicted.shape, predicted.dtype) == (shape, dtype)
    assert np.isfinite(predicted).all()


def test_every_part_of_the_library_can_be_named():
    named = set().union(*(expected for _, _, expected, _ in CASES.values()))
    made_by = (
        one.function for family in ("layer", "embedding", "readout") for one in known_kinds(family).values()
    )
    named |= {getattr(one, "__self__", one).__name__ for one in made_by}
    bases = {
        parts.Embedding,
        parts.Layer,
        parts.AroundLayer,
        parts.Readout,
        parts.BatchLastLayer,
        parts.PreconditionedStep,
    }
    known = {
        name
        for name, one in vars(parts).items()
        if isinstance(one, type) and issubclass(one, tuple(bases)) and one not in bases
    }
    assert known <= named


@pytest.mark.slow
def test_fields_reach_the_parts(prompts_with):
    layers = [
        {"kind": "linear-attention", "rho": "t", "context": "all"},
        {"kind": "linear-attention", "heads": 2, "scale": 5},
    ]
    embedding = "stacked-prompt"
    _, made = built(
        prompts_with(), embedding=embedding, layers=layers, loops=3, readout={"kind": "last-entry"}
    )
    assert made.network.loops == 3 and made.readout.sign == -1
    first, second = made.network.layer.layers
    assert (first.normalizer, first.context, first.w_kq.shape) == ("t", "all", (1, 3, 3))
    assert (second.normalizer, second.context, second.w_kq.shape) == ("t-1", "examples", (2, 3, 3))
    assert np.std(second.w_kq) > 10 * np.std(first.w_kq)  # 50 times as large


@pytest.mark.slow
def test_norm_and_residual_connections(train_with):
    layers = [
        {"kind": "linear-attention", "residual": False},
        {"kind": "linear-attention", "norm": True},
        "linear-attention",
        "layer-norm",
    ]
    _, made = built(train_with(**REAL), embedding="paired-tokens", layers=layers, readout="first-block")
    kinds = [type(layer).__name__ for layer in made.network.layers]
    assert kinds == ["LinearSelfAttention", "Residual", "Residual", "LayerNorm"]
    assert isinstance(made.network.layers[1].layer, parts.PreNorm)
    assert isinstance(made.network.layers[2].layer, parts.LinearSelfAttention)


@pytest.mark.slow
def test_residual_weights_shrink_with_the_depth(train_with):
    def outputs(layers):
        embedding = {"kind": "bare-tokens", "width": 64}
        _, made = built(train_with(**REAL), embedding=embedding, layers=layers, readout="dense")
        return np.std(made.network.layers[0].layer.weights[-1])

    # 256 · 64 numbers: their standard deviation is known to half a percent
    np.testing.assert_allclose(outputs(["mlp"]) / outputs(["mlp"] * 4), 2, rtol=0.05)
