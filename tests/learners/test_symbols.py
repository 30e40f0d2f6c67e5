"""Learners of symbols against Bayes' rule in fractions: every task and every position, one sequence at a time."""

from fractions import Fraction
from itertools import pairwise

import jax
import numpy as np
import pytest

from mesascope.learners import (
    BayesMixtureSymbols,
    DirichletPosterior,
    MemorizingSymbols,
    Retrieval,
    TrigramPosterior,
    Uniform,
    UnigramPosterior,
    predictions,
    sequence_examples,
)

S, T = 3, 7
EIGHTH = Fraction(1, 8)
URNS = [[6, 1, 1], [1, 1, 6], [2, 4, 2], [3, 2, 3]]  # in eighths
CHAINS = [
    [[6, 1, 1], [1, 6, 1], [1, 1, 6]],
    [[1, 6, 1], [1, 1, 6], [6, 1, 1]],
    [[2, 2, 4], [4, 2, 2], [3, 3, 2]],
]
URNS_WITH_ZEROS = [[8, 0, 0], [4, 4, 0], [0, 6, 2]]
CHAINS_WITH_ZEROS = [
    [[0, 8, 0], [0, 0, 8], [8, 0, 0]],
    [[4, 4, 0], [0, 4, 4], [4, 0, 4]],
    [[0, 4, 4], [8, 0, 0], [2, 6, 0]],
]
POOLS = {"urns": URNS, "chains": CHAINS, "urns 0": URNS_WITH_ZEROS, "chains 0": CHAINS_WITH_ZEROS}


def exact(pool, mix=Fraction(0)):
    """The tasks in fractions, each mixed with a small share of uniform symbols."""

    def entry(one):
        return [entry(x) for x in one] if isinstance(one, list) else (1 - mix) * one * EIGHTH + mix / S

    return [entry(task) for task in pool]


def probability(task, sequence):
    """Of a sequence under one task: probabilities of an urn, or the rows of a chain from a uniform symbol."""
    chain = isinstance(task[0], list)
    product = Fraction(1, S) if chain else task[sequence[0]]
    for before, symbol in pairwise(sequence):
        product *= task[before][symbol] if chain else task[symbol]
    return product


def next_symbol(tasks, sequence):
    """P(next symbol | sequence) for tasks with equal prior probabilities: the quotient of two sums over all tasks."""
    total = sum(probability(task, sequence) for task in tasks)
    return [sum(probability(task, [*sequence, b]) for task in tasks) / total for b in range(S)]


def by_position(learner, sequence, symbols=S):
    """What a learner predicts after 1, 2, … symbols."""
    return np.asarray(predictions(learner, *sequence_examples(np.eye(symbols)[sequence])))


def sequences(seed=0, count=12):
    return np.random.default_rng(seed).integers(S, size=(count, T))


def long_sequences(seed=7):
    """Sequences in which pairs of symbols come back."""
    return np.random.default_rng(seed).integers(S, size=(12, 3 * T))


@pytest.mark.parametrize("name", ["urns", "chains"])
def test_memorizing_is_bayes_rule_over_the_pool(name):
    tasks = exact(POOLS[name])
    learner = MemorizingSymbols(np.array(POOLS[name]) / 8)
    for sequence in sequences().tolist():
        expected = [next_symbol(tasks, sequence[:t]) for t in range(1, T + 1)]
        # products of up to seven probabilities, through logarithms of size up to 15
        np.testing.assert_allclose(by_position(learner, sequence), np.array(expected, float), rtol=1e-13)


