"""Every wrong training specification is refused in one line that names the field, what is wrong, and the fix."""

import pytest

from mesascope.studies import FlowSpec, LossSpec, SpecError, TrainSpec, parse_spec

NAN = float("nan")
AR = {"kind": "orthogonal-ar", "law": "gaussian", "dim": 2}
TREE = {"kind": "markov-tree", "states": 3, "alpha": 0.1, "parents": "chain"}
REGRESSION = {"kind": "linear-regression", "dim": 2}
MOMENTS = {"kind": "moments", "moments": [1]}
SOFTMAX = {"width": 4, "layers": 1, "heads": 2}
# `law` and `dim` of the valid specification belong to its process; None removes a field
OTHER = {"law": None, "dim": None}


def model(kind, **fields):
    return {"model": {"kind": kind, **fields}}


def process(**changes):
    return {**OTHER, "process": changes}


def linear_ar(**changes):
    return process(**{"kind": "linear-ar", "law": "gaussian", "state_dim": 2, **changes})


def tree(**changes):
    return {**process(**{**TREE, **changes}), "model": {"kind": "token-transformer", **SOFTMAX}}


SEQUENCES = [
    # which process
    ({"process": {"kind": "orthogonal"}}, "process.kind: unknown kind 'orthogonal'; did you mean"),
    (
        {"process": 3},
        "process: must be a process or a table with its kind (diagonal-unitary, drifting-regression,",
    ),
    ({"process": AR}, "law: is a field of 'orthogonal-ar'; move it into the table of process"),
    ({"process": AR, "law": None}, "dim: is a field of 'orthogonal-ar'; move it into the table"),
    (process(kind="diagonal-unitary", dim=2), "process.law: missing; add it"),
    ({"law": None}, "law: missing; process 'diagonal-unitary' needs law and dim"),
    ({"dim": None}, "dim: missing; process 'diagonal-unitary' needs law and dim"),
    # its parameters
    ({"law": {"kind": "gausian"}}, "law.kind: unknown kind 'gausian'; did you mean 'gaussian'?"),
    ({"law": {"kind": "constant", "value": [1, 2, 3]}}, "dim: dim is 2, but tokens of Constant"),
    ({"law": {"kind": "studentt", "df": 5}}, "law: E x^6 does not exist for StudentT(df=5, scale=1)"),
    (process(**AR, nois=1), "process: unknown field 'nois'; did you mean 'noise'?"),
    (process(**AR, noise=-1), "process.noise: must not be negative, got -1"),
    (process(**AR, noise=NAN), "process.noise: must be finite"),
    (
        process(**{**AR, "dim": 3}, basis=1),
        "process.dim: must be even with a shared basis, which rotates planes, got 3",
    ),
    (process(kind="orthogonal-ar", dim=2), "process.law: missing; add it"),
    (process(**{**AR, "law": {"kind": "gaussian", "scale": 0}}), "process.law.scale: must be"),
    (process(**{**AR, "law": MOMENTS}), "process.law.moments: must be the 7 numbers"),
    (
        process(kind="rotation-ar", law="gaussian", dim=3),
        "process.dim: must be even, since planes rotate, got 3",
    ),
    (process(kind="rotation-ar", law="gaussian", dim=2, start="x"), "process.start: unknown value 'x'; use"),
    (
        linear_ar(spectrum=3),
        "process.spectrum: must list eigenvalues, pairs [low, high] and tables with re and im",
    ),
    (linear_ar(spectrum=[1, {"re": 1}]), "process.spectrum[1].im: missing; add it"),
    (linear_ar(spectrum=[1, {"re": NAN, "im": 1}]), "process.spectrum[1].re: must be finite"),
    (
        linear_ar(spectrum=[{"re": 0, "im": 0.5}, 1]),
        "process.spectrum[0]: 0.5j is given without its conjugate",
    ),
    (linear_ar(spectrum=[1]), "process.spectrum: must list one eigenvalue for each of the 2"),
    (linear_ar(spectrum=[1, NAN]), "process.spectrum[1]: must be finite"),
    (linear_ar(spectrum=[1, [0, NAN]]), "process.spectrum[1][1]: must be finite"),
    (linear_ar(spectrum=[1, [0, 1, 2]]), "process.spectrum[1]: must be a number or a pair"),
    (linear_ar(spectrum={"low": 0}), "process.spectrum.high: missing; add it"),
    (linear_ar(spectrum={"low": 0, "hig": 1}), "process.spectrum: unknown field 'hig'; did you mean 'high'?"),
    (linear_ar(spectrum=[1, 2]), "process.spectrum: reaches |λ| = 2 > 1, so states grow"),
    (linear_ar(spectrum=[1, 1], unstable=1), "process.unstable: must be true or false, got 1"),
    (process(kind="nonlinear-ar", law="gaussian", dim=2, hidden=0), "process.hidden: must be at least 1"),
    (tree(states=1), "process.states: must be at least 2, got 1"),
    (tree(alpha=0), "process.alpha: must be greater than 0, got 0"),
    (tree(parents="line"), "process.parents: must be 'chain', 'random', or a list of positions and 'root'"),
    (
        tree(parents=["root", -1]),
        "process.parents[1]: must be an earlier position, counted from 0, or 'root'",
    ),
    (
        tree(parents=["root", 0, "root"]),
        "process: parents lists 3 positions, expected horizon − 1 = 4; change",
    ),
    (tree(parents=["root", 2, 1, "root"]), "process.parents[1]: must be an earlier position"),
    (tree(seed=1), "process.seed: is used only with parents = 'random'; remove it or change parents"),
    # the task
    ({"horizon": None}, "horizon: missing; process 'diagonal-unitary' draws sequences and needs horizon"),
    ({"horizon": 2}, "horizon: must be at least 3, got 2"),
    ({"examples": 3}, "examples: process 'diagonal-unitary' draws sequences; give horizon instead"),
    ({"weights": "evry"}, "weights: unknown value 'evry'; did you mean 'every'?"),
    ({"weights": {"9": 1}}, "weights.9: context lengths are 2 … 4, got 9"),
    ({"weights": [1, 2]}, "weights: has 2 numbers, expected 3, one for each context length 2 … 4"),
    ({"weights": {"2": 0}}, "weights: all weights are zero"),
    ({"weights": {"two": 1}}, "weights: 'two' is not a number of tokens or examples"),
    # the model
    (
        {"model": None},
        "model: must be a model or a table with its kind (composed, factored-linear-attention,",
    ),
    ({"model": "linear-transformer"}, "model.layers: missing; add it"),
    (model("transformr", **SOFTMAX), "model.kind: unknown kind 'transformr'; did you mean"),
    (model("linear-attention"), "model.init: missing; add it"),
    (model("linear-attention", init={"kind": "diagonal", "a": NAN, "b": 1}), "model.init.a: must be finite"),
    (
        model("linear-attention", init={"kind": "explicit", "w_kq": [[0] * 4] * 4, "w_pv": [[0] * 4]}),
        "model.init.w_pv: has shape (1, 4), expected (2, 4) = (dim, 2·dim) for dim = 2",
    ),
    (model("linear-transformer", layers=1, rho="t-2"), "model.rho: unknown value 't-2'"),
    (model("linear-transformer", layers=0), "model.layers: must be at least 1, got 0"),
    (model("transformer", **{**SOFTMAX, "heads": 3}), "model.heads: must divide the width 4, got 3"),
    (
        model("prompt-transformer", **SOFTMAX),
        "model.kind: 'prompt-transformer' does not read the complex tokens of process 'diagonal-unitary'; use one of "
        "composed, factored-linear-attention, factored-linear-transformer, linear-attention, linear-transformer, "
        "mesa-transformer, multi-head-linear-attention, transformer",
    ),
    (
        model("token-transformer", **SOFTMAX),
        "model.kind: 'token-transformer' does not read the complex tokens of process 'diagonal-unitary'; use one",
    ),
    (
        {**tree(), "model": {"kind": "transformer", **SOFTMAX}},
        "model.kind: 'transformer' does not read the symbols of process 'markov-tree'; use one of composed",
    ),
    # how to train
    ({"optimizer": "adm"}, "optimizer.method: unknown value 'adm'; did you mean 'adam'?"),
    ({"optimizer": 3}, "optimizer: must be a table with the fields method, learning_rate"),
    ({"optimizer": {"lr": 1}}, "optimizer: unknown field 'lr'; use one of method, learning_rate"),
    ({"optimizer": {"learning_rate": 0}}, "optimizer.learning_rate: must be greater than 0, got 0"),
    ({"optimizer": {"clip": -1}}, "optimizer.clip: must be greater than 0, got -1"),
    ({"optimizer": {"weight_decay": 1}}, "optimizer.weight_decay: adam has none; use method 'adamw'"),
    ({"optimizer": {"warmup": 3}}, "optimizer: warmup: 3 steps do not fit into a run of 3; take fewer"),
    ({"steps": 0}, "steps: must be at least 1, got 0"),
    ({"steps": 2.0}, "steps: must be an integer, got 2.0"),
    ({"batch": 10**8, "horizon": 1000}, "batch: 100000000 samples for NextToken(T=1000) take"),
    ({"seed": 2**32}, "seed: must be at most 4294967295"),
    ({"seed": None}, "seed: missing; give one seed, or leave it out for 0"),
    ({"seeds": [1, 2], "seed": 1}, "seeds: cannot be given together with seed; leave out one of the two"),
    ({"seeds": [1, 1]}, "seeds: must be distinct, got [1, 1]"),
    ({"seeds": []}, "seeds: must have at least 1 entries, got 0"),
    ({"seeds": [0, -1]}, "seeds[1]: must be at least 0, got -1"),
    ({"seeds": [0, 1]}, "seeds: lists several runs; build them by build_many"),
    (
        {**tree(), "horizon": 3 * 10**8},
        "process: horizon must be at most 65537: the graph lists every position",
    ),
    ({"precision": "float16"}, "precision: unknown value 'float16'; did you mean"),
    ({"average": 1}, "average: must be greater than 0 and less than 1, got 1"),
    ({"held_out": 1}, "held_out: must be at least 2, got 1"),
    ({"record_every": 0}, "record_every: must be at least 1, got 0"),
    ({"evaluate_every": 0}, "evaluate_every: must be at least 1, got 0"),
    ({"checkpoint_every": 0}, "checkpoint_every: must be at least 1, got 0"),
    ({"checkpoint_minutes": 0}, "checkpoint_minutes: must be greater than 0, got 0"),
    ({"stps": 1}, "unknown field 'stps'; did you mean 'steps'?"),
    # beyond the precision or the memory
    (
        {"optimizer": {"learning_rate": 1e300}},
        "optimizer.learning_rate: 1e+300 is beyond the range of float32; take a smaller number, or precision",
    ),
    (
        model("linear-transformer", layers=1, scale=1e-60),
        "model.scale: 1e-60 would be 0 in float32; take a larger number, or precision = 'float64'",
    ),
    (
        model(
            "linear-attention",
            init={"kind": "explicit", "w_kq": [[0, 0, 0, 1e300]] * 4, "w_pv": [[1, 0, 0, 0]] * 2},
        ),
        "model.init.w_kq: 1e+300 is beyond the range of float32",
    ),
    ({"weights": {"3": 1e40}}, "weights.3: 1e+40 is beyond the range of float32"),
    ({"weights": {"3": 1e300}}, "weights.3: must be 0, or lie between 1e-50 and 1e+50, got 1e+300"),
    ({"weights": {"3": 1e-320}}, "weights.3: must be 0, or lie between"),
    ({"average": 1e-60, "precision": "bfloat16"}, "average: 1e-60 would be 0 in float32"),
    (model("linear-transformer", layers=1025), "model.layers: must be at most 1024, got 1025"),
    (
        model("transformer", width=2**16, layers=2, heads=1),
        "model: transformer: the weights take 384 GiB, more than 4; take smaller sizes",
    ),
    (
        model("transformer", width=2**12, layers=2, heads=1),
        "model: 402,784,260 weights take 6 GiB with their gradient and the state of the optimizer",
    ),
    (
        {**process(**{**AR, "dim": 1024}), "batch": 2048},
        "batch: 2048 samples of OrthogonalAR take an array of 8 GiB while they are drawn; take a smaller",
    ),
]


