"""Closed forms of nichani2024, compared with quadrature, enumeration and samples."""

import itertools

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from mesascope.processes import MarkovGraph
from mesascope.theory import nichani2024 as theory

TREE = (None, 0, 0, 2, None, 3, None)


def _attended(scores, symbols):
    """Both layers of attention as loops over positions, by definition."""
    tokens = np.eye(len(scores.symbols))[list(symbols)]
    copied = []
    for i in range(len(tokens)):
        weights = np.exp(scores.positions[i, : i + 1])
        copied.append(weights @ tokens[: i + 1] / weights.sum())
    weights = np.array([np.exp(tokens[-1] @ scores.symbols @ c) for c in copied])
    return weights @ tokens / weights.sum()


def test_counting_equals_attention():
    rng = np.random.default_rng(0)
    for sharpness in (0.0, 1.5, 8.0):
        scores = theory.attention_scores(TREE, 3, 60.0, sharpness)  # e^-60 of the weight misses the parent
        for symbols in rng.integers(0, 3, (20, len(TREE))):
            counted = theory.matched_frequencies(TREE, symbols, 3, sharpness)
            assert np.max(np.abs(counted - _attended(scores, symbols))) < 1e-14


def test_frequencies_are_shrunk_towards_those_of_other_positions():
    parents, symbols = (None, 0, 1, 2, 3, 4), np.array([0, 1, 1, 0, 2, 1])
    # after the last symbol 1 come 1 and 0; the other positions hold 0 (the root), 1 (after 0), 2 (after 0), 1 (after 2)
    pull = np.exp(-2.0)
    expected = np.array([1 + pull, 1 + 2 * pull, pull]) / (2 + 4 * pull)
    assert theory.matched_frequencies(parents, symbols, 3, 2.0) == pytest.approx(expected, abs=1e-15)


def _attended_chain(symbols, order, states, sharpness):
    """Both layers for a chain of an order as loops over positions and heads, with a first layer that misses nothing."""
    tokens = np.eye(states)[list(symbols)]
    copied = [
        [tokens[i - h] if i >= h else tokens[: i + 1].mean(0) for h in range(1, order + 1)]
        for i in range(len(tokens))
    ]
    asked = [tokens[-1], *copied[-1][:-1]]
    scores = [sum(a @ c for a, c in zip(asked, own, strict=True)) for own in copied]
    weights = np.exp(sharpness * np.array(scores))
    return weights @ tokens / weights.sum()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_counting_along_chains_equals_attention(order):
    rng = np.random.default_rng(order)
    for sharpness in (0.0, 1.5, 8.0):
        for symbols in rng.integers(0, 3, (20, 7)):
            counted = theory.matched_contexts(symbols, 3, order, sharpness)
            assert np.max(np.abs(counted - _attended_chain(symbols, order, 3, sharpness))) < 1e-14


def test_sharp_comparison_finds_what_followed_the_last_two_symbols():
    symbols = np.array([0, 1, 2, 0, 1, 1, 2, 0, 1])  # 2 and 1 followed 0 1
    counted = theory.matched_contexts(symbols, 3, 2, 200)
    assert counted == pytest.approx([0, 1 / 2, 1 / 2], abs=1e-15)
    # 1 followed 0 0; position 1 counts too, since its symbol is that of both last ones
    symbols = np.array([0, 2, 0, 0, 1, 0, 0])
    assert theory.matched_contexts(symbols, 3, 2, 200) == pytest.approx([1 / 2, 1 / 2, 0], abs=1e-15)


def test_a_chain_of_order_one_is_the_construction_of_its_graph():
    scores = theory.attention_scores((None, 0, 1, 2, 3), 3, 2.0, 5.0)
    found, known = theory.chain_transformer(1, 5, 3, 2.0, 5.0), theory.disentangled_transformer(scores)
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(known), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_weights_have_the_scores_and_append_outputs():
    scores = theory.attention_scores(TREE, 3, 2.0, 5.0)
    weights = theory.disentangled_transformer(scores)
    stream = (np.eye(3)[[0, 1, 2, 0, 1, 2, 0]] @ weights.embedding.T) + weights.positions
    first, second = weights.layers
    read = np.einsum("hkw,iw,hkv,tv->ti", first["w_k"], stream, first["w_q"], stream) / len(TREE) ** 0.5
    assert np.max(np.abs(read - scores.positions)) < 1e-15
    assert np.array_equal(np.einsum("haw,hwb->ab", second["w_k"], first["w_p"]), np.eye(3))
    assert np.array_equal(np.einsum("aw,hwb->ab", weights.readout, second["w_p"]), np.eye(3))
    assert not np.any(np.einsum("aw,hwb->ab", weights.readout, first["w_p"]))


