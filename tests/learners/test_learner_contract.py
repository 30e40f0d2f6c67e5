"""The contract of every learner, tested with its example; nothing here changes for a new learner."""

import inspect
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mesascope.learners as learners
from mesascope.learners import Learner, PosteriorMean, PreconditionedGradientDescent, features_of, predictions
from mesascope.specs import known_kinds

N, P, M = 6, 3, 2  # both fewer and more examples than inputs occur
PRECONDITIONER = np.array([[0.2, 0.1, 0.0], [-0.1, 0.3, 0.05], [0.0, 0.1, 0.25]])
PRIOR = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, -0.2], [0.0, -0.2, 0.5]])

CASES = {name: kind.example() for name, kind in known_kinds("learner").items()}
CASES |= {
    "preconditioned": PreconditionedGradientDescent(PRECONDITIONER),
    "preconditioned-all": PreconditionedGradientDescent([0.1, 0.2, 0.3], [[1, 0.5], [0.2, 2]], steps=3),
    "posterior-mean-matrix": PosteriorMean(PRIOR, 0.3),
}
every_case = pytest.mark.parametrize("name", CASES)
both_fields = pytest.mark.parametrize("dtype", [float, complex])


def draw(name, dtype, lead=(), examples=N, seed=0):
    """Random x, y and queries; the symbols that follow symbols are of the same number."""
    outputs = P if CASES[name].fitting.symbols else M
    rng = np.random.default_rng(seed)

    def normal(*shape):
        real = rng.normal(size=shape)
        return real + 1j * rng.normal(size=shape) if dtype is complex else real

    return normal(*lead, examples, P), normal(*lead, examples, outputs), normal(*lead, examples + 1, P)


def close(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# Compiling takes most of the time: tests share functions and shapes where they can.
predict = eqx.filter_jit(lambda learner, state, query: learner.predict(state, query))


def scaled(learner, amount):
    """The learner with its real hyperparameters times a number."""
    return jax.tree.map(lambda value: amount * value if eqx.is_array(value) else value, learner)


@every_case
def test_leading_axes_are_independent_problems(name):
    data = draw(name, complex, (2, 3))
    actual = predictions(CASES[name], *data)
    assert actual.shape == (2, 3, N + 1, data[1].shape[-1])
    assert np.isfinite(actual).all()
    for index in np.ndindex(2, 3):
        close(actual[index], predictions(CASES[name], *(array[index] for array in data)))


@every_case
@both_fields
def test_updates_by_single_examples_give_the_same_predictions(name, dtype):
    x, y, queries = draw(name, dtype, (3,))
    learner = CASES[name]
    expected = np.stack([predictions(learner, *data) for data in zip(x, y, queries, strict=True)])
    assert expected.dtype == dtype
    state = learner.init((3,), P, y.shape[-1], N, dtype)
    for n in range(N + 1):
        assert (state.n == n).all()
        close(predict(learner, state, queries[:, n]), expected[:, n])
        if n < N:
            state = learner.update(state, x[:, n], y[:, n])


@every_case
@both_fields
def test_memories_of_different_lengths_form_one_batch(name, dtype):
    x, y, queries = draw(name, dtype)
    learner, order = CASES[name], np.array([3, 0, N])
    every = learner.reads.memory.after_each(x, y)
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (N + 1, *leaf.shape[1:]))[order], every)
    close(predict(learner, states, queries[order]), predictions(learner, x, y, queries)[order])


@every_case
@both_fields
def test_later_examples_have_no_effect(name, dtype):
    x, y, queries = draw(name, dtype)
    before = predictions(CASES[name], x, y, queries)
    x, y, queries = (
        np.concatenate([one[:2], two[2:]])
        for one, two in zip((x, y, queries), draw(name, dtype, seed=1), strict=True)
    )
    np.testing.assert_array_equal(predictions(CASES[name], x, y, queries)[:2], before[:2])


@pytest.mark.parametrize(
    ("name", "expected"), [("zero", 0), ("gradient-descent", 0), ("ridge", 0), ("dirichlet-posterior", 1 / P)]
)
def test_without_examples_it_predicts_what_it_is_declared_to(name, expected):
    x, y, queries = draw(name, float)
    np.testing.assert_allclose(predictions(CASES[name], x[:0], y[:0], queries[:1]), expected, atol=1e-15)


@every_case
def test_without_examples_it_predicts_as_before_the_first_of_several(name):
    x, y, queries = draw(name, float)
    alone = predictions(CASES[name], x[:0], y[:0], queries[:1])
    np.testing.assert_allclose(predictions(CASES[name], x, y, queries)[:1], alone, rtol=1e-14)


