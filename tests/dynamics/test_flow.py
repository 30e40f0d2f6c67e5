"""Gradient flow against a reference integrator, closed forms and its own promises."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mesascope import (
    Constant,
    DiagonalUnitary,
    ExactMoments,
    Gaussian,
    LinearAttention,
    MultiHeadLinearAttention,
    NextToken,
    Sparse,
    Uniform,
    gradient_flow,
)
from mesascope.dynamics import Outcome, _flow, flow_ends, gradient_flows, real_vector
from mesascope.theory import zheng2024 as theory

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(10)


def _reference(model, process, task, until):
    """The flow by SciPy's DOP853 in real coordinates built here, from finite-difference-checked gradients."""
    objective = ExactMoments().objective(process, task)
    shapes = [model.w_kq.shape, model.w_pv.shape]
    sizes = [int(np.prod(s)) for s in shapes]
    is_complex = np.iscomplexobj(model.w_kq)

    def unpack(x):
        if is_complex:
            x = x[: len(x) // 2] + 1j * x[len(x) // 2 :]
        return type(model)(x[: sizes[0]].reshape(shapes[0]), x[sizes[0] :].reshape(shapes[1]))

    gradient = jax.jit(jax.grad(lambda m: objective(m).value))

    def field(_, x):
        slope = gradient(unpack(x))
        flat = np.concatenate([np.asarray(slope.w_kq).ravel(), np.asarray(slope.w_pv).ravel()])
        # jax.grad in a complex weight is the conjugate of the direction of ascent
        return -np.concatenate([flat.real, -flat.imag]) if is_complex else -flat

    start = np.concatenate([np.asarray(model.w_kq).ravel(), np.asarray(model.w_pv).ravel()])
    start = np.concatenate([start.real, start.imag]) if is_complex else start
    return unpack(solve_ivp(field, (0, until), start, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["real", "complex", "heads"])
def test_agrees_with_another_integrator(kind):
    rng = np.random.default_rng(1)
    draw = lambda *shape: 0.3 * rng.normal(size=shape)  # noqa: E731
    if kind == "heads":
        model = MultiHeadLinearAttention(draw(2, 4, 4), draw(2, 2, 4))
    elif kind == "complex":
        model = LinearAttention(draw(4, 4) + 1j * draw(4, 4), draw(2, 4) + 1j * draw(2, 4))
    else:
        model = LinearAttention(draw(4, 4), draw(2, 4))
    flow = gradient_flow(model, PROCESS, TASK, until=0.3)
    expected = _reference(model, PROCESS, TASK, 0.3)
    assert flow.result is Outcome.FINISHED
    assert flow.time == pytest.approx(0.3, rel=1e-12)
    # both solvers allow 1e-11 per step; a few hundred steps add up to less than 1e-8
    np.testing.assert_allclose(flow.model.w_kq, expected.w_kq, rtol=0, atol=1e-8)
    np.testing.assert_allclose(flow.model.w_pv, expected.w_pv, rtol=0, atol=1e-8)


@pytest.mark.parametrize("start", [(0.1, 0.1), (0.5, 1.5), (2.0, 2.0), (-0.3, -0.2)])
@pytest.mark.parametrize("law", [Gaussian(1.0), Sparse(0.7), Uniform(2.0)])
def test_diagonal_flow_is_the_closed_form(law, start):
    process = DiagonalUnitary(law, 3)
    flow = gradient_flow(LinearAttention.diagonal(3, *start), process, TASK)
    assert flow.converged
    exact = theory.diagonal_flow(process, TASK, *start)(flow.times)
    a = np.asarray(flow.trajectory.w_kq)[:, [3, 4, 5], [0, 1, 2]]
    b = np.asarray(flow.trajectory.w_pv)[:, [0, 1, 2], [0, 1, 2]]
    # 1e-11 per step, some hundred steps
    np.testing.assert_allclose(a, np.repeat(exact.a[:, None], 3, 1), rtol=1e-8)
    np.testing.assert_allclose(b, np.repeat(exact.b[:, None], 3, 1), rtol=1e-8)
    np.testing.assert_allclose(
        np.asarray(flow.model.products()), float(theory.limit_product(process, TASK)), rtol=1e-9
    )


@pytest.mark.slow
def test_error_shrinks_with_the_order_of_the_solver():
    """Fixed steps of a fifth-order method: halving them divides the error by 2^5."""
    objective = ExactMoments().objective(PROCESS, TASK)
    vector, rebuild = real_vector(LinearAttention.diagonal(2, 0.3, 0.4))
    field = diffrax.ODETerm(lambda t, y, args: -jax.grad(lambda v: objective(rebuild(v)).value)(y))
    exact = theory.diagonal_flow(PROCESS, TASK, 0.3, 0.4)(0.05)
    errors = []
    for steps in (4, 8, 16):
        end = diffrax.diffeqsolve(field, diffrax.Tsit5(), 0.0, 0.05, 0.05 / steps, jnp.asarray(vector)).ys[-1]
        errors.append(abs(float(rebuild(end).products()[0]) - float(exact.product)))
    slopes = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(slopes > 4.5), slopes


@pytest.mark.slow
def test_the_loss_never_rises():
    flow = gradient_flow(LinearAttention.gaussian(2, 0.5, key=jax.random.key(0)), PROCESS, TASK)
    loss = flow.loss
    assert loss.shape == flow.times.shape
    assert np.all(np.diff(loss) <= 1e-12 * loss[0])
    assert np.all(np.diff(flow.times) > 0)


@pytest.mark.slow
def test_mask_holds_entries_and_reaches_the_masked_limit():
    process = DiagonalUnitary(Constant(1.0), 3)
    start = LinearAttention.diagonal(3, 0.1, 0.2)
    masked = gradient_flow(start, process, TASK, mask="off-diagonal")
    free = gradient_flow(start, process, TASK)
    limit = float(theory.masked_full_one_limit(3, TASK))
    np.testing.assert_allclose(np.asarray(masked.model.products()), limit, rtol=1e-9)
    off = ~np.tile(np.eye(3, dtype=bool), (2, 2))
    assert np.all(np.asarray(masked.model.w_kq)[off] == 0)
    assert np.abs(np.asarray(free.model.w_kq)[off]).max() > 0.01
    assert free.loss[-1] < masked.loss[-1]


def test_mask_as_a_model():
    start = LinearAttention.diagonal(2, 0.1, 0.2)
    mask = LinearAttention(np.ones((4, 4)), np.zeros((2, 4)))
    flow = gradient_flow(start, PROCESS, TASK, mask=mask, until=0.2)
    np.testing.assert_array_equal(flow.model.w_pv, start.w_pv)
    assert not np.array_equal(flow.model.w_kq, start.w_kq)


def test_saves_thin_the_path_but_keep_both_ends():
    start = LinearAttention.gaussian(2, 0.3, key=jax.random.key(3))
    full = gradient_flow(start, PROCESS, TASK, saves=100_000)
    thin = gradient_flow(start, PROCESS, TASK, saves=10)
    assert len(thin.times) <= 11 < len(full.times)
    assert thin.times[0] == 0 and thin.times[-1] == full.times[-1]
    assert set(thin.times) <= set(full.times)
    np.testing.assert_array_equal(thin.trajectory.w_kq[-1], thin.model.w_kq)


def test_says_how_it_ended():
    start = LinearAttention.diagonal(2, 0.1, 0.1)
    short = gradient_flow(start, PROCESS, TASK, max_steps=5)
    assert short.result is Outcome.STEP_LIMIT and not short.converged
    assert "max_steps" in short.result.message and "Kvaerno5" in short.result.message
    rest = gradient_flow(LinearAttention.diagonal(2, 0.0, 0.0), PROCESS, TASK)
    assert rest.converged and rest.gradient_norm == 0


@pytest.mark.slow
def test_an_implicit_solver_ends_at_the_same_point():
    start = LinearAttention.diagonal(2, 0.3, 0.2)
    explicit = gradient_flow(start, PROCESS, TASK, until=0.5)
    implicit = gradient_flow(
        start, PROCESS, TASK, until=0.5, solver=diffrax.Kvaerno5(), rtol=1e-8, atol=1e-10
    )
    # the implicit run allows 1e-8 per step
    np.testing.assert_allclose(implicit.model.w_kq, explicit.model.w_kq, atol=1e-6)


def test_stiff_starts_come_to_rest_although_the_solver_is_explicit():
    """a0 far from b0: the errors of the solver shake the gradient above the tolerance until they are tightened."""
    process = DiagonalUnitary(Gaussian(2.0), 5)
    flow = gradient_flow(LinearAttention.diagonal(5, 0.5, 1.5), process, NextToken(100))
    assert flow.converged


@pytest.mark.slow
@pytest.mark.parametrize(("until", "tightened"), [(2.0, False), ("steady-state", True)])
def test_tolerances_are_tightened_on_the_way_to_rest_only(monkeypatch, until, tightened):
    """The gradient of this flow rises before it falls: not every segment brings it down."""
    allowed, segment = [], _flow._segment

    def noting(objective, model, start, mask, numbers, *others):
        allowed.append(tuple(np.asarray(numbers[-2:])))
        return segment(objective, model, start, mask, numbers, *others)

    monkeypatch.setattr(_flow, "_segment", noting)
    monkeypatch.setattr(_flow, "LONGEST_SEGMENT", 16)
    flow = gradient_flow(LinearAttention.diagonal(2, 0.1, 0.1), PROCESS, TASK, until=until)
    assert flow.result in (Outcome.FINISHED, Outcome.CONVERGED) and len(allowed) > 2
    assert (len(set(allowed)) > 1) == tightened


@pytest.mark.parametrize("a", [10.0, 1e3, 1e4])
def test_unbalanced_starts_rest_in_the_units_of_the_smaller_matrix(a):
    limit = float(theory.limit_product(PROCESS, TASK))
    flow = gradient_flow(LinearAttention.diagonal(2, a, 1 / a), PROCESS, TASK)
    assert flow.converged
    np.testing.assert_allclose(np.asarray(flow.model.products()), limit, rtol=1e-8)
    starts = jax.vmap(lambda b: LinearAttention.diagonal(2, b, 1 / b))(jnp.array([1.0, a]))
    ends = flow_ends(starts, PROCESS, TASK)
    products = np.asarray(ends.models.w_kq)[:, 2, 0] * np.asarray(ends.models.w_pv)[:, 0, 0]
    # nothing is tightened there: a flow may be honest about not having come to rest, but not wrong about it
    np.testing.assert_allclose(products[np.asarray(ends.converged)], limit, rtol=1e-6)


@pytest.mark.parametrize("kq, pv", [(1e-3, 100.0), (1e3, 1e-3)])
def test_slow_directions_are_not_taken_for_still(kq, pv):
    """One matrix holds back the other: the flow rests for 10⁴ to 10⁸ of its shortest times, and then goes on."""
    start = LinearAttention.gaussian(2, 0.3, key=jax.random.key(0))
    flow = gradient_flow(LinearAttention(kq * start.w_kq, pv * start.w_pv), PROCESS, TASK)
    assert flow.converged
    np.testing.assert_allclose(flow.loss[-1], gradient_flow(start, PROCESS, TASK).loss[-1], rtol=1e-12)


def test_many_flows_do_not_start_at_rest_where_one_matrix_hides_that_another_moves():
    """W^KQ is at its best for W^PV × 1000, which hardly moves beside it."""
    start = LinearAttention.gaussian(2, 0.3, key=jax.random.key(0))
    mask = LinearAttention(np.ones((4, 4)), np.zeros((2, 4)))
    start = LinearAttention(1e-3 * start.w_kq, 1e3 * start.w_pv)
    waiting = gradient_flow(start, PROCESS, TASK, mask=mask, tolerance=1e-13).model
    ends = flow_ends(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], waiting), PROCESS, TASK)
    best = gradient_flow(waiting, PROCESS, TASK)
    assert best.converged and best.loss[-1] < 0.9 * best.loss[0]
    assert ends.steps[0] > 0 and not ends.converged[0]  # explicit steps do not get there


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_scale_of_the_data_does_not_matter(scale):
    process = DiagonalUnitary(Gaussian(scale), 2)
    flow = gradient_flow(LinearAttention.diagonal(2, 0.1, 0.1), process, TASK)
    assert flow.converged
    limit = float(theory.limit_product(process, TASK))
    np.testing.assert_allclose(np.asarray(flow.model.products()), limit, rtol=1e-8)