@pytest.mark.parametrize("name", ["urns 0", "chains 0"])
def test_where_no_task_can_have_made_the_context_it_is_the_limit_of_some_uniform_symbols(name):
    """The limit is approached to the share of uniform symbols, 1e-40, and is Bayes' rule where that is defined."""
    pool, share = POOLS[name], Fraction(1, 10**40)
    learner, defined = MemorizingSymbols(np.array(pool) / 8), set()
    for sequence in sequences(1, 40).tolist():
        found = by_position(learner, sequence)
        for t in range(1, T + 1):
            limit = next_symbol(exact(pool, share), sequence[:t])
            np.testing.assert_allclose(found[t - 1], np.array(limit, float), rtol=1e-13, atol=1e-30)
            possible = any(probability(task, sequence[:t]) for task in exact(pool))
            defined.add(possible)
            if possible:
                bayes = next_symbol(exact(pool), sequence[:t])
                np.testing.assert_allclose(found[t - 1], np.array(bayes, float), rtol=1e-13, atol=1e-30)
    assert defined == {True, False}


def marginal(alpha, sequence, chain):
    """P(sequence) under the prior: the product of what the prior predicts of every symbol, given those before it."""
    product = Fraction(1, S)
    for t in range(1, len(sequence)):
        product *= expected_under_the_prior(alpha, sequence[:t], chain)[sequence[t]]
    return product


def expected_under_the_prior(alpha, sequence, chain):
    """P(next symbol | sequence) by counting what followed the last symbol, or all symbols of an urn."""
    before = [b for a, b in pairwise(sequence) if a == sequence[-1]] if chain else sequence
    return [(before.count(b) + alpha) / (len(before) + S * alpha) for b in range(S)]


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 3), Fraction(1)])
@pytest.mark.parametrize("name", ["urns", "chains"])
def test_the_mixture_is_bayes_rule_over_the_pool_and_the_prior(name, share):
    tasks, alpha, chain = exact(POOLS[name]), Fraction(3, 2), name == "chains"
    learner = BayesMixtureSymbols(np.array(POOLS[name]) / 8, float(alpha), float(share))
    for sequence in sequences(5).tolist():
        for t, found in enumerate(by_position(learner, sequence), 1):
            pool = share * sum(probability(task, sequence[:t]) for task in tasks) / len(tasks)
            prior = (1 - share) * marginal(alpha, sequence[:t], chain)
            parts = next_symbol(tasks, sequence[:t]), expected_under_the_prior(alpha, sequence[:t], chain)
            expected = [(pool * a + prior * b) / (pool + prior) for a, b in zip(*parts, strict=True)]
            np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-12)


@pytest.mark.parametrize("name", ["urns 0", "chains 0"])
def test_a_context_that_no_task_can_have_made_is_the_priors(name):
    pool, chain, met = POOLS[name], name == "chains 0", set()
    mixed, memory = BayesMixtureSymbols(np.array(pool) / 8, 0.5, 0.9), MemorizingSymbols(np.array(pool) / 8)
    alone = BayesMixtureSymbols(np.array(pool) / 8, 0.5, 1.0)
    for sequence in sequences(6, 40).tolist():
        np.testing.assert_allclose(by_position(alone, sequence), by_position(memory, sequence), rtol=1e-12)
        for t, found in enumerate(by_position(mixed, sequence), 1):
            if not any(probability(task, sequence[:t]) for task in exact(pool)):
                expected = expected_under_the_prior(Fraction(1, 2), sequence[:t], chain)
                np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-12)
                met.add(t)
    assert len(met) > 2


def test_one_impossible_symbol_after_a_long_context_leaves_the_pool_behind():
    """However probable the rest of the context is under the pool."""
    learner, length = BayesMixtureSymbols(np.eye(1, 20), 100.0, 0.9), 9000
    sequence = [0] * length + [1]
    counts = np.bincount(sequence, minlength=20)
    found = by_position(learner, sequence, 20)
    np.testing.assert_allclose(found[-1], (counts + 100) / (length + 1 + 20 * 100), rtol=1e-12)
    assert found[-2][0] > 1 - 1e-9  # of the pool until then


@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(3)])
def test_the_unigram_posterior_adds_every_symbol_to_an_urn(alpha):
    for sequence in sequences(2).tolist():
        expected = [
            [(sequence[:t].count(b) + alpha) / (t + S * alpha) for b in range(S)] for t in range(1, T + 1)
        ]
        found = by_position(UnigramPosterior(float(alpha)), sequence)
        np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-14)