def test_posterior_means_of_several_parents():
    """Counted by hand; of a root; of parents that are none."""
    parents = ((), (), (0, 1), (1, 2), (2, 3), (4, 3))
    symbols = np.array(
        [0, 1, 1, 1, 1]
    )  # what followed (s_5, s_4) = (1, 1): s_4 = 1 and s_5 = 1, but not s_3 after (0, 1)
    mean = theory.posterior_mean_of_parents(parents, symbols, 2, 0.5)
    np.testing.assert_allclose(mean, [0.5 / 3, 2.5 / 3], rtol=1e-15)
    np.testing.assert_array_equal(
        theory.posterior_mean_of_parents(((), (), ()), np.array([0, 0]), 2, 0.5), 0.5
    )  # a root: the roots before it tell nothing
    for wrong in (((), (1,), ()), ((), (-1,), ()), ((), (), (5,))):
        with pytest.raises(ValueError, match="must be earlier positions"):
            theory.posterior_mean_of_parents(wrong, np.array([0, 0]), 2, 0.5)


def test_posterior_means_are_ratios_of_exact_probabilities():
    graph = [[], [0], [1, 0], [0, 2], [3, 1]]
    process = MarkovGraph(graph, 2, "1/10")
    sequences = np.array(list(itertools.product(range(2), repeat=5)))
    whole = process.probabilities_of(sequences).reshape(-1, 2)
    found = theory.posterior_mean_of_parents(graph, sequences[::2, :4], 2, 0.1)
    np.testing.assert_allclose(found, whole / whole.sum(1, keepdims=True), rtol=1e-12)


def test_mutual_information_of_random_functions():
    """α → 0: s_3 = f(s_1, s_2) with one of 16 functions; with s_1, s_2 uniform the informations are known."""
    process = MarkovGraph([[], [], [0, 1]], 2, 1)
    sequences = np.array(list(itertools.product(range(2), repeat=3)))
    functions = np.array(list(itertools.product(range(2), repeat=4)))
    tables = np.stack([1.0 - functions, functions], -1)
    found = theory.mutual_information(sequences, process.probabilities_given(sequences, tables), 2)
    entropy = lambda p: -sum(x * np.log(x) for x in (p, 1 - p) if x)  # noqa: E731
    for (f00, f01, f10, f11), one in zip(functions, found, strict=True):
        given = np.mean([entropy((f00 + f01) / 2), entropy((f10 + f11) / 2)])
        assert one[2, 0] == pytest.approx(entropy(np.mean([f00, f01, f10, f11])) - given, abs=1e-14)
        assert one[1, 0] == pytest.approx(0, abs=1e-15)
        assert one[0, 0] == pytest.approx(np.log(2))
    np.testing.assert_allclose(found, np.swapaxes(found, 1, 2), atol=1e-15)


@pytest.mark.parametrize(
    ("sequences", "probabilities", "said"),
    [
        ([[0, 1]], [0.5, 0.5], "one for each sequence"),
        ([[0, 2]], [1.0], "must be in 0 to 1"),
        ([[0, 1], [1, 1]], [0.5, 0.6], "of sum 1"),
        ([[0, 1], [1, 1]], [2.0, -1.0], "at least 0"),
    ],
)
def test_bad_sequences_have_no_information(sequences, probabilities, said):
    with pytest.raises(ValueError, match=said):
        theory.mutual_information(sequences, probabilities, 2)


@pytest.mark.slow
def test_posterior_mean_is_the_mean_over_the_prior_for_independent_roots():
    """Two symbols, rows Beta: quadrature of both rows against counts, for a root of given symbol."""
    parents, alpha = (None, 0, 1, None), 0.7
    for symbols in itertools.product(range(2), repeat=4):
        counts = np.zeros((2, 2))
        for child, parent in enumerate(parents):
            if parent is not None:
                counts[symbols[parent], symbols[child]] += 1
        row = counts[symbols[-1]]

        def likelihood(p, row=row):
            return p ** row[1] * (1 - p) ** row[0] * beta.pdf(p, alpha, alpha)

        over = quad(lambda p: p * likelihood(p), 0, 1)[0] / quad(likelihood, 0, 1)[0]
        found = theory.posterior_mean(parents, np.array(symbols), 2, alpha)
        assert found == pytest.approx([1 - over, over], abs=1e-7)  # the density is infinite at both ends


@pytest.mark.parametrize(("states", "alpha"), [(2, 1.0), (3, 0.3), (10, 0.1)])
def test_posterior_loss_is_that_of_drawn_rows(states, alpha):
    rng = np.random.default_rng(states)
    draws, observations = 40_000, 4
    rows = rng.dirichlet([alpha] * states, draws)
    counts = rng.multinomial(observations, rows)
    predicted = (counts + alpha) / (observations + states * alpha)
    losses = -np.sum(rows * np.log(predicted), 1)
    error = losses.std() / draws**0.5
    assert abs(losses.mean() - theory.posterior_loss(observations, states, alpha)) < 4.5 * error
    entropies = -np.sum(rows * np.log(np.maximum(rows, 1e-300)), 1)
    assert abs(entropies.mean() - theory.entropy_of_rows(states, alpha)) < 4.5 * entropies.std() / draws**0.5


def test_posterior_loss_decreases_to_the_entropy():
    losses = [theory.posterior_loss(n, 10, 0.1) for n in (0, 1, 2, 5, 20, 100, 20_000)]
    assert losses[0] == pytest.approx(np.log(10), rel=1e-13)
    assert all(a > b for a, b in itertools.pairwise(losses))
    # (S − 1)/(2n) is what estimating a row costs
    assert losses[-1] == pytest.approx(theory.entropy_of_rows(10, 0.1), abs=9 / 40_000)
