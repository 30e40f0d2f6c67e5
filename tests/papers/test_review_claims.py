"""Claims on depth and softmax: medians and their intervals, and trainings that are too short or diverge."""

from dataclasses import replace

import numpy as np
import pytest

from mesascope.papers import claims
from mesascope.papers._claim import UnsettledError
from mesascope.papers.zheng2024 import _depth

TRAINED = {"dim": 2, "horizon": 6, "batch": 8, "steps": 2, "seeds": 2, "sequences": 400}


def find(name, **changed):
    (claim,) = claims(f"zheng2024/{name}")
    return claim, replace(claim.settings["small"], **changed)


def test_intervals_that_overlap_decide_nothing():
    before = [[1.0, 2.0], [1.1, 2.1]]
    assert _depth._falls(before, [[0.5, 0.9], [0.6, 0.8]]) == "met"
    assert _depth._falls(before, [[0.5, 0.9], [0.6, 1.05]]) == "undecided"
    assert _depth._falls(before, [[0.5, 0.9], [2.2, 3.0]]) == "not met"


@pytest.mark.slow
def test_too_little_training_refutes():
    claim, settings = find("softmax", **TRAINED, width=8, heads=2)
    finding = claim.check(replace(settings, fraction=0.01, steps=101))
    assert finding.decision == "not met"
    assert len(finding.measured["mean_error"]) == 2


@pytest.mark.slow
def test_a_run_that_diverges_is_no_refutation():
    claim, settings = find("several-layers", **{**TRAINED, "steps": 101, "rate": 1e30})
    with pytest.raises(UnsettledError, match="diverged"):
        claim.check(settings)


def test_the_interval_of_the_median_covers_it():
    rng = np.random.default_rng(0)
    repeats = 2000
    covered = 0
    for _ in range(repeats):
        center, (low, high) = _depth._median(np.sort(rng.standard_cauchy(401)))
        assert low <= center <= high
        covered += low <= 0 <= high
    # at least 95 %, the ends being rounded outwards; five standard errors of a proportion are 2.5 %
    assert 0.925 < covered / repeats < 0.99


def test_the_share_of_the_worst_hundredth():
    errors = np.sort([*np.ones(990), *np.full(10, 99.0)])
    share, (low, high) = _depth._worst_share(errors)
    assert share == pytest.approx(990 / 1980) and 0.2 < low < share <= high