@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(3)])
def test_the_trigram_posterior_counts_what_followed_the_last_two_symbols(alpha):
    met = set()
    for sequence in long_sequences().tolist():
        expected = []
        for t in range(1, len(sequence) + 1):
            seen, pair = sequence[:t], sequence[t - 2 : t]
            followers = [c for a, b, c in zip(seen, seen[1:], seen[2:], strict=False) if [a, b] == pair]
            met.add(len(followers))
            expected.append([(followers.count(c) + alpha) / (len(followers) + S * alpha) for c in range(S)])
        found = by_position(TrigramPosterior(float(alpha)), sequence)
        np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-14)
    assert {0, 1, 2, 3} <= met


def test_equal_symbols_in_a_row_are_pairs_that_overlap():
    """After 0 0 0 0 the pair 0 0 was followed by 0 twice; the last pair has no follower yet."""
    found = by_position(TrigramPosterior(1.0), [0, 0, 0, 0])
    np.testing.assert_allclose(found[:, 0], [1 / 3, 1 / 3, 2 / 4, 3 / 5], rtol=1e-15)


def test_a_trigram_posterior_has_no_array_of_all_triples():
    """With 5000 symbols all triples would take 10¹² bytes."""
    symbols, sequence = 5000, [7, 4999, 0, 7, 4999]
    found = by_position(TrigramPosterior(0.5), sequence, symbols)
    assert found[-1, 0] == pytest.approx(1.5 / (1 + symbols / 2), rel=1e-14)
    np.testing.assert_allclose(found[:-1], 1 / symbols, rtol=1e-14)


@pytest.mark.parametrize("smoothing", [Fraction(0), Fraction(1, 5), Fraction(1)])
def test_retrieval_copies_what_followed_the_last_symbol_the_last_time(smoothing):
    found_before = set()
    for sequence in long_sequences(8).tolist():
        expected = []
        for t in range(1, len(sequence) + 1):
            follower = None
            for before, after in pairwise(sequence[:t]):
                if before == sequence[t - 1]:
                    follower = after  # the last one stays
            found_before.add(follower is not None)
            if follower is None:
                expected.append([Fraction(1, S)] * S)
            else:
                expected.append([(1 - smoothing) * (b == follower) + smoothing / S for b in range(S)])
        found = by_position(Retrieval(float(smoothing)), sequence)
        np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-14)
    assert found_before == {True, False}


def test_the_uniform_learner_and_full_smoothing_give_every_symbol_the_same_probability():
    for sequence in sequences(9, 3).tolist():
        np.testing.assert_array_equal(by_position(Uniform(), sequence), np.full((T, S), 1 / S))
        np.testing.assert_array_equal(by_position(Retrieval(1.0), sequence), by_position(Uniform(), sequence))


def test_on_a_sequence_without_repetition_learners_that_look_back_are_uniform():
    for learner in (Retrieval(0.1), TrigramPosterior(0.3), DirichletPosterior(0.3)):
        np.testing.assert_allclose(by_position(learner, [4, 2, 0, 1, 3], 5), 1 / 5, rtol=1e-15)


@pytest.mark.parametrize(("shape", "generalizing"), [((), UnigramPosterior), ((S,), DirichletPosterior)])
def test_memorizing_many_tasks_of_the_prior_is_generalizing(shape, generalizing):
    """A quotient of means over K = 100 000 tasks: within four standard errors of the integrals over the prior."""
    rng, alpha = np.random.default_rng(3), 0.7
    pool = rng.dirichlet(np.full(S, alpha), (100_000, *shape))
    learner = MemorizingSymbols(pool)
    for sequence in sequences(4, 3):
        found, goal = (by_position(one, sequence) for one in (learner, generalizing(alpha)))
        for t in (1, 3, T):
            before = sequence[: t - 1]
            likelihood = np.prod(pool[:, before, sequence[1:t]] if shape else pool[:, sequence[:t]], 1)
            rows = pool[:, sequence[t - 1]] if shape else pool
            off = likelihood[:, None] * (rows - goal[t - 1]) / likelihood.mean()
            assert (abs(found[t - 1] - goal[t - 1]) <= 4 * off.std(0) / len(pool) ** 0.5).all()


