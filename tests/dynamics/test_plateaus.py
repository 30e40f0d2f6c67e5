"""Plateaus of flows: the saddles against closed forms, the times at which flows leave them against toy losses and flows."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mesascope as ms
from mesascope.core import Estimate
from mesascope.dynamics import Rodas4
from mesascope.dynamics.landscape._escape import escape_from, time_to_fall
from mesascope.dynamics.landscape._landscape import Landscape, expand
from mesascope.dynamics.landscape._newton import Spectrum, newton_from
from mesascope.objectives import Engine, Objective
from mesascope.specs import component


class Weights(eqx.Module):
    w: jax.Array


class Toy(Objective):
    """A polynomial of the weights."""

    function: object = eqx.field(static=True)

    def __call__(self, model):
        return Estimate(self.function(model.w), jnp.zeros(()))


@component
class Given(Engine):
    """Gives a toy loss."""

    function: object

    def objective(self, process, task, normalizer="t-1"):
        return Toy(self.function)


def flow_from(model, process, task, engine=None):
    return ms.gradient_flow(model, process, task, engine=engine, solver=Rodas4(), rtol=1e-6)


def follow(function, begin):
    model, engine = Weights(jnp.asarray(begin)), Given(function)
    return ms.plateaus(flow_from(model, ms.LinearRegression(1), ms.FewShot(2), engine))


def two_heads(w):
    """Two products of three factors: the first is worth more, and grows faster."""
    return ((1 - jnp.prod(w[:3])) ** 2 + 0.2 * (1 - jnp.prod(w[3:])) ** 2) / 2


def one_merged_head(w):
    return (1 - 3 * w[0] * w[1]) ** 2 / 2


@pytest.fixture(scope="module")
def found():
    return follow(two_heads, [0.01, 0.02, 0.015, 0.02, 0.01, 0.03])


@pytest.mark.slow
def test_products_of_three_are_learned_one_after_the_other(found):
    # Newton's method ends where the loss, quadratic in its error of 1e-9, is exact
    np.testing.assert_allclose(found.losses, [0.6, 0.1, 0], atol=1e-12)
    np.testing.assert_allclose([one.passed_at for one in found.points], [0.6, 0.1, 0], atol=1e-3)
    assert [(one.order, one.index) for one in found.points] == [(3, 0), (3, 0), (0, 0)]
    assert [one.enters for one in found.points[1:]] == [one.leaves for one in found.points[:-1]]


@pytest.mark.slow
def test_they_leave_saddles_when_the_cubic_terms_say(found):
    for one, speed in zip(found.points[:-1], (1, 0.2), strict=True):
        assert one.predicted == pytest.approx(one.leaves, rel=0.02)  # what the start, of 0.02, leaves out
        # x' = yz and so on grow along x = y = z, where |w|' = |w|²/√3; the start has turned there up to 1 %
        assert one.rate == pytest.approx(speed / 3**0.5, rel=0.01)


@pytest.mark.slow
def test_times_of_a_product_of_two_are_logarithms():
    """x' = 3y and y' = 3x: e^{3t}."""
    slow, fast = (follow(one_merged_head, [scale, 2 * scale]).points for scale in (1e-6, 1e-4))
    for first, last in (slow, fast):
        assert (first.order, first.index, last.order) == (2, 1, 0)
        assert first.rate == pytest.approx(3, rel=1e-9)
        assert first.predicted == pytest.approx(
            first.leaves, abs=0.1
        )  # the constant: what is not linear on the way
    gained = slow[0].leaves - fast[0].leaves
    assert gained == pytest.approx(np.log(100) / 3, rel=0.02)  # between saved points


def test_plateaus_print_and_draw_themselves(found):
    assert repr(found).startswith("<Plateaus: 3 critical points: losses 0.6, 0.1, ")
    assert [row["loss"] for row in found.table()] == list(found.losses)
    (panel,) = found.figure().panels
    assert [trace.kind for trace in panel.traces] == ["line", "rule", "rule", "rule", "points"]
    assert panel.traces[-1].x == tuple(one.predicted for one in found.points[:-1])


@pytest.mark.slow
def test_a_flow_that_ends_on_its_way_may_visit_none():
    model, task = ms.LinearAttention.diagonal(1, 0.3, 0.4), ms.NextToken(4)
    flow = ms.gradient_flow(model, ms.DiagonalUnitary(ms.Gaussian(), 1), task, until=0.5)
    none = ms.plateaus(flow)
    assert len(none) == 0 and none.table() == [] and none.figure().panels


@pytest.mark.slow
def test_masked_weights_keep_their_values_at_the_points_of_a_masked_flow():
    model, task = ms.LinearAttention.gaussian(2, 0.05, key=jax.random.key(0)), ms.NextToken(6)
    process = ms.DiagonalUnitary(ms.Gaussian(), 2)
    flow = ms.gradient_flow(model, process, task, mask="off-diagonal")
    found = ms.plateaus(flow, mask="off-diagonal")
    end = ms.critical_point(flow.model, process, task, mask="off-diagonal")
    assert found.points[-1].loss == pytest.approx(end.loss, rel=1e-12)
    still = np.ones((4, 4)) - np.kron(np.ones((2, 2)), np.eye(2))
    for one in found.points:
        np.testing.assert_array_equal(still * one.model.w_kq, still * model.w_kq)


@pytest.mark.slow
def test_the_last_saddle_of_a_flow_that_does_not_rest_is_one_that_it_leaves_to_nowhere_known():
    process, task = ms.DiagonalUnitary(ms.Gaussian(), 2), ms.NextToken(6)
    start = ms.LinearAttention.diagonal(2, 1e-3, 1e-3)
    (saddle,) = ms.plateaus(ms.gradient_flow(start, process, task, until=1.0)).points
    whole = ms.plateaus(ms.gradient_flow(start, process, task)).points[0]
    assert (saddle.index, saddle.order, saddle.rate) == (whole.index, 2, whole.rate) and whole.index > 0
    assert np.isnan(saddle.leaves) and np.isnan(saddle.predicted)
    zero = ms.LinearAttention.diagonal(2, 0.0, 0.0)
    (rests,) = ms.plateaus(ms.gradient_flow(zero, process, task, until=1.0)).points  # forever at the saddle
    assert (rests.index, rests.order, rests.leaves) == (whole.index, 0, np.inf)


def test_what_is_no_flow_and_what_shows_none_is_refused(found):
    with pytest.raises(TypeError, match=r"^flow: must be what gradient_flow returned, got FewShot$"):
        ms.plateaus(ms.FewShot(2))
    still = eqx.tree_at(lambda f: f.stats, found.flow, {"steps": 0, "rejected": 0})
    with pytest.raises(ValueError, match=r"^flow: took no step \(the gradient fell below the tolerance\)"):
        ms.plateaus(still)
    short = eqx.tree_at(lambda f: f.times, found.flow, found.flow.times[:2])
    with pytest.raises(
        ValueError, match=r"^flow: 2 saved points show no plateaus; raise saves of gradient_flow"
    ):
        ms.plateaus(short)


@pytest.mark.slow
def test_where_explicit_steps_do_not_come_to_rest_an_implicit_solver_goes_on():
    """y' = −y³ needs the time 10⁷, 10¹¹ explicit steps beside a rate of 10⁴."""
    model, engine = Weights(jnp.ones(2)), Given(lambda w: 5e3 * w[0] ** 2 + w[1] ** 4 / 4)
    process, task = ms.LinearRegression(1), ms.FewShot(2)
    flow = ms.gradient_flow(model, process, task, engine=engine, max_steps=20_000)
    assert flow.converged
    assert flow.model.w[1] ** -2 / 2 == pytest.approx(flow.time, rel=1e-3)  # dy^{−2}/dt = 2
    given = ms.gradient_flow(model, process, task, engine=engine, max_steps=20_000, solver=diffrax.Tsit5())
    assert not given.converged


