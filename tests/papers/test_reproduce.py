"""Running claims: records, reuse, interruption, failure."""

import os
import signal
import subprocess
import sys
import time

import pytest

from mesascope.papers import Claim, Finding, reproduce
from mesascope.papers import _registry as registry
from mesascope.papers import _reproduce as module
from mesascope.records import Figure, Panel, Rule, RunDirectory


def _claim(name, check, settings=None):
    settings = settings or {"seed": 7}
    return Claim(
        id=f"zheng2024/{name}",
        statement="A statement for the machinery.",
        source="zheng2024, test",
        settings={"quick": settings, "paper": settings},
        check=check,
        tolerance_reason="none is needed",
    )


@pytest.fixture
def claims_are(monkeypatch):
    return lambda *found: monkeypatch.setattr(module, "claims", lambda *selection: found)


def _fine(settings):
    return Finding(1.0, 1.0, 0.1, "verified", {"given": settings["seed"]})


def test_a_record_holds_what_was_asked(claims_are, tmp_path):
    claims_are(_claim("one", _fine))
    events = []
    result = reproduce("zheng2024", out=tmp_path / "run", watch=lambda event: events.append(event.kind))
    (record,) = result.records
    assert events == ["start", "done"]
    assert record.verdict == "verified" and record.seed == 7 and record.preset == "quick"
    assert record.spec == {"seed": 7} and record.details == {"given": 7, "tolerance_reason": "none is needed"}
    assert record.provenance.packages["jax"] and record.seconds >= 0
    assert RunDirectory(result.folder).read_claim("zheng2024/one") == record


def test_finished_claims_are_reused_until_something_changes(claims_are, tmp_path):
    runs = []

    def check(settings):
        runs.append(settings)
        return _fine(settings)

    claims_are(_claim("one", check))
    for _ in range(2):
        reproduce(out=tmp_path)
    assert len(runs) == 1
    reproduce(out=tmp_path, rerun=True)
    assert len(runs) == 2
    claims_are(_claim("one", check, {"seed": 8}))
    reproduce(out=tmp_path)
    assert len(runs) == 3
    reproduce(out=tmp_path, preset="paper")
    assert len(runs) == 4


def test_interrupting_keeps_the_finished_claims(claims_are, tmp_path):
    def interrupted(settings):
        raise KeyboardInterrupt

    claims_are(_claim("one", _fine), _claim("two", interrupted))
    with pytest.raises(KeyboardInterrupt):
        reproduce(out=tmp_path)
    claims_are(_claim("one", _fine), _claim("two", _fine))
    events = []
    reproduce(out=tmp_path, watch=lambda event: events.append((event.kind, event.claim.id)))
    assert events == [("reused", "zheng2024/one"), ("start", "zheng2024/two"), ("done", "zheng2024/two")]


def test_a_check_that_fails_is_recorded_and_not_reused(claims_are, tmp_path):
    def broken(settings):
        raise MemoryError("no memory left")

    claims_are(_claim("one", broken), _claim("two", _fine))
    result = reproduce(out=tmp_path)
    one, two = result.records
    assert one.verdict == "inconclusive" and "no memory left" in one.details["error"]
    assert two.verdict == "verified" and result.failed and not result.refuted
    claims_are(_claim("one", _fine), _claim("two", _fine))
    again = reproduce(out=tmp_path)
    assert not again.failed and again.records[0].verdict == "verified"


def test_a_claim_whose_files_are_torn_is_checked_again(claims_are, tmp_path):
    figure = Figure(
        title="t",
        panels=(Panel(title="p", xlabel="x", ylabel="y", traces=(Rule(value=1.0, label="one"),)),),
    )
    claims_are(_claim("one", lambda settings: Finding(1, 1, 0, "verified", figures={"drawn": figure})))
    reproduce(out=tmp_path)
    (stored,) = tmp_path.rglob("drawn.json")
    stored.write_bytes(stored.read_bytes()[:20])
    events = []
    reproduce(out=tmp_path, watch=lambda event: events.append(event.kind))
    assert events == ["start", "done"]
    assert RunDirectory(tmp_path).problems() == []


def test_bad_input_speaks(tmp_path):
    with pytest.raises(ValueError, match="preset 'fast' is unknown"):
        reproduce("zheng2024", preset="fast", out=tmp_path)
    with pytest.raises(ValueError, match="unknown"):
        reproduce("zheng2025", out=tmp_path / "never")
    with pytest.raises(ValueError, match="unknown"):
        reproduce("zheng2024/", out=tmp_path / "never")
    with pytest.raises(TypeError, match="named by strings"):
        reproduce(["zheng2024"], out=tmp_path / "never")
    assert not (tmp_path / "never").exists()
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ValueError, match="file"):
        reproduce("zheng2024", out=tmp_path / "file" / "run")
    assert (tmp_path / "file").read_text() == "not a folder"


def test_all_papers_are_known():
    """Found by their modules: none is forgotten, and nothing else is taken for a paper."""
    assert (
        *("ahn2023", "fu2024", "gatmiry2024", "giannou2024", "huang2024", "kim2024", "mahankali2024"),
        *("nichani2024", "sander2024", "vladymyrov2024", "vonoswald2023", "vonoswald2024", "zhang2024"),
        "zheng2024",
    ) == registry.PAPERS


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path):
    """kill −9 between two claims of a real run; the next run reuses the first."""
    selection = ["zheng2024/proposition-4.1", "zheng2024/theorem-4.1-gaussian"]
    command = [sys.executable, "-m", "mesascope", "reproduce", *selection, "--out", str(tmp_path), "--json"]
    first = tmp_path / "claims" / "zheng2024" / "proposition-4.1.json"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not first.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert first.exists()
    assert RunDirectory(tmp_path).problems() == []
    stamp = first.stat().st_mtime_ns
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert first.stat().st_mtime_ns == stamp
    assert {r.verdict for r in RunDirectory(tmp_path).claims()} == {"verified"}
