"""Markov trees, compared with their definition. Sampled means must agree within 5 standard errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.processes import MarkovTree
from mesascope.processes._draws import stationary_distribution
from sampled_means import draw, judge

COUNT = 20_000


def sample(process, batch=COUNT):
    return np.asarray(draw(process, named_key(0), process.horizon, batch))


def test_graphs():
    assert MarkovTree.chain(5, 2, 1).parents == (None, 0, 1, 2, None)
    assert MarkovTree.chain(2, 2, 1).parents == (None, None)
    assert MarkovTree.chain(5, 2, 1).horizon == 6
    expected = np.zeros((4, 4))
    expected[1, 0] = expected[2, 0] = 1
    np.testing.assert_array_equal(MarkovTree((None, 0, 0, None), 2, 1).adjacency(), expected)
    random = MarkovTree.random(50, 2, 1, seed=0)
    assert random == MarkovTree.random(50, 2, 1, seed=0) != MarkovTree.random(50, 2, 1, seed=1)
    assert 30 < random.adjacency().sum() < 49
    np.testing.assert_array_equal(random.adjacency(), np.tril(random.adjacency(), -1))


@pytest.mark.slow
def test_children_are_drawn_from_the_row_of_their_parent():
    # Rows from Dirichlet(α) with tiny α are nearly one-hot: two draws from one row agree but for a probability
    # (S − 1) α / (S α + 1), so children of equal symbols are equal, in this graph and in no other.
    process = MarkovTree((None, 0, 0, 1, None, 2, 3, None), 5, 1e-3)
    symbols = sample(process, 5000)
    pairs = [(1, 0), (2, 0), (3, 1), (5, 2), (6, 3), (8, 7)]

    def agreement(one, two):
        same = symbols[:, one[1]] == symbols[:, two[1]]
        return (symbols[same, one[0]] == symbols[same, two[0]]).mean()

    for one in pairs:
        for two in pairs:
            assert agreement(one, two) > 0.97
    assert agreement((8, 7), (6, 4)) < 0.9  # 3 is the parent of 6, not 4
    assert agreement((8, 7), (5, 4)) < 0.9


@pytest.mark.slow
def test_symbols_given_the_transition_matrix():
    # One long chain estimates its own matrix: the halves agree, and the symbol two positions before has no effect.
    symbols = sample(MarkovTree.chain(20_000, 2, 2), 5)
    for chain in symbols[:, :-2]:
        before, last, following = chain[:-2], chain[1:-1], chain[2:] == 0
        for state in (0, 1):
            draws = following[last == state]
            groups = [
                following[(last == state) & (before == 0)],
                following[(last == state) & (before == 1)],
                draws[: len(draws) // 2],
                draws[len(draws) // 2 :],
            ]
            spread = (draws.mean() * (1 - draws.mean())) ** 0.5
            for group in groups:
                assert abs(group.mean() - draws.mean()) < 5 * spread * len(group) ** -0.5


@pytest.mark.slow
def test_roots_are_stationary_and_the_last_symbol_is_uniform():
    symbols = sample(MarkovTree.chain(5, 3, 0.3))
    repeated = symbols[:, 1:] == symbols[:, :-1]
    # The chain starts in its stationary distribution: a repetition is as likely first as later. From a uniform
    # start it would have the probability 1/3.
    judge(repeated[:, 0].astype(float) - repeated[:, 2], 0)
    assert repeated[:, 0].mean() > 0.4
    # The last symbol of the context is uniform and independent of all before it, and E π_ss = 1/3.
    judge(repeated[:, 3], 1 / 3)
    judge(repeated[:, 4], 1 / 3)
    judge(symbols[:, 4:5] == np.arange(3), 1 / 3)


@pytest.mark.parametrize("states", [2, 3, 10])
def test_stationary_distributions(states):
    rng = np.random.default_rng(states)
    transitions = rng.dirichlet(np.ones(states), states)
    mu = np.asarray(jax.jit(stationary_distribution)(jnp.asarray(transitions)))
    np.testing.assert_allclose(mu @ transitions, mu, rtol=1e-13)
    assert mu.sum() == pytest.approx(1, rel=1e-14)


@pytest.mark.slow
def test_stationary_distributions_of_nearly_disconnected_chains():
    rare, rarer = 1e-20, 3e-20
    mu = stationary_distribution(jnp.array([[1 - rare, rare], [rarer, 1 - rarer]]))
    np.testing.assert_allclose(mu, [0.75, 0.25], rtol=1e-14)
    # Two pairs of states, joined by rare transitions only: (0, 1) ↔ (2, 3).
    chain = jnp.array([[0.5, 0.5, 0, 0], [0.5, 0.5, 1e-30, 0], [0, 1e-30, 0.2, 0.8], [0, 0, 0.4, 0.6]])
    np.testing.assert_allclose(stationary_distribution(chain), [0.2, 0.2, 0.2, 0.4], rtol=1e-14)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_disconnected_chains_have_a_finite_stationary_distribution(dtype):
    for transitions in (np.eye(6), np.eye(6)[::-1], np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]):
        mu = np.asarray(stationary_distribution(jnp.asarray(transitions, dtype)))
        assert mu.dtype == dtype
        # The floor under the entries, √tiny, decides between the stationary distributions; they are exact to it.
        np.testing.assert_allclose(mu @ transitions, mu, atol=1e-6 if dtype == jnp.float32 else 1e-14)
        assert mu.sum() == pytest.approx(1, rel=1e-6)


@pytest.mark.slow
def test_traced_graphs_give_the_same_sequences():
    process = MarkovTree.random(6, 4, 0.3, seed=2)
    traced = process.traced()
    assert (traced.vocabulary, traced.horizon, traced.dim) == (4, 7, 4)
    assert traced.describe() == "traced MarkovTree(T=6, states=4, alpha=0.3)"
    key = named_key(1)
    drawn = jax.jit(lambda one: one.sample(key, 7, 50))(traced)
    np.testing.assert_array_equal(drawn, process.sample(key, process.horizon, 50))
