"""What the claims of lu2024 are computed with, against definitions."""

import numpy as np
import pytest

from mesascope.papers.lu2024 import _stored
from mesascope.papers.lu2024._data import draw_prompts, features_of, regression
from mesascope.processes import TaskPool
from mesascope.theory import lu2024 as theory

NOISE, EXAMPLES = 0.3, 4


@pytest.fixture
def pool():
    """Two tasks of different lengths in three dimensions."""
    return TaskPool(regression(3, "identity", NOISE), vectors=[[1.0, 0.5, -0.2], [-0.4, 1.5, 1.0]])


def test_prompts_drawn_by_their_sums_have_the_moments_of_prompts(pool):
    count, exact = 200_000, features_of(pool, EXAMPLES)
    x, f, y = draw_prompts(np.asarray(pool.table), EXAMPLES, NOISE, count, np.random.default_rng(0))
    for sampled, expected in (
        (np.einsum("bi,bj->bij", f, f), exact.gram),
        (y[:, None, None] * np.einsum("bi,bj->bij", x, f), exact.covariance @ exact.cross),
        (y**2, exact.power),
    ):
        assert (np.abs(sampled.mean(0) - expected) < 4 * sampled.std(0) / count**0.5).all()


@pytest.mark.slow
def test_the_first_order_is_the_excess_of_least_squares_on_many_prompts(pool):
    """Layers fitted to 1500 prompts, against 12 weights: orders beyond the first are a hundredth of it."""
    rng, prompts, fits = np.random.default_rng(1), 1500, 2000
    known, fresh = features_of(pool, EXAMPLES), features_of(pool.process, EXAMPLES)

    def drawn(count):
        return draw_prompts(np.asarray(pool.table), EXAMPLES, NOISE, count, rng)

    least = fresh.error(known.minimum)
    found = [fresh.error(theory.fitted(*drawn(prompts), 1e-12)) - least for _ in range(fits)]
    first = [_stored._first_order(known, fresh, drawn(20_000)) / (prompts - 12 - 1) for _ in range(20)]
    error = np.hypot(np.std(found) / fits**0.5, np.std(first) / 20**0.5)
    assert abs(np.mean(found) - np.mean(first)) < 4 * error + 0.01 * np.mean(first)
    assert error < 0.1 * np.mean(first)
