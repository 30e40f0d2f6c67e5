"""The strategies of wurgaft2025: against loops over sequences in fractions, against the learners, and by hand."""

from fractions import Fraction
from itertools import product
from math import log

import jax
import numpy as np
import pytest
from scipy.special import digamma

from mesascope.learners import MemorizingSymbols, UnigramPosterior, predictions, sequence_examples
from mesascope.processes import Urns
from mesascope.theory import wurgaft2025 as theory

POOL = [[Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]]
URNS = np.array(POOL, float)


def chance(sequence, urn):
    found = Fraction(1)
    for symbol in sequence:
        found *= urn[symbol]
    return found


def guess(strategy, sequence, symbol):
    if strategy == "generalizing":
        return Fraction(sequence.count(symbol) + 1, len(sequence) + 3)
    total = sum(chance(sequence, urn) for urn in POOL)
    return sum(chance([*sequence, symbol], urn) for urn in POOL) / total


def test_losses_are_sums_over_all_sequences():
    found = theory.losses(URNS, 5)
    entropy = -sum(float(p) * log(p) for urn in POOL for p in urn) / 2
    for t in range(5):
        for strategy in theory.STRATEGIES:
            loss = -entropy
            for *before, symbol in product(range(3), repeat=t + 1):
                weight = sum(chance([*before, symbol], urn) for urn in POOL) / 2
                loss -= float(weight) * log(guess(strategy, before, symbol))
            assert found[strategy][t] == pytest.approx(loss, abs=1e-14)


@pytest.mark.parametrize("concentration", [1.0, 0.4])
def test_losses_on_new_urns_are_sums_over_all_sequences(concentration):
    found = theory.losses_on_new(URNS, 4, concentration)
    entropy = digamma(3 * concentration + 1) - digamma(concentration + 1)
    for t in range(4):
        sequences = np.array(list(product(range(3), repeat=t + 1)))
        weights = Urns(3, concentration).probabilities_of(sequences)
        counts = (sequences[:, :-1, None] == np.arange(3)).sum(1)
        predicted = {
            "memorizing": theory.memorizing(URNS, counts),
            "generalizing": theory.generalizing(counts, concentration),
        }
        for strategy, one in predicted.items():
            of_next = one[np.arange(len(one)), sequences[:, -1]]
            assert found[strategy][t] == pytest.approx(-weights @ np.log(of_next) - entropy, abs=1e-13)


def test_the_entropy_of_an_urn_is_its_mean():
    """With one urn, memorizing knows it and loses nothing; generalizing loses on new urns what sampled urns say."""
    assert theory.losses(URNS[:1], 6)["memorizing"] == pytest.approx(np.zeros(6), abs=1e-14)
    urns = np.random.default_rng(0).dirichlet(np.ones(3), 40_000)
    sampled = (urns * np.log(urns * 3)).sum(1)
    error = 5 * sampled.std() / 200  # five standard errors
    assert theory.losses_on_new(URNS, 1)["generalizing"][0] == pytest.approx(sampled.mean(), abs=error)


@pytest.mark.parametrize("strategy", theory.STRATEGIES)
def test_they_are_the_learners(strategy):
    sequences = np.random.default_rng(0).integers(3, size=(20, 8))
    one_hot = jax.nn.one_hot(sequences, 3, dtype=float)
    learner = MemorizingSymbols(URNS) if strategy == "memorizing" else UnigramPosterior(0.7)
    found = np.asarray(predictions(learner, *sequence_examples(one_hot)))
    counts = np.cumsum(np.asarray(one_hot), 1)
    given = theory.memorizing(URNS, counts) if strategy == "memorizing" else theory.generalizing(counts, 0.7)
    np.testing.assert_allclose(given[:, -found.shape[1] :], found, rtol=1e-12)


def test_compositions_are_all_counts():
    found = theory.compositions(4, 3)
    assert sorted(map(tuple, found.tolist())) == [c for c in product(range(5), repeat=3) if sum(c) == 4]
    assert theory.compositions(0, 2).tolist() == [[0, 0]]


def test_odds_by_hand():
    """γ N^{1-α} ΔL = 3·4^½·0.5 = 3; the prior is 2^-(9^½ − 4^½) = ½."""
    assert theory.log_odds(4, 0.5, 9, 4, 0.5, 0.5, 3) == pytest.approx(3 - log(2))
    bits = theory.complexities(4, 3)
    assert bits["memorizing"] - bits["generalizing"] == 64 * (12 - 3)
