"""Urns and Markov chains: every sequence as often as its exact probability says; means within four standard errors."""

import math
from fractions import Fraction
from itertools import pairwise, product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.objectives import MonteCarlo, population_loss
from mesascope.processes import MarkovChains, NextToken, SymbolPool, Urns
from mesascope.specs import SpecError
from sampled_means import draw

COUNT = 20_000
ALPHAS = pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1), Fraction(3)])


def within_four_errors(values, expected):
    values = np.asarray(values, float)
    errors = values.std(0) / len(values) ** 0.5
    assert (abs(values.mean(0) - np.asarray(expected, float)) <= 4 * errors).all()


def urn_probability(sequence, symbols, alpha):
    """Pólya's urn: every symbol that was drawn is added to it."""
    seen, probability = [], Fraction(1)
    for symbol in sequence:
        probability *= (seen.count(symbol) + alpha) / (len(seen) + symbols * alpha)
        seen.append(symbol)
    return probability


def chain_probability(sequence, symbols, alpha):
    """A uniform first symbol, and an urn for what follows each symbol."""
    probability = Fraction(1, symbols)
    for before in range(symbols):
        after = [b for a, b in pairwise(sequence) if a == before]
        probability *= urn_probability(after, symbols, alpha)
    return probability


def share_of_each(drawn, sequences):
    drawn = np.asarray(drawn)
    return (drawn[:, None] == np.array(sequences)).all(-1)


@pytest.mark.slow
@ALPHAS
@pytest.mark.parametrize(
    ("kind", "probability"), [(Urns, urn_probability), (MarkovChains, chain_probability)]
)
def test_every_sequence_is_as_probable_as_it_should_be(kind, probability, alpha):
    symbols, horizon = 3, 4
    sequences = list(product(range(symbols), repeat=horizon))
    exact = [probability(one, symbols, alpha) for one in sequences]
    assert sum(exact) == 1
    drawn = draw(kind(symbols, alpha), named_key(0, "symbols", str(alpha)), horizon, COUNT)
    within_four_errors(share_of_each(drawn, sequences), exact)


@pytest.mark.slow
@ALPHAS
@pytest.mark.parametrize("kind", [Urns, MarkovChains])
def test_rows_of_tasks_are_dirichlet_and_independent(kind, alpha):
    symbols = 4
    rows = np.asarray(kind(symbols, alpha).draw_tasks(named_key(1, "tasks"), COUNT))
    rows = rows.reshape(COUNT, -1, symbols)
    np.testing.assert_allclose(rows.sum(-1), 1, rtol=1e-14)
    total, mean = symbols * alpha, Fraction(1, symbols)
    variance = mean * (1 - mean) / (total + 1)
    within_four_errors(rows, np.full(rows.shape[1:], float(mean)))
    off = rows - float(mean)
    within_four_errors(off**2, np.full(rows.shape[1:], float(variance)))
    within_four_errors(off[..., 0] * off[..., 1], np.full(len(rows[0]), float(-(mean**2) / (total + 1))))
    if kind is MarkovChains:
        within_four_errors(off[:, 0, 0] * off[:, 1, 0], 0)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-30, 1e30])
def test_extreme_concentrations_are_symbols_alone_or_all_alike(alpha):
    rows = np.asarray(Urns(3, alpha).draw_tasks(named_key(0), 50))
    # gamma variates of a parameter α = 1e30 differ from it by √α: by 1e-15 of their size
    np.testing.assert_allclose(
        np.sort(rows), np.tile([0, 0, 1] if alpha < 1 else 3 * [1 / 3], (50, 1)), atol=1e-13
    )


@pytest.mark.slow
def test_a_chain_follows_its_own_transition_matrix():
    transitions = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5], [0.3, 0.0, 0.7]])
    given = jnp.asarray(np.tile(transitions, (COUNT, 1, 1)))
    drawn = np.asarray(MarkovChains().sequences_of(named_key(2), given, 3))
    within_four_errors(drawn[:, :1] == np.arange(3), np.full(3, 1 / 3))
    for position in (0, 1):
        for before in range(3):
            after = drawn[drawn[:, position] == before, position + 1]
            within_four_errors(after[:, None] == np.arange(3), transitions[before])


@pytest.mark.slow
@pytest.mark.parametrize("x64", [True, False])
def test_a_symbol_of_probability_zero_is_never_drawn(x64):
    """Its neighbours are such that cumulated sums are rounded: 1/7 is no binary fraction."""
    row = np.array([0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0]) / 7
    with jax.enable_x64(x64):
        urns = jnp.tile(jnp.asarray(row), (1000, 1))
        drawn = np.asarray(Urns(11).sequences_of(named_key(3), urns, 500))
        chains = MarkovChains(11).sequences_of(named_key(3), jnp.tile(urns[:, None], (1, 11, 1)), 100)
    assert set(drawn.ravel()) == set(np.flatnonzero(row))
    assert set(np.asarray(chains)[:, 1:].ravel()) == set(np.flatnonzero(row))


@pytest.mark.slow
@pytest.mark.parametrize(
    "process", [Urns(3, 2), MarkovChains(3, 2), SymbolPool(Urns(), tasks=5), SymbolPool("urns", tasks=2)]
)
def test_compiled_and_other_code_draw_the_same(process):
    for horizon in (1, 6):
        one, other = (f(process, named_key(4), horizon, 9) for f in (draw, type(process).sample))
        np.testing.assert_array_equal(one, other)


class Counting(eqx.Module):
    """The best prediction for urns of two symbols, as logits after two and more symbols."""

    concentration: jax.Array

    def predictions(self, symbols):
        seen = jnp.cumsum(jax.nn.one_hot(symbols, 2), -2)
        return jnp.log(seen + self.concentration)[..., 1:, :]


@pytest.mark.slow
def test_every_position_counts_in_the_loss():
    """The loss of the best prediction is the entropy of symbols 3 … T given those before them."""
    horizon, alpha = 6, Fraction(3, 2)

    def entropy(length):
        exact = [urn_probability(one, 2, alpha) for one in product(range(2), repeat=length)]
        return -sum(float(p) * math.log(p) for p in exact)

    task = NextToken(horizon)
    assert list(task.support) == list(range(2, horizon))
    loss = population_loss(Counting(jnp.asarray(1.5)), Urns(2, alpha), task, MonteCarlo(20_000, seed=1))
    assert abs(loss.value - (entropy(horizon) - entropy(2))) <= 4 * loss.standard_error


@pytest.mark.parametrize("kind", [Urns, MarkovChains])
@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"symbols": 1}, ValueError, "symbols must be at least 2, got 1"),
        ({"symbols": 2.0}, TypeError, "symbols must be an integer"),
        ({"concentration": 0}, ValueError, "concentration must be greater than 0, got 0"),
        ({"concentration": -1}, ValueError, "concentration must be greater than 0, got -1"),
        ({"concentration": float("nan")}, ValueError, "concentration must be finite"),
        ({"concentration": 1e31}, ValueError, "concentration must lie between 1e-30 and 1e30, got 1e\\+31"),
    ],
)
def test_refusals(kind, fields, error, message):
    with pytest.raises(error, match=f"^{kind.__name__} {message}"):
        kind(**fields)


def test_tasks_that_take_too_much_memory_are_refused():
    with pytest.raises(SpecError, match=r"symbols: must take at most 2 GiB, 2 tasks take 64\.0"):
        MarkovChains(symbols=2**16).sample(jax.random.key(0), 3, 2)
