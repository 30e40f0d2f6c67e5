"""`mesascope reproduce`, on an invented paper and on one claim of a real one."""

import dataclasses
import gc
import io
import re
import signal
import sys
import time
import weakref

import pytest
from rich.console import Console

import stored_records as stored
from mesascope.cli._interrupt import delayed_interrupts, lasting_interrupts
from mesascope.cli._outcomes import print_changes, print_outcomes
from mesascope.cli._output import print_headline
from mesascope.papers import Change, claims, shipped_run
from mesascope.records import SHIPPED, RecordError, RunDirectory, fingerprint


def test_outcomes_figures_and_folder(run, invented, tmp_path):
    out = tmp_path / "results"
    ended = run("reproduce", "invented/true", "--out", out)
    assert ended.status == 0
    lines = ended.out.splitlines()
    assert lines[-1] == str(out / "small")
    assert lines[-2].startswith("holds 1; ")
    assert "measured 1e-12   expected 0   tolerance 1e-08" in ended.out
    assert max(map(len, lines[:-1])) <= 80
    assert ended.err.split() == ["1/1", "holds", "invented/true", "(0.0", "s)"]
    figures = {path.name for path in (out / "small" / "figures" / "invented").iterdir()}
    assert figures == {"line.json", "line.pdf", "line.png"}


def test_a_narrow_terminal_cuts_nothing_off(monkeypatch):
    shown = Console(width=24, file=io.StringIO())
    monkeypatch.setattr("mesascope.cli._outcomes.results", lambda: shown)
    print_outcomes([stored.claim()], 1.0)
    print_changes([Change("zheng2024/theorem-4.1", "inconclusive", "verified")], "earlier")
    print_headline(shown, "converged", "bold", ": the gradient fell below the tolerance")
    text = shown.file.getvalue()
    assert "…" not in text and all(part in text for part in ("zheng2024/", "theorem-4", "exact"))
    assert "converged: the gradient \nfell" in text


@pytest.mark.parametrize(("width", "lines"), [(80, 2), (200, 1)])
def test_a_terminal_shows_each_claim_whole(run, monkeypatch, width, lines):
    """In one line, or its title in another where the terminal is narrow."""
    shown = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    monkeypatch.setattr("mesascope.cli._claims.results", lambda: shown)
    assert run("claims").status == 0
    printed = [line.rstrip() for line in shown.file.getvalue().splitlines()]
    assert max(map(len, printed)) <= width
    begins = [number for number, line in enumerate(printed) if re.match(r"\S+/\S+  ", line)]
    for claim, begin, end in zip(claims(), begins, (*begins[1:], len(printed)), strict=True):
        whole = " ".join(line.strip() for line in printed[begin:end])
        assert whole.startswith(claim.id) and claim.title in whole
    assert begins[1] - begins[0] == lines


def test_an_empty_list_is_printed_as_none(monkeypatch):
    shown = Console(width=80, file=io.StringIO())
    monkeypatch.setattr("mesascope.cli._outcomes.results", lambda: shown)
    print_outcomes([stored.claim(measured={"other_losses": []})], 1.0)
    assert "measured other_losses: none " in shown.file.getvalue()


def test_long_numbers_are_cut(monkeypatch):
    shown = Console(width=400, file=io.StringIO())
    monkeypatch.setattr("mesascope.cli._outcomes.results", lambda: shown)
    print_outcomes([stored.claim(measured={f"name {number}": 0.123456 for number in range(50)})], 1.0)
    (numbers,) = re.findall(r"measured (.*?)   expected", shown.file.getvalue())
    assert numbers.startswith("name 0: 0.1235, ") and numbers.endswith("…") and len(numbers) == 161


def test_json(run, invented, tmp_path):
    claims = ("invented/true", "invented/false")
    ended = run("reproduce", *claims, "--preset", "full", "--out", tmp_path, "--json")
    assert ended.status == 1  # one is refuted
    found = ended.json
    assert [claim["verdict"] for claim in found["claims"]] == ["verified", "refuted"]
    assert found["claims"][1]["measured"] == [1, 2, 3, 4.5]
    fields = {"id", "statement", "measured", "expected", "tolerance", "verdict", "seconds"}
    assert fields < set(found["claims"][0])
    assert (found["preset"], found["folder"]) == ("full", str(tmp_path / "full"))
    assert [path.rpartition("/")[2] for path in found["figures"]] == ["line.pdf", "line.png"]


@pytest.mark.parametrize("option", [(), ("--all",)])
def test_all_claims(run, invented, tmp_path, option):
    paper = sys.modules["mesascope.papers.invented"]
    paper.CLAIMS = paper.CLAIMS[:3]  # the fourth interrupts
    ended = run("reproduce", *option, "--out", tmp_path, "--json")
    assert [claim["id"] for claim in ended.json["claims"]] == [claim.id for claim in paper.CLAIMS]