def test_the_limit_of_steps_is_one():
    start = LinearAttention.gaussian(2, 0.3, key=jax.random.key(3))
    for most in (1, 100, 2100):
        stats = gradient_flow(start, DiagonalUnitary(Gaussian(1.0), 2), NextToken(100), max_steps=most).stats
        assert stats["steps"] + stats["rejected"] <= most


@pytest.mark.parametrize("size", [1e-100, 1e-279])
def test_small_starts_grow_at_the_rate_of_the_saddle(size):
    """At 0 the weights of d = 1, T = 3 grow as e^{3t}."""
    start, one = LinearAttention.diagonal(1, size, size), DiagonalUnitary(Gaussian(1.0), 1)
    flow = gradient_flow(start, one, NextToken(3), until=20.0)
    assert np.abs(np.asarray(flow.model.w_kq)).max() / size == pytest.approx(np.exp(60), rel=1e-9)


def test_starts_too_small_for_double_precision_are_refused():
    small, usual = (LinearAttention.diagonal(2, size, 0.1) for size in (1e-290, 0.1))
    for refused in (
        lambda: gradient_flow(small, PROCESS, TASK),
        lambda: gradient_flows([usual, small], [PROCESS] * 2, [TASK] * 2, [1.0, 1.0]),
        lambda: flow_ends(jax.tree.map(lambda *w: jnp.stack(w), usual, small), PROCESS, TASK),
    ):
        with pytest.raises(
            ValueError, match=r"model\.w_kq: its largest entry is 1e-290, too small for a flow"
        ):
            refused()


