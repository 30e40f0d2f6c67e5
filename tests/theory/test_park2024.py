"""The strategies of park2024: against loops over sequences in fractions, against the learners, and by hand."""

from fractions import Fraction
from itertools import pairwise, product
from math import log

import jax
import numpy as np
import pytest

from mesascope.learners import (
    DirichletPosterior,
    MemorizingSymbols,
    UnigramPosterior,
    predictions,
    sequence_examples,
)
from mesascope.processes import MarkovChains, SymbolPool
from mesascope.processes._draws import stationary_distribution
from mesascope.theory import edelman2024
from mesascope.theory import park2024 as theory

POOL = [
    [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]],
    [[Fraction(1, 3), Fraction(2, 3)], [Fraction(4, 5), Fraction(1, 5)]],
]
RESTING = [[Fraction(1, 3), Fraction(2, 3)], [Fraction(6, 11), Fraction(5, 11)]]  # π_0 = T_10 / (T_01 + T_10)
CHAINS = np.array(POOL, float)


def chance(sequence, chain):
    found = Fraction(1, 2)
    for a, b in pairwise(sequence):
        found *= chain[a][b]
    return found


def of_symbols(sequence, resting):
    found = Fraction(1)
    for a in sequence:
        found *= resting[a]
    return found


def guess(strategy, sequence, symbol):
    if strategy == "uni-inf":
        return Fraction(sequence.count(symbol) + 1, len(sequence) + 2)
    if strategy == "bi-inf":
        after = [b for a, b in pairwise(sequence) if a == sequence[-1]]
        return Fraction(after.count(symbol) + 1, len(after) + 2)
    if strategy == "uni-ret":
        shares = [of_symbols(sequence, one) for one in RESTING]
        answers = [one[symbol] for one in RESTING]
    else:
        shares = [chance(sequence, one) for one in POOL]
        answers = [one[sequence[-1]][symbol] for one in POOL]
    return sum(s * a for s, a in zip(shares, answers, strict=True)) / sum(shares)


@pytest.mark.slow
def test_stationary_distributions():
    np.testing.assert_allclose(theory.stationary(CHAINS), np.array(RESTING, float), rtol=1e-14)
    chains = MarkovChains(4).draw_tasks(jax.random.key(0), 5)
    found = theory.stationary(chains)
    np.testing.assert_allclose(np.einsum("ka,kab->kb", found, chains), found, rtol=1e-10)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-12)


@pytest.mark.parametrize("strategy", theory.STRATEGIES)
def test_losses_are_sums_over_all_sequences(strategy):
    found = theory.losses(CHAINS, 5)[strategy]
    for t in range(1, 5):
        loss = 0.0
        for sequence in product(range(2), repeat=t + 1):
            weight = sum(chance(sequence, one) for one in POOL) / 2
            loss -= float(weight) * log(guess(strategy, sequence[:-1], sequence[-1]))
        assert found[t - 1] == pytest.approx(loss, rel=1e-12)


def test_losses_on_new_chains_are_those_of_edelman2024():
    found, given = theory.losses_on_new(CHAINS, 6), edelman2024.losses(2, 6)
    np.testing.assert_allclose(found["uni-inf"], given["unigram"], rtol=1e-12)
    np.testing.assert_allclose(found["bi-inf"], given["bigram"], rtol=1e-12)


def test_likelihoods_are_those_of_the_pool():
    pool = SymbolPool(MarkovChains(2), probabilities=CHAINS)
    sequences = np.array(list(product(range(2), repeat=4)))
    by_hand = [float(sum(chance(one, chain) for chain in POOL) / 2) for one in sequences.tolist()]
    np.testing.assert_allclose(pool.probabilities_of(sequences), by_hand, rtol=1e-12)


@pytest.mark.parametrize(
    ("strategy", "learner"),
    [
        ("uni-inf", UnigramPosterior(0.7)),
        ("bi-inf", DirichletPosterior(0.7)),
        ("bi-ret", MemorizingSymbols(CHAINS)),
    ],
)
def test_they_are_the_learners(strategy, learner):
    sequences = np.random.default_rng(0).integers(2, size=(20, 8))
    one_hot = jax.nn.one_hot(sequences, 2, dtype=float)
    found = np.asarray(predictions(learner, *sequence_examples(one_hot)))
    given = theory.probabilities(strategy, sequences, CHAINS, 0.7)
    np.testing.assert_allclose(given[:, -found.shape[1] :], found, rtol=1e-10)


def test_retrieval_by_unigrams_is_that_of_chains_without_memory():
    """Of chains whose rows are equal, both retrievals are the same."""
    rows = np.random.default_rng(1).dirichlet(np.ones(3), 4)
    chains = np.repeat(rows[:, None], 3, axis=1)
    sequences = np.random.default_rng(0).integers(3, size=(10, 6))
    by_unigrams, by_bigrams = (
        theory.probabilities(name, sequences, chains) for name in ("uni-ret", "bi-ret")
    )
    # bigrams leave the first symbol out: so do unigrams of the others
    shares = np.cumsum(np.eye(3)[sequences], 1) @ np.log(rows).T
    later = np.exp(shares - np.log(rows).T[sequences[:, :1]])
    np.testing.assert_allclose(by_bigrams, later @ rows / later.sum(-1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(
        by_unigrams, np.exp(shares) @ rows / np.exp(shares).sum(-1, keepdims=True), rtol=1e-10
    )


def test_stationary_distributions_of_chains_that_hardly_leave_a_state():
    rare = np.array([[1 - 1e-18, 1e-18, 0.5e-30], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]])
    rare[0, 2] = 1e-18
    found = theory.stationary(rare[None])[0]
    # Of the flow out of state 0, 2e-18, all returns: π_b = Σ_a π_a T_ab with π_0 = 1.
    others = np.linalg.solve(np.eye(2) - rare[1:, 1:].T, [1e-18, 1e-18])
    np.testing.assert_allclose(found, [1, *others], rtol=1e-14)
    np.testing.assert_allclose(found, stationary_distribution(rare), rtol=1e-14)
    assert np.isfinite(theory.probabilities("uni-ret", np.array([[0, 1, 2, 0]]), rare[None])).all()
