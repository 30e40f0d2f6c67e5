"""Every wrong specification is refused in one line that names the field, what is wrong, and the fix."""

import pickle

import pytest

from mesascope.studies import FlowSpec, LossSpec, SpecError, parse_spec

NAN, INF = float("nan"), float("inf")
DEEP = {"kind": "gaussian"}
for _ in range(3000):
    DEEP = {"kind": "mixture", "parts": [{"probability": 1, "law": DEEP}]}


def mixture(*parts):
    return {"kind": "mixture", "parts": [{"probability": p, "law": law} for p, law in parts]}


LAWS = [
    ({"kind": ["gaussian"]}, "law.kind: unknown kind a list of 1"),
    # scales
    ({"kind": "gaussian", "scale": -1}, "law.scale: must be greater than 0, got -1"),
    ({"kind": "sparse", "scale": 0}, "law.scale: must be greater than 0, got 0"),
    ({"kind": "uniform", "scale": NAN}, "law.scale: must be finite and fit double precision, got nan"),
    ({"kind": "rademacher", "scale": INF}, "law.scale: must be finite and fit double precision, got inf"),
    ({"kind": "gaussian", "scale": 10**400}, "law.scale: must be finite and fit double precision"),
    ({"kind": "gaussian", "scale": True}, "law.scale: must be a number, got true"),
    ({"kind": "gaussian", "scale": [1]}, "law.scale: must be a number, got a list of 1"),
    ({"kind": "gaussian", "scale": "1/0"}, "law.scale: '1/0' is not a rational number; write e.g. '1/3'"),
    ({"kind": "gaussian", "scale": "1e999999999"}, "law.scale: '1e999999999' is not a rational number"),
    ({"kind": "gaussian", "scale": 1e60}, "law.scale: must lie between 1e-50 and 1e+50 in size"),
    ({"kind": "gaussian", "scale": 1e-60}, "law.scale: must lie between 1e-50 and 1e+50 in size"),
    # names
    ({"kind": "gausian"}, "law.kind: unknown kind 'gausian'; did you mean 'gaussian'?"),
    ({"scale": 1}, "law.kind: missing; use one of constant"),
    ({"kind": "gaussian", "scal": 1}, "law: unknown field 'scal'; did you mean 'scale'?"),
    ({"kind": "gaussian", "gaussian": 1}, "law: unknown field 'gaussian'; use one of kind, scale"),
    (3, "law: must be a law or a table with its kind (constant"),
    ("cauchy", "law.kind: unknown kind 'cauchy'"),
    # parts of mixtures
    (
        mixture((1, mixture((1, {"kind": "gaussian", "scale": -2})))),
        "law.parts[0].law.parts[0].law.scale: must",
    ),
    (mixture(("1/2", "gaussian"), ("1/3", "sparse")), "law.parts: must sum to 1"),
    (mixture((-1, "gaussian"), (2, "sparse")), "law.parts[0].probability: must not be negative"),
    (mixture(), "law.parts: must list parts (probability, law), at least one"),
    (
        {"kind": "mixture", "parts": [{"prob": 1, "law": "gaussian"}]},
        "law.parts[0]: unknown field 'prob'; did",
    ),
    (DEEP, "nested too deeply"),
    # moments
    ({"kind": "studentt", "df": 5}, "law: E x^6 does not exist for StudentT(df=5, scale=1)"),
    (mixture((0.5, {"kind": "studentt", "df": 4}), (0.5, "gaussian")), "law: E x^6 does not exist"),
    ({"kind": "studentt", "df": "6." + "0" * 49 + "1", "scale": 1e50}, "law: E x^6 of StudentT"),
    ({"kind": "moments", "moments": [1, 0, 1]}, "law.moments: must be the 7 numbers"),
    (
        {"kind": "moments", "moments": [1, 0, 1, 0, "1/2", 0, 1]},
        "law.moments: no distribution has these moments",
    ),
    (
        {"kind": "moments", "moments": [1, 0, 1e200, 0, 3, 0, 15]},
        "law.moments[2]: must be at most 1e+100 in size",
    ),
    # constant tokens and samples
    (
        {"kind": "constant", "value": [1, 2, 3]},
        "dim: dim is 2, but tokens of Constant([1, 2, 3]) have dimension 3",
    ),
    ({"kind": "constant", "value": [1, NAN]}, "law.value[1]: must be finite"),
    ({"kind": "constant"}, "law.value: missing; add it"),
    ({"kind": "empirical"}, "law: needs either samples or file"),
    ({"kind": "empirical", "samples": [1], "file": "a.csv"}, "law: needs either samples or file, not both"),
    ({"kind": "empirical", "samples": []}, "law.samples: are empty (shape (0,)): give at least one"),
    ({"kind": "empirical", "samples": [[1, 2], [3]]}, "law.samples[1]: has 1 numbers, but row 0 has 2"),
    ({"kind": "empirical", "samples": [[1, 2], [3, NAN]]}, "law.samples[1][1]: must be finite"),
    ({"kind": "empirical", "samples": [1, 2], "joint": True}, "law.joint: needs samples of shape"),
    ({"kind": "empirical", "samples": [1, 2], "joint": 1}, "law.joint: must be true or false, got 1"),
    ({"kind": "empirical", "file": 3}, "law.file: must be the path of a .npy or .csv file, got 3"),
]

