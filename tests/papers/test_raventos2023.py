"""Decisions of the claims of raventos2023 where models are planted: what they say is found if it is so, and only then."""

from dataclasses import replace

import pytest
from claim_cases import raventos2023 as cases

from mesascope.papers import claims


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
