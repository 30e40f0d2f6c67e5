"""Flows that are solved together: each ends where it would end alone."""

import numpy as np
import pytest

import mesascope as ms
from mesascope.dynamics import Outcome, gradient_flow, gradient_flows

TASK = ms.NextToken(6)
LAWS = [ms.Gaussian(1.0), ms.Gaussian(0.5), ms.Gaussian(1.5)]
STARTS = [ms.LinearAttention.diagonal(2, a, 0.2) for a in (0.1, 0.5, 1.5)]
TIMES = [0.5, 40.0, 3.0]


def together(starts=STARTS, laws=LAWS, times=TIMES, **settings):
    processes = [ms.DiagonalUnitary(law, 2) for law in laws]
    return gradient_flows(starts, processes, [TASK] * len(laws), times, **settings)


@pytest.mark.slow
def test_each_ends_where_it_ends_alone():
    """Other laws, starts and times: another number of steps for each."""
    flows = together()
    for flow, start, law, time in zip(flows, STARTS, LAWS, TIMES, strict=True):
        alone = gradient_flow(start, ms.DiagonalUnitary(law, 2), TASK, until=time)
        assert flow.result is Outcome.FINISHED and flow.time == time
        # the solver's relative error is 1e-12 a step, of at most some hundreds
        np.testing.assert_allclose(flow.model.w_kq, alone.model.w_kq, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(flow.loss[-1], alone.loss[-1], rtol=1e-10)
        np.testing.assert_allclose(flow.gradient_norm, alone.gradient_norm, rtol=1e-6, atol=1e-9)
        assert abs(flow.stats["steps"] - alone.stats["steps"]) <= 2
        assert len(flow.times) == len(flow.trajectory.w_kq)
    assert len({flow.stats["steps"] for flow in flows}) == 3


@pytest.mark.slow
def test_one_that_diverges_says_so_by_itself():
    starts = [STARTS[0], ms.LinearAttention.diagonal(2, 1e120, 1e120), STARTS[2]]
    flows = together(starts)
    assert [flow.result for flow in flows] == [Outcome.FINISHED, Outcome.DIVERGED, Outcome.FINISHED]
    np.testing.assert_array_equal(flows[2].model.w_pv, together()[2].model.w_pv)


def test_their_order_changes_no_bit():
    turned = together(STARTS[::-1], LAWS[::-1], TIMES[::-1])[::-1]
    for one, other in zip(together(), turned, strict=True):
        np.testing.assert_array_equal(one.times, other.times)
        np.testing.assert_array_equal(one.trajectory.w_kq, other.trajectory.w_kq)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"times": TIMES[:2]}, "must be equally many, at least one, got 3, 3, 3 and 2"),
        ({"times": [1.0, -1.0, 1.0]}, r"times\[1\]"),
        ({"laws": [*LAWS[:2], ms.Constant([1.0, 2.0])]}, r"objectives\[2\]: is of another structure"),
    ],
)
def test_what_cannot_be_solved_together(changes, said):
    with pytest.raises(ValueError, match=said):
        together(**changes)
