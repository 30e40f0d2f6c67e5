"""The contract of every paper: bib entry, words, differences, claims with their decision at small size and in wrong worlds."""

import math
import re
import sys
from dataclasses import replace
from importlib import import_module
from typing import get_args

import jax
import pytest
from claim_cases import cases_of

from mesascope.papers import (
    PAPERS,
    PRESETS,
    Headline,
    _intervals,
    _minimized,
    claims,
    differences,
    headlines,
    shipped_run,
)
from mesascope.papers._claim import UnsettledError, all_of
from mesascope.records import Evidence, Origin, canonical_json, cite, known_keys, shipped_pictures

ALL = {claim.id: claim for claim in claims()}
CASES = {id: case for paper in PAPERS for id, case in cases_of(paper).items()}

# Settings that a small case may replace: how much is drawn, trained and solved, and for which of the cases that are named.
SIZES = """
    asked batch batches cases chains chosen_on compared conditions context_lengths contexts dim dims drawn eigenvalues epochs
    examples features fewer fractions fresh graphs groups heads horizon horizons inputs laws layers
    learners lengths longest loops matrices most_iterations mus nodes per_decade positions prompts ranks rate recorded
    regularizations replicas samples scales schedules seed seeds sequences sets shares short sizes spectra starts
    starts_per_scale states step_sizes steps tasks training_prompts tried tuning_steps width widths
"""
# What is not whole in the others: data, starts, trainings and how far solvers go. All that is left are thresholds.
DATA = """
    alpha curvature decay drifts floor floors gaps half_width highest kappa largest_descended largest_noise largest_noises
    largest_slope learning_rate limit lowest noise probabilities regularization rest sampled scale start step_size time
"""


# Differences with which the setting is still the paper's.
SAME_SETTING = {"seeds", "implementation"}

# What a paper prints is no threshold where it refutes: nothing is near a number that is none.
PRINTED = {"printed", "table"}


def _thresholds(id):
    """What a claim is judged by: its settings with numbers that are not whole, but for sizes and data."""
    settings = ALL[id].settings["small"].as_table()
    return sorted(name for name in set(settings) - {*SIZES.split(), *DATA.split()} if _parts(settings[name]))


