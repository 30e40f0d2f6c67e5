"""The exact loss on symbols: the sum over all sequences, for any model."""

from itertools import pairwise, product
from math import log, prod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import mesascope as ms
from mesascope.objectives import _finite, sample_losses
from mesascope.specs import component

TASK = ms.NextToken(6)
PROCESSES = {
    "urns": ms.Urns(symbols=3, concentration=0.7),
    "chains": ms.MarkovChains(symbols=2, concentration=2),
    "pool of urns": ms.SymbolPool(ms.Urns(symbols=2), tasks=4),
    "pool of chains": ms.SymbolPool(ms.MarkovChains(symbols=3), tasks=3),
}


def transformer(process, horizon=6, key=0):
    return ms.token_transformer(process.vocabulary, 8, 2, 1, horizon, key=jax.random.key(key))


class Counting(eqx.Module):
    """Predicts by counts of the symbols before plus `alpha`: the posterior of an urn with that concentration."""

    symbols: int
    alpha: jax.Array

    def predictions(self, sequences):
        counts = jnp.cumsum(jax.nn.one_hot(sequences, self.symbols), axis=1) + self.alpha
        return jnp.log(counts / counts.sum(-1, keepdims=True))[
            :, 1:
        ]  # the first prediction is after two symbols


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
def test_probabilities_sum_to_one_and_are_shares_of_samples(name):
    process = PROCESSES[name]
    sequences = np.array(list(product(range(process.symbols), repeat=4)))
    found = process.probabilities_of(sequences)
    assert found.sum() == pytest.approx(1, rel=1e-12)
    drawn = np.asarray(process.sample(jax.random.key(3), 4, 40_000))
    shares = (drawn[:, None] == sequences).all(-1).mean(0)
    error = np.sqrt(found * (1 - found) / len(drawn))
    assert (np.abs(shares - found) < 4.5 * error + 1e-12).all()  # of at most 81 shares


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
def test_sampling_agrees(name):
    process = PROCESSES[name]
    model = transformer(process)
    exact = ms.population_loss(model, process, TASK)
    assert float(exact.standard_error) == 0
    sampled = ms.population_loss(model, process, TASK, ms.MonteCarlo(samples=20_000, seed=1))
    assert abs(float(sampled) - float(exact)) < 4 * float(sampled.standard_error)


def test_a_model_whose_loss_is_known_by_hand():
    """By the posterior of its own prior the loss is the entropy of what follows, by Pólya's rule for all sequences."""
    process, horizon = ms.Urns(symbols=2, concentration=1), 4
    loss = 0.0
    for sequence in product((0, 1), repeat=horizon):
        chances = [
            (sequence[:t].count(symbol) + 1) / (t + 2) for t, symbol in enumerate(sequence)
        ]  # of each symbol after those before
        loss -= prod(chances) * sum(map(log, chances[2:]))
    found = ms.population_loss(Counting(2, jnp.asarray(1.0)), process, ms.NextToken(horizon))
    assert float(found) == pytest.approx(loss, rel=1e-13)
    other = ms.population_loss(Counting(2, jnp.asarray(1.3)), process, ms.NextToken(horizon))
    assert float(other) > float(found)


@component
class Alternating(ms.processes.SymbolProcess):
    """0 1 0 1 … or 1 0 1 0 …, each with probability 1/2: all other sequences have probability 0."""

    symbols = 2

    def draw_tasks(self, key, count):
        return jax.random.bernoulli(key, shape=(count,))

    def sequences_of(self, key, tasks, horizon):
        return (jnp.arange(horizon) + tasks[:, None]) % 2

    def probabilities_of(self, sequences):
        return (np.diff(sequences) != 0).all(1) / 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda right: np.log(right + 1e-9), "must be ≥ 0 and have the sum 1, got .* return probabilities, not logarithms"),
        (lambda right: 2 * right, "the sum 2; return probabilities"),
        (lambda right: right * np.nan, "the sum nan"),
        (lambda right: right[:-1], r"one number for each of the 16 sequences, got shape \(15,\)"),
        (lambda right: right.astype(complex), "of complex128"),
    ],
)  # fmt: skip
def test_what_are_no_probabilities_is_refused(change, said):
    @component
    class Wrong(Alternating):
        def probabilities_of(self, sequences):
            return change(super().probabilities_of(sequences))

    with pytest.raises(ValueError, match=f"Enumeration: .*probabilities_of of Wrong .*{said}"):
        ms.Enumeration().objective(Wrong(), ms.NextToken(4))


