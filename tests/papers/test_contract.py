"""The contract of every paper: bib entry, metadata, claims with their verdict at small size and another in wrong worlds."""

import re
from importlib import import_module

import jax
import pytest
from claim_cases import cases_of

from mesascope.papers import PAPERS, PRESETS, claims
from mesascope.records import canonical_json, cite, known_keys

ALL = claims()
OTHERS = tuple(
    paper for paper in PAPERS if paper != "zheng2024"
)  # its cases stand in test_claims.py and beside it
CASES = {id: case for paper in OTHERS for id, case in cases_of(paper).items()}
# worlds of one claim and claims of one paper follow each other: on one worker they share what was trained and compiled
WORLDS = {
    f"{id}-{name}": (id, world, verdict)
    for id, case in CASES.items()
    for name, world, verdict in (
        ("right", None, case.verdict),
        *((f"wrong-{number}", world, case.turned) for number, world in enumerate(case.worlds)),
    )
}


def _run(id):
    (claim,) = claims(id)
    return claim.check({**claim.settings["quick"], **CASES[id].smoke})


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.id)
def test_metadata_is_complete(claim):
    paper, _, name = claim.id.partition("/")
    assert paper in PAPERS and re.fullmatch(r"[a-z0-9.-]+", name)
    assert claim.statement.endswith(".") and len(claim.statement) > 40
    assert len(claim.tolerance_reason) > 5
    assert set(re.findall(r"[a-z]+20\d\d", claim.source)) & set(known_keys())
    assert set(claim.settings) == set(PRESETS)
    canonical_json(claim.settings)  # what goes into a record and a fingerprint


@pytest.mark.parametrize("paper", PAPERS)
def test_papers_have_an_entry_a_theory_and_claims_with_names_of_their_own(paper):
    assert paper in cite(paper)
    assert import_module(f"mesascope.theory.{paper}").__doc__
    ids = [claim.id for claim in claims(paper)]
    assert ids and len(set(ids)) == len(ids) and all(id.startswith(f"{paper}/") for id in ids)


@pytest.mark.parametrize("paper", OTHERS)
def test_every_claim_has_its_case(paper):
    assert set(cases_of(paper)) == {claim.id for claim in claims(paper)}


@pytest.mark.parametrize("id", CASES)
def test_the_small_case_keeps_the_thresholds(id):
    # sizes are integers and lists of them; with another threshold a wrong world would be tested against nothing that counts
    (claim,) = claims(id)
    numbers = {name for name, value in claim.settings["quick"].items() if isinstance(value, float)}
    assert not (numbers - {"rate"}) & set(CASES[id].smoke)  # a rate belongs to the training


@pytest.mark.parametrize(("id", "world", "verdict"), WORLDS.values(), ids=WORLDS)
def test_it_has_its_verdict_in_the_right_world_and_another_in_wrong_ones(id, world, verdict, monkeypatch):
    compiled = world is not None and CASES[id].traced  # compiled programs may hold what is replaced
    with monkeypatch.context() as patch:
        if world is not None:
            world(patch)
        if compiled:
            jax.clear_caches()
        finding = _run(id)
    if compiled:
        jax.clear_caches()
    assert finding.verdict == verdict, (finding.measured, finding.expected, finding.details)
    canonical_json({"measured": finding.measured, "expected": finding.expected, "details": finding.details})