def test_all_and_some_exclude_each_other(run, invented):
    refusal = run("reproduce", "invented/true", "--all").refusal
    assert "--all and 'invented/true' exclude each other" in refusal


def test_refuted_claims_in_the_table(run, invented, tmp_path):
    ended = run("reproduce", "invented/false", "--out", tmp_path)
    assert ended.status == 1
    assert "measured 1, …, 4.5 (4)   expected low: 0.1" in ended.out


@pytest.mark.slow
def test_finished_claims_are_reused(run, invented, tmp_path):
    for expected in (1, 1):
        assert run("reproduce", "invented/true", "--out", tmp_path).status == 0
        assert invented.count("true") == expected
    assert "(cached)" in run("reproduce", "invented/true", "--out", tmp_path).err
    again = run("reproduce", "invented/true", "--out", tmp_path, "--rerun")
    assert invented.count("true") == 2
    assert "s; again: asked for)" in again.err


@pytest.mark.slow
def test_outcomes_against_an_earlier_run(run, invented, tmp_path):
    command = ("reproduce", "invented/true", "invented/false", "--out")
    assert run(*command, tmp_path / "then").status == 1
    same = run(*command, tmp_path / "now", "--against", tmp_path / "then")
    assert same.status == 0  # one is refuted, as it was
    assert f"every outcome is the same as in {tmp_path / 'then'}" in same.out
    more = ("invented/broken", "--out", tmp_path / "now", "--against", tmp_path / "then")
    changed = run(*command[:2], *more)
    assert changed.status == 1
    assert changed.out.splitlines()[-3].split() == ["invented/broken", "not", "there", "failed"]
    assert run(*command[:2], *more, "--json").json["changes"] == [
        {"id": "invented/broken", "then": "not there", "now": "failed"}
    ]
    (claim,) = run(*command[:2], "--out", tmp_path / "now", "--json").json["claims"]
    assert claim["again"] is None


def test_damaged_records_of_an_earlier_run_are_told_and_hide_no_outcome(run, invented, tmp_path):
    command = ("reproduce", "invented/true", "invented/false", "--out")
    run(*command, tmp_path / "then")
    claims = tmp_path / "then" / "small" / "claims" / "invented"
    (claims / "true.json").write_text("{")
    with pytest.warns(UserWarning, match="a record of the earlier run is left out: .*true.json is torn"):
        changed = run(*command, tmp_path / "now", "--against", tmp_path / "then", "--json")
    assert changed.status == 1
    assert changed.json["changes"] == [{"id": "invented/true", "then": "not there", "now": "holds"}]


@pytest.mark.slow
def test_a_damaged_figure_of_another_claim_hides_no_outcome(run, invented, tmp_path):
    run("reproduce", "invented/true", "--out", tmp_path)
    figure = tmp_path / "small" / "figures" / "invented" / "line.json"
    figure.write_text("{")
    figure.with_suffix(".pdf").unlink()
    with pytest.warns(UserWarning, match="a figure is left out: .*line.json is torn"):
        ended = run("reproduce", "invented/false", "--out", tmp_path)
    assert ended.status == 1 and "invented/false" in ended.out and str(tmp_path) in ended.out


@pytest.mark.parametrize("option", [(), ("--rerun",)])
def test_a_record_of_a_newer_version_is_not_replaced(run, invented, tmp_path, option):
    run("reproduce", "invented/true", "--out", tmp_path)
    file = tmp_path / "small" / "claims" / "invented" / "true.json"
    file.write_text(file.read_text().replace("mesascope.claim/2", "mesascope.claim/3"))
    content, calls = file.read_bytes(), len(invented)
    refused = run("reproduce", "invented/true", "--out", tmp_path, *option)
    assert "newer version of mesascope; upgrade" in refused.refusal
    assert len(invented) == calls and file.read_bytes() == content


def test_a_damaged_record_of_the_package_hides_no_other(run, monkeypatch, tmp_path):
    import shutil

    shutil.copytree(SHIPPED, tmp_path / "shipped", ignore=shutil.ignore_patterns("figures", "data"))
    monkeypatch.setattr("mesascope.papers._earlier.SHIPPED", tmp_path / "shipped")
    for file in (tmp_path / "shipped").rglob("zheng2024/theorem-4.1.json"):
        file.write_text("{")
    ended = run("claims", "zheng2024", "--json")
    assert ended.status == 1 and "theorem-4.1.json is torn" in ended.err
    outcomes = {one["id"]: one["outcome"] for one in ended.json["claims"]}
    assert outcomes.pop("zheng2024/theorem-4.1") is None and len(outcomes) > 3
    assert all(outcomes.values())


