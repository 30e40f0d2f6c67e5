"""What one step of training is: its batch, its gradient, its average; and when it is compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mesascope import DiagonalUnitary, Gaussian, LinearAttention, NextToken, train
from mesascope.core import named_key
from mesascope.dynamics import Optimizer, Outcome, _pieces, _training_steps, load_model, real_vector
from mesascope.dynamics._pieces import _CACHED_BYTES, number_of_pieces
from mesascope.models import prompt_linear_transformer, token_transformer, transformer
from mesascope.objectives import _monte_carlo, sample_losses
from mesascope.processes import FewShot, LinearRegression, MarkovTree, SequenceProcess
from mesascope.specs import component

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(6)
REAL = LinearAttention.gaussian(2, 0.3, key=jax.random.key(1))
COMPLEX = LinearAttention(REAL.w_kq * (1 + 2j), REAL.w_pv * (0.5 - 1j))
WIDE = {"precision": "float64", "held_out": 4, "batch": 10}
CASES = {
    "real": (REAL, PROCESS, TASK),
    "complex": (COMPLEX, PROCESS, TASK),
    "symbols": (token_transformer(3, 4, 1, 1, 6, key=jax.random.key(0)), MarkovTree.chain(5, 3, 0.5), TASK),
    "prompts": (
        prompt_linear_transformer(2, 1, key=jax.random.key(0)),
        LinearRegression(2),
        FewShot(3, {1: 2, 3: 1}),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "pieces"),
    [("real", 1), ("complex", 1), ("complex", 5), ("symbols", 2), ("prompts", 1), ("prompts", 5)],
)
def test_a_step_descends_the_mean_loss_of_its_batch(case, pieces, monkeypatch):
    """With the rate 1 the first step moves by minus the gradient in the coordinates of `real_vector`."""
    model, process, task = CASES[case]
    monkeypatch.setattr(_pieces, "number_of_pieces", lambda *_: pieces)
    optimizer = optax.sgd(1.0)  # a new one each time: nothing compiled before is used
    run = train(model, process, task, optimizer=optimizer, steps=1, seed=7, **WIDE)
    length = task.horizon if isinstance(task, NextToken) else task.examples
    sample = process.sample(jax.random.fold_in(named_key(7, "train"), 0), length, WIDE["batch"])
    start, rebuild = real_vector(model)

    def mean_loss(vector):
        return jnp.mean(sample_losses(rebuild(vector), sample, task))

    loss, gradient = jax.jit(jax.value_and_grad(mean_loss))(jnp.asarray(start))
    assert np.linalg.norm(gradient) > 1e-3
    np.testing.assert_allclose(start - real_vector(run.model)[0], gradient, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.losses, [loss], rtol=1e-12)


@pytest.mark.slow
def test_every_step_draws_another_batch():
    optimizer = optax.sgd(1e-30)  # the weights stay: losses differ by their samples only
    run = train(REAL, PROCESS, TASK, optimizer=optimizer, steps=6, record_every=1, **WIDE)
    assert len(set(run.losses.tolist())) == 6
    coarse = train(REAL, PROCESS, TASK, optimizer=optimizer, steps=6, record_every=4, **WIDE)
    np.testing.assert_array_equal(coarse.steps, [4, 6])
    np.testing.assert_allclose(coarse.losses, [run.losses[:4].mean(), run.losses[4:].mean()], rtol=1e-12)


@pytest.mark.slow
def test_pieces_divide_the_batch_and_only_large_models_need_them():
    def mean_loss(model, task):
        return lambda vector, sample: jnp.mean(sample_losses(real_vector(model)[1](vector), sample, task))

    def vector(model):
        return jnp.asarray(real_vector(model)[0])

    prompts = LinearRegression(2).sample(jax.random.key(0), 3, 256)
    small = prompt_linear_transformer(2, 1, key=jax.random.key(0))
    assert number_of_pieces(mean_loss(small, FewShot(3)), vector(small), prompts) == 1
    large = transformer(4, 64, 2, 4, 100, key=jax.random.key(0))
    for batch in (240, 256):
        tokens = jax.ShapeDtypeStruct((batch, 100, 4), jnp.float32)
        pieces = number_of_pieces(mean_loss(large, NextToken(100)), vector(large), tokens)
        assert pieces > 1 and batch % pieces == 0


@pytest.mark.parametrize(("batch", "pieces"), [(1, 1), (250, 2), (251, 1), (252, 2)])
def test_pieces_are_few_when_only_single_samples_divide_the_batch(batch, pieces):
    """Half as many bytes again as a piece may have: two at best; 251 is prime, and 251 pieces would be slow."""
    values = jax.ShapeDtypeStruct((batch, _CACHED_BYTES * 3 // 8 // batch), jnp.float32)
    assert number_of_pieces(lambda w, x: w * jnp.sum(jnp.exp(x)), 1.0, values) == pieces


@pytest.mark.slow
def test_the_average_is_its_formula(tmp_path):
    settings = {"steps": 12, "average": 0.3, "checkpoint": tmp_path, "checkpoint_every": 1, **WIDE}
    run = train(REAL, PROCESS, TASK, optimizer=Optimizer("sgd", 0.01), **settings)
    assert run.result is Outcome.FINISHED
    average = np.asarray(real_vector(REAL)[0])
    for n, path in enumerate(sorted(tmp_path.glob("step-*"))):
        decay = min(0.3, (n + 1) / (n + 10))
        average = decay * average + (1 - decay) * real_vector(load_model(path, REAL))[0]
    assert n == 11  # past n = 3, from which on the decay is the one asked for
    np.testing.assert_allclose(real_vector(run.average)[0], average, rtol=1e-12)
    assert not np.allclose(real_vector(run.model)[0], average, rtol=1e-3)


@pytest.fixture
def traces(monkeypatch):
    """The arguments of all losses that are traced, by a step or on held-out samples."""
    seen = []

    def counted(*arguments):
        seen.append(arguments)
        return sample_losses(*arguments)

    for module in (_training_steps, _monte_carlo):
        monkeypatch.setattr(module, "sample_losses", counted)
    return seen


@pytest.mark.slow
def test_equal_settings_share_compiled_code(traces):
    task = NextToken(7)  # of this test alone

    def run(optimizer, steps, **settings):
        train(REAL, PROCESS, task, optimizer=optimizer, steps=steps, **{**WIDE, **settings})
        return len(traces)

    first = run(Optimizer("adam", 0.01), 3)
    assert first > 0
    assert run(Optimizer("adam", "1/100"), 5, seed=3, record_every=2) == first
    assert run(Optimizer("adam", 0.02), 3) > first


@component
class Around(SequenceProcess):
    """Tokens around a point, which is an array: it is traced, and no part of what compiled code is known by."""

    array_fields = ("point",)
    point: jax.Array
    dim: int = 2

    def sample(self, key, horizon, batch):
        return self.point + jax.random.normal(key, (batch, horizon, self.dim))

    def describe(self):
        return "around a point"


@pytest.mark.slow
def test_arrays_of_a_process_share_compiled_code(traces):
    def run(point):
        process, optimizer = Around(jnp.array(point)), Optimizer("adam", 0.01)
        return train(REAL, process, NextToken(8), optimizer=optimizer, steps=2, **WIDE)

    near = run([0.0, 0.0])
    first = len(traces)
    far = run([3.0, 0.0])
    assert first > 1 and len(traces) == first  # the step and the held-out loss
    assert float(far.loss.value) > 2 * float(near.loss.value)  # and both see the point


@pytest.mark.slow
def test_the_seed_decides_the_samples_and_nothing_else_does():
    optimizer = Optimizer("adam", 0.01)
    one, again, other = (
        train(REAL, PROCESS, TASK, optimizer=optimizer, steps=3, seed=s, **WIDE) for s in (5, 5, 6)
    )
    np.testing.assert_array_equal(one.model.w_kq, again.model.w_kq)
    assert float(one.loss.value) == float(again.loss.value) and float(one.loss.standard_error) > 0
    assert not np.array_equal(one.model.w_kq, other.model.w_kq)
    assert float(one.loss.value) != float(other.loss.value)