LOSSES = [
    ({"dim": 0}, "dim: must be at least 1, got 0"),
    ({"dim": 2.0}, "dim: must be an integer, got 2.0"),
    ({"dim": True}, "dim: must be an integer, got true"),
    ({"dim": 10**9}, "dim: must be at most 1024, got 1000000000"),
    ({"horizon": 2}, "horizon: must be at least 3, got 2"),
    ({"horizon": 10**30}, "horizon: must be at most 1000000000000"),
    ({"horizn": 5}, "unknown field 'horizn'; did you mean 'horizon'?"),
    ({"a\nb\x1b[31m": 5}, r"unknown field 'a\nb\x1b[31m'; use one of"),
    ({"process": "diagonal"}, "process.kind: unknown kind 'diagonal'; did you mean 'diagonal-unitary'?"),
    ({"rho": "t-2"}, "rho: unknown value 't-2'; did you mean 't-1'?"),
    ({"w_kq": [[1, 2], [3, 4]]}, "w_kq: has shape (2, 2), expected (4, 4) = (2·dim, 2·dim) for dim = 2"),
    ({"w_pv": [[0] * 4] * 4}, "w_pv: has shape (4, 4), expected (2, 4) = (dim, 2·dim) for dim = 2"),
    ({"w_kq": [[1, 2, 3, 4], [1]]}, "w_kq[1]: has 1 numbers, but row 0 has 4; make rows equally long"),
    ({"w_kq": []}, "w_kq: must be a matrix, a list of rows, got an empty list"),
    ({"w_kq": 3}, "w_kq: must be a matrix, a list of rows, got 3"),
    (
        {"w_pv": [[0, 0, 0, 0], [0, NAN, 0, 0]]},
        "w_pv[1][1]: must be finite and fit double precision, got nan",
    ),
    ({"w_pv": [[0, 0, 0, 0], [0, "x", 0, 0]]}, "w_pv[1][1]: 'x' is not a rational number"),
    ({"weights": {"9": 1}}, "weights.9: context lengths are 2 … 4, got 9"),
    ({"weights": {"2": -1}}, "weights.2: must not be negative, got -1"),
    ({"weights": {"two": 1}}, "weights: 'two' is not a number of tokens or examples; write an integer"),
    ({"weights": {"3": 1, "03": 1}}, "weights: 3 is given twice; keep one"),
    ({"weights": [1, 2]}, "weights: has 2 numbers, expected 3, one for each context length 2 … 4"),
    ({"weights": [1, NAN, 1]}, "weights[1]: must be finite"),
    ({"weights": {"2": 0}}, "weights: all weights are zero"),
    ({"weights": 3}, "weights: must be a table from lengths to weights, or their list, got 3"),
    ({"engine": "exact"}, "engine.kind: unknown kind 'exact'"),
    ({"engine": {"kind": "monte-carlo", "samples": 1}}, "engine.samples: must be at least 2, got 1"),
    ({"engine": {"kind": "monte-carlo", "seed": -1}}, "engine.seed: must be at least 0, got -1"),
    (
        {"engine": {"kind": "monte-carlo", "samples": 10**6, "batch": 10**6}, "horizon": 100},
        "engine.batch: 1000000 sequences",
    ),
    ({"engine": "monte-carlo", "horizon": 10**9}, "engine: even one sequence of 1000000000 tokens"),
    ({"engine": "enumeration", "horizon": 10**9}, "engine: enumeration would list more than 2e+07 sequences"),
    ({"engine": "enumeration", "horizon": 500}, "engine: Enumeration: dim 2 and horizon 500 need"),
]

