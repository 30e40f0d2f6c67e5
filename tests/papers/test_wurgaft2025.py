"""The claims on transformers trained on urns of a pool, judged with planted mixtures, and how weights are measured."""

from dataclasses import replace

import numpy as np
import pytest
from claim_cases.wurgaft2025 import QUICK, by_odds, half_at, scattered

from mesascope.papers._claim import UnsettledError
from mesascope.papers.wurgaft2025 import CLAIMS, _data, _odds
from mesascope.theory import wurgaft2025 as theory

BY_NAME = {claim.id.partition("/")[2]: claim for claim in CLAIMS}


def settings_of(name, **others):
    return replace(BY_NAME[name].settings["small"], **{**QUICK, "seeds": 5, **others})


def judged(patch, name, world):
    world(patch)
    return BY_NAME[name].check(settings_of(name))


@pytest.mark.parametrize(
    ("name", "world", "decision"),
    [
        ("weights", by_odds(), "met"),
        ("odds", by_odds(), "met"),
        ("left-out", by_odds(), "met"),
        ("left-out", by_odds(constant=True), "not met"),
        ("constant-complexity", by_odds(constant=True), "met"),
        ("constant-complexity", by_odds(), "not met"),
        ("superlinear", half_at(1.2, 1.0), "met"),
        ("superlinear", half_at(0.8, 1.0), "not met"),
    ],
)
def test_planted_mixtures_decide(monkeypatch, name, world, decision):
    assert judged(monkeypatch, name, world).decision == decision


@pytest.mark.parametrize("name", ["odds", "left-out", "constant-complexity"])
def test_searches_that_end_where_they_start_decide_nothing(monkeypatch, name):
    by_odds()(monkeypatch)
    scattered(monkeypatch)
    with pytest.raises(UnsettledError, match="1 of 8 searches"):
        BY_NAME[name].check(settings_of(name))


def test_the_exponents_of_planted_odds_are_found(monkeypatch):
    found = judged(monkeypatch, "odds", by_odds(0.55, 0.25, 5.0, noise=1e-4))
    assert [found.measured[name] for name in ("alpha", "beta", "gamma")] == pytest.approx(
        [0.55, 0.25, 5.0], rel=0.02
    )


def test_times_lie_between_the_checkpoints(monkeypatch):
    """Half of the weight after K^1.5 steps: 64 for 16, 512 for 64."""
    found = judged(monkeypatch, "superlinear", half_at(1.5, 1.0))
    assert found.measured["power"] == pytest.approx(1.5, abs=0.05)
    assert found.measured["steps, K = 16"] == pytest.approx(64, rel=0.1)


@pytest.mark.parametrize(
    ("weights", "time", "reached"),
    [
        ([0.6, 0.6, 0.7], 1.0, True),
        ([0.2, 0.6, 0.4], 100.0, False),
        ([0.2, 0.4, 0.6], 10**1.5, True),
        ([0.9, 0.4, 0.6], 10**1.5, True),
    ],
)
def test_the_time_of_half_of_the_weight(weights, time, reached):
    from mesascope.papers.wurgaft2025._transition import _time

    one = _data.Course(np.array([1, 10, 100]), np.array([weights]), None, 1.0, 1.0, None)
    found = _time(one, 0, 0)
    assert found == (pytest.approx(time), reached)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, 1.2])
def test_the_weight_of_a_mixture_is_found(monkeypatch, weight):
    settings = _data.Tested.of(settings_of("odds"))
    urns = _data.pool(settings, 4)

    def predicted(model, sequences):
        counts = np.cumsum(np.eye(settings.symbols)[sequences], 1)[:, 1:-1]
        return weight * theory.memorizing(urns.table, counts) + (1 - weight) * theory.generalizing(counts)

    monkeypatch.setattr(_data, "predicted", predicted)
    monkeypatch.setattr(_data, "trained", lambda *_: {0: [None], 10: [None]})
    found = _data.course.__wrapped__(settings, 4)
    assert found.weights == pytest.approx(np.full((1, 2), weight))
    assert found.left == pytest.approx(np.zeros((1, 2)), abs=1e-12)


@pytest.mark.slow
def test_models_are_asked_for_the_third_symbol_and_later_ones():
    settings = _data.Tested.of(settings_of("odds", steps=2))
    model = _data.trained.__wrapped__(replace(settings, seeds=1), 4)[2][0]
    sequences = np.array([[0, 1, 2, 0, 1, 2]])
    found = _data.predicted(model, sequences)
    assert found.shape == (1, 4, settings.symbols)
    assert found.sum(-1) == pytest.approx(np.ones((1, 4)), abs=1e-6)
    logits = np.asarray(model(sequences[:, :2]), float)
    assert found[:, 0] == pytest.approx(np.exp(logits) / np.exp(logits).sum(), rel=1e-5)


def test_counted_checkpoints_begin_where_a_mixture_has_come_near():
    left = np.array([[5.0, 3.0, 1.1, 0.9, 0.1], [5.0, 0.5, 0.4, 0.3, 0.1]])
    places = [_data._near(one) for one in left]
    assert places == [3, 1]
    rest = {"steps": None, "weights": None, "left": None, "apart": 1.0, "loss_gap": 1.0}
    courses = [_data.Course(**rest, counted=np.array(one)) for one in ([3, 1], [2, 4])]
    assert _data.first_counted(courses).tolist() == [3, 4]
    assert _odds._FITTED == 0.8