@pytest.mark.slow
def test_heads_of_rank_one_learn_one_direction_of_the_inputs_after_the_other():
    """What a slope a along an eigenvalue λ takes from E(ŷ − y)²/2 is λ²a − λca²/2, at most λ³/2c."""
    eigenvalues, examples = np.array([0.7, 0.3]), 9
    model = ms.prompt_linear_transformer(2, 1, 2, 0.01, key=jax.random.key(0), rank=1)
    (layer,) = model.network.layers
    where = lambda m: [m.network.layers[0].w_k, m.network.layers[0].w_pv]  # noqa: E731
    from_inputs = [layer.w_k.at[..., -1].set(0), layer.w_pv.at[:, -1, :-1].set(0)]
    process = ms.LinearRegression(2, None, np.diag(eigenvalues).tolist())
    flow = flow_from(eqx.tree_at(where, model, from_inputs), process, ms.FewShot(examples))
    found = ms.plateaus(flow)
    c = eigenvalues**2 * (examples + 1) / examples + eigenvalues * eigenvalues.sum() / examples
    expected = eigenvalues.sum() / 2 - np.r_[0, np.cumsum(eigenvalues**3 / c / 2)]
    np.testing.assert_allclose(found.losses, expected, rtol=1e-9)
    for one in found.points[:-1]:
        assert (one.order, one.index) == (3, 0)
        assert one.predicted == pytest.approx(one.leaves, rel=0.02)


