"""Counts of surviving index tuples, compared with an independent enumeration from the definition of the loss."""

import itertools

import numpy as np
import pytest

from mesascope.objectives._counts import STABLE_FROM, counts
from mesascope.objectives._partitions import set_partitions

DIGITS = {"quadratic": 6, "cross": 3}
LARGEST = 20


def token(i, block):
    """Exponent of λ in block 0 or 1 of e_i = (x_i; x_{i−1}), x_i = λ^{i−1} x_1; None for x_0 = 0."""
    power = i - block - 1
    return None if power < 0 else power


def slots_of_prediction(i, t, alpha, beta, gamma):
    """Exponents of the three tokens in W^PV e_i e_i* W^KQ e_t."""
    first, second, third = token(i, alpha), token(i, beta), token(t, gamma)
    return None if None in (first, second, third) else (first, -second, third)


def listed(term, labels, t):
    """Exponents of all slots for every choice of summation indices that exists at context length t."""
    rows = []
    if term == "cross":
        for i in range(1, t + 1):
            slots = slots_of_prediction(i, t, *labels)
            if slots is not None:
                rows.append((-t, *slots))  # conj x_{t+1} = λ^{−t} x_1
        return rows
    a2, a, b, c, b2, c2 = labels
    for i, j in itertools.product(range(1, t + 1), repeat=2):
        plain, conjugate = slots_of_prediction(i, t, a, b, c), slots_of_prediction(j, t, a2, b2, c2)
        if plain is not None and conjugate is not None:
            # slot order: conj P, P, K, K, conj K, conj K
            rows.append((-conjugate[0], *plain, -conjugate[1], -conjugate[2]))
    return rows


def survivors(term, labels, t, partitions):
    """For every partition, how many index tuples have exponents that sum to zero in every block."""
    exponents = np.array(listed(term, labels, t)).reshape(-1, 6 if term == "quadratic" else 4)
    vanishing = {}
    result = []
    for partition in partitions:
        alive = np.ones(len(exponents), bool)
        for block in partition:
            if block not in vanishing:
                vanishing[block] = exponents[:, sorted(block)].sum(1) == 0
            alive &= vanishing[block]
        result.append(int(alive.sum()))
    return result


def all_labels(term):
    return list(itertools.product((0, 1), repeat=DIGITS[term]))


@pytest.mark.slow
@pytest.mark.parametrize("term", DIGITS)
def test_counts_equal_a_listing_of_all_index_tuples(term):
    table = counts(term)
    for n, labels in enumerate(all_labels(term)):
        for s in range(1, LARGEST + 1):
            expected = survivors(term, labels, s + 1, table.partitions)
            np.testing.assert_array_equal(table.at(s)[:, n], expected, err_msg=f"labels {labels}, s = {s}")


@pytest.mark.parametrize("term", DIGITS)
def test_polynomials_are_valid_far_beyond_the_fit(term):
    table = counts(term)
    rng = np.random.default_rng(0)
    for n in rng.choice(2 ** DIGITS[term], 4, replace=False):
        expected = survivors(term, all_labels(term)[n], 91, table.partitions)
        np.testing.assert_array_equal(table.at(90)[:, n], expected)


@pytest.mark.parametrize("term, slots", [("quadratic", 6), ("cross", 4)])
def test_counts_are_integers_for_all_partitions_and_labels(term, slots):
    table = counts(term)
    assert table.partitions == set_partitions(slots)
    shape = (len(table.partitions), 2 ** DIGITS[term])
    assert table.table.shape == (*shape, STABLE_FROM - 1)
    assert table.polynomial.shape == (*shape, 3)
    assert np.issubdtype(table.table.dtype, np.integer)
    assert np.issubdtype(table.polynomial.dtype, np.integer)
    assert table.table.min() >= 0


def test_one_block_is_consistent_with_homogeneity():
    """With all slots on one coordinate: |ŷ|² keeps the shifts with a zero sum, (i, i') free; Re x* ŷ likewise."""
    quadratic, cross = counts("quadratic"), counts("cross")
    everything = {slots: frozenset({frozenset(range(slots))}) for slots in (6, 4)}
    s = 11
    row = quadratic.at(s)[quadratic.partitions.index(everything[6])]
    for n, (a2, a, b, c, b2, c2) in enumerate(all_labels("quadratic")):
        total = -a + b - c + a2 - b2 + c2
        terms = (s + 1 - max(a, b)) * (s + 1 - max(a2, b2))
        assert row[n] == (terms if total == 0 else 0)
    row = cross.at(s)[cross.partitions.index(everything[4])]
    for n, (a, b, c) in enumerate(all_labels("cross")):
        assert row[n] == (s + 1 - max(a, b) if b == 1 + a + c else 0)