def composed(**changes):
    parts = {"embedding": "paired-tokens", "layers": ["linear-attention"], "readout": "first-block"}
    return model("composed", **{**parts, **changes})


COMPOSED = [
    ({"layers": []}, "model.layers: must have at least 1 entries, got 0"),
    ({"layers": ["linear"]}, "model.layers[0].kind: unknown kind 'linear'; did you mean 'linear-attention'?"),
    (
        {"layers": [{"kind": "mesa", "context": "all"}]},
        "model.layers[0]: unknown field 'context'; use one of",
    ),
    (
        {"layers": ["mesa", {"kind": "linear-attention", "context": "all"}]},
        "model.layers[1].context: 'all' shows a query of sequences the tokens to predict; use 'causal'",
    ),
    (
        {"layers": ["mesa", {"kind": "softmax-attention", "heads": 5}]},
        "model.layers[1]: width 12 is not a multiple of 5 heads; give key_size and value_size",
    ),
    ({"layers": [{"kind": "mlp", "norm": 1}]}, "model.layers[0].norm: must be true or false, got 1"),
    ({"embedding": "bare"}, "model.embedding.kind: unknown kind 'bare'; did you mean 'bare-tokens'?"),
    (
        {"embedding": "one-hot"},
        "model.embedding.kind: 'one-hot' does not embed complex tokens; use one of bare-tokens",
    ),
    ({"embedding": "token-table"}, "model.embedding.width: missing; add it"),
    (
        {"embedding": {"kind": "paired-tokens", "width": 1}},
        "model.readout: FirstBlock: reads 2 entries, the network gives width 1",
    ),
    (
        {"readout": "last-entry"},
        "model.readout.kind: 'last-entry' does not predict complex tokens; use one of dense",
    ),
    ({"readout": {"kind": "last-entry", "sign": 2}}, "model.readout.sign: must be -1 or 1, got 2"),
    ({"loops": 0}, "model.loops: must be at least 1, got 0"),
]