def escape_from_zero(landscape):
    point = np.zeros(5)
    hessian = Spectrum(*np.linalg.eigh(expand(landscape, point).hessian))
    return escape_from(landscape, point, hessian, 1.0, 1.0)


def product(count):
    return lambda w: -jnp.prod(w[:count])


def with_a_follower(w):
    """−xyuv and a fifth weight that follows xy: T_4 has the term 8(xy)², which the fifth weight takes away."""
    return -jnp.prod(w[:4]) + 8 * (w[4] - w[0] * w[1]) ** 2


@pytest.mark.parametrize(
    ("function", "order", "epsilon"),
    [
        (product(2), 2, 0.01),
        (product(3), 3, 0.01),
        (product(4), 4, 0.01),
        (with_a_follower, 4, 0.01),
        (product(2), 2, 1e-150),
        (product(3), 3, 1e-100),
        (product(4), 4, 1e-100),
    ],
)
def test_times_of_products(function, order, epsilon):
    """For equal weights x' = x^{p−1}: from ε to the x with x^p = F."""
    landscape = Landscape(Toy(function), Weights(jnp.zeros(5)), jnp.ones(5))
    escape = escape_from_zero(landscape)
    drop = 0.1
    begin = np.r_[np.full(order, epsilon), np.zeros(5 - order)]
    time, rate = time_to_fall(escape, begin, drop)
    end = drop ** (1 / order)
    exact = {
        2: np.log(end / epsilon),
        3: 1 / epsilon - 1 / end,
        4: (epsilon**-2 - end**-2) / 2,
    }
    assert escape.order == order
    assert time == pytest.approx(exact[order], rel=1e-4)  # of the solver
    assert rate == pytest.approx(order ** (1 - order / 2), rel=1e-6)  # |z| = √p x


def test_times_are_those_of_other_units():
    """With tokens s times as large, weights are 1/s and times 1/s⁴ of what they were."""
    times = []
    for scale in (1.0, 1e5):
        start = ms.LinearAttention.diagonal(1, 0.01 / scale, 0.01 / scale)
        process = ms.DiagonalUnitary(ms.Gaussian(scale), 1)
        saddle = ms.plateaus(ms.gradient_flow(start, process, ms.NextToken(3))).points[0]
        times.append(np.array([saddle.leaves, saddle.predicted, 1 / saddle.rate]) * scale**4)
    np.testing.assert_allclose(times[1], times[0], rtol=1e-6)


@pytest.mark.parametrize("steps", [0, 1, 100])
def test_newton_gives_the_hessian_of_the_point_where_it_ends(steps):
    landscape = Landscape(Toy(with_a_follower), Weights(jnp.zeros(5)), jnp.ones(5))
    guess = jnp.asarray([0.3, 0.2, -0.1, 0.4, 0.5])
    end, hessian = newton_from(landscape, guess, jnp.asarray(1.0), steps)
    assert int(end.steps) <= steps and (steps > 0) == bool(np.any(end.vector != guess))
    rebuilt = (hessian.basis * hessian.curvatures) @ hessian.basis.T
    np.testing.assert_allclose(rebuilt, expand(landscape, end.vector).hessian, atol=1e-12)


def test_a_minimum_is_not_left():
    escape = escape_from_zero(Landscape(Toy(lambda w: w @ w), Weights(jnp.zeros(5)), jnp.ones(5)))
    assert escape.order == 0
    assert all(np.isnan(time_to_fall(escape, np.ones(5), 0.1)))
