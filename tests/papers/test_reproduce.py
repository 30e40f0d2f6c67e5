"""Running claims: records, reuse, interruption, failure."""

import os
import signal
import subprocess
import sys
import time

import pytest

from mesascope.papers import Change, Claim, Finding, Settings, changes, earlier_outcomes, reproduce
from mesascope.papers import _registry as registry
from mesascope.papers import _reproduce as module
from mesascope.papers._claim import UnsettledError, presets
from mesascope.records import Figure, Panel, Rule, RunDirectory


class _Seed(Settings):
    seed: int


def _claim(name, check, seed=7):
    return Claim(
        id=f"zheng2024/{name}",
        title="A title for the machinery",
        statement="A statement for the machinery.",
        source="zheng2024, test",
        origin="paper",
        evidence="exact",
        settings=presets(_Seed(seed=seed)),
        check=check,
        criterion="none is needed",
    )


@pytest.fixture
def claims_are(monkeypatch):
    return lambda *found: monkeypatch.setattr(module, "claims", lambda *selection: found)


def _fine(settings):
    return Finding(1.0, 1.0, 0.1, "met", {"given": settings.seed})


def test_a_record_holds_what_was_asked(claims_are, tmp_path):
    claims_are(_claim("one", _fine))
    events = []
    result = reproduce("zheng2024", out=tmp_path / "run", watch=lambda event: events.append(event.kind))
    (record,) = result.records
    assert events == ["start", "done"]
    assert record.decision == "met" and record.seed == 7 and record.preset == "small"
    assert record.setting == {"seed": 7} and record.details == {"given": 7}
    assert record.provenance.packages["jax"] and record.seconds >= 0
    assert result.folder == tmp_path / "run" / "small"
    assert RunDirectory(result.folder).read_claim("zheng2024/one") == record


def test_claims_and_their_checks_print_in_one_line_and_are_tables_in_notebooks(claims_are, tmp_path):
    one = _claim("one", _fine)
    claims_are(one)
    assert repr(one) == f"<Claim {one.id}: {one.title}>"
    assert f"<td>statement</td><td>{one.statement}</td>" in one._repr_html_()
    done = reproduce(out=tmp_path)
    assert repr(done) == f"<Reproduction: holds: 1; in {done.folder}>"
    assert f"<td>{one.id}</td><td>{one.title}</td><td>holds</td>" in done._repr_html_()


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
    claims_are(_claim("one", check, 8))
    reproduce(out=tmp_path)
    assert len(runs) == 3
    reproduce(out=tmp_path, preset="full")
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
    assert one.decision == "undecided" and "no memory left" in one.details["error"]
    assert two.decision == "met" and result.failed and not result.contradicted
    claims_are(_claim("one", _fine), _claim("two", _fine))
    again = reproduce(out=tmp_path)
    assert not again.failed and again.records[0].decision == "met"


def test_a_claim_whose_files_are_torn_is_checked_again(claims_are, tmp_path):
    figure = Figure(
        title="t", panels=(Panel(title="p", xlabel="x", ylabel="y", traces=(Rule(value=1.0, label="one"),)),)
    )
    claims_are(_claim("one", lambda settings: Finding(1, 1, 0, "met", figures={"drawn": figure})))
    run = RunDirectory(reproduce(out=tmp_path).folder)
    (stored,) = tmp_path.rglob("drawn.json")
    stored.write_bytes(stored.read_bytes()[:20])
    events = []
    again = reproduce(out=tmp_path, watch=lambda event: events.append(event.kind)).stale
    assert events == ["start", "done"]
    assert again == {"zheng2024/one": "a figure or data file of it is missing or damaged"}
    assert run.problems() == [] and len(run.claims()) == 1


def _raising(error):
    def check(settings):
        raise error

    return check


@pytest.mark.parametrize("error", [MemoryError("no memory left"), KeyboardInterrupt()])
def test_a_finished_record_outlives_a_check_that_does_not_finish(claims_are, tmp_path, error):
    claims_are(_claim("one", _fine))
    run = RunDirectory(reproduce(out=tmp_path).folder)
    (finished,) = run.claims()
    claims_are(_claim("one", _raising(error), 8))
    if isinstance(error, Exception):
        assert reproduce(out=tmp_path).records[0].failed
        (failure,) = RunDirectory(run.path / "failed").claims()
        assert "no memory left" in failure.details["traceback"]
    else:
        with pytest.raises(KeyboardInterrupt):
            reproduce(out=tmp_path)
    assert run.claims() == [finished]
    claims_are(_claim("one", _fine, 8))
    reproduce(out=tmp_path)
    assert run.claims()[0].seed == 8 and not RunDirectory(run.path / "failed").claims()


def test_a_computation_that_does_not_settle_is_a_result(claims_are, tmp_path):
    claims_are(_claim("one", _raising(UnsettledError("the run diverged"))))
    first = reproduce(out=tmp_path)
    events = []
    again = reproduce(out=tmp_path, watch=lambda event: events.append(event.kind))
    assert events == ["reused"] and again.records == first.records
    assert first.records[0].decision == "undecided" and not first.failed


def test_presets_do_not_meet_in_one_folder(claims_are, tmp_path):
    claims_are(_claim("one", _fine))
    folders = [reproduce(out=tmp_path, preset=preset).folder for preset in ("small", "full")]
    assert [RunDirectory(folder).claims()[0].preset for folder in folders] == ["small", "full"]