def _parts(value):
    """How many numbers that are not whole it holds."""
    if isinstance(value, dict | list | tuple):
        return sum(map(_parts, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float)


def _blank(value):
    """The same with NaN for each of them: nothing is within it, above it or below it."""
    if isinstance(value, dict):
        return {name: _blank(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_blank(one) for one in value]
    return math.nan if isinstance(value, float) else value


def _tries(id, case):
    """Name, wrong world, threshold that is taken away, and the decisions that there may be."""
    yield "right", None, (), {case.decision}
    names = _thresholds(id)
    if case.decision == "met":
        for name in names:
            yield f"without-{name}", None, (name,), {"not met", "undecided"}
    elif set(names) - PRINTED:
        # other parts may refute without one of them; without all of them nothing does
        yield "without-thresholds", None, tuple(set(names) - PRINTED), {"undecided"}
    for number, world in enumerate(case.worlds):
        yield f"wrong-{number}", world, (), {case.turned}
    if case.stuck is not None:  # another decision than in the right world, or the check gives up
        yield "stuck", case.stuck, (), {"not met", "undecided"} - {case.decision} | {"given up"}


# those of one claim and claims of one paper follow each other: on one worker they share what was trained and compiled
TRIES = {f"{id}-{name}": (id, *what) for id, case in CASES.items() for name, *what in _tries(id, case)}
MEASURED = {
    id for id, claim in ALL.items() if claim.evidence_of("small").startswith("measured")
}  # they train
RECORDED = {record.id: record.seconds for record in shipped_run("small").claims()}


def _takes_long(id):
    """Whether a claim trains, has no record yet, or took more than a second when its record was made."""
    return id in MEASURED or RECORDED.get(id, math.inf) > 1


def _run(id, blanks):
    settings = replace(ALL[id].settings["small"], **CASES[id].smoke)
    return ALL[id].check(replace(settings, **{name: _blank(getattr(settings, name)) for name in blanks}))


@pytest.mark.parametrize("claim", ALL.values(), ids=ALL)
def test_its_words_are_complete_and_short(claim):
    paper, _, name = claim.id.partition("/")
    assert paper in PAPERS and re.fullmatch(r"[a-z0-9.-]+", name)
    assert 2 <= len(claim.title.split()) <= 12 and not claim.title.endswith(".")
    assert len(claim.statement.split()) <= 35 and claim.statement.endswith(".") and len(claim.statement) > 40
    assert len(claim.criterion) > 5
    assert set(re.findall(r"[a-z]+20\d\d", claim.source)) & set(known_keys())
    assert claim.origin in get_args(Origin)
    assert claim.origin != "paper" or "second-hand" not in claim.source
    assert {claim.evidence_of(preset) for preset in PRESETS} <= set(get_args(Evidence))
    assert set(claim.settings) == set(PRESETS)
    canonical_json(
        [settings.as_table() for settings in claim.settings.values()]
    )  # what goes into a record and a fingerprint


@pytest.mark.parametrize("claim", ALL.values(), ids=ALL)
def test_what_its_full_preset_costs_is_said_unless_its_record_ships(claim):
    there = (shipped_run("full").path / "claims" / f"{claim.id}.json").exists()
    assert claim.one_size or claim.cost or there
    assert claim.one_size or re.fullmatch(r"(about \d+ (min|h|days))?", claim.cost)


# Without an interval: every one of their seeds has to meet the criterion.
WITHOUT_INTERVALS = {"ahn2023/theorem-3", "ahn2023/theorem-4", "edelman2024/saddle", "zhang2025/in-weights"}


@pytest.mark.parametrize("claim", ALL.values(), ids=ALL)
def test_it_has_seeds_enough_for_an_interval(claim):
    few = any(getattr(one, "seeds", _intervals.FEWEST) < _intervals.FEWEST for one in claim.settings.values())
    assert few == (claim.id in WITHOUT_INTERVALS)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("claim", ALL.values(), ids=ALL)
def test_its_evidence_is_what_the_table_of_differences_allows(claim, preset):
    rows = [one for one in differences(claim.id.partition("/")[0]) if one.concerns(claim, preset)]
    departs = {one.what for one in rows if one.departure != "same"} - SAME_SETTING
    another = any(one.what in {"model", "data"} and one.departure == "other" for one in rows)
    evidence = claim.evidence_of(preset)
    if evidence == "measured at the paper's setting":
        assert not departs
    elif evidence == "measured, reduced":
        assert departs
        assert not another
    elif evidence == "measured, another model":
        assert another


@pytest.mark.parametrize("paper", PAPERS)
def test_differences_name_claims_that_there_are(paper):
    names = {claim.id.partition("/")[2] for claim in claims(paper)}
    rows = differences(paper)
    assert {"model", "data"} <= {one.what for one in rows}
    for one in rows:
        assert set(one.claims) <= names and one.paper and one.here


@pytest.mark.parametrize("paper", PAPERS)
def test_what_its_abstract_announces_is_checked_or_said_to_be_left_out(paper):
    names = {claim.id.partition("/")[2] for claim in claims(paper)}
    found = headlines(paper)
    assert len(found) >= 3 and any(one.claims for one in found)
    for one in found:
        assert set(one.claims) <= names
        assert all(text.endswith(".") and len(text.split()) <= 25 for text in (one.says, one.rest) if text)


def test_a_headline_without_a_claim_says_why():
    with pytest.raises(ValueError, match="say why none does"):
        Headline("Everything holds.")


@pytest.mark.parametrize("paper", PAPERS)
def test_papers_have_an_entry_a_theory_and_claims_with_names_of_their_own(paper):
    assert paper in cite(paper)
    assert import_module(f"mesascope.theory.{paper}").__doc__
    ids = [claim.id for claim in claims(paper)]
    assert ids and len(set(ids)) == len(ids) and all(id.startswith(f"{paper}/") for id in ids)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_has_its_case(paper):
    assert set(cases_of(paper)) == {claim.id for claim in claims(paper)}


@pytest.mark.parametrize("id", CASES)
def test_the_small_case_keeps_what_the_claim_is_judged_by(id):
    # with another criterion a wrong world would be tested against nothing that counts
    settings, smoke = ALL[id].settings["small"].as_table(), CASES[id].smoke
    assert set(smoke) <= set(SIZES.split())
    assert set(smoke.get("learners", [])) <= set(settings.get("learners", []))


def _counted(patch):
    """A list that grows with every search for an optimum."""
    found = []

    def count(search):
        def counted(*args, **settings):
            found.append(args)
            return search(*args, **settings)

        return counted

    for search in (_minimized.best_of, _minimized.bracketed, _minimized.inside):
        for name, module in list(sys.modules.items()):
            if name.startswith("mesascope.papers") and getattr(module, search.__name__, None) is search:
                patch.setattr(module, search.__name__, count(search))
    return found


@pytest.mark.parametrize(
    ("id", "world", "blanks", "decisions"),
    [
        pytest.param(*what, id=name, marks=[pytest.mark.slow] * _takes_long(what[0]))
        for name, what in TRIES.items()
    ],
)
def test_it_has_its_decision_and_another_in_wrong_worlds_and_without_a_threshold(
    id, world, blanks, decisions, monkeypatch
):
    monkeypatch.setattr(_intervals, "FEWEST", 2)  # few seeds: sensitivity is tested here, not the claim
    compiled = world is not None and CASES[id].traced  # compiled programs may hold what is replaced
    with monkeypatch.context() as patch:
        if world is not None:
            world(patch)
        if compiled:
            jax.clear_caches()
        searches = _counted(patch)
        try:
            finding = _run(id, blanks)
        except UnsettledError:
            if not blanks:
                assert decisions & {"undecided", "given up"}
            return  # nothing comes to its end: it counts
        except ValueError as error:
            if blanks and re.search(r"\bfinite\b.*\bnan\b", str(error)):
                return  # formulas and figures refuse the number itself
            raise
    if compiled:
        jax.clear_caches()
    assert finding.decision in decisions, (finding.measured, finding.expected, finding.details)
    if finding.parts:
        assert finding.decision == all_of(*finding.parts.values())
    if searches:
        assert CASES[id].stuck is not None, (
            "it compares with a searched optimum: test it where the search gets stuck"
        )
    if not blanks:
        # pictures that come with the package are of figures that the check draws; some are named by the number of layers
        if world is None and "layers" not in CASES[id].smoke:
            assert {picture.stem for picture in shipped_pictures(id)} <= set(finding.figures)
        canonical_json(
            {"measured": finding.measured, "expected": finding.expected, "details": finding.details}
        )
