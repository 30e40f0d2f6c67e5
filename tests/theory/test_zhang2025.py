"""Fixed points and times of zhang2025: in fractions, by quadrature, and by the engine of this library."""

from fractions import Fraction
from itertools import combinations

import equinox as eqx
import numpy as np
import pytest
import scipy

import mesascope as ms
from mesascope.models import LastEntry, LowRankLinearSelfAttention, PromptModel, StackedPrompt
from mesascope.objectives import ExactMoments
from mesascope.theory import zhang2025 as theory

EIGENVALUES, EXAMPLES = [Fraction(4, 10), Fraction(3, 10), Fraction(2, 10), Fraction(1, 10)], 31


def test_errors_at_the_plateaus_are_the_papers():
    """1, .64058, .37737, .20980 and .13600 in the project's notes on the paper."""
    found = theory.plateau_errors(EIGENVALUES[::-1], EXAMPLES)  # whatever the order
    np.testing.assert_allclose(
        [float(one) for one in found], [1, 0.64058, 0.37737, 0.20980, 0.13600], atol=6e-6
    )


@pytest.mark.parametrize("learned", [s for n in range(4) for s in combinations(range(3), n)])
def test_fixed_points_are_critical_in_fractions(learned):
    eigenvalues = [Fraction(1), Fraction(2, 3), Fraction(1, 5)]
    error, gradient = theory.error_and_gradient(
        *theory.fixed_point(eigenvalues, 4, learned, 3), eigenvalues, 4
    )
    assert error == theory.fixed_point_error(eigenvalues, 4, learned)
    assert all(entry == 0 for part in gradient for entry in part.ravel())


@pytest.mark.parametrize("unequal", [0.0, 1.0])
def test_the_course_of_merged_heads_solves_their_equations(unequal):
    """v' = u g and u' = v g, solved by SciPy; the error at the start and the limit are those of fixed points."""
    dim, examples, lam, times = 3, 7, 0.4, np.array([0.0, 5.0, 20.0, 60.0, 1e3])
    v, difference = np.array([0.3, -0.1]), unequal * np.array([0.05, 0.2])
    alpha, gamma = dim**0.5 * lam**2, lam**3 * (examples + 1 + dim) / examples

    def slope(_, state):
        v, u = state.reshape(2, -1)
        g = alpha - gamma * v @ u
        return np.concatenate([g * u, g * v])

    start = np.concatenate([v, v + difference])
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-15, "t_eval": times}
    states = scipy.integrate.solve_ivp(slope, (0, times[-1]), start, **options).y
    p = np.sum(states[:2] * states[2:], 0)
    found = theory.merged_course(v, v + difference, lam, dim, examples, times)
    np.testing.assert_allclose(found, dim * lam - 2 * alpha * p + gamma * p**2, rtol=1e-9)
    assert found[-1] == pytest.approx(theory.plateau_errors([lam] * dim, examples)[-1], rel=1e-12)


@pytest.mark.parametrize(
    ("values", "sizes", "message"),
    [([0.1], [-0.1], "never leaves 0"), ([0.1], [0.1, 0.2], "one length"), ([np.nan], [0.1], "finite")],
)
def test_bad_starts_of_merged_heads_are_refused(values, sizes, message):
    with pytest.raises(ValueError, match=message):
        theory.merged_course(values, sizes, 0.4, 3, 7, [1.0])


@pytest.mark.slow
def test_error_and_gradient_are_those_of_the_engine():
    eigenvalues, rng = np.array([0.9, 0.2]), np.random.default_rng(0)
    v, (k, q) = rng.normal(size=3), rng.normal(size=(2, 3, 2, 2))
    label = ((0, 0), (0, 0), (0, 1))
    value = np.pad(v[:, None, None], ((0, 0), (0, 0), (2, 0)))
    layer = LowRankLinearSelfAttention(
        w_k=np.pad(k, label), w_q=np.pad(q, label), w_pv=value, context="examples"
    )
    model = PromptModel(StackedPrompt(2), layer, LastEntry(1))
    objective = ExactMoments().objective(ms.LinearRegression(2, None, np.diag(eigenvalues)), ms.FewShot(5))
    loss, slope = eqx.filter_value_and_grad(lambda one: objective(one).value)(model)
    error, (by_v, by_k, by_q) = theory.error_and_gradient(v, k, q, eigenvalues, 5)
    assert 2 * float(loss) == pytest.approx(error, rel=1e-13)
    np.testing.assert_allclose(slope.network.w_pv[:, 0, -1], by_v, rtol=1e-12)
    np.testing.assert_allclose(slope.network.w_k[..., :-1], by_k, rtol=1e-12)
    np.testing.assert_allclose(slope.network.w_q[..., :-1], by_q, rtol=1e-12)
    # odd in w: values of inputs and keys of labels stay 0; the label of the query is 0
    for rest in (slope.network.w_pv[:, 0, :-1], slope.network.w_k[..., -1], slope.network.w_q[..., -1]):
        assert not np.any(rest)


def test_the_error_is_that_of_the_definition():
    """D = 1: E over x_1, x_q and w by Gauss–Hermite nodes, exact to degree 9 in each."""
    z, weights = np.polynomial.hermite_e.hermegauss(5)
    x, query, w = np.meshgrid(0.7**0.5 * z, 0.7**0.5 * z, z, indexing="ij")
    share = np.einsum("i,j,k->ijk", *[weights / weights.sum()] * 3)
    predicted = 1.3 * (0.8 * w * x * x) * (0.6 * query)
    expected = np.sum(share * (predicted - w * query) ** 2)
    found, _ = theory.error_and_gradient([1.3], [[[0.8]]], [[[0.6]]], [0.7], 1)
    assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("start", "share"), [(0.01, 0.5), (0.3, 0.99)])
def test_a_head_rises_as_its_equation_says(start, share):
    slope = float(theory.slopes(EIGENVALUES, EXAMPLES)[1])
    expected = scipy.integrate.quad(
        lambda s: 1 / (0.09 * s**2 * (1 - s**3 / slope)),
        start,
        (share * slope) ** (1 / 3),
        epsrel=1e-11,
        limit=200,
    )[0]
    assert theory.rise_time(0.3, 1, EXAMPLES, start, share) == pytest.approx(expected, rel=1e-9)


def test_merged_heads_leave_zero_at_the_norm_of_the_squared_covariance():
    assert theory.merged_rate([0.4, 0.3]) == pytest.approx((0.16**2 + 0.09**2) ** 0.5)