def regression(**changes):
    return {"process": {**REGRESSION, **changes}}


def started(**changes):
    start = {"kind": "gradient-descent", "step_sizes": [0.5]}
    return model("prompt-linear-transformer", **{"layers": 1, "start": start, **changes})


PROMPTS = [
    (started(layers=2), "model.start: has 1 layers, but layers is 2; make them equal"),
    (started(heads=2), "model.heads: must be 1 if start gives the algorithm of the layers, got 2"),
    (
        started(rank=1),
        "model.rank: belongs to random weights, but start gives those of an algorithm; leave one out",
    ),
    (
        started(start={"kind": "gradient-descent++", "step_sizes": [1], "curvatures": [1, 2]}),
        "model.start: curvatures: got 2 numbers for 1 step_sizes",
    ),
    (
        started(start={"kind": "preconditioned", "preconditioners": [[[1]]]}),
        "model.start: is for inputs of dimension 1, but the process draws dimension 2",
    ),
    (started(start="gradient-descent"), "model.start.step_sizes: missing; add it"),
    ({"examples": None}, "examples: missing; process 'linear-regression' draws prompts and needs examples"),
    ({"examples": 0}, "examples: must be at least 1, got 0"),
    ({"examples": 10**9}, "examples: must be at most 1000000, got 1000000000"),
    ({"horizon": 5}, "horizon: process 'linear-regression' draws prompts; give examples instead"),
    ({"weights": {"4": 1}}, "weights.4: example counts are 0 … 3, got 4"),
    (
        model("transformer", **SOFTMAX),
        "model.kind: 'transformer' does not read the prompts of process 'linear-regression'; use one of "
        "composed, looped-linear-transformer, preconditioned-linear-transformer, prompt-linear-transformer, "
        "prompt-memory-solver, prompt-transformer",
    ),
    (
        model("prompt-linear-transformer", layers=1, context="past"),
        "model.context: unknown value 'past'; use one of causal, all, examples",
    ),
    (regression(covariance=[[1, 2], [2, 1]]), "process.covariance: must be positive definite"),
    (regression(covariance=[[1, 2], [3]]), "process.covariance[1]: has 1 numbers, but row 0 has 2"),
    (regression(covariance={"lw": 1}), "process.covariance: unknown field 'lw'; did you mean 'law'?"),
    (regression(covariance={"law": "gausian"}), "process.covariance.law.kind: unknown kind 'gausian'"),
    (regression(covariance={"law": MOMENTS}), "process.covariance.law.moments: must be the 7 numbers"),
    (regression(prior="inverted"), "process.prior: unknown value 'inverted'; did you mean 'inverse'?"),
    (regression(noise={"largest": 0}), "process.noise.largest: must be greater than 0, got 0"),
    (regression(noise="x"), "process.noise: 'x' is not a rational number"),
    (regression(sparsity=3), "process.sparsity: must be at most dim = 2, got 3"),
    (regression(kind="nonlinear-regression", target="relu"), "process.target.kind: unknown kind 'relu'"),
    (
        regression(kind="nonlinear-regression", target="two-layer-relu"),
        "process.target.hidden: missing; add it",
    ),
    (
        regression(kind="orthonormal-features", features=3),
        "process.dim: must be at least 3, the number of orthonormal vectors, got 2",
    ),
    (
        regression(kind="orthonormal-features", features=2, probabilities=[0.5, -0.5]),
        "process.probabilities[1]: must not be negative",
    ),
]