@pytest.mark.parametrize("process", [ms.Urns(3, concentration=0.7), Alternating()], ids=["urns", "zeros"])
def test_it_is_the_sum_of_the_losses_of_all_sequences_with_the_weights_of_the_task(process):
    task = ms.NextToken(4, weights=(2.0, 0.5))
    model = Counting(process.symbols, jnp.asarray(0.8))
    sequences = np.array(list(product(range(process.symbols), repeat=4)))
    expected = process.probabilities_of(sequences) @ np.asarray(sample_losses(model, sequences, task))
    assert float(ms.population_loss(model, process, task)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["delta-net", "mesa-net"])
def test_a_layer_with_a_memory_has_the_mean_loss_of_all_sequences(rule):
    """Its recurrence, too: all 2^10 sequences of ten symbols, one batch, weighted by their probabilities."""
    process, task = ms.MarkovChains(symbols=2, concentration=2), ms.NextToken(10)
    keys = jax.random.split(jax.random.key(5), 3)
    model = ms.SequenceModel(
        ms.TokenTable.gaussian(2, 4, key=keys[0]),
        ms.Residual(ms.MemoryLayer.gaussian(4, rule, key=keys[1])),
        ms.Dense.gaussian(4, 2, key=keys[2]),
    )
    sequences = np.array(list(product(range(2), repeat=10)))
    losses = np.asarray(sample_losses(model, sequences, task))
    expected = losses @ process.probabilities_of(sequences)
    assert float(ms.population_loss(model, process, task)) == pytest.approx(expected, rel=1e-12)


def test_a_pool_of_chains_is_the_mean_over_its_tasks():
    pool = PROCESSES["pool of chains"]
    for sequence in [(0, 1, 2, 2, 0), (1, 1, 1, 1, 1)]:
        each = [prod(task[a, b] for a, b in pairwise(sequence)) / 3 for task in np.asarray(pool.table)]
        found = pool.probabilities_of(np.array([sequence]))[0]
        assert found == pytest.approx(np.mean(each), rel=1e-13)


@pytest.mark.slow
def test_batches_change_nothing(monkeypatch):
    process = PROCESSES["chains"]
    model, losses = transformer(process), []
    for size in (5, 7, 32):
        monkeypatch.setattr(_finite, "_BATCH", size)
        _finite.objective_on_all_sequences.cache_clear()
        losses.append(float(ms.population_loss(model, process, TASK)))
    _finite.objective_on_all_sequences.cache_clear()
    np.testing.assert_allclose(losses, losses[0], rtol=1e-13)


@pytest.mark.slow
def test_gradients_are_differences_of_the_loss():
    process = PROCESSES["chains"]
    objective = ms.Enumeration().objective(process, TASK)
    weights, rest = eqx.partition(transformer(process), eqx.is_inexact_array)
    vector, rebuild = ravel_pytree(weights)

    def loss(at):
        return objective(eqx.combine(rebuild(at), rest)).value

    direction = jax.random.normal(jax.random.key(1), vector.shape)
    step = 1e-5
    slope = (loss(vector + step * direction) - loss(vector - step * direction)) / (2 * step)
    assert float(jax.grad(loss)(vector) @ direction) == pytest.approx(float(slope), rel=1e-6)


