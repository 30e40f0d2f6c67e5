"""The estimators of raventos2023: against loops over tasks and examples, against the learners, and in limits."""

from math import exp

import numpy as np
import pytest

from mesascope.learners import Memorizing, Ridge, predictions, prompt_examples
from mesascope.theory import raventos2023 as theory

VARIANCE = 0.25


@pytest.fixture
def prompts():
    rng = np.random.default_rng(0)
    pool, x = rng.normal(size=(5, 3)), rng.normal(size=(4, 6, 3))
    y = np.einsum("bnj,bj->bn", x, pool[[0, 1, 1, 4]]) + 0.5 * rng.normal(size=(4, 6))
    return pool, x, y


def test_dmmse_weighs_tasks_by_their_likelihood(prompts):
    pool, x, y = prompts
    found = theory.dmmse(pool, x, y, VARIANCE)
    for b in range(len(x)):
        for k in range(x.shape[1]):
            likelihoods = [
                exp(-sum((y[b, j] - w @ x[b, j]) ** 2 for j in range(k)) / (2 * VARIANCE)) for w in pool
            ]
            mean = sum(p * w for p, w in zip(likelihoods, pool, strict=True)) / sum(likelihoods)
            assert found[b, k] == pytest.approx(mean @ x[b, k], rel=1e-10)


def test_ridge_solves_its_normal_equations(prompts):
    _, x, y = prompts
    found = theory.ridge(x, y, VARIANCE)
    assert not found[:, 0].any()
    for b in range(len(x)):
        for k in range(1, x.shape[1]):
            # ridge is least squares with σ e_j as further inputs, whose labels are 0
            inputs = np.concatenate([x[b, :k], VARIANCE**0.5 * np.eye(3)])
            labels = np.concatenate([y[b, :k], np.zeros(3)])
            w = np.linalg.lstsq(inputs, labels, rcond=None)[0]
            assert found[b, k] == pytest.approx(w @ x[b, k], rel=1e-10)


@pytest.mark.slow
def test_they_are_the_learners_that_memorize_and_generalize(prompts):
    pool, x, y = prompts
    read = prompt_examples(x, y)
    memorized = predictions(Memorizing(pool, VARIANCE), *read)[..., 0]
    assert theory.dmmse(pool, x, y, VARIANCE) == pytest.approx(np.asarray(memorized), rel=1e-9)
    learned = predictions(Ridge(VARIANCE), *read)[..., 0]
    assert theory.ridge(x, y, VARIANCE) == pytest.approx(np.asarray(learned), rel=1e-9)


def test_each_is_best_on_its_own_tasks():
    rng = np.random.default_rng(1)
    pool = rng.normal(size=(4, 2))
    for of_pool in (True, False):
        w = pool[rng.integers(4, size=4000)] if of_pool else rng.normal(size=(4000, 2))
        x = rng.normal(size=(4000, 6, 2))
        y = np.einsum("bnj,bj->bn", x, w) + 0.5 * rng.normal(size=(4000, 6))
        losses = [
            theory.distance(answers, y, 2)
            for answers in (theory.dmmse(pool, x, y, VARIANCE), theory.ridge(x, y, VARIANCE))
        ]
        gap = losses[0] - losses[1]
        assert abs(gap.mean()) > 4 * gap.std() / 4000**0.5  # four standard errors
        assert (gap.mean() < 0) == of_pool


def test_many_tasks_are_as_good_as_new_ones():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(50, 4, 1)), rng.normal(size=(50, 4))
    pool = rng.normal(size=(40_000, 1))
    # the error of a posterior mean over M draws is of the order of its deviation over √M, a few hundredths of which remain
    gap = theory.dmmse(pool, x, y, 1.0) - theory.ridge(x, y, 1.0)
    assert np.abs(gap).max() < 0.05


def test_distance_is_the_mean_square_over_examples_and_dimension():
    assert theory.distance([[1.0, 3.0]], [[0.0, 1.0]], 2) == pytest.approx([5 / 4])


def test_the_crossing_is_where_the_difference_changes_its_sign():
    assert theory.crossing_size([4, 16, 64], [1, 1, 1], [3, 2, 0]) == pytest.approx(32)
    assert theory.crossing_size([4, 16, 64], [1, 1, 1], [3, 2, -2]) == pytest.approx(16 * 4 ** (1 / 4))
    assert theory.crossing_size([4, 16], [1, 1], [2, 1]) == pytest.approx(16)
    # the last change counts
    assert theory.crossing_size([1, 4, 16, 64], [1, 1, 1, 1], [2, 0, 2, 0]) == pytest.approx(32)


def test_no_overflow_for_tasks_that_are_far_off():
    x, y = np.ones((3, 1)), np.array([1.0, 1.0, 1.0])
    assert theory.dmmse([[1.0], [1e3]], x, y, 1e-4)[1:] == pytest.approx([1, 1])


def test_tasks_summed_in_pieces_give_what_all_at_once_give(prompts, monkeypatch):
    """Pieces of one and of three tasks; the likeliest task is in the first, a middle or the last piece."""
    pool, x, y = prompts
    whole = theory.dmmse(pool, x, y, VARIANCE)
    for numbers in (1, 3 * y.size):
        monkeypatch.setattr(theory, "_AT_ONCE", numbers)
        for order in (slice(None), slice(None, None, -1)):
            np.testing.assert_allclose(theory.dmmse(pool[order], x, y, VARIANCE), whole, rtol=1e-12)
