"""Sums over context lengths: closed forms, compared with direct sums."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesascope.objectives._counts import STABLE_FROM
from mesascope.objectives._schedule import MAX_LISTED, schedule_features
from mesascope.processes import NextToken

RHO = {"t-1": lambda t: t - 1, "t": lambda t: t, "1": lambda t: 1}
# Digamma, zeta and the direct sums of positive numbers are good to a few units in the last place; for the
# normalizer t the closed form subtracts sums of equal sign that differ by less than half.
RTOL = 2e-14


def direct(horizon, weight, rho, power):
    """The features by definition: f(s) = w_{s+1}/ρ_{s+1}^power, then Σ_{s ≥ STABLE_FROM} f(s) s^k."""
    f = {t - 1: weight(t) / rho(t) ** power for t in range(2, horizon)}
    table = [f.get(s, 0.0) for s in range(1, STABLE_FROM)]
    tail = [math.fsum(v * s**k for s, v in f.items() if s >= STABLE_FROM) for k in range(3)]
    return np.array([*table, *tail])


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("normalizer", RHO)
@pytest.mark.parametrize("horizon", [*range(3, 13), 50, 100, 777, 3000, 10_100, 20_000])
def test_equal_weights(horizon, normalizer, power):
    features = schedule_features(NextToken(horizon), normalizer, power)
    expected = direct(horizon, lambda t: 1.0, RHO[normalizer], power)
    np.testing.assert_allclose(features, expected, rtol=RTOL)


@pytest.mark.slow
@given(st.data())
def test_any_weights_and_normalizers(data):
    horizon = data.draw(st.integers(3, 40))
    power = data.draw(st.sampled_from([1, 2]))
    lengths = st.integers(2, horizon - 1)
    weights = data.draw(st.dictionaries(lengths, st.floats(0.015625, 4), min_size=1))
    normalizer = data.draw(st.sampled_from(list(RHO)))
    features = schedule_features(NextToken(horizon, weights), normalizer, power)
    expected = direct(horizon, lambda t: weights.get(t, 0.0), RHO[normalizer], power)
    np.testing.assert_allclose(features, expected, rtol=RTOL)


@pytest.mark.parametrize("power", [1, 2])
def test_a_function_of_t_is_summed_term_by_term(power):
    features = schedule_features(NextToken(300), np.sqrt, power)
    np.testing.assert_allclose(features, direct(300, lambda t: 1.0, math.sqrt, power), rtol=RTOL)
    for name, rho in RHO.items():
        named = schedule_features(NextToken(300), name, power)
        np.testing.assert_allclose(schedule_features(NextToken(300), rho, power), named, rtol=RTOL)


@pytest.mark.parametrize("normalizer", RHO)
def test_a_million_tokens(normalizer):
    horizon = 10**6
    t = np.arange(2, horizon, dtype=np.longdouble)
    for power in (1, 2):
        f = np.ones_like(t) / RHO[normalizer](t) ** power
        s = t - 1
        tail = [np.sum((f * s**k)[s >= STABLE_FROM]) for k in range(3)]
        features = schedule_features(NextToken(horizon), normalizer, power)
        np.testing.assert_allclose(features[STABLE_FROM - 1 :], np.array(tail, float), rtol=RTOL)
        np.testing.assert_allclose(
            features[: STABLE_FROM - 1], f[: STABLE_FROM - 1].astype(float), rtol=1e-15
        )


def test_the_last_length_only():
    for horizon in (4, 6, 7, 8, 9, 1000, 10**12):
        s = horizon - 2
        features = schedule_features(NextToken.last(horizon), "t", 1)
        expected = np.zeros(STABLE_FROM + 2)
        if s < STABLE_FROM:
            expected[s - 1] = 1 / (s + 1)
        else:
            expected[-3:] = np.array([1, s, float(s) ** 2]) / (s + 1)
        np.testing.assert_allclose(features, expected, rtol=1e-15)


def test_sums_over_1e12_tokens_are_fast():
    last = 10**12 - 2
    began = time.process_time()
    features = {
        (name, power): schedule_features(NextToken(10**12), name, power) for name in RHO for power in (1, 2)
    }
    assert time.process_time() - began < 0.1  # a sum of 10^12 terms takes minutes at best
    assert all(np.isfinite(f).all() for f in features.values())
    # by asymptotics: H_n = ln n + γ + 1/2n − …, Σ_{s>n} 1/s² = 1/n − 1/2n² + …
    head = sum(1 / s for s in range(1, STABLE_FROM))
    harmonic = math.log(last) + np.euler_gamma + 0.5 / last
    squares = math.pi**2 / 6 - 1 / last - sum(1 / s**2 for s in range(1, STABLE_FROM))
    count = last - STABLE_FROM + 1
    np.testing.assert_allclose(
        features["t-1", 1][-3:], [harmonic - head, count, (last * (last + 1) - 30) / 2], rtol=1e-14
    )
    np.testing.assert_allclose(features["t-1", 2][-3:], [squares, harmonic - head, count], rtol=1e-14)
    np.testing.assert_allclose(
        features["1", 2][-3:],
        [float(count), (last * (last + 1) - 30) / 2, float(last * (last + 1) * (2 * last + 1) // 6 - 55)],
        rtol=1e-15,
    )


def test_a_function_over_too_many_lengths_is_refused():
    with pytest.raises(ValueError, match=r"horizon 1000000000000; use one of t-1, t, 1"):
        schedule_features(NextToken(10**12), np.sqrt, 1)
    schedule_features(NextToken.last(10**12), np.sqrt, 1)  # one value of the function is enough here
    assert MAX_LISTED >= 10**6
