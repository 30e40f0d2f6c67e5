"""Decisions of the claims of raventos2023 where models are planted: what they say is found if it is so, and only then."""

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import raventos2023 as cases

from mesascope.papers import claims
from mesascope.papers.raventos2023 import _pools


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "world", "decision"),
    [
        ("few-tasks", cases.memorizing, "met"),
        ("few-tasks", cases.generalizing, "not met"),
        ("many-tasks", cases.generalizing, "met"),
        ("many-tasks", cases.memorizing, "not met"),
        ("crossing", cases.passing, "met"),
        ("crossing", cases.memorizing, "not met"),
        ("crossing", cases.generalizing, "not met"),
        ("learning-curves", cases.as_in_the_paper, "met"),
        ("learning-curves", cases.against_the_paper, "not met"),
    ],
)
def test_planted_models_decide(name, world, decision, monkeypatch):
    (claim,) = claims(f"raventos2023/{name}")
    world(monkeypatch)
    finding = claim.check(replace(claim.settings["small"], prompts=500, sizes=(8, 32)))
    assert finding.decision == decision, finding.details


@pytest.mark.slow
def test_where_no_seed_has_a_crossing_none_is_recorded(monkeypatch):
    (claim,) = claims("raventos2023/crossing")
    cases.memorizing(monkeypatch)
    finding = claim.check(replace(claim.settings["small"], prompts=500, sizes=(8, 32)))
    assert finding.measured["crossing"] is None
    assert finding.details["each_seed"] == [None] * 5
    assert finding.details["seeds_with_a_crossing"] == 0
    (why,) = finding.details["why_others_have_none"]
    assert why.startswith("second is above first at the largest size, 32")


@pytest.mark.parametrize(("law", "decision"), [("new", "undecided"), ("pool", "not met")])
def test_each_law_of_tasks_is_judged_by_the_fall_of_its_own_distance(law, decision, monkeypatch):
    (claim,) = claims("raventos2023/few-tasks")
    near = {"pool": 0.01, "new": 0.5}
    found = {
        name: {"dmmse": share * np.arange(1, 6), "ridge": np.arange(1, 6)} for name, share in near.items()
    }
    monkeypatch.setattr(_pools, "measured", lambda *_: found)
    monkeypatch.setattr(_pools, "fall_of", lambda _settings, _tasks, which, _name: 0.5 * (which == law))
    finding = claim.check(claim.settings["small"])
    assert finding.parts == {"on tasks of the pool": "met", "on new tasks": decision}


@pytest.mark.parametrize(
    ("tried", "fell", "told"),
    [
        (0, 0.05, ""),
        (10, 0.05, "This is one of about 10 settings that were tried."),
        (0, 0.487, "The distance from ridge still fell by 49 % in the second half of the training."),
        (
            10,
            0.487,
            "This is one of about 10 settings that were tried, and the distance from ridge still fell by 49 %",
        ),
    ],
)
def test_settings_tried_and_a_distance_that_fell_are_told_each_for_itself(tried, fell, told, monkeypatch):
    (claim,) = claims("raventos2023/many-tasks")
    cases.generalizing(monkeypatch)
    monkeypatch.setattr(_pools, "fall_of", lambda *_: fell)
    difference = claim.check(replace(claim.settings["small"], prompts=200, tried=tried)).difference
    assert difference.startswith(told) and bool(difference) == bool(told)
