"""Loss and gradients, compared with full quadrature by another program, in tests/data."""

import jax
import numpy as np
import pytest

from mesascope.models import LinearAttention
from mesascope.objectives import Enumeration, ExactMoments, population_loss


@pytest.mark.parametrize("engine", [ExactMoments(), Enumeration()], ids=["exact", "enumeration"])
def test_loss_and_gradients(reference, engine):
    process, task, case = reference
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
