"""Closed forms of huang2024, compared with sampled prompts, enumeration of prompts, and integration of the flow."""

import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mesascope.theory import huang2024 as theory

P = (0.5, 0.3, 0.2)


def _by_prompts(scores, p, examples):
    """L_k by summing over all K^N prompts, with attention computed example by example."""
    losses = np.zeros(len(p))
    for prompt in itertools.product(range(len(p)), repeat=examples):
        chance = np.prod([p[i] for i in prompt])
        for k in range(len(p)):
            weights = np.exp([scores[i, k] for i in prompt])
            answer = np.zeros(len(p))
            np.add.at(answer, list(prompt), weights / weights.sum())
            losses[k] += chance * np.sum((answer - np.eye(len(p))[k]) ** 2) / 2
    return losses


def test_counts_say_the_same_as_prompts():
    scores = np.random.default_rng(0).normal(size=(3, 3))
    assert theory.losses_by_feature(scores, P, 5) == pytest.approx(_by_prompts(scores, P, 5), rel=1e-13)


def test_probabilities_of_counts_are_a_distribution_with_the_right_mean():
    counts, chances = theory.feature_counts(P, 9)
    assert len(counts) == 55 and chances.sum() == pytest.approx(1, abs=1e-13)
    assert chances @ counts == pytest.approx(9 * np.array(P), rel=1e-13)


@pytest.mark.parametrize("gap", [0.0, 0.7, 3.0, 20.0])
def test_one_gap_needs_one_binomial_sum(gap):
    summed = theory.losses_by_feature(gap * np.eye(3), P, 7)
    closed = [theory.equal_gap_loss(gap, k, P, 7) for k in range(3)]
    assert closed == pytest.approx(summed, rel=1e-12)


def test_the_limit_is_the_loss_without_the_feature_in_the_prompt():
    assert theory.least_losses(P, 6) == pytest.approx(
        theory.losses_by_feature(40 * np.eye(3), P, 6), rel=1e-12
    )
    n, rho = 6, (0.3**2 + 0.2**2) / 0.5**2
    assert theory.least_losses(P, n)[0] == pytest.approx(0.5**n * (1 + (1 + (n - 1) * rho) / n) / 2)


@pytest.mark.parametrize(("features", "examples"), [(2, 6), (4, 12)])
def test_the_flow_of_the_gap_ends_as_the_law_says(features, examples):
    p = [1 / features] * features

    def speed(_, gap):
        slope = (
            theory.equal_gap_loss(gap[0] + 1e-5, 0, p, examples)
            - theory.equal_gap_loss(gap[0] - 1e-5, 0, p, examples)
        ) / 2e-5
        return [-slope / (features - 1)]

    end = 1e6
    gap = solve_ivp(speed, (0, end), [0.0], rtol=1e-9, atol=1e-10, method="LSODA").y[0, -1]
    excess = theory.equal_gap_loss(gap, 0, p, examples) - theory.least_losses(p, examples)[0]
    # the next order is e^−δ ~ t^−½ of it
    assert excess / theory.late_excess(end, features) == pytest.approx(1, abs=0.02)


def test_the_time_of_a_gap_is_that_at_which_a_solver_reaches_it():
    features, examples, gap = 3, 8, 2.5
    p = [1 / features] * features

    def speed(_, gap):
        near = (theory.equal_gap_loss(gap[0] + step, 0, p, examples) for step in (1e-5, -1e-5))
        return [(next(near) - next(near)) / -2e-5 / (features - 1)]

    end = theory.one_gap_time(gap, features, examples)
    reached = solve_ivp(speed, (0, end), [0.0], rtol=1e-9, atol=1e-10, method="LSODA").y[0, -1]
    assert reached == pytest.approx(
        gap, rel=1e-7
    )  # differences of 1e-5 leave 1e-10 over 1e-5, less than 1e-8 on average


def test_endless_prompts_are_the_limit_of_long_ones():
    features, gap = 4, 2.0
    attention = np.exp(gap) / (np.exp(gap) + features - 1)
    errors = [
        theory.one_gap_time(gap, features, examples) / theory.endless_time(attention, features) - 1
        for examples in (500, 1000, 2000)
    ]
    assert abs(errors[-1]) < 0.01
    assert errors[1] / errors[0] == pytest.approx(0.5, abs=0.05)  # it falls as 1/N
    assert errors[2] / errors[1] == pytest.approx(0.5, abs=0.03)
    assert theory.endless_time(1 / features, features) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.endless_time(0.2, 4), "attention must be from 1/4"),
        (lambda: theory.endless_time(1.0, 4), "below 1"),
        (lambda: theory.one_gap_time(0.0, 4, 20), "gap"),
        (lambda: theory.one_gap_time(1.0, 1, 20), "features"),
    ],
)
def test_times_refuse_numbers_out_of_range(call, message):
    with pytest.raises(ValueError, match=message):
        call()
