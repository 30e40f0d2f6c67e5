"""What the page of claims shows of the folders that it was given."""

from pathlib import Path

import pytest

import stored_records as stored
from mesascope.lab._shelf import read_store, shelve
from mesascope.records import NO_FINGERPRINT

CLAIM = {
    "id": "zheng2024/theorem-4.1",
    "title": "t",
    "insight": "",
    "statement": "s",
    "source": "zheng2024",
    "origin": "paper",
    "evidence": "exact",
    "criterion": "c",
    "setting": {},
}
OTHER = {**CLAIM, "id": "zheng2024/theorem-4.2"}


def at(second, **changes):
    created = stored.FROM.model_copy(update={"created": f"2026-01-01T00:00:{second:02}+00:00"})
    return stored.claim(provenance=created, **changes)


def test_the_newest_check_counts_wherever_it_lies(tmp_path):
    stored.run_directory(tmp_path / "results" / "zheng2024" / "small", at(2, measured=2.0))
    stored.run_directory(
        tmp_path / "own" / "small", at(1, measured=1.0), figures={"f": stored.curves_figure()}
    )
    stored.run_directory(tmp_path / "paper", at(0, preset="full", measured=0.0))
    failed = at(9, decision="undecided", fingerprint=NO_FINGERPRINT, preset="full")
    stored.run_directory(tmp_path / "paper" / "failed", failed)
    folders = [tmp_path / "results", tmp_path / "paper"]
    shelf = shelve([CLAIM, OTHER], folders, tmp_path / "own")
    claim, other = shelf.claims
    assert [check.record.measured for check in claim.checks] == [2.0, 0.0]  # one of each preset
    assert (claim.outcome, other.outcome) == ("holds", "not checked")
    assert (shelf.problems, claim.figures()) == ((), ())
    # the same second: what the lab itself has checked is the newer one
    stored.run_directory(tmp_path / "own" / "small", at(2), figures={"f": stored.curves_figure()})
    ((name, _),) = shelve([CLAIM], folders, tmp_path / "own").claims[0].figures()
    assert name == "f"


def test_a_check_that_raised_is_reported_where_nothing_better_is_known(tmp_path):
    failed = stored.claim(decision="undecided", fingerprint=NO_FINGERPRINT)
    stored.run_directory(tmp_path / "failed", failed)
    (claim,) = shelve([CLAIM], [], tmp_path).claims
    assert claim.record.failed and claim.outcome == "undecided"


def test_folders_that_cannot_be_read_are_reported_and_the_rest_is_shown(tmp_path):
    stored.run_directory(tmp_path / "good", stored.claim())
    (tmp_path / "good" / "claims" / "zheng2024" / "torn.json").write_text("{")
    (tmp_path / "good" / "claims" / "zheng2024" / "Not a name.json").write_text("{}")
    folders = [tmp_path / "gone", Path("x" * 300), tmp_path / "good"]
    shelf = shelve([CLAIM], folders, tmp_path / "none yet")
    assert shelf.claims[0].outcome == "holds"
    text = "\n".join(shelf.problems)
    assert len(shelf.problems) == 4 and "none yet" not in text
    for part in ("gone no longer exists", "cannot be read: File name too long", "torn", "Not a name"):
        assert part in text


@pytest.mark.parametrize("content", [None, "{"])
def test_a_store_that_cannot_be_read_is_reported(tmp_path, content):
    folder = stored.store(tmp_path / "runs")
    assert shelve([], [folder], tmp_path / "own").stores == (str(folder),)
    material, problems = read_store(str(folder))
    assert (len(material.of("study")), len(material.of("run")), problems) == (1, 1, ())
    if content is None:
        (folder / "store.json").unlink()
    else:
        (folder / "store.json").write_text(content)
    material, (problem,) = read_store(str(folder))
    assert not material.of("study") and str(folder) in problem