FLOWS = [
    ({"init": {"kind": "diag", "a": 1, "b": 1}}, "init.kind: unknown kind 'diag'; did you mean 'diagonal'?"),
    ({"init": {"kind": "diagonal", "a": NAN, "b": 1}}, "init.a: must be finite"),
    ({"init": {"kind": "diagonal", "a": 1}}, "init.b: missing; add it"),
    ({"init": {"kind": "gaussian", "scale": -1}}, "init.scale: must be greater than 0, got -1"),
    ({"init": {"kind": "gaussian", "scale": 1, "seed": 2**40}}, "init.seed: must be at most 4294967295"),
    (
        {"init": {"kind": "explicit", "w_kq": [[0] * 4] * 4, "w_pv": [[0] * 4]}},
        "init.w_pv: has shape (1, 4), expected",
    ),
    ({"mask": "diagonal"}, "mask: unknown value 'diagonal'; did you mean 'off-diagonal'?"),
    ({"until": "steady"}, "until: 'steady' is neither a time > 0 nor 'steady-state'"),
    ({"until": -1}, "until: must be greater than 0, got -1"),
    ({"until": INF}, "until: must be finite"),
    ({"tolerance": 1e-15}, "tolerance: must lie between 1e-11"),
    ({"max_steps": 0}, "max_steps: must be at least 1, got 0"),
    ({"method": "sgd"}, "method: unknown value 'sgd'; use one of flow, descent"),
    ({"lr": 1}, "lr: belongs to method = 'descent', but method is 'flow'; leave it out or change method"),
    ({"method": "descent", "lr": 0.1, "steps": 2, "until": 3}, "until: belongs to method = 'flow'"),
    ({"method": "descent", "steps": 2}, "lr: missing; method = 'descent' needs lr and steps"),
    ({"method": "descent", "lr": -1, "steps": 2}, "lr: must be greater than 0, got -1"),
    ({"method": "descent", "lr": NAN, "steps": 2}, "lr: must be finite"),
    ({"method": "descent", "lr": 1, "steps": 10**30}, "steps: must be at most 100000000"),
]


def refusal(data, kind):
    with pytest.raises(SpecError) as caught:
        parse_spec(data, kind).run()
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert text.isprintable()
    return text


@pytest.mark.parametrize(("law", "message"), LAWS, ids=[message for _, message in LAWS])
def test_law(law, message, loss_with):
    assert message in refusal(loss_with(law=law), LossSpec)


@pytest.mark.parametrize(("changes", "message"), LOSSES, ids=[message for _, message in LOSSES])
def test_loss(changes, message, loss_with):
    assert refusal(loss_with(**changes), LossSpec).startswith(message)


@pytest.mark.parametrize(("changes", "message"), FLOWS, ids=[message for _, message in FLOWS])
def test_flow(changes, message, flow_with):
    assert refusal(flow_with(**changes), FlowSpec).startswith(message)


@pytest.mark.parametrize("name", ["law", "dim", "horizon", "w_kq", "w_pv"])
def test_missing_field(name, loss_with):
    data = loss_with()
    del data[name]
    shown = "; `mesascope kinds law` shows what it may be" if name == "law" else ""
    assert refusal(data, LossSpec) == f"{name}: missing; add it{shown}"


@pytest.mark.parametrize("data", [[1, 2], 3, None, "law"])
def test_a_value_that_is_not_a_table(data):
    assert "must be a table with the fields plugins, process, law, dim" in refusal(data, LossSpec)


def test_sampling_engines_need_moments_too(loss_with):
    # the sample mean of a loss without expectation would be a number without meaning
    data = loss_with(law={"kind": "studentt", "df": 3}, engine="monte-carlo")
    assert "E x^6 does not exist" in refusal(data, LossSpec)


def test_errors_keep_their_place_in_another_process():
    error = SpecError("must be at least 1", "axes", 0, "values", file="study.toml")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.file) == (str(error), ("axes", 0, "values"), "study.toml")
    assert str(again) == "study.toml: axes[0].values: must be at least 1"