@pytest.mark.slow
def test_the_whole_table_of_the_literature(run, tmp_path):
    """All claims, reused from the records of the package as if this very code had computed them."""
    found, there = {claim.id: claim for claim in claims()}, RunDirectory.create(tmp_path / "small")
    for record in shipped_run("small").claims():
        mark = fingerprint(record.id, found[record.id].settings["small"].as_table(), "small")
        there.write_claim(record.model_copy(update={"fingerprint": mark, "files": ()}))  # pictures stay there
    ended = run("reproduce", "--all", "--out", tmp_path, "--against", SHIPPED)
    assert ended.status == 0  # for any outcomes
    assert ended.err.count("(cached)") == len(found)
    printed = {word for line in ended.out.splitlines() for word in line.split() if "/" in word}
    assert set(found) <= printed
    assert max(map(len, ended.out.splitlines()[:-2])) <= 80
    contradicted = any(record.outcome == "contradicted" for record in there.claims())
    assert run("reproduce", "--all", "--out", tmp_path, "--json").status == contradicted


def test_an_earlier_run_that_does_not_exist(run, invented, tmp_path):
    message = run(
        "reproduce", "invented", "--out", tmp_path / "now", "--against", tmp_path / "nowhere"
    ).refusal
    assert "nowhere' holds no records of preset 'small'" in message
    assert not invented and not (tmp_path / "now").exists()


def test_an_interrupt_that_a_check_turned_into_an_error_still_ends_the_run(run, invented, tmp_path):
    def swallowed(settings):
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            raise RuntimeError("callback failed") from None

    paper = sys.modules["mesascope.papers.invented"]
    true, false = paper.CLAIMS[:2]
    paper.CLAIMS = (dataclasses.replace(true, check=swallowed), false)
    assert run("reproduce", "--workers", "1", "--out", tmp_path).status == 130
    assert "false" not in invented and not list(tmp_path.rglob("small/claims/*/*.json"))


def test_interrupted(run, invented, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    ended = run("reproduce", "invented/true", "invented/interrupted", "--out", tmp_path)
    assert (ended.status, ended.out) == (130, "")
    message = "mesascope reproduce: interrupted; finished claims are kept, and the same command resumes"
    assert ended.err.splitlines()[-1] == message
    # no claim was judged by what an interrupted computation left
    assert [path.name for path in (tmp_path / "small" / "claims" / "invented").iterdir()] == ["true.json"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_claim_that_cannot_be_computed(run, invented, tmp_path):
    # a failed run, not bad input; the other claims are checked
    ended = run("reproduce", "invented/broken", "invented/true", "--out", tmp_path, "--json")
    assert ended.status == 1
    broken, true = ended.json["claims"]
    assert (broken["verdict"], broken["error"]) == ("inconclusive", "ValueError: a moment is missing")
    assert (true["verdict"], true["error"]) == ("verified", None)
    message = run("reproduce", "invented/broken", "--out", tmp_path).out
    assert "could not be checked: ValueError: a moment is missing" in message


def test_a_disk_that_fails_later_is_not_bad_input(run, invented, tmp_path, monkeypatch):
    def fail(folder):
        raise RecordError(f"cannot write {folder}: no space left on device; free space")

    monkeypatch.setattr("mesascope.report.render_run", fail)
    ended = run("reproduce", "invented/true", "--out", tmp_path, "--json")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.splitlines()[-1].startswith("mesascope reproduce: drawing figures: cannot write ")


def test_unwritable_folders(run, invented, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", "/proc/mesascope", "a\0b"):
        refusal = run("reproduce", "invented", "--out", out).refusal
        assert refusal.startswith("mesascope reproduce: output folder ")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert not invented


def test_a_real_claim(run, tmp_path):
    ended = run("reproduce", "zheng2024/conservation", "--out", tmp_path, "--json")
    assert ended.status == 0
    (claim,) = ended.json["claims"]
    assert (claim["verdict"], claim["expected"]) == ("verified", 0)
    assert claim["measured"] <= claim["tolerance"]


class Token:
    pass


@pytest.mark.slow
def test_an_interrupt_in_a_finalizer_is_raised_again():
    token = Token()

    def interrupt():
        raise KeyboardInterrupt

    weakref.finalize(token, interrupt)
    with lasting_interrupts(), pytest.raises(KeyboardInterrupt):
        reference = weakref.ref(token, lambda _: interrupt())
        del token
        gc.collect()
        time.sleep(5)
    assert reference() is None


def test_a_delayed_interrupt_is_raised_at_the_end():
    reached = False
    with pytest.raises(KeyboardInterrupt), delayed_interrupts():
        signal.raise_signal(signal.SIGINT)
        reached = True
    assert reached