@pytest.mark.slow
def test_a_tiny_start_is_not_rest():
    flow = gradient_flow(LinearAttention.diagonal(2, 1e-100, 1e-100), PROCESS, TASK)
    np.testing.assert_allclose(
        np.asarray(flow.model.products()), float(theory.limit_product(PROCESS, TASK)), rtol=1e-8
    )


def test_interrupting_keeps_what_was_computed():
    def stop(progress):
        assert progress.done > 0
        raise KeyboardInterrupt

    start = LinearAttention.gaussian(2, 0.3, key=jax.random.key(3))
    flow = gradient_flow(start, PROCESS, TASK, progress=stop)
    assert flow.result is Outcome.INTERRUPTED
    assert len(flow.times) > 1


def test_interrupted_before_the_first_step_it_is_the_start(monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    start = LinearAttention.diagonal(2, 0.1, 0.1)
    with monkeypatch.context() as patch:
        patch.setattr("mesascope.dynamics._flow._segment", stop)
        flow = gradient_flow(start, PROCESS, TASK)
    assert flow.result is Outcome.INTERRUPTED and list(flow.times) == [0.0]
    objective = ExactMoments().objective(PROCESS, TASK)
    slope = jax.tree.leaves(jax.grad(lambda model: objective(model).value)(start))
    assert flow.gradient_norm == pytest.approx(
        float(np.sqrt(sum(np.sum(one**2) for one in slope))), rel=1e-12
    )


def test_other_horizons_and_scales_compile_nothing():
    start = LinearAttention.diagonal(3, 0.1, 0.1)
    gradient_flow(start, DiagonalUnitary(Gaussian(1.0), 3), NextToken(20))
    with jax.log_compiles(False), _compilations() as compiled:
        gradient_flow(start, DiagonalUnitary(Gaussian(0.5), 3), NextToken(50))
    assert not [name for name in compiled if "segment" in name], compiled


class _compilations:  # noqa: N801  (used like a function)
    """Names of what jax compiles inside the block."""

    def __enter__(self):
        import logging

        self.names, self.logger = [], logging.getLogger("jax._src.interpreters.pxla")
        self.handler = logging.Handler()
        self.handler.emit = lambda record: self.names.append(record.getMessage())
        self.logger.addHandler(self.handler)
        self.before = (jax.config.jax_log_compiles, self.logger.propagate)
        jax.config.update("jax_log_compiles", True)
        return self.names

    def __exit__(self, *_):
        self.logger.removeHandler(self.handler)
        jax.config.update("jax_log_compiles", self.before[0])


def test_the_counter_of_compilations_counts():
    with _compilations() as compiled:
        jax.jit(lambda x: x * 3.25 + 1)(jnp.arange(7.0))
    assert compiled


@pytest.mark.slow
def test_ends_of_many_flows_are_the_flows():
    keys = jax.random.split(jax.random.key(0), 4)
    models = jax.vmap(lambda k: LinearAttention.gaussian(2, 0.3, key=k))(keys)
    ends = flow_ends(models, PROCESS, TASK)
    assert bool(ends.converged.all())
    for i in range(4):
        one = gradient_flow(LinearAttention.gaussian(2, 0.3, key=keys[i]), PROCESS, TASK)
        np.testing.assert_allclose(
            np.asarray(ends.models.w_kq[i])[2:, :2].diagonal()
            * np.asarray(ends.models.w_pv[i])[:, :2].diagonal(),
            np.asarray(one.model.products()),
            rtol=1e-7,
        )
        assert float(ends.loss[i]) == pytest.approx(float(one.loss[-1]), rel=1e-10)


def test_a_flow_that_needs_more_steps_is_not_called_converged():
    models = jax.vmap(lambda k: LinearAttention.gaussian(2, 0.3, key=k))(
        jax.random.split(jax.random.key(0), 2)
    )
    assert not flow_ends(models, PROCESS, TASK, max_steps=10).converged.any()


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"until": "forever"}, ValueError, "steady-state"),
        ({"until": -1.0}, ValueError, "until"),
        ({"until": float("nan")}, ValueError, "until"),
        ({"tolerance": 0}, ValueError, "tolerance"),
        ({"tolerance": 1e308}, ValueError, "tolerance must be greater than 0 and below 1"),
        ({"rtol": -1e-3}, ValueError, "rtol"),
        ({"max_steps": 0}, ValueError, "max_steps"),
        ({"saves": 1}, ValueError, "saves"),
        ({"mask": "diagonal"}, ValueError, "off-diagonal"),
        ({"mask": True}, TypeError, "mask"),
        ({"solver": "tsit5"}, TypeError, "solver"),
        ({"engine": "exact"}, TypeError, "engine"),
        ({"mask": LinearAttention(np.full((4, 4), 0.5), np.ones((2, 4)))}, ValueError, "mask"),
        ({"mask": LinearAttention(np.ones((6, 6)), np.ones((3, 6)))}, ValueError, "mask"),
    ],
)
def test_bad_settings_speak(settings, error, words):
    with pytest.raises(error, match=words):
        gradient_flow(LinearAttention.diagonal(2, 0.1, 0.1), PROCESS, TASK, **settings)


