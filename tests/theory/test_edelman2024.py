"""The strategies of edelman2024: against loops over sequences in fractions, against the learners, and against the process."""

from fractions import Fraction
from itertools import pairwise, product
from math import factorial, log

import jax
import numpy as np
import pytest

from mesascope.learners import DirichletPosterior, UnigramPosterior, predictions, sequence_examples
from mesascope.processes import MarkovChains
from mesascope.theory import edelman2024 as theory


def chance(sequence, symbols):
    """P(s) for uniform rows: the integral of ∏ π_ab^N_ab over a simplex is (S − 1)! ∏ N_ab! / (N_a + S − 1)!."""
    found = Fraction(1, symbols)
    for a in range(symbols):
        after = [y for x, y in pairwise(sequence) if x == a]
        found *= Fraction(factorial(symbols - 1), factorial(len(after) + symbols - 1))
        for b in range(symbols):
            found *= factorial(after.count(b))
    return found


def guess(strategy, sequence, symbol, symbols):
    if strategy == "uniform":
        return Fraction(1, symbols)
    seen = list(sequence)
    if strategy == "bigram":
        seen = [y for x, y in pairwise(sequence) if x == sequence[-1]]
    return Fraction(seen.count(symbol) + 1, len(seen) + symbols)


@pytest.mark.parametrize(("symbols", "length"), [(2, 6), (3, 4)])
def test_losses_are_sums_over_all_sequences(symbols, length):
    found = theory.losses(symbols, length)
    for t in range(1, length):
        for strategy in theory.STRATEGIES:
            loss = 0.0
            for sequence in product(range(symbols), repeat=t + 1):
                predicted = guess(strategy, sequence[:-1], sequence[-1], symbols)
                loss -= float(chance(sequence, symbols)) * log(predicted)
            assert found[strategy][t - 1] == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize("concentration", [1.0, 0.3])
def test_likelihoods_are_those_of_the_process(concentration):
    sequences = np.array(list(product(range(3), repeat=5)))
    found = theory.likelihoods(sequences, 3, concentration)
    assert found.sum() == pytest.approx(1, rel=1e-12)
    process = MarkovChains(3, concentration=concentration)
    np.testing.assert_allclose(found, process.probabilities_of(sequences), rtol=1e-10)


@pytest.mark.parametrize(
    ("strategy", "learner"), [("unigram", UnigramPosterior(0.7)), ("bigram", DirichletPosterior(0.7))]
)
def test_they_are_the_learners(strategy, learner):
    sequences = np.random.default_rng(0).integers(3, size=(20, 8))
    one_hot = jax.nn.one_hot(sequences, 3, dtype=float)
    found = np.asarray(predictions(learner, *sequence_examples(one_hot)))[:, -1]
    np.testing.assert_allclose(theory.probabilities(strategy, sequences, 3, 0.7), found, rtol=1e-12)


def test_by_hand():
    """After 0: the bigram strategy has seen nothing after a 0, the unigram one has seen a 0."""
    sequences = np.array([[0]])
    assert theory.probabilities("bigram", sequences, 2, 1).tolist() == [[0.5, 0.5]]
    assert theory.probabilities("unigram", sequences, 2, 1) == pytest.approx(np.array([[2 / 3, 1 / 3]]))
    assert theory.losses(2, 2)["unigram"] == pytest.approx([-0.5 * log(2 / 9)])