@pytest.mark.slow
def test_the_exact_flow_of_a_transformer_falls_to_less_than_counting_symbols_reaches():
    process, task = ms.MarkovChains(symbols=2, concentration=0.5), ms.NextToken(4)
    start = transformer(process, 4)
    flow = ms.gradient_flow(start, process, task, engine=ms.Enumeration(), until=80.0)
    assert (np.diff(flow.loss) < 1e-9).all()
    best_unigram = min(
        float(ms.population_loss(Counting(2, jnp.asarray(alpha)), process, task))
        for alpha in (0.2, 0.5, 1.0, 2.0)
    )
    assert flow.loss[-1] < best_unigram < flow.loss[0]


class Ahead(eqx.Module):
    """Predicts by the symbol so many places later than it may, or by a mean over the batch."""

    size: jax.Array
    later: int
    mixed: bool = False
    offset: float = 0.0

    def predictions(self, sequences):
        logits = self.size * jax.nn.one_hot(jnp.roll(sequences, -self.later, axis=1), 2)[:, 1:]
        return 0 * logits + logits.mean(0) if self.mixed else logits + self.offset


class Certain(eqx.Module):
    """Predicts that the last symbol comes again, with logits of a type."""

    dtype: str
    other: float
    weight: jax.Array = eqx.field(default_factory=lambda: jnp.array(1.0))

    def predictions(self, sequences):
        same = jax.nn.one_hot(sequences, 2)[:, 1:] == 1
        return jnp.where(same, 0, self.other).astype(self.dtype)


@pytest.mark.parametrize(("dtype", "other"), [("float64", -jnp.inf), ("bfloat16", -2.0), ("float32", -1e6)])
def test_models_that_see_the_past_are_never_refused(dtype, other):
    ms.objectives.objective_of(Certain(dtype, other), PROCESSES["pool of urns"], TASK, None)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Ahead(jnp.array(9.0), 1), "after 2 symbols depends on symbol 3"),
        (Ahead(jnp.array(1e-5), 3), "after 2 symbols depends on symbol 5"),
        (Ahead(jnp.array(9.0), 1, offset=1e9), "after 2 symbols depends on symbol 3"),
        (Ahead(jnp.array(1.0), 0, mixed=True), "other sequences of the batch"),
    ],
)
def test_models_that_look_ahead_or_at_other_sequences_are_refused(model, message):
    process = PROCESSES["pool of urns"]
    with pytest.raises(ValueError, match=message):
        ms.population_loss(model, process, TASK)
    with pytest.raises(ValueError, match=message):
        ms.gradient_flow(model, process, TASK, until=1.0)


def test_what_never_follows_may_have_probability_0():
    """A pool of one chain that always stays, and the model that knows it: the first symbol is no prediction that counts."""
    pool = ms.SymbolPool(ms.MarkovChains(symbols=2), probabilities=[[[1.0, 0.0], [0.0, 1.0]]])
    assert float(ms.population_loss(Certain("float64", -jnp.inf), pool, TASK).value) == 0


def test_a_weight_without_axes_flows():
    flow = ms.gradient_flow(Ahead(jnp.array(0.0), 0), PROCESSES["pool of urns"], TASK, until=1.0)
    assert flow.loss[0] == pytest.approx(4 * log(2))
    assert flow.loss[-1] < flow.loss[0]
    assert flow.trajectory.size.shape == flow.times.shape


def test_too_many_sequences_and_processes_without_probabilities_are_refused():
    with pytest.raises(
        ValueError, match=r"3 symbols have 3\^20 sequences of horizon 20, more than 2\^20; use MonteCarlo"
    ):
        ms.population_loss(transformer(PROCESSES["urns"], 20), PROCESSES["urns"], ms.NextToken(20))

    class Own(ms.processes.SymbolProcess):
        symbols = 2

        def draw_tasks(self, key, count):
            return jnp.zeros(count)

        def sequences_of(self, key, tasks, horizon):
            return jnp.zeros((len(tasks), horizon), jnp.int32)

    with pytest.raises(
        TypeError, match="Own does not tell the probability of a sequence; define probabilities_of"
    ):
        ms.Enumeration().objective(Own(), TASK)