@every_case
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64, np.complex128])
def test_the_precision_is_that_of_the_data(name, dtype):
    kind = complex if np.issubdtype(dtype, np.complexfloating) else float
    data = (array.astype(dtype) for array in draw(name, kind))
    assert jax.eval_shape(partial(predictions, CASES[name]), *data).dtype == dtype


@every_case
def test_new_hyperparameters_compile_nothing(name):
    traces = []

    def run(learner, *data):
        traces.append(learner)
        return predictions(learner, *data)

    run_once = eqx.filter_jit(run)
    run_once(CASES[name], *draw(name, float))
    run_once(scaled(CASES[name], 0.99), *draw(name, float, seed=1))
    assert len(traces) == 1


@every_case
def test_traced_and_static_integers_give_the_same_predictions(name):
    learner = CASES[name]
    traced = jax.tree.map(jnp.asarray, learner)
    close(eqx.filter_jit(predictions)(traced, *draw(name, float)), predictions(learner, *draw(name, float)))


@every_case
def test_features_are_shared_by_many_hyperparameters(name):
    learner, data = CASES[name], draw(name, float)
    others = scaled(learner, 0.9)
    features = features_of(type(learner), *data)
    assert type(features) is learner.reads
    stacked = jax.tree.map(lambda *values: jnp.stack(jnp.asarray(values)), learner, others)
    if not jax.tree.leaves(stacked):
        close(learner.respond(features), predictions(learner, *data))
        return
    both = eqx.filter_jit(eqx.filter_vmap(lambda one, features: one.respond(features), in_axes=(0, None)))(
        stacked, features
    )
    close(both[0], predictions(learner, *data))
    close(both[1], predictions(others, *data))


@every_case
@both_fields
def test_unitary_changes_of_the_inputs_change_nothing_if_it_says_so(name, dtype):
    x, y, queries = draw(name, dtype)
    turn = np.linalg.qr(draw(name, dtype, examples=P, seed=1)[0])[0]
    before, after = (
        predictions(CASES[name], x, y, queries),
        predictions(CASES[name], x @ turn, y, queries @ turn),
    )
    if CASES[name].rotation_invariant:
        close(after, before, 1e-11)
    else:
        assert np.abs(after - before).max() > 1e-3


@pytest.mark.slow
@every_case
@both_fields
def test_derivatives_in_the_data_equal_finite_differences(name, dtype):
    data, direction = draw(name, dtype), draw(name, dtype, seed=1)
    weights = draw(name, dtype, examples=N + 1, seed=2)[1]
    step = 1e-5

    def weighted(*data):
        return jnp.sum(weights * predictions(CASES[name], *data)).real

    up, down = (
        weighted(*(a + sign * step * b for a, b in zip(data, direction, strict=True))) for sign in (1, -1)
    )
    gradients = jax.jit(jax.grad(weighted, argnums=(0, 1, 2)))(*data)
    along = sum(np.sum(g * b).real for g, b in zip(gradients, direction, strict=True))
    # Central differences err by step² times the third derivative, and by ε/step
    assert along == pytest.approx(float(up - down) / (2 * step), rel=1e-6, abs=1e-8)


@every_case
def test_derivatives_in_hyperparameters_equal_finite_differences(name):
    learner, data, step = CASES[name], draw(name, float), 1e-5
    features = features_of(type(learner), *data)
    tangent = jax.jit(
        lambda features: jax.jvp(lambda a: scaled(learner, a).respond(features), (1.0,), (1.0,))[1]
    )(features)
    up, down = (predictions(scaled(learner, 1 + sign * step), *data) for sign in (1, -1))
    close(tangent, (up - down) / (2 * step), 1e-6)


@every_case
def test_empty_and_nearly_zero_contexts_give_finite_predictions(name):
    x, y, queries = draw(name, float)
    for size in (0, 1e-30):
        assert np.isfinite(predictions(CASES[name], size * x, size * y, queries)).all()


def test_every_public_learner_is_declared_with_a_unique_rank():
    public = {
        kind
        for name in learners.__all__
        if inspect.isclass(kind := getattr(learners, name)) and issubclass(kind, Learner)
    }
    known = known_kinds("learner")
    assert {kind for kind in public if not inspect.isabstract(kind)} == set(known.values())
    assert all(kind.name == name for name, kind in known.items())
    assert len({kind.fitting.flexibility for kind in known.values()}) == len(known)


@every_case
def test_hyperparameters_have_names(name):
    learner = CASES[name]
    again = type(learner)(**learner.hyperparameters)
    assert eqx.tree_equal(again, learner)