def refusal(data, kind=TrainSpec):
    with pytest.raises(SpecError) as caught:
        parse_spec(data, kind).build()
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert text.isprintable()
    return text


@pytest.mark.parametrize(("changes", "message"), SEQUENCES, ids=[message for _, message in SEQUENCES])
def test_sequences(changes, message, train_with):
    assert refusal(train_with(**changes)).startswith(message)


@pytest.mark.parametrize(("changes", "message"), PROMPTS, ids=[message for _, message in PROMPTS])
def test_prompts(changes, message, prompts_with):
    assert refusal(prompts_with(**changes)).startswith(message)


@pytest.mark.parametrize(("changes", "message"), COMPOSED, ids=[message for _, message in COMPOSED])
def test_composed_models(changes, message, train_with):
    assert refusal(train_with(**composed(**changes))).startswith(message)


def test_seeds_are_built_together(train_with):
    with pytest.raises(SpecError, match="seeds: missing; give a list"):
        parse_spec(train_with(), TrainSpec).build_many()


def test_missing_model(train_with):
    data = train_with()
    del data["model"]
    assert refusal(data) == "model: missing; add it; `mesascope kinds model` shows what it may be"


@pytest.mark.parametrize("kind", ["orthogonal-ar", "markov-tree", "linear-regression"])
def test_losses_and_flows_of_other_processes_need_a_model(kind, loss_with, flow_with):
    for data, spec in ((loss_with, LossSpec), (flow_with, FlowSpec)):
        for process in (kind, {"kind": kind}):
            message = refusal(data(process=process), spec)
            assert (
                message == f"process.kind: '{kind}' needs a model here; give one, or take 'diagonal-unitary'"
            )
