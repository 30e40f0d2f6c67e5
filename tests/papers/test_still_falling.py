"""Trainings that had not come to rest excuse a loss that is too high, and nothing else."""

import numpy as np
import pytest

from mesascope.papers._still_falling import fall, halves, loss_between, unless_falling

REST, FALLING = 0.09, 0.11


def test_the_fall_is_the_share_of_the_mean_loss_that_the_second_half_took_off():
    assert fall([2.0, 4.0], [1.5, 3.0]) == pytest.approx(0.25)
    assert fall([1.0, 1.0], [1.2, 1.0]) == pytest.approx(-0.1)
    assert halves(601) == [300, 601]


def test_only_refutations_are_excused_and_only_by_more_than_a_tenth():
    for verdict in ("verified", "inconclusive"):
        assert unless_falling(verdict, FALLING) == verdict
    assert unless_falling("refuted", FALLING) == "inconclusive"
    assert unless_falling("refuted", REST) == unless_falling("refuted", np.nan) == "refuted"


@pytest.mark.parametrize(
    ("interval", "share", "verdict"),
    [
        ([0.95, 1.05], FALLING, "verified"),
        ([1.2, 1.3], REST, "refuted"),
        ([1.2, 1.3], FALLING, "inconclusive"),
        ([1.05, 1.2], REST, "inconclusive"),
        ([0.7, 0.8], REST, "refuted"),
        ([0.7, 0.8], FALLING, "refuted"),  # it falls further away
        ([np.nan, np.nan], FALLING, "refuted"),
    ],
)
def test_a_loss_that_is_too_high_and_falls_decides_nothing(interval, share, verdict):
    assert loss_between(interval, 0.9, 1.1, share) == verdict
