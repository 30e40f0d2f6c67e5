"""`mesascope reproduce`, on an invented paper and on one claim of a real one."""

import dataclasses
import gc
import io
import signal
import sys
import time
import weakref
from pathlib import Path

import pytest
from rich.console import Console

import stored_records as stored
from mesascope.cli._interrupt import held_interrupts, lasting_interrupts
from mesascope.cli._output import print_headline
from mesascope.cli._verdicts import print_changes, print_verdicts
from mesascope.papers import Change, claims
from mesascope.records import RecordError, RunDirectory, fingerprint


def test_verdicts_figures_and_folder(run, invented, tmp_path):
    out = tmp_path / "results"
    ended = run("reproduce", "invented/true", "--out", out)
    assert ended.status == 0
    lines = ended.out.splitlines()
    assert lines[-1] == str(out / "quick")
    assert lines[-2].startswith("1 verified; ")
    assert "measured 1e-12   expected 0   tolerance 1e-08" in ended.out
    assert max(map(len, lines[:-1])) <= 80
    assert ended.err.split() == ["1/1", "verified", "invented/true", "(0.0", "s)"]
    assert {path.name for path in (out / "quick" / "figures" / "invented").iterdir()} == {
        "line.json",
        "line.pdf",
        "line.png",
    }


def test_a_narrow_terminal_cuts_nothing_off(monkeypatch):
    shown = Console(width=24, file=io.StringIO())
    monkeypatch.setattr("mesascope.cli._verdicts.results", lambda: shown)
    print_verdicts([stored.claim()], 1.0)
    print_changes([Change("zheng2024/theorem-4.1", "inconclusive", "verified")], "earlier")
    print_headline(shown, "converged", "bold", ": the gradient fell below the tolerance")
    text = shown.file.getvalue()
    assert "…" not in text and "zheng2024/theorem-4.1" in "".join(text.split())
    assert "converged: the gradient \nfell" in text


def test_a_list_of_nothing_is_said_to_be_none(monkeypatch):
    shown = Console(width=80, file=io.StringIO())
    monkeypatch.setattr("mesascope.cli._verdicts.results", lambda: shown)
    print_verdicts([stored.claim(measured={"other_losses": []})], 1.0)
    assert "measured other_losses: none " in shown.file.getvalue()


def test_json(run, invented, tmp_path):
    ended = run(
        "reproduce", "invented/true", "invented/false", "--preset", "paper", "--out", tmp_path, "--json"
    )
    assert ended.status == 1  # one is refuted
    found = ended.json
    assert [claim["verdict"] for claim in found["claims"]] == ["verified", "refuted"]
    assert found["claims"][1]["measured"] == [1, 2, 3, 4.5]
    assert {"id", "statement", "measured", "expected", "tolerance", "verdict", "seconds"} < set(
        found["claims"][0]
    )
    assert (found["preset"], found["folder"]) == ("paper", str(tmp_path / "paper"))
    assert [path.rpartition("/")[2] for path in found["figures"]] == ["line.pdf", "line.png"]


@pytest.mark.parametrize("meant", [(), ("--all",)])
def test_all_of_them(run, invented, tmp_path, meant):
    paper = sys.modules["mesascope.papers.invented"]
    paper.CLAIMS = paper.CLAIMS[:3]  # the fourth interrupts
    ended = run("reproduce", *meant, "--out", tmp_path, "--json")
    assert [claim["id"] for claim in ended.json["claims"]] == [claim.id for claim in paper.CLAIMS]


def test_all_and_some_exclude_each_other(run, invented):
    assert (
        "--all and 'invented/true' exclude each other" in run("reproduce", "invented/true", "--all").refusal
    )


def test_refuted_claims_in_the_table(run, invented, tmp_path):
    ended = run("reproduce", "invented/false", "--out", tmp_path)
    assert ended.status == 1
    assert "measured 1, …, 4.5 (4)   expected low: 0.1" in ended.out


def test_finished_claims_are_reused(run, invented, tmp_path):
    for expected in (1, 1):
        assert run("reproduce", "invented/true", "--out", tmp_path).status == 0
        assert invented.count("true") == expected
    assert "kept from before" in run("reproduce", "invented/true", "--out", tmp_path).err
    again = run("reproduce", "invented/true", "--out", tmp_path, "--rerun")
    assert invented.count("true") == 2
    assert "s; again: asked for)" in again.err


