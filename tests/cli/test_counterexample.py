"""`mesascope counterexample`: a search, its file, and the check of it."""

import json

import pytest

from mesascope.cli._counterexample import CounterexampleCommand
from mesascope.dynamics.counterexamples import FAMILIES, PROPERTIES

SEARCH = ("limit-is-critical", "--laws", "independent", "--dims", "2", "--horizons", "3")


@pytest.mark.slow
def test_a_file_is_checked_without_the_search(run, tmp_path):
    file = tmp_path / "found.json"
    for _ in range(2):  # its own file it may write again
        found = run("counterexample", *SEARCH, "--out", str(file), "--json").json
    assert found["found"] == json.loads(file.read_text()) and found["tried"] >= 1
    checked = run("counterexample", "--check", str(file))
    assert checked.out.startswith("Counterexample to limit-is-critical")
    assert run("counterexample", "--check", str(file), "--json").json["found"] == found["found"]
    file.write_text(json.dumps({**found["found"], "quantity": "-1"}))
    assert "found.json: quantity: it is -" in run("counterexample", "--check", str(file)).refusal
    file.write_text(json.dumps({**found["found"], "statement": "All is well."}))
    assert (
        "found.json: statement: is not that of limit-is-critical"
        in run("counterexample", "--check", str(file)).refusal
    )
    file.write_text("{")
    assert "found.json: is not JSON" in run("counterexample", "--check", str(file)).refusal
    file.write_text("[]")
    assert "found.json: must be one object" in run("counterexample", "--check", str(file)).refusal


def test_a_name_that_occurs_twice_is_refused(run, tmp_path):
    file = tmp_path / "twice.json"
    file.write_text('{"property": "a", "property": "b"}')
    assert "property occurs twice" in run("counterexample", "--check", str(file)).refusal


def test_other_files_are_kept(run, tmp_path):
    file = tmp_path / "mine.json"
    for text in ('{"mine": 1}', "", "[]"):
        file.write_text(text)
        refused = run("counterexample", *SEARCH, "--out", str(file)).refusal
        assert "mine.json exists and is not a counterexample" in refused and file.read_text() == text


def test_help_names_every_property_and_family():
    assert all(name in CounterexampleCommand.__doc__ for name in (*PROPERTIES, *FAMILIES))


def test_nothing_found_is_said_and_no_failure(run):
    out = run("counterexample", "monotone-risk", "--rho", "t-1", "--starts", "1").out
    assert "none of these breaks the property; that is no proof of it" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either PROPERTY, or --check FILE"),
        (("limit-is-critcal",), "unknown property 'limit-is-critcal'; did you mean 'limit-is-critical'?"),
        ((*SEARCH[:2], "gaussian"), "unknown law 'gaussian'"),
        ((*SEARCH[:1], "--dims", "9"), "dims: must be at most 6, got 9"),
        ((*SEARCH[:1], "--out", "."), ". is a folder; name a file in it"),
        (("--check", "none.json"), "none.json: cannot be read"),
    ],
)
def test_refused(run, arguments, message):
    assert message in run("counterexample", *arguments).refusal
