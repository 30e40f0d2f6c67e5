"""Loss and gradients, compared with full quadrature by another program, in tests/data."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from mesascope.models import LinearAttention
from mesascope.objectives import Enumeration, ExactMoments, population_loss
from mesascope.processes import Constant, DiagonalUnitary, Gaussian, NextToken, Rademacher, Sparse, Uniform

REFERENCE = Path(__file__).parents[1] / "data" / "population_loss.json"
CASES = {case["name"]: case for case in json.loads(REFERENCE.read_text())}
LAWS = {
    "gaussian": lambda law: Gaussian(law["scale"]),
    "sparse": lambda law: Sparse(law["scale"]),
    "constant": lambda law: Constant(law["value"]),
    "rademacher": lambda law: Rademacher(law["scale"]),
    "uniform": lambda law: Uniform(law["scale"]),
}


@pytest.mark.parametrize("engine", [ExactMoments(), Enumeration()], ids=["exact", "enumeration"])
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients(name, engine):
    case = CASES[name]
    weights = case["weights"] and {int(t): w for t, w in case["weights"].items()}
    process = DiagonalUnitary(LAWS[case["law"]["kind"]](case["law"]), case["dim"])
    task = NextToken(case["horizon"], weights)
    model = LinearAttention(case["w_kq"], case["w_pv"], case["rho"])

    def loss(m):
        estimate = population_loss(m, process, task, engine)
        return estimate.value, estimate

    (_, estimate), gradient = jax.value_and_grad(loss, has_aux=True)(model)
    assert float(estimate.standard_error) == 0
    # the promise of the library; both sides are good to some 1e-15
    assert float(estimate.value) == pytest.approx(case["loss"], rel=1e-10)
    for found, expected in ((gradient.w_kq, case["grad_w_kq"]), (gradient.w_pv, case["grad_w_pv"])):
        # entries that are zero by symmetry are zero up to rounding of the largest
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_cases_are_distinct_and_complete():
    assert len(CASES) == len(json.loads(REFERENCE.read_text())) >= 8