def test_verdicts_against_an_earlier_run(run, invented, tmp_path):
    both = ("reproduce", "invented/true", "invented/false", "--out", tmp_path / "then")
    assert run(*both).status == 1
    same = run(*both[:-1], tmp_path / "now", "--against", tmp_path / "then")
    assert same.status == 0  # one is refuted, as it was
    assert f"every verdict is that of {tmp_path / 'then'}" in same.out
    more = (
        "reproduce",
        "invented/true",
        "invented/broken",
        "--out",
        tmp_path / "now",
        "--against",
        tmp_path / "then",
    )
    changed = run(*more)
    assert changed.status == 1
    assert changed.out.splitlines()[-3].split() == ["invented/broken", "not", "there", "failed"]
    assert run(*more, "--json").json["changes"] == [
        {"id": "invented/broken", "then": "not there", "now": "failed"}
    ]
    assert (
        run("reproduce", "invented/true", "--out", tmp_path / "now", "--json").json["claims"][0]["again"]
        is None
    )


def test_the_whole_table_of_the_literature(run, tmp_path):
    """All claims, as they would be reused after a run of this very code: what is stored as docs/papers/records."""
    records = Path(__file__).parents[2] / "docs" / "papers" / "records"
    found, there = {claim.id: claim for claim in claims()}, RunDirectory.create(tmp_path / "quick")
    for record in RunDirectory(records / "quick").claims():
        mark = fingerprint(record.id, found[record.id].settings["quick"], "quick")
        origin = found[record.id].origin  # the oldest records were made before it was taken down
        there.write_claim(record.model_copy(update={"fingerprint": mark, "origin": origin}))
    ended = run("reproduce", "--all", "--out", tmp_path, "--against", records)
    assert ended.status == 0  # although some are refuted
    assert ended.err.count("(kept from before)") == len(found)
    told = {line.strip() for line in ended.out.splitlines() if "/" in line}
    suffix = {"paper": "", "review": " (review)", "ours": " (ours)"}
    assert all(
        any(line.endswith(f"{id}{suffix[claim.origin]}") for line in told) for id, claim in found.items()
    )
    assert max(map(len, ended.out.splitlines()[:-2])) <= 80
    assert run("reproduce", "--all", "--out", tmp_path, "--json").status == 1  # for them


def test_an_earlier_run_that_is_none(run, invented, tmp_path):
    told = run("reproduce", "invented", "--out", tmp_path / "now", "--against", tmp_path / "nowhere").refusal
    assert "nowhere' holds no records of preset 'quick'" in told
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
    assert run("reproduce", "--out", tmp_path).status == 130
    assert "false" not in invented and not list(tmp_path.rglob("quick/claims/*/*.json"))


def test_interrupted(run, invented, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    ended = run("reproduce", "invented/true", "invented/interrupted", "--out", tmp_path)
    assert (ended.status, ended.out) == (130, "")
    told = "mesascope reproduce: interrupted; finished claims are kept, and the same command resumes"
    assert ended.err.splitlines()[-1] == told
    # no claim was judged by what an interrupted computation left
    assert [path.name for path in (tmp_path / "quick" / "claims" / "invented").iterdir()] == ["true.json"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_claim_that_cannot_be_computed(run, invented, tmp_path):
    # no bad input, but a failed run; the others are checked all the same
    ended = run("reproduce", "invented/broken", "invented/true", "--out", tmp_path, "--json")
    assert ended.status == 1
    broken, true = ended.json["claims"]
    assert (broken["verdict"], broken["error"]) == ("inconclusive", "ValueError: a moment is missing")
    assert (true["verdict"], true["error"]) == ("verified", None)
    told = run("reproduce", "invented/broken", "--out", tmp_path).out
    assert "could not be checked: ValueError: a moment is missing" in told


def test_a_disk_that_fails_later_is_no_bad_input(run, invented, tmp_path, monkeypatch):
    def fail(folder):
        raise RecordError(f"cannot write {folder}: no space left on device; free space")

    monkeypatch.setattr("mesascope.report.render_run", fail)
    ended = run("reproduce", "invented/true", "--out", tmp_path, "--json")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.splitlines()[-1].startswith("mesascope reproduce: drawing figures: cannot write ")


def test_unwritable_folders(run, invented, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", "/proc/mesascope", "a\0b"):
        assert run("reproduce", "invented", "--out", out).refusal.startswith(
            "mesascope reproduce: output folder "
        )
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


def test_an_interrupt_in_a_finalizer_comes_again():
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


def test_a_held_interrupt_comes_at_the_end():
    reached = False
    with pytest.raises(KeyboardInterrupt), held_interrupts():
        signal.raise_signal(signal.SIGINT)
        reached = True
    assert reached
