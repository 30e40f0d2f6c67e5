"""The solution of the flow of diagonal weights, compared with numerical integration and with itself."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from mesascope.processes import Constant, DiagonalUnitary, Gaussian, NextToken, Sparse, StudentT
from mesascope.theory import zheng2024

PROCESS, TASK = DiagonalUnitary(Gaussian(), 5), NextToken(100)

STARTS = [
    *[(0.1, 0.1), (0.5, 1.5), (2.0, 2.0)],  # the paper's
    *[(-0.3, -0.2), (0.5, -1.5), (-1.0, 0.3), (0.0, 0.7), (0.7, 0.0), (1.0, 1e-9), (1e-6, -2.0)],
    *[(0.4, -0.4), (-0.4, 0.4), (0.0, 0.0)],  # on the way to the saddle, and on it
]
starts = pytest.mark.parametrize("start", STARTS, ids=str)
# Squares of starts below 1e-162 underflow and count as zero.
finite = st.floats(-3, 3).filter(lambda x: x == 0 or abs(x) > 1e-100)
positive = st.floats(0.01, 100, allow_subnormal=False)


def vector_field(_, state, alpha, beta):
    a, b = state
    slope = alpha * a * b - beta
    return [-b * slope, -a * slope]


@starts
@pytest.mark.parametrize(
    ("process", "task"),
    [
        (PROCESS, TASK),
        (DiagonalUnitary(Sparse(2), 5), NextToken.last(10)),
        (DiagonalUnitary(StudentT(8), 3), NextToken(6, [1, 0, 2, "1/3"])),
    ],
    ids=["gaussian", "sparse", "student"],
)
def test_against_numerical_integration(start, process, task):
    flow = zheng2024.diagonal_flow(process, task, *start)
    times = np.linspace(0, 12 / flow.rate, 40)
    solution = solve_ivp(
        vector_field,
        (0, times[-1]),
        start,
        t_eval=times,
        args=(flow.alpha, flow.beta),
        method="DOP853",
        rtol=1e-12,
        atol=1e-14,
    )
    a, b, product = flow(times)
    # The tolerance is the integrator's: relative 1e-12 per step, a few hundred steps, and starts next to the
    # saddle's stable manifold multiply errors by e^12 on the way out.
    tolerance = 1e-9 if min(map(abs, start)) > 1e-5 or max(map(abs, start)) == 0 else 1e-7
    np.testing.assert_allclose(a, solution.y[0], atol=tolerance)
    np.testing.assert_allclose(b, solution.y[1], atol=tolerance)
    np.testing.assert_allclose(product, solution.y[0] * solution.y[1], atol=tolerance)


@starts
def test_start_limit_and_conservation(start):
    flow = zheng2024.diagonal_flow(PROCESS, TASK, *start)
    a, b, product = flow([0, 1e-4, 1e-3, 1e-2, np.inf])
    np.testing.assert_allclose([a[0], b[0]], start, atol=1e-15)
    np.testing.assert_allclose(a**2 - b**2, start[0] ** 2 - start[1] ** 2, atol=1e-14)
    np.testing.assert_allclose(product, a * b, atol=1e-14)
    saddle = start[0] == -start[1]
    expected = 0 if saddle else float(zheng2024.limit_product(PROCESS, TASK))
    assert flow.limit.product == product[-1] == pytest.approx(expected, rel=1e-14)
    if not saddle:  # the sign of a + b never changes
        assert np.sign(flow.limit.a + flow.limit.b) == np.sign(start[0] + start[1])


@starts
def test_distances_shrink_at_the_stated_rate(start):
    flow = zheng2024.diagonal_flow(PROCESS, TASK, *start)
    if start == (0.0, 0.0):
        return
    s = np.array([16, 18]) / flow.rate
    distance = abs(flow(s).product - flow.limit.product)
    # e^{-16} from the end, the next order of the expansion is e^{-16} smaller; rounding leaves 1e-16/e^{-18}.
    assert np.log(distance[0] / distance[1]) == pytest.approx(2, abs=1e-5)


@given(positive, positive, finite, finite, st.floats(0, 1))
def test_times_and_products_are_inverse(alpha, beta, a0, b0, fraction):
    flow = zheng2024.DiagonalFlow(alpha, beta, a0, b0)
    start, end = a0 * b0, float(flow.limit.product)
    product = start + fraction * (end - start)
    # Away from both ends: there c hardly moves with s, so c does not determine s in floating point.
    assume(min(abs(product - start), abs(product - end)) > 1e-3 * max(abs(start), abs(end), 1e-3))
    time = flow.time_to_reach(product)
    assert time > 0
    assert float(flow(time).product) == pytest.approx(product, abs=1e-12 * max(abs(start), abs(end)))


@given(positive, positive, finite, finite, st.floats(0, 5), st.floats(0, 5))
def test_the_flow_is_a_semigroup(alpha, beta, a0, b0, first, second):
    flow = zheng2024.DiagonalFlow(alpha, beta, a0, b0)
    assume(abs(a0 + b0) > 1e-3 or a0 == -b0)  # next to the stable manifold rounding decides the way out
    first, second = first / flow.rate, second / flow.rate
    middle = flow(first)
    onward = zheng2024.DiagonalFlow(alpha, beta, float(middle.a), float(middle.b))
    if a0 == -b0:
        assume(middle.a == -middle.b)
    direct, stepped = flow(first + second), onward(second)
    scale = max(abs(a0), abs(b0), (beta / alpha) ** 0.5)
    # Starts 1e-3 off the stable manifold carry their rounding out by the factor 1e3.
    np.testing.assert_allclose([stepped.a, stepped.b], [direct.a, direct.b], atol=1e-10 * scale)


def test_the_products_move_monotonically_and_never_leave_their_range():
    for start in STARTS:
        flow = zheng2024.diagonal_flow(PROCESS, TASK, *start)
        products = flow(np.linspace(0, 10 / flow.rate, 200)).product
        steps = np.diff(products) * np.sign(flow.limit.product - products[0])
        assert (steps >= -1e-15).all()


def test_times_to_reach_at_the_ends():
    flow = zheng2024.diagonal_flow(PROCESS, TASK, 0.1, 0.1)
    assert flow.time_to_reach(flow.a0 * flow.b0) == 0
    assert flow.time_to_reach(float(flow.limit.product)) == np.inf
    # Just short of the limit the time grows by log(10)/rate for every digit.
    target = float(flow.limit.product)
    first, second = (flow.time_to_reach(target * (1 - 10.0**-n)) for n in (6, 7))
    assert (second - first) * flow.rate == pytest.approx(np.log(10), rel=1e-5)
    at_rest = zheng2024.diagonal_flow(PROCESS, TASK, 0, 0)
    assert at_rest.time_to_reach(0) == 0


@given(positive, positive, finite, finite)
def test_the_limit_takes_infinite_time_for_any_rounding(alpha, beta, a0, b0):
    flow = zheng2024.DiagonalFlow(alpha, beta, a0, b0)
    limit = float(flow.limit.product)
    assume(abs(limit - a0 * b0) > 1e-9 * abs(limit))
    assert flow.time_to_reach(limit) == np.inf
    if a0 + b0 != 0:
        assert limit == pytest.approx(beta / alpha, rel=2e-15)
        assert flow.time_to_reach(beta / alpha) == np.inf


@pytest.mark.parametrize(
    ("start", "product"), [((0.1, 0.1), 0.2), ((0.1, 0.1), 0.0), ((2, 2), 5), ((1, -1), 0.1), ((0, 0), 0.1)]
)
def test_products_that_are_never_reached_are_refused(start, product):
    flow = zheng2024.diagonal_flow(PROCESS, TASK, *start)
    with pytest.raises(ValueError, match=r"the product goes from .* and never equals .*: give one"):
        flow.time_to_reach(product)


def test_gradient_descent_of_the_papers_program():
    # Full-batch descent on the exact loss with the paper's start and rate, after 4 and after 8 steps. The
    # authors' program, on 10 000 sampled sequences, printed 0.0124260 and 0.0153935.
    alpha, beta = map(float, zheng2024.flow_coefficients(PROCESS, TASK))
    a = b = 0.1
    products = []
    for _ in range(8):
        slope = alpha * a * b - beta
        a, b = a - 1e-4 * slope * b, b - 1e-4 * slope * a
        products.append(a * b)
    assert products[3] == pytest.approx(0.0124464, abs=5e-8)
    assert products[7] == pytest.approx(0.0154425, abs=5e-8)
    # The flow after the same time is ahead by the order of the rate only.
    assert float(zheng2024.diagonal_flow(PROCESS, TASK, 0.1, 0.1)(8e-4).product) == pytest.approx(
        0.0154425, rel=0.02
    )


def test_masks_allow_the_flow_of_the_full_one_token():
    process = DiagonalUnitary(Constant(1), 5)
    flow = zheng2024.diagonal_flow(process, TASK, 0.1, 0.1, mask="off-diagonal")
    assert flow.limit.product == pytest.approx(float(zheng2024.masked_full_one_limit(5, TASK)), rel=1e-14)
    with pytest.raises(
        zheng2024.AssumptionError, match=r"the diagonal flow of Constant\(1\) .*E\[x_j\^3 x_r\] = 1"
    ):
        zheng2024.diagonal_flow(process, TASK, 0.1, 0.1)


def test_bad_arguments():
    with pytest.raises(ValueError, match="a0 must be finite and fit double precision, got nan"):
        zheng2024.diagonal_flow(PROCESS, TASK, float("nan"), 0.1)
    with pytest.raises(TypeError, match="b0 must be a number"):
        zheng2024.diagonal_flow(PROCESS, TASK, 0.1, None)
    flow = zheng2024.diagonal_flow(PROCESS, TASK, 0.1, 0.1)
    for times in (-1, [0, float("nan")]):
        with pytest.raises(ValueError, match="times must be numbers ≥ 0"):
            flow(times)


@pytest.mark.slow
def test_shapes():
    flow = zheng2024.diagonal_flow(PROCESS, TASK, 0.1, 0.1)
    state = flow(np.zeros((2, 3)))
    assert state.a.shape == state.b.shape == state.product.shape == (2, 3)
    assert float(flow(0.5).product) > 0
