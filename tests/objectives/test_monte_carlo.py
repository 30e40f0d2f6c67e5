"""MonteCarlo: unbiased, with accurate standard errors that decrease like 1/√samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models import LinearAttention, MultiHeadLinearAttention
from mesascope.objectives import MonteCarlo, population_loss
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Empirical,
    Gaussian,
    Mixture,
    NextToken,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)

DIM = 3
MODEL = LinearAttention.gaussian(DIM, 0.3, key=jax.random.key(0))
TASK = NextToken(8, [1, 0, 2, 1, 0.5, 1])
LAWS = {
    "gaussian": Gaussian(0.8),
    "sparse": Sparse(1.5),
    "constant": Constant([1.0, -0.5, 2.0]),
    "rademacher": Rademacher(1),
    "uniform": Uniform(1),
    "student": StudentT(40, 0.7),  # six orders in the loss, twelve in its variance: finite and small
    "rows": Empirical([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]], joint=True),
    "mixture": Mixture([("1/2", Gaussian(0.5)), ("1/2", Constant(1))]),
}


@eqx.filter_jit
def evaluate(objective, model):
    return objective(model)


def sampled(process, samples, seed, task=TASK, **settings):
    return MonteCarlo(samples, seed, **settings).objective(process, task)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", LAWS)
def test_unbiased_within_five_standard_errors(name, seed):
    process = DiagonalUnitary(LAWS[name], DIM)
    exact = float(population_loss(MODEL, process, TASK).value)
    estimate = evaluate(sampled(process, 20_000, seed), MODEL)
    error = float(estimate.standard_error)
    assert 0 < error < 0.1 * exact
    # one normal number in two million is beyond five standard errors
    assert abs(float(estimate.value) - exact) < 5 * error, f"seed {seed}"


@pytest.mark.slow
def test_other_models_normalizers_and_precisions_are_unbiased_too():
    process = DiagonalUnitary(Uniform(1.5), DIM)
    heads = MultiHeadLinearAttention.gaussian(DIM, 2, 0.3, key=jax.random.key(1), normalizer="t")
    exact = float(population_loss(heads, process, TASK).value)
    for precision in ("float32", "float64"):
        engine = MonteCarlo(20_000, precision=precision)
        estimate = population_loss(heads, process, TASK, engine)
        assert estimate.value.dtype == jnp.dtype(precision)
        assert abs(float(estimate.value) - exact) < 5 * float(estimate.standard_error)


def errors_and_scores(samples, seeds, process, exact):
    """Errors of independent estimates, and errors divided by the standard errors that came with them."""
    found = [evaluate(sampled(process, samples, seed, batch=256), MODEL) for seed in seeds]
    off = np.array([float(e.value) - exact for e in found])
    return off, off / np.array([float(e.standard_error) for e in found])


@pytest.mark.slow
def test_error_falls_like_one_over_the_root_of_the_samples():
    process = DiagonalUnitary(Rademacher(1), DIM)  # bounded losses: near-normal means at every size
    exact = float(population_loss(MODEL, process, TASK).value)
    sizes, repeats = (64, 256, 1024, 4096, 16384), 48
    spread = []
    for n in sizes:
        off, _ = errors_and_scores(n, range(1000, 1000 + repeats), process, exact)
        spread.append(np.log(np.sqrt(np.mean(off**2))))
    logs = np.log(sizes)
    slope = np.polyfit(logs, spread, 1)[0]
    # log of a root mean square over 48 repeats is uncertain by 1/√96; five standard errors of the fitted slope
    uncertainty = 1 / np.sqrt(2 * repeats) / np.sqrt(np.sum((logs - logs.mean()) ** 2))
    assert 5 * uncertainty < 0.12  # sharp enough to tell −1/2 from −1/3 and −2/3
    assert slope == pytest.approx(-0.5, abs=5 * uncertainty)


@pytest.mark.slow
def test_standard_errors_are_accurate():
    process = DiagonalUnitary(Uniform(1), DIM)
    exact = float(population_loss(MODEL, process, TASK).value)
    repeats = 200
    _, scores = errors_and_scores(1000, range(repeats), process, exact)
    # mean and standard deviation of 200 standard normal numbers: uncertain by 1/√200 and 1/√400
    assert abs(scores.mean()) < 5 / np.sqrt(repeats)
    assert scores.std(ddof=1) == pytest.approx(1, abs=5 / np.sqrt(2 * repeats))


@pytest.mark.slow
def test_one_seed_gives_one_sample_for_every_model():
    process = DiagonalUnitary(Gaussian(1), DIM)
    near = LinearAttention(MODEL.w_kq + 1e-3, MODEL.w_pv)
    exact = float(population_loss(near, process, TASK).value - population_loss(MODEL, process, TASK).value)
    common, independent = [], []
    for seed in range(10):
        here, there = (evaluate(sampled(process, 1000, seed), m).value for m in (MODEL, near))
        elsewhere = evaluate(sampled(process, 1000, seed + 100), near).value
        common.append(float(there - here) - exact)
        independent.append(float(elsewhere - here) - exact)
    # weights differ by 1e-3 of their size, so the losses on common sequences differ by that much of their noise
    assert np.std(common) < 0.05 * np.std(independent)


@pytest.mark.slow
def test_seeds_differ_and_repeat():
    process = DiagonalUnitary(Gaussian(1), DIM)
    first, again, other = (float(evaluate(sampled(process, 500, s), MODEL).value) for s in (3, 3, 4))
    assert first == again != other


class Numbered(eqx.Module):
    """Sequences whose first token is their number in the batch, which shows which of them are used."""

    def sample(self, key, horizon, batch):
        tokens = jnp.zeros((batch, horizon, 1)).at[:, 2, 0].set(jnp.arange(batch, dtype=float))
        return tokens.astype(complex)


@pytest.mark.parametrize("samples, batch", [(10, 4), (8, 4), (3, 4), (9, 1), (7, 100)])
def test_exactly_the_given_number_of_samples_is_averaged(samples, batch):
    model = LinearAttention(np.zeros((2, 2)), np.zeros((1, 2)))  # predicts 0, so the loss is ½|x_3|²
    used = min(batch, samples)
    losses = np.array([(n % used) ** 2 / 2 for n in range(samples)])
    estimate = MonteCarlo(samples, batch=batch).objective(Numbered(), NextToken(3))(model)
    assert float(estimate.value) == pytest.approx(losses.mean(), rel=1e-14)
    expected = losses.std(ddof=1) / np.sqrt(samples)
    assert float(estimate.standard_error) == pytest.approx(expected, rel=1e-14)


@pytest.mark.slow
def test_a_sample_that_does_not_fill_its_batches_is_unbiased():
    process = DiagonalUnitary(Gaussian(1), DIM)
    exact = float(population_loss(MODEL, process, TASK).value)
    estimate = evaluate(sampled(process, 7001, 0, batch=300), MODEL)
    assert abs(float(estimate.value) - exact) < 5 * float(estimate.standard_error)


class Repeater:
    """A mutable object with `predictions`, which repeats the last token."""

    factor = 1.0

    def predictions(self, tokens):
        return self.factor * tokens[..., 1:, :]


class Unhashable:
    """A process that is not hashable but can be sampled."""

    __hash__ = None
    scale = 1.0

    def sample(self, key, horizon, batch):
        return self.scale * jnp.ones((batch, horizon, 2))


@pytest.mark.slow
def test_mutable_models_and_processes_are_not_cached():
    model, process = Repeater(), Unhashable()
    for factor in (1.0, 0.5):
        model.factor = factor
        estimate = population_loss(model, process, NextToken(5), MonteCarlo(10))
        # 3 lengths, 2 entries, ½
        assert float(estimate.value) == pytest.approx(3 * (1 - factor) ** 2, rel=1e-14)
        assert float(estimate.standard_error) == 0
    process.scale = 2.0
    doubled = population_loss(model, process, NextToken(5), MonteCarlo(10))
    assert float(doubled.value) == pytest.approx(3, rel=1e-14)
    for scale in (2.0, 1.0):  # a lasting model on a process that can change
        process.scale = scale
        zero = LinearAttention(np.zeros((4, 4)), np.zeros((2, 4)))
        loss = population_loss(zero, process, NextToken(5), MonteCarlo(10))
        assert float(loss.value) == pytest.approx(3 * scale**2, rel=1e-14)


@pytest.mark.slow
def test_repeating_has_the_loss_of_a_random_turn():
    """E ½‖x_t − x_{t+1}‖² = E‖x_1‖² (1 − Re E λ) = d m2 for every context length."""
    process = DiagonalUnitary(Gaussian(0.5), DIM)
    estimate = population_loss(Repeater(), process, NextToken(4), MonteCarlo(20_000))
    assert abs(float(estimate.value) - 2 * DIM * 0.25) < 5 * float(estimate.standard_error)


def test_the_objective_is_a_pytree_whose_seed_is_data():
    process = DiagonalUnitary(Gaussian(1), DIM)
    one, two = sampled(process, 100, 0), sampled(process, 100, 1)
    assert jax.tree.structure(one) == jax.tree.structure(two)


@pytest.mark.parametrize(
    "settings, error, message",
    [
        ({"samples": 1}, ValueError, "samples must be at least 2"),
        ({"samples": 1e4}, TypeError, "samples must be an integer"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"seed": 2**32}, ValueError, "seed must be at most"),
        ({"batch": 0}, ValueError, "batch must be at least 1"),
        ({"precision": "float16"}, ValueError, "precision unknown value 'float16'; did you mean 'float64'"),
    ],
)
def test_bad_settings_are_refused(settings, error, message):
    process = DiagonalUnitary(Gaussian(1), 1)
    with pytest.raises(error, match=message):
        MonteCarlo(**settings).objective(process, NextToken(3))


def test_a_process_without_sampler_is_refused():
    with pytest.raises(TypeError, match="process: must have a sampler"):
        population_loss(MODEL, 3, TASK, MonteCarlo(10))