def test_it_is_told_why_a_claim_is_checked_again(claims_are, tmp_path, monkeypatch):
    def why(rerun=False):
        events = []
        again = reproduce(out=tmp_path, rerun=rerun, watch=events.append).stale.get("zheng2024/one")
        assert {event.stale for event in events} == {again}
        return again

    claims_are(_claim("one", _fine))
    assert why() is None  # there was no record
    assert why() is None  # it was reused
    assert why(rerun=True) == "asked for"
    claims_are(_claim("one", _fine, 8))
    assert why() == "its settings changed"
    (stored,) = tmp_path.rglob("one.json")
    stored.write_text("{")
    assert why() == "its record cannot be read"
    old = RunDirectory(tmp_path / "small")
    (record,) = old.claims()

    def made_under(**changed):
        earlier = record.provenance.model_copy(update=changed)
        old.write_claim(record.model_copy(update={"provenance": earlier, "fingerprint": "of then"}))

    made_under(code="another", created="2024-02-29T00:00:00+00:00")
    assert why() == "the code changed since 2024-02-29"
    made_under(
        code="another",
        created="2024-02-29T00:00:00+00:00",
        packages={**record.provenance.packages, "jax": "0.1"},
    )
    assert why().startswith("the code or a library changed since 2024-02-29: jax 0.1 → ")


def _decision(name, decision):
    return _claim(name, lambda settings: Finding(1.0, 1.0, 0.1, decision))


def test_changes_since_an_earlier_run(claims_are, tmp_path):
    claims_are(
        *(_decision(name, "not met") for name in ("same", "turned", "gone")), _decision("broken", "met")
    )
    reproduce(out=tmp_path / "then")
    now = _decision("same", "not met"), _decision("turned", "met"), _decision("new", "met")
    claims_are(*now, _claim("broken", _raising(MemoryError())))
    records = reproduce(out=tmp_path / "now").records
    expected = {
        Change("zheng2024/broken", "holds", "failed"),
        Change("zheng2024/new", "not there", "holds"),
        Change("zheng2024/turned", "contradicted", "holds"),
    }
    gone = Change("zheng2024/gone", "contradicted", "not there")
    for folder in (tmp_path / "then", tmp_path / "then" / "small"):
        earlier = earlier_outcomes(folder, "small")
        assert set(changes(records, earlier)) == expected | {gone}
        assert set(changes(records, earlier, ["zheng2024"])) == expected | {gone}
        assert set(changes(records, earlier, [record.id for record in records])) == expected
    assert changes(records[:1], earlier, ["zheng2024/same"]) == []


def test_an_earlier_run_that_is_none_is_refused(claims_are, tmp_path):
    claims_are(_claim("one", _fine))
    reproduce(out=tmp_path / "run")
    with pytest.raises(ValueError, match="holds no records of preset 'small'"):
        earlier_outcomes(tmp_path / "nowhere", "small")
    with pytest.raises(ValueError, match="holds no records of preset 'full'"):
        earlier_outcomes(tmp_path / "run" / "small", "full")
    (tmp_path / "run").rename(tmp_path / "claims")  # as several papers lie below `results`
    with pytest.raises(ValueError, match="holds no records of preset 'small'"):
        earlier_outcomes(tmp_path, "small")
    (stored,) = tmp_path.rglob("one.json")
    stored.with_name("._one.json").write_text("what a Mac leaves beside a file")
    assert earlier_outcomes(tmp_path / "claims", "small") == {"zheng2024/one": "holds"}
    stored.write_text("{")
    with (
        pytest.warns(UserWarning, match=r"one\.json is torn"),
        pytest.raises(ValueError, match="holds no records of preset 'small'"),
    ):
        earlier_outcomes(tmp_path / "claims", "small")


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
    with pytest.raises(ValueError, match="empty name"):
        reproduce("zheng2024", out="")
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ValueError, match="file"):
        reproduce("zheng2024", out=tmp_path / "file" / "run")
    assert (tmp_path / "file").read_text() == "not a folder"


def test_all_papers_are_known():
    """Found by their modules: none is forgotten, and nothing else is taken for a paper."""
    assert (
        *(
            "ahn2023",
            "bordelon2025",
            "edelman2024",
            "fu2024",
            "gatmiry2024",
            "giannou2024",
            "huang2024",
            "kim2024",
            "lu2024",
        ),
        *("mahankali2024", "nichani2024", "park2024", "raventos2023", "sander2024", "vladymyrov2024"),
        *(
            "vonoswald2023",
            "vonoswald2024",
            "vonoswald2025",
            "wang2025",
            "wurgaft2025",
            "yang2024",
            "zhang2024",
            "zhang2025",
        ),
        "zheng2024",
    ) == registry.PAPERS


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path):
    """kill −9 between two claims of a real run; the next run reuses the first."""
    selection = ["zheng2024/proposition-4.1", "zheng2024/theorem-4.1"]
    command = [sys.executable, "-m", "mesascope", "reproduce", *selection, "--out", str(tmp_path), "--json"]
    run = RunDirectory(tmp_path / "small")
    first = run.path / "claims" / "zheng2024" / "proposition-4.1.json"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not first.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert first.exists()
    assert run.problems() == []
    stamp = first.stat().st_mtime_ns
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert first.stat().st_mtime_ns == stamp
    assert [record.decision for record in run.claims()] == ["met"] * 2
