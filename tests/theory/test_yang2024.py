"""The delta rule in chunks, and its recall of random keys, against loops and samples."""

import numpy as np
import pytest

from mesascope.theory import yang2024


def written(keys, values, rates):
    """M_0, M_1, … of the delta rule, one token after the other."""
    memory = np.zeros((values.shape[-1], keys.shape[-1]))
    yield memory
    for key, value, rate in zip(keys, values, rates, strict=True):
        memory = memory + rate * np.outer(value - memory @ key, key)
        yield memory


@pytest.mark.parametrize("size", [1, 3, 5, 11, 40])
def test_chunks_give_the_answers_of_a_loop(size):
    rng = np.random.default_rng(0)
    keys, queries, values = (
        rng.normal(size=(2, 11, 3)) / 2,
        rng.normal(size=(11, 3)),
        rng.normal(size=(11, 2)),
    )
    keys, rates = keys[0], rng.uniform(size=11)
    memories = list(written(keys, values, rates))[1:]
    expected = [memory @ query for memory, query in zip(memories, queries, strict=True)]
    found = yang2024.chunkwise(keys, values, queries, rates, size)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def unit(rng, *shape):
    found = rng.normal(size=shape)
    return found / np.linalg.norm(found, axis=-1, keepdims=True)


def recalled(memory, keys, values):
    """Means over pairs of |M k|² and vᵀ M k."""
    answers = keys @ memory.T
    return np.mean(answers**2, 0).sum(), np.mean(np.sum(values * answers, 1))


def assert_means_are(samples, exact):
    samples = np.array(samples)
    errors = samples.std(0) / len(samples) ** 0.5
    assert np.abs((samples.mean(0) - exact) / errors).max() < 4


@pytest.mark.parametrize(("dim", "pairs", "rate"), [(3, 5, 0.7), (2, 3, 1.0), (1, 4, 0.5)])
def test_moments_of_recall_are_means_of_samples(dim, pairs, rate):
    rng, delta, sums = np.random.default_rng(0), [], []
    for _ in range(3000):
        keys, values = unit(rng, pairs, dim), rng.normal(size=(pairs, 1))
        *_, memory = written(keys, values, [rate] * pairs)
        delta.append(recalled(memory, keys, values))
        sums.append(recalled(values.T @ keys, keys, values))
    assert_means_are(delta, yang2024.recall_moments(dim, pairs, rate))
    assert_means_are(sums, yang2024.sum_recall_moments(dim, pairs))


def test_two_pairs_interfere_by_the_second_and_fourth_moment_of_a_cosine():
    """β = 1: the first value is missed by (v_2 − v_1 c) c, the second not at all; E c² = 1/d, E c⁴ = 3/(d (d + 2))."""
    d = 7
    error = yang2024.recall_error(yang2024.recall_moments(d, 2, 1.0), 1)
    np.testing.assert_allclose(error, (1 / d + 3 / (d * (d + 2))) / 2, rtol=1e-12)


def test_the_best_gain_is_a_minimum():
    moments = yang2024.recall_moments(4, 9, 0.6)
    gain = moments[1] / moments[0]
    best = yang2024.recall_error(moments)
    np.testing.assert_allclose(yang2024.recall_error(moments, gain), best, rtol=1e-12)
    assert best < min(yang2024.recall_error(moments, gain * share) for share in (0.9, 1.1))


def test_least_squares_recalls_what_its_projection_keeps():
    rng, missed = np.random.default_rng(0), []
    for _ in range(2000):
        keys, values = unit(rng, 5, 3), rng.normal(size=5)
        missed.append(np.mean((keys @ np.linalg.lstsq(keys, values, rcond=None)[0] - values) ** 2))
    assert_means_are(np.array(missed)[:, None], [yang2024.least_recall_error(3, 5)])
    assert yang2024.least_recall_error(3, 3) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: yang2024.chunkwise(np.ones((3, 2)), np.ones((2, 1)), np.ones((3, 2)), np.ones(3), 1), "fit"),
        (lambda: yang2024.chunkwise(*np.ones((3, 3, 2)), np.ones(3), 0), "size must be at least 1"),
        (lambda: yang2024.recall_moments(0, 1, 0.5), "dim must be at least 1"),
        (lambda: yang2024.recall_moments(2, 1, np.inf), "rate"),
        (lambda: yang2024.least_recall_error(2, 0), "pairs must be at least 1"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