def test_a_model_of_another_dimension_is_refused():
    with pytest.raises(ValueError, match="dim"):
        gradient_flow(LinearAttention.diagonal(3, 0.1, 0.1), PROCESS, TASK)


@pytest.mark.slow
def test_real_vector_round_trip_and_gradient_direction():
    rng = np.random.default_rng(0)
    model = LinearAttention(rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4)), rng.normal(size=(2, 4)))
    vector, rebuild = real_vector(model)
    assert vector.shape == (40,)
    again = rebuild(vector)
    np.testing.assert_array_equal(again.w_kq, model.w_kq)
    np.testing.assert_array_equal(again.w_pv, model.w_pv)
    objective = ExactMoments().objective(PROCESS, TASK)
    slope = jax.grad(lambda v: objective(rebuild(v)).value)(jnp.asarray(vector))
    h = 1e-6
    for i in (0, 7, 20, 39):
        step = h * np.eye(40)[i]
        rise = float(objective(rebuild(vector + step)).value - objective(rebuild(vector - step)).value) / (
            2 * h
        )
        # central differences of a quartic: error h² ~ 1e-12 times third derivatives, rounding 1e-16·L/h ~ 1e-9
        assert rise == pytest.approx(float(slope[i]), rel=1e-6, abs=1e-6)
