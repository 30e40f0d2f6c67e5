"""The command `sweep`: its output and exit status."""

from itertools import count

import pytest

from mesascope.cli import _output, _sweep
from mesascope.records import RunFolders
from mesascope.studies import Failure, StudySpec, SweepResult, execute, open_or_make, read_spec
from mesascope.studies.sweeps._prepare import check, prepare
from mesascope.studies.sweeps._status import announced

STUDY = """
name = "{name}"
kind = "loss"

[base]
law = {{kind = "gaussian"}}
dim = 1
horizon = 4
w_kq = [[0, 0], [0.3, 0]]
w_pv = [[0.7, 0]]

[[axes]]
path = "{path}"
values = [{values}]
"""


@pytest.fixture
def study(spec):
    def write(values="1, 2", name="scales", path="law.scale"):
        return spec(STUDY.format(name=name, values=values, path=path), "study.toml")

    return write


@pytest.fixture
def overflowing(study):
    """One finite loss, and two that overflow: it is quadratic in these weights."""
    return study("[[0.7, 0]], [[1e200, 0]], [[1e201, 0]]", path="w_pv")


def test_a_sweep_is_printed_and_stored(run, study, tmp_path):
    first = run("sweep", study(), "--store", tmp_path / "s", "--json")
    assert first.status == 0
    counts, reasons = {"total", "done", "failed", "reused"}, {"failures", "unbatched", "not_indexed"}
    assert set(first.json) == {"study", "ids"} | counts | reasons
    assert (first.json["done"], first.json["failed"], first.json["reused"]) == (2, 0, 0)
    again = run("sweep", study("2, 1, 3"), "--store", tmp_path / "s")
    assert (again.status, again.out) == (0, "scales: 1 done, 0 failed, 2 reused, of 3 runs\n")
    assert len(RunFolders(tmp_path / "s").ids()) == 3


def test_every_stage_tells_a_log_how_far_it_is(run, study, tmp_path, monkeypatch):
    minutes = count(step=60)
    monkeypatch.setattr(_output, "monotonic", lambda: next(minutes))
    lines = run("sweep", study(), "--store", tmp_path / "s").err.splitlines()
    planning = ("check points", "look for records", "look for plans", "write plans", "enter plans")
    assert [f"0 of 2 runs, {stage}" for stage in planning] == lines[: len(planning)]
    assert lines[-1].startswith("2 of 2 runs")
    monkeypatch.undo()
    assert run("sweep", study(), "--store", tmp_path / "s").err == ""  # it takes less than a minute


def test_equal_failures_are_printed_together(run, overflowing, tmp_path):
    ended = run("sweep", overflowing, "--store", tmp_path / "s")
    assert ended.status == 1
    lines = ended.out.splitlines()
    assert lines[0] == "scales: 1 done, 2 failed, 0 reused, of 3 runs"
    assert lines[1].startswith("2 × the loss or its gradient leaves double precision; use smaller weights")
    again = run("sweep", overflowing, "--store", tmp_path / "s", "--json")
    assert [one["count"] for one in again.json["failures"]] == [2]


def test_batches_that_failed_as_a_whole_are_printed(capsys):
    failures = (Failure(error="ValueError: no", count=4, run="1" * 32),)
    counts = {"total": 5, "done": 5, "failed": 0, "reused": 0}
    _sweep._print(SweepResult(study="flows", **counts, failures=(), unbatched=failures, ids=()))
    assert capsys.readouterr().out.splitlines() == [
        "flows: 5 done, 0 failed, 0 reused, of 5 runs",
        f"computed one by one: 4 × ValueError: no  (such as run {'1' * 32})",
    ]


@pytest.mark.slow
def test_status_counts_runs(run, study, overflowing, tmp_path):
    store = tmp_path / "s"
    run("sweep", overflowing, "--store", store)
    ended = run("sweep", overflowing, "--store", store, "--status")
    assert ended.status == 1
    assert [line.split() for line in ended.out.splitlines()[:5]] == [
        ["study", "scales"],
        ["planned", "0", "of", "3"],
        ["running", "0", "of", "3"],
        ["done", "1", "of", "3"],
        ["failed", "2", "of", "3"],
    ]
    found = run("sweep", overflowing, "--store", store, "--status", "--json").json
    assert (found["total"], found["done"], found["failed"], found["drivers"]) == (3, 1, 2, [])
    well = study(name="well")
    run("sweep", well, "--store", store)
    assert run("sweep", well, "--store", store, "--status").status == 0


