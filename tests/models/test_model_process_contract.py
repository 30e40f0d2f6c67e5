"""The contract of every model with every process: fitting pairs compute, others are refused.

A new kind of model meets its data in tests/test_kinds.py; here are models of all makes.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import (
    Projected,
    WithPositions,
)
from mesascope.objectives import cast, check_model_reads, sample_losses
from mesascope.processes import (
    DiagonalUnitary,
    FewShot,
    NextToken,
    PromptProcess,
)
from models.partners import BATCH, MODELS, PROCESSES, SEEN, Data, N, T, key


def drawn_by(process):
    """The data of a process, from its attributes."""
    if isinstance(process, PromptProcess):
        return Data("prompts", process.dim)
    if hasattr(process, "vocabulary"):
        return Data("symbols", process.vocabulary)
    return Data("complex" if isinstance(process, DiagonalUnitary) else "real", process.dim)


def fits(name, source):
    return drawn_by(PROCESSES[source]) in MODELS[name].reads


PAIRS = [(name, source) for name in MODELS for source in PROCESSES]
FITTING = [pair for pair in PAIRS if fits(*pair)]
every_fitting_pair = pytest.mark.parametrize(("name", "source"), FITTING)


def of_kind(pairs, *kinds):
    return [pair for pair in pairs if drawn_by(PROCESSES[pair[1]]).kind in kinds]


@functools.cache
def model(name):
    return MODELS[name].build()


_draw = jax.jit(lambda process, key, size: process.sample(key, size, BATCH), static_argnums=(0, 2))


@functools.cache
def sample(source, purpose="sample"):
    process = PROCESSES[source]
    return _draw(process, key(source, purpose), N if isinstance(process, PromptProcess) else T)


def other_sample(source):
    """The same data with changes that must not matter: tokens after the first SEEN, or the order of the examples."""
    now = sample(source)
    if isinstance(PROCESSES[source], PromptProcess):
        order = np.arange(N)[::-1]
        return now._replace(x=now.x[:, [*order, N]], y=jnp.concatenate([now.y[:, order], now.y[:, N:]], 1))
    kind, size = drawn_by(PROCESSES[source])
    later = (now + 1) % size if kind == "symbols" else sample(source, "later")
    return jnp.concatenate([now[:, :SEEN], later[:, SEEN:]], 1)


def task_of(data):
    return NextToken(T) if isinstance(data, jax.Array | jax.ShapeDtypeStruct) else FewShot(N)


def predict(one, data):
    """All predictions for sequences; for prompts the last one, which needs one pass."""
    return one.predictions(data) if not isinstance(data, tuple) else one(data.x, data.y[:, :-1])


@eqx.filter_jit
def answers(one, data, other):
    """Predictions for both, losses and the gradient, with one compilation for every model and shape of data."""

    def mean_loss(one):
        losses = sample_losses(one, data, task_of(data))
        return jnp.mean(losses), losses

    gradient, losses = eqx.filter_grad(mean_loss, has_aux=True)(one)
    both = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), data, other)
    return jnp.split(predict(one, both), 2), losses, gradient


@functools.cache
def answered(name, source):
    return jax.tree.map(np.asarray, answers(model(name), sample(source), other_sample(source)))


def close(a, b):
    # rounding only: sums of a few hundred terms, in two orders
    return np.isclose(a, b, rtol=1e-10, atol=1e-12 * max(abs(b).max(), 1))


@every_fitting_pair
def test_predictions_and_losses_are_finite_and_of_the_right_shape(name, source):
    kind, size = drawn_by(PROCESSES[source])
    (predictions, _), losses, _ = answered(name, source)
    assert predictions.shape == ((BATCH,) if kind == "prompts" else (BATCH, T - 1, size))
    assert np.isfinite(predictions).all()
    assert losses.shape == (BATCH,)
    assert not np.iscomplexobj(losses)
    assert np.isfinite(losses).all()
    assert (losses > 0).all()
    assert len(np.unique(losses)) == BATCH  # every sample has its own


@every_fitting_pair
def test_gradients_are_finite(name, source):
    gradient = jax.tree.leaves(answered(name, source)[2])
    assert all(np.isfinite(slope).all() for slope in gradient)
    assert any(slope.any() for slope in gradient)


@pytest.mark.parametrize(("name", "source"), of_kind(FITTING, "real", "complex", "symbols"))
def test_later_tokens_do_not_change_earlier_predictions(name, source):
    (before, after), _, _ = answered(name, source)
    assert close(after[:, : SEEN - 1], before[:, : SEEN - 1]).all()
    assert not close(after[:, SEEN - 1 :], before[:, SEEN - 1 :]).all((1, 2)).any()


def order_plays_no_part(one):
    """Whether pairs are tokens, without positions, and no token attends to previous tokens only."""
    return one.embedding.layout == "stacked" and not one.network.causal and not positioned(one.embedding)


def positioned(embedding):
    return isinstance(embedding, WithPositions) or (
        isinstance(embedding, Projected) and positioned(embedding.embedding)
    )


@pytest.mark.parametrize(("name", "source"), of_kind(FITTING, "prompts"))
def test_the_order_of_examples_matters_only_if_the_model_depends_on_it(name, source):
    (before, after), _, _ = answered(name, source)
    assert close(after, before).all() == order_plays_no_part(model(name))


@functools.cache
def types(name, data, precision):
    """Types of predictions, losses and gradient, without computation."""
    one = cast(model(name), precision)

    def loss(one, data):
        return jnp.sum(sample_losses(one, data, task_of(data)))

    shaped = jax.eval_shape(lambda: cast(sample_of(data), precision))
    outcomes = (
        eqx.filter_eval_shape(predict, one, shaped),
        eqx.filter_eval_shape(loss, one, shaped),
        eqx.filter_eval_shape(eqx.filter_grad(loss), one, shaped),
    )
    return tuple({leaf.dtype.name for leaf in jax.tree.leaves(outcome)} for outcome in outcomes)


def sample_of(data):
    source = next(source for source in PROCESSES if drawn_by(PROCESSES[source]) == data)
    return sample(source)


@every_fitting_pair
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_types_are_preserved(name, source, precision):
    data = drawn_by(PROCESSES[source])
    complex_kind = {"float32": "complex64", "float64": "complex128"}[precision]
    predictions, losses, gradient = types(name, data, precision)
    assert predictions == {complex_kind if data.kind == "complex" else precision}
    assert losses == {precision}
    assert gradient == {precision}


@every_fitting_pair
def test_fitting_pairs_pass_the_check_and_are_sampled_inside_compiled_steps(name, source):
    process = PROCESSES[source]
    check_model_reads(model(name), process)
    if source == next(
        other for other in PROCESSES if fits(name, other)
    ):  # the trace of one process tells of all

        def step(one, key):
            data = process.sample(key, N if isinstance(process, PromptProcess) else T, BATCH)
            return sample_losses(one, data, task_of(data))

        assert eqx.filter_eval_shape(step, model(name), key(source)).shape == (BATCH,)


@pytest.mark.parametrize(("name", "source"), [pair for pair in PAIRS if not fits(*pair)])
def test_pairs_that_do_not_fit_are_refused_with_both_names(name, source):
    one, process = model(name), PROCESSES[source]
    with pytest.raises((TypeError, ValueError), match=r"^model: ") as refused:
        check_model_reads(one, process)
    message = str(refused.value)
    assert type(one).__name__ in message
    assert type(process).__name__ in message
    assert "\n" not in message


def test_every_model_and_process_has_a_fitting_partner():
    assert {name for name, _ in FITTING} == set(MODELS)
    wanted = {source for source in PROCESSES if not source.startswith(("large", "small"))}
    assert {source for _, source in FITTING} == wanted
