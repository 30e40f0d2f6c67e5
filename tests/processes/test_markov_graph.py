"""Markov graphs: as often as exact fractions say, the same as chains with one parent, beginnings, and bad graphs."""

from fractions import Fraction
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import mesascope as ms
from mesascope.core import named_key
from mesascope.objectives import population_loss
from mesascope.processes import MarkovChains, MarkovGraph, MarkovTree, SymbolPool

GRAPH = [[], [0], [1, 0], [0], [3, 1]]  # a table of one parent, and one of two that reads them in this order


def probability(sequence, graph, symbols, alpha):
    """Pólya's rule for every table and what its parents were, in fractions."""
    urns, found = {}, Fraction(1)
    for symbol, parents in zip(sequence, graph, strict=True):
        if not parents:
            found *= Fraction(1, symbols)
            continue
        seen = urns.setdefault(tuple(sequence[p] for p in parents), [])
        found *= (seen.count(symbol) + alpha) / (len(seen) + symbols * alpha)
        seen.append(symbol)
    return found


@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(2)])
def test_every_sequence_is_as_probable_and_as_frequent_as_it_should_be(alpha):
    process, count = MarkovGraph(GRAPH, 2, alpha), 20_000
    sequences = list(product(range(2), repeat=5))
    exact = [probability(one, GRAPH, 2, alpha) for one in sequences]
    assert sum(exact) == 1
    np.testing.assert_allclose(
        process.probabilities_of(np.array(sequences)), np.array(exact, float), rtol=1e-13
    )
    drawn = np.asarray(process.sample(named_key(0, "graph", str(alpha)), 5, count))
    shares = (drawn[:, None] == np.array(sequences)).all(-1)
    errors = np.sqrt(np.array(exact, float) * (1 - np.array(exact, float)) / count)
    assert (
        abs(shares.mean(0) - np.array(exact, float)) <= 4.5 * errors
    ).all()  # 32 of them: one in 5000 fails


def test_with_one_parent_it_is_a_chain():
    sequences = np.array(list(product(range(3), repeat=5)))
    graph, chains = MarkovGraph.chain(5, 3, "1/2", 1), MarkovChains(3, "1/2")
    np.testing.assert_allclose(
        graph.probabilities_of(sequences), chains.probabilities_of(sequences), rtol=1e-13
    )
    np.testing.assert_array_equal(
        MarkovGraph([[], [0], [0], []], 2).adjacency(), MarkovTree((None, 0, 0, None), 2, 1).adjacency()
    )
    assert MarkovGraph.chain(5, 3, 1, 2).parents == ((), (), (0, 1), (1, 2), (2, 3))


def test_beginnings_and_roots():
    process = MarkovGraph(GRAPH, 2, 0.5)
    whole, beginning = (np.array(list(product(range(2), repeat=n))) for n in (5, 3))
    sums = process.probabilities_of(whole).reshape(len(beginning), -1).sum(1)
    np.testing.assert_allclose(process.probabilities_of(beginning), sums, rtol=1e-13)
    roots = MarkovGraph([[], [], []], 2)
    assert np.asarray(roots.sample(named_key(0), 3, 50)).std() > 0 and roots.rows == 0
    np.testing.assert_array_equal(roots.probabilities_of(beginning), 1 / 8)


def test_probabilities_of_pools_are_products_of_their_tables():
    pool = SymbolPool(MarkovGraph(GRAPH, 2, 0.5), tasks=3)
    sequences = np.array(list(product(range(2), repeat=5)))
    expected = [
        # rows 0 and 1 are those of one parent, 2 to 5 those of two
        sum(t[s[0], s[1]] * t[2 + 2 * s[1] + s[0], s[2]] * t[s[0], s[3]] * t[2 + 2 * s[3] + s[1], s[4]] for t in pool.table) / 6
        for s in sequences
    ]  # fmt: skip
    np.testing.assert_allclose(pool.probabilities_of(sequences), expected, rtol=1e-13)


class Repeats(eqx.Module):
    """Answers the last symbol with the odds e^w."""

    weight: Array

    def predictions(self, symbols):
        return self.weight * jax.nn.one_hot(symbols, 2)[..., 1:, :]


def test_exact_losses_of_models_on_graphs():
    """Σ over all sequences of probability times −log answer, position by position, in floats from fractions."""
    task, weight = ms.NextToken(5), 0.7
    loss = population_loss(
        Repeats(jnp.asarray(weight)), MarkovGraph(GRAPH, 2, "1/10"), task, engine=ms.Enumeration()
    )
    odds, expected = np.exp(weight), 0.0
    for one in product(range(2), repeat=5):
        missed = sum(np.log(1 + odds) - weight * (one[t] == one[t - 1]) for t in range(2, 5))
        expected += float(probability(one, GRAPH, 2, Fraction(1, 10))) * missed
    assert float(loss.value) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        ({"parents": [[], [1], []]}, ValueError, r"parents\[1\]\[0\] must be an earlier position, 0 to 0, got 1"),
        ({"parents": [[0], [], []]}, ValueError, r"parents\[0\] must be empty, since nothing is before position 0"),
        ({"parents": [[], [-1], []]}, ValueError, r"0 to 0, got -1"),
        ({"parents": [[], [0], [0, 0]]}, ValueError, r"parents\[2\] must be different positions"),
        ({"parents": [[], 0, []]}, TypeError, r"parents\[1\] must be a list of earlier positions, empty for a root"),
        ({"parents": [[], [0.5], []]}, TypeError, r"parents\[1\]\[0\] must be an integer"),
        ({"parents": "chain"}, TypeError, "must be a list that gives the parents of every position"),
        ({"parents": [[], [0]]}, ValueError, "must list 3 to 4096 positions, got 2"),
        ({"parents": [[]] * 30 + [list(range(30))]}, ValueError, "30 parents of 3 symbols have more than 1048576 rows"),
        ({"parents": [[], [0], []], "concentration": 0}, ValueError, "concentration"),
    ],
)  # fmt: skip
def test_bad_graphs_are_refused(values, kind, said):
    with pytest.raises(kind, match=said):
        MarkovGraph(**values)


def test_longer_sequences_and_too_much_memory_are_refused():
    with pytest.raises(ValueError, match="the graph lists 5 positions, got 6"):
        MarkovGraph(GRAPH, 2).sample(named_key(0), 6, 1)
    with pytest.raises(ValueError, match="symbols"):
        MarkovGraph.chain(5, 1000, 1, 2).sample(named_key(0), 5, 1000)
    with pytest.raises(ValueError, match="the graph lists 5 positions, got 6"):
        MarkovGraph(GRAPH, 2).probabilities_of(np.zeros((1, 6), int))
    with pytest.raises(ValueError, match="horizon: must be at most 4096, got 1000000000"):
        MarkovGraph.chain(10**9, 2, 1, 2)
    with pytest.raises(ValueError, match="order: must be below the horizon 4, or nothing has parents, got 4"):
        MarkovGraph.chain(4, 2, 1, 4)