def test_runs_with_damaged_records_are_told_and_computed_again(run, study, tmp_path):
    file, store = study(), tmp_path / "s"
    first = run("sweep", file, "--store", store, "--json").json["ids"]
    record = RunFolders(store).folder(first[0]) / "run.json"
    whole = record.read_bytes()
    record.write_bytes(whole[:100])
    ended = run("sweep", file, "--store", store, "--status", "--json")
    assert ended.status == 1 and (ended.json["done"], ended.json["unreadable"], ended.json["planned"]) == (
        1,
        1,
        0,
    )
    assert str(record) in ended.json["failures"][0]["error"]
    with pytest.warns(UserWarning, match=f"{record} is torn .*run {first[0]} is computed again") as told:
        again = run("sweep", file, "--store", store, "--json")
    assert len(told) == 1 and again.status == 0
    assert (again.json["done"], again.json["reused"]) == (1, 1)
    assert record.with_name("run.json.damaged").read_bytes() == whole[:100]
    assert run("sweep", file, "--store", store, "--status").status == 0
    record.write_bytes(record.read_bytes().replace(b"mesascope.run/1", b"mesascope.run/9"))
    assert "newer version of mesascope; upgrade" in run("sweep", file, "--store", store).refusal


def test_texts_of_drivers_and_runs_are_printed_without_markup(run, study, tmp_path):
    """They are read from a shared store: neither markup nor control characters may take effect."""
    store, text = tmp_path / "s", "tcp://[/fe80::1]:8786\x1b[2J"
    run("sweep", study(), "--store", store)
    with announced(store, "scales", text, text, 2):
        ended = run("sweep", study(), "--store", store, "--status")
    assert ended.status == 0 and ended.out.count("tcp://[/fe80::1]:8786\\x1b[2J") == 2
    failures = (Failure(error=text, count=2, run="1" * 32),)
    assert _sweep._failure_lines(failures) == [f"2 × tcp://[/fe80::1]:8786\\x1b[2J  (such as run {'1' * 32})"]


def test_a_watch_ends_with_the_study(run, study, tmp_path, monkeypatch):
    file, folder = study(), tmp_path / "s"
    spec = read_spec(file, StudySpec)
    with open_or_make(folder) as store:
        left = prepare(spec, check(spec), store).left
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        execute(folder, left.pop())

    monkeypatch.setattr(_sweep, "sleep", sleep)
    assert run("sweep", file, "--store", folder, "--watch").status == 0
    assert len(slept) == 2


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ('1, "x"', (), "study.toml: axes[0].values[1]: 'x' is not a rational number"),
        ("1, 1", (), "study.toml: axes[0].values[1]: 1 is given twice"),
        ("1", ("--scheduler", "cloud"), "scheduler 'cloud' is unknown; use one of in-process, local"),
        ("1", ("--workers", "2"), "workers are not started for scheduler 'in-process'"),
        ("1", ("--retries", "-1"), "retries must be at least 0, got -1"),
        ("1", ("--watch", "--json"), "--json prints once and --watch repeatedly"),
        ("1", ("--status",), "is not a store of runs"),
    ],
)
def test_bad_input_is_one_line(run, study, tmp_path, values, options, message):
    line = run("sweep", study(values), "--store", tmp_path / "s", *options).refusal
    assert line.startswith("mesascope sweep: ")
    assert message in line
    assert not (tmp_path / "s").exists()


def test_a_folder_of_other_things_is_no_store(run, study, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    assert "holds 'notes.txt'" in run("sweep", study(), "--store", tmp_path).refusal


def test_addresses_without_an_answer_are_bad_input(run, study, tmp_path, monkeypatch):
    """Of a scheduler, and of a database."""
    monkeypatch.setattr("mesascope.studies.sweeps._clusters._PATIENCE", 0.2)
    sweep = ("sweep", study(), "--store", tmp_path / "s")
    message = run(*sweep, "--scheduler", "tcp://127.0.0.1:1").refusal
    assert "no scheduler answers at tcp://127.0.0.1:1; start one" in message
    message = run(*sweep, "--index", "postgresql://me@127.0.0.1:1/x?connect_timeout=1").refusal
    assert "check address, user and password" in message


def test_the_specification_of_a_run_is_not_a_study(run, spec, tmp_path):
    message = run("sweep", spec("dim = 2\n", "run.toml"), "--store", tmp_path / "s").refusal
    assert "run.toml: this specifies a run (it has a dim), not a study; put it into a table base" in message
