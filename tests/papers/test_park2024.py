"""The claims on transformers trained on chains of a pool, judged with planted strategies, and how distances are measured."""

from dataclasses import replace

import numpy as np
import pytest
from claim_cases.park2024 import QUICK, STEPS, as_in_the_paper, planted

from mesascope.papers._claim import UnsettledError
from mesascope.papers.park2024 import CLAIMS, _data, _phases
from mesascope.theory import park2024 as theory

BY_NAME = {claim.id.partition("/")[2]: claim for claim in CLAIMS}


def settings_of(name, **others):
    return replace(BY_NAME[name].settings["small"], **{**QUICK, "seeds": 5, **others})


def judged(patch, name, world):
    world(patch)
    return BY_NAME[name].check(settings_of(name))


@pytest.mark.parametrize("name", ["unigrams-first", "diversity", "uni-inf-first", "mixture"])
def test_what_the_paper_says_is_met(monkeypatch, name):
    assert judged(monkeypatch, name, planted(as_in_the_paper)).decision == "met"


@pytest.mark.parametrize(
    ("name", "order", "decision"),
    [
        ("unigrams-first", ("uni-ret", "bi-ret"), "met"),
        ("unigrams-first", ("uni-ret",), "not met"),
        ("unigrams-first", ("bi-inf", "uni-inf"), "not met"),
        ("diversity", ("uni-inf", "bi-inf"), "not met"),
        ("uni-inf-first", ("uni-inf", "uni-ret", "bi-inf"), "not met"),
        ("uni-inf-first", ("uni-ret", "uni-inf", "bi-inf"), "met"),
    ],
)
def test_other_orders(monkeypatch, name, order, decision):
    assert judged(monkeypatch, name, planted(lambda tasks: order)).decision == decision


def test_what_is_left_decides_nothing_where_it_still_falls(monkeypatch):
    found = judged(monkeypatch, "mixture", planted(as_in_the_paper, left=0.3))
    assert found.decision == "not met"
    course = _phases.course

    def falling(settings, tasks, law):
        one = course(settings, tasks, law)
        return one._replace(left=one.left * np.linspace(3, 1, len(STEPS)))

    monkeypatch.setattr(_phases, "course", falling)
    assert BY_NAME["mixture"].check(settings_of("mixture")).decision == "undecided"


def test_the_step_is_the_last_one_at_which_unigrams_are_nearest(monkeypatch):
    found = judged(monkeypatch, "uni-inf-first", planted(as_in_the_paper))
    assert found.measured["step"] == STEPS[5]


def test_there_is_no_such_step_where_unigrams_are_never_nearest(monkeypatch):
    planted(lambda tasks: ("bi-ret",))(monkeypatch)
    with pytest.raises(UnsettledError, match="5 of 5 models are never nearest to a unigram strategy"):
        BY_NAME["uni-inf-first"].check(settings_of("uni-inf-first"))


def test_a_smallest_pool_that_begins_with_bigrams_is_a_difference(monkeypatch):
    def order(tasks):
        return ("bi-ret",) if tasks == 2 else as_in_the_paper(tasks)

    found = judged(monkeypatch, "unigrams-first", planted(order))
    assert found.decision == "met" and "K = 2, models are nearest to a bigram strategy" in found.difference
    assert not judged(monkeypatch, "unigrams-first", planted(as_in_the_paper)).difference


@pytest.mark.slow
@pytest.mark.parametrize("weights", [[1, 0, 0, 0], [0.2, 0.5, 0, 0.3], [0.25, 0.25, 0.25, 0.25]])
def test_the_weights_of_a_mixture_are_found(monkeypatch, weights):
    settings = _data.Tested.of(settings_of("mixture"))
    chains = _data.pool(settings, 4).table

    def predicted(model, sequences):
        answers = [theory.probabilities(name, sequences[:, :-1], chains)[:, 1:] for name in theory.STRATEGIES]
        return sum(weight * one for weight, one in zip(weights, answers, strict=True))

    monkeypatch.setattr(_data, "predicted", predicted)
    monkeypatch.setattr(_data, "trained", lambda *_: {0: [None], 10: [None, None][:1]})
    for law in ("pool", "new"):
        found = _data.course.__wrapped__(settings, 4, law)
        assert found.weights == pytest.approx(np.array([[weights] * 2]), abs=1e-4)
        assert found.left == pytest.approx(np.zeros((1, 2)), abs=1e-7)
        if 1 in weights:
            assert found.distances[0, 0, 0] == pytest.approx(0, abs=1e-12)


def test_weights_are_convex_and_distances_relative(monkeypatch):
    """The uniform prediction has no size of its own: models are measured by how far they are from it."""
    answers = [np.array([[[0.9, 0.1]]]), np.array([[[0.6, 0.4]]])]
    found = _data._compared(np.array([[[0.95, 0.05]]]), answers)
    near, far, one, other, left = found
    assert [one, other] == pytest.approx([1, 0], abs=1e-4)
    assert near == pytest.approx((0.05 / 0.45) ** 2)
    assert left == pytest.approx(near, rel=1e-3) and far > near


@pytest.mark.slow
def test_models_are_asked_for_the_third_symbol_and_later_ones():
    settings = _data.Tested.of(settings_of("mixture", steps=2))
    model = _data.trained.__wrapped__(replace(settings, seeds=1), 4)[2][0]
    sequences = np.array([[0, 1, 2, 0, 1, 2]])
    found = _data.predicted(model, sequences)
    assert found.shape == (1, 4, settings.symbols)
    logits = np.asarray(model(sequences[:, :2]), float)
    assert found[:, 0] == pytest.approx(np.exp(logits) / np.exp(logits).sum(), rel=1e-5)
