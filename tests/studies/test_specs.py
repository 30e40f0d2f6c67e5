"""Specifications build the right objects, and are read back unchanged."""

import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from pydantic import ValidationError

from mesascope.models import LinearAttention
from mesascope.objectives import Enumeration, ExactMoments, MonteCarlo
from mesascope.processes import (
    Constant,
    Empirical,
    Gaussian,
    Mixture,
    Moments,
    NextToken,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)
from mesascope.studies import FlowSpec, LossSpec, SpecError, StudySpec, TrainSpec, parse_spec

LAWS = {
    "gaussian": ({"kind": "gaussian", "scale": "1/3"}, Gaussian(Fraction(1, 3))),
    "gaussian by name": ("gaussian", Gaussian()),
    "sparse": ({"kind": "sparse", "scale": 1.5}, Sparse(1.5)),
    "constant": ({"kind": "constant", "value": 1}, Constant(1)),
    "vector": ({"kind": "constant", "value": [1, "1/2"]}, Constant([1, "1/2"])),
    "rademacher": ({"kind": "rademacher", "scale": 2}, Rademacher(2)),
    "uniform": ({"kind": "uniform"}, Uniform()),
    "studentt": ({"kind": "studentt", "df": 8, "scale": 0.5}, StudentT(8, 0.5)),
    "mixture": (
        {
            "kind": "mixture",
            "parts": [{"probability": "1/3", "law": "sparse"}, {"probability": "2/3", "law": "uniform"}],
        },
        Mixture([("1/3", Sparse()), ("2/3", Uniform())]),
    ),
    "pool": ({"kind": "empirical", "samples": [1, -1, 0.5]}, Empirical([1, -1, 0.5])),
    "table": (
        {"kind": "empirical", "samples": [[1, 2], [3, 4]], "joint": True},
        Empirical([[1, 2], [3, 4]], True),
    ),
    "moments": ({"kind": "moments", "moments": [1, 0, 1, 0, 3, 0, 15]}, Moments([1, 0, 1, 0, 3, 0, 15])),
}


@pytest.mark.parametrize(("law", "expected"), LAWS.values(), ids=LAWS)
def test_laws(law, expected, loss_with):
    spec = parse_spec(loss_with(law=law), LossSpec)
    assert spec.build().process.law == expected
    assert parse_spec(json.loads(spec.model_dump_json()), LossSpec) == spec


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (None, NextToken(5)),
        ({"4": 1.0}, NextToken.last(5)),
        ({3: "1/2", "2": 0}, NextToken(5, {3: Fraction(1, 2)})),
        ([1, 2, 3], NextToken(5, [1, 2, 3])),
        (np.ones(3), NextToken(5)),
    ],
)
def test_weights(weights, expected, loss_with):
    spec = parse_spec(loss_with(weights=weights), LossSpec)
    assert spec.build().task == expected
    assert parse_spec(json.loads(spec.model_dump_json()), LossSpec).build().task == expected


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("exact-moments", ExactMoments()),
        ({"kind": "enumeration"}, Enumeration()),
        ("monte-carlo", MonteCarlo()),
        ({"kind": "monte-carlo", "samples": 7, "seed": 3, "batch": 2}, MonteCarlo(7, 3, 2)),
    ],
)
def test_engines(engine, expected, loss_with):
    assert parse_spec(loss_with(engine=engine), LossSpec).build().engine == expected


def test_sampled_sequences_fit_into_memory(loss_with):
    _, process, task, engine = parse_spec(loss_with(engine="monte-carlo", horizon=100_000), LossSpec).build()
    assert 1 <= engine.objective(process, task).batch < 500


@pytest.mark.parametrize(("rho", "expected"), [("t-1", "t-1"), ("t", "t"), ("1", "1"), (1, "1")])
def test_normalizers(rho, expected, loss_with):
    assert parse_spec(loss_with(rho=rho), LossSpec).build().model.normalizer == expected


def test_initial_weights(flow_with):
    diagonal = parse_spec(flow_with(), FlowSpec).build().model
    np.testing.assert_array_equal(diagonal.w_kq, LinearAttention.diagonal(2, 0.1, 0.1).w_kq)
    explicit = {"kind": "explicit", "w_kq": diagonal.w_kq, "w_pv": diagonal.w_pv.tolist()}
    np.testing.assert_array_equal(
        parse_spec(flow_with(init=explicit), FlowSpec).build().model.w_pv, diagonal.w_pv
    )
    draws = [
        parse_spec(flow_with(init={"kind": "gaussian", "scale": 0.1, "seed": seed}), FlowSpec).build().model
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(draws[0].w_kq, draws[1].w_kq)
    assert not np.allclose(draws[0].w_kq, draws[2].w_kq)


def test_specifications_are_frozen(loss_with):
    spec = LossSpec(**loss_with())
    with pytest.raises(ValidationError):
        spec.dim = 3


@pytest.mark.parametrize(
    ("construct", "message"),
    [
        (lambda: StudySpec(axis=1), "StudySpec: unknown field 'axis'; did you mean 'axes'?"),
        (lambda: LossSpec(dim=2), "LossSpec.law: missing; add it"),
        (lambda: TrainSpec(process={"kind": "x"}), "TrainSpec.process.kind: unknown kind 'x'; use one of "),
    ],
)
def test_wrong_fields_of_a_constructor_are_told_in_one_line(construct, message):
    with pytest.raises(SpecError) as raised:
        construct()
    assert str(raised.value).startswith(message) and "\n" not in str(raised.value)


@pytest.mark.slow
def test_importing_them_is_light():
    names = "import sys, mesascope.studies as studies; [getattr(studies, name) for name in studies.__all__]; "
    code = names + "sys.exit(bool({'jax', 'scipy', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
