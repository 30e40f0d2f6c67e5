"""Results of specifications of losses and flows."""

import json
from pathlib import Path

import numpy as np
import pytest

from mesascope.studies import FlowSpec, LossSpec, parse_spec
from mesascope.studies._flow import theory_limit

CASES = {
    case.pop("name"): case
    for case in json.loads((Path(__file__).parents[1] / "data" / "population_loss.json").read_text())
}
ANSWERS = ("loss", "grad_w_kq", "grad_w_pv")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", ["exact-moments", "enumeration"])
def test_reference_values(name, engine):
    case = dict(CASES[name])
    loss, *gradients = (case.pop(answer) for answer in ANSWERS)
    result = parse_spec({**case, "engine": engine}, LossSpec).run()
    assert result.standard_error == 0
    assert result.finite
    assert result.loss == pytest.approx(loss, rel=1e-10)
    for found, expected in zip((result.grad_w_kq, result.grad_w_pv), gradients, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.slow
def test_sampling_reports_its_error():
    case = dict(CASES["gaussian-diagonal"])
    loss, *_ = (case.pop(answer) for answer in ANSWERS)
    result = parse_spec({**case, "engine": {"kind": "monte-carlo", "samples": 2000}}, LossSpec).run()
    assert 0 < result.standard_error < loss
    assert abs(result.loss - loss) < 5 * result.standard_error


def test_loss_beyond_double_precision(loss_with):
    result = LossSpec(**loss_with(w_pv=[[1e200, 0, 0, 0], [0, 1, 0, 0]])).run()
    assert not result.finite


@pytest.mark.slow
def test_flow_ends_at_the_limit(flow_with):
    seen = []
    result = FlowSpec(**flow_with()).run(seen.append)
    assert result.result == "converged" and result.converged and result.succeeded
    np.testing.assert_allclose(result.product, result.limit_product, rtol=1e-9)
    assert seen[-1].done == result.steps and seen[-1].values["flow time"] == result.time
    assert seen[-1].values["gradient norm"] == result.gradient_norm


def test_flow_for_a_time(flow_with):
    result = FlowSpec(**flow_with(until="1/2")).run()
    assert (result.result, result.time, result.converged, result.succeeded) == ("finished", 0.5, False, True)


def test_steps_run_out(flow_with):
    result = FlowSpec(**flow_with(init={"kind": "gaussian", "scale": 1.0}, max_steps=16)).run()
    assert (result.result, result.succeeded) == ("step limit", False)
    assert "raise max_steps" in result.message


def test_descent(flow_with):
    seen = []
    spec = FlowSpec(**flow_with(method="descent", lr="1/200", steps=300))
    result = spec.run(seen.append)
    assert (result.result, result.steps, result.time) == ("finished", 300, 1.5)
    assert seen[-1].done == seen[-1].total == 300 and list(seen[-1].values) == ["loss"]
    # a small rate: close to the flow at the same time, first order in the rate
    flow = FlowSpec(**flow_with(until=1.5)).run()
    np.testing.assert_allclose(result.product, flow.product, rtol=1e-2)
    assert spec.run().product == result.product


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"method": "descent", "lr": 1e9, "steps": 100}, "take a smaller lr, or smaller weights in init"),
        (
            {"init": {"kind": "diagonal", "a": 1e308, "b": 1}},
            "is not finite at the start; take smaller weights in init",
        ),
    ],
)
def test_what_diverges_names_fields_of_the_specification(flow_with, changes, told):
    result = FlowSpec(**flow_with(**changes)).run()
    assert (result.result, result.succeeded) == ("diverged", False)
    assert told in result.message


FULL_ONE = {"kind": "constant", "value": 1}


@pytest.mark.parametrize(
    ("changes", "limit", "reason"),
    [
        # Theorem 4.3 of zheng2024: (1 + (d − 1)/(T − 2) Σ 1/(t − 1))⁻¹ with d = 2, T = 5
        ({"law": FULL_ONE, "mask": "off-diagonal"}, 1 / (1 + (1 + 1 / 2 + 1 / 3) / 3), "Theorem 4.3"),
        ({"law": FULL_ONE}, None, "is not 0"),
        # one-hot tokens: 1/c²
        ({"law": {"kind": "sparse", "scale": 2}}, 0.25, "Theorem 4.1"),
        ({"law": "rademacher", "init": {"kind": "gaussian", "scale": 0.1}}, 18 / 29, "not proved"),
        ({"init": {"kind": "gaussian", "scale": 0.1}, "mask": "off-diagonal"}, None, "diagonal starts"),
        ({"init": {"kind": "diagonal", "a": 0.1, "b": -0.1}}, 0, "saddle"),
        ({"init": {"kind": "explicit", "w_kq": np.eye(4), "w_pv": np.eye(2, 4)}}, None, "diagonal starts"),
        (
            {
                "init": {"kind": "explicit", "w_kq": 0.2 * np.eye(4, k=-2), "w_pv": np.eye(2, 4)},
                "law": "sparse",
            },
            1,
            "Theorem 4.1",
        ),
    ],
)
def test_limits_of_theory(changes, limit, reason, flow_with):
    # only the limit is needed: one step is enough
    result = FlowSpec(**flow_with(**changes, until=1e-6)).run()
    assert result.limit_product == (None if limit is None else pytest.approx(limit, rel=1e-14))
    assert reason in result.limit_reason


@pytest.mark.slow
def test_other_normalizers_have_limits_too(flow_with):
    result = FlowSpec(**flow_with(rho="t", weights={"2": 1, "4": 3})).run()
    np.testing.assert_allclose(result.product, result.limit_product, rtol=1e-9)
    assert result.limit_reason == "zheng2024, Theorem 4.1 generalized to ρ_t = t and these weights"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "zheng2024, Theorem 4.1"),
        ({"weights": [1, 1, 1]}, "zheng2024, Theorem 4.1"),
        ({"rho": "1"}, "zheng2024, Theorem 4.1 generalized to ρ_t = 1"),
        ({"weights": [1, 1, 2]}, "zheng2024, Theorem 4.1 generalized to these weights"),
        (
            {"law": FULL_ONE, "mask": "off-diagonal", "rho": "t"},
            "zheng2024, Theorem 4.3 generalized to ρ_t = t",
        ),
    ],
)
def test_the_reason_names_the_theorem(changes, reason, flow_with):
    spec = FlowSpec(**flow_with(**changes))
    assert theory_limit(spec.build(), spec.mask, drawn=False)[1] == reason