def test_an_urn_is_a_chain_with_equal_rows_but_for_what_the_first_symbol_says():
    """Of two urns the first symbol is seen once; a chain from a uniform symbol does not see it."""
    urns = np.array(URNS) / 8
    chains = np.repeat(urns[:, None], S, 1)
    one, other = by_position(MemorizingSymbols(urns), [0, 1]), by_position(MemorizingSymbols(chains), [0, 1])
    np.testing.assert_allclose(other[0], urns.mean(0), rtol=1e-14)
    weights = urns[:, 0] / urns[:, 0].sum()
    np.testing.assert_allclose(one[0], weights @ urns, rtol=1e-14)


def test_long_contexts_leave_the_one_task_that_made_them():
    """A product of 20 000 probabilities is 0 in floating point; its logarithm is not."""
    rng, pool = np.random.default_rng(5), np.array(URNS) / 8
    sequence = rng.choice(S, size=20_000, p=pool[2])
    np.testing.assert_allclose(by_position(MemorizingSymbols(pool), sequence)[-1], pool[2], rtol=1e-12)


@pytest.mark.slow
def test_single_precision_is_kept():
    x, y, queries = sequence_examples(np.eye(S, dtype=np.float32)[sequences()])
    for learner in (MemorizingSymbols(np.array(CHAINS) / 8), MemorizingSymbols(np.array(URNS) / 8)):
        single, double = (
            predictions(learner, *(np.asarray(a, kind) for a in (x, y, queries))) for kind in ("f4", "f8")
        )
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, double, rtol=2e-5)  # logarithms up to 15, of unit roundoff 6e-8


@pytest.mark.slow
def test_derivatives_in_probabilities_are_finite_where_some_are_zero():
    data = sequence_examples(np.eye(S)[sequences()])

    def total(tasks):
        return (predictions(MemorizingSymbols(tasks), *data) ** 2).sum()

    for pool in POOLS.values():
        assert np.isfinite(jax.grad(total)(np.array(pool) / 8)).all()


@pytest.mark.parametrize(
    ("construct", "message"),
    [
        (lambda: MemorizingSymbols([0.5, 0.5]), r"tasks must be real, of shape \(K, p, m\) or \(K, m\), got"),
        (lambda: MemorizingSymbols([[1j, 0]]), "tasks must be real"),
        (lambda: MemorizingSymbols([[np.nan, 1]]), "tasks: every entry must be finite"),
        (lambda: MemorizingSymbols([[0.5, 0.6]]), "rows of probabilities, at least 0 and of sum 1; divide"),
        (lambda: MemorizingSymbols([[1.5, -0.5]]), "rows of probabilities"),
        (lambda: MemorizingSymbols(np.zeros((0, 3))), "tasks must be real"),
        (lambda: UnigramPosterior(0), "concentration must be greater than 0"),
        (lambda: TrigramPosterior(-1), "concentration must be greater than 0"),
        (lambda: Retrieval(-0.1), "smoothing must not be negative"),
        (lambda: Retrieval(1.1), "smoothing must be at most 1, got 1.1"),
        (
            lambda: by_position(MemorizingSymbols([[0.5, 0.5]]), [0, 1]),
            r"tasks of shape \(1, 2\) do not fit 3 outputs of 3 inputs",
        ),
        (
            lambda: predictions(UnigramPosterior(1.0), np.ones((5, 3)), np.ones((5, 2)), np.ones((6, 3))),
            "need inputs and outputs of one size, got 3 and 2 entries",
        ),
    ],
)
def test_refusals(construct, message):
    with pytest.raises((ValueError, TypeError), match=message):
        construct()
