"""`mesascope runs …`: what is listed, shown, compared, removed and verified, and what is refused."""

import hashlib
import json
import subprocess
import sys

import pytest

from mesascope.cli import main
from mesascope.records import PlannedRun, StudyAxis, StudyPoint, StudyRecord

PARTS = ("list", "show", "compare", "export", "rm", "reindex", "verify")


def test_list(run, store):
    listed = run("runs", "list", "--store", store.root, "--json").json["runs"]
    assert [one["status"] for one in listed] == ["failed", "done", "done", "done", "done", "planned"]
    assert {"id", "status", "kind", "spec", "outcome", "error"} <= set(listed[0])
    assert listed[1]["spec"] == {"dim": 5, "init": {"a": 0.3}} and listed[1]["outcome"]["nan"] == "nan"
    found = run("runs", "list", "status=done", "spec.init.a>0.1", "--store", store.root, "--json").json[
        "runs"
    ]
    assert [one["spec"]["init"]["a"] for one in found] == [0.3, 0.2]
    two = run("runs", "list", "study=six", "--limit", "2", "--json", "--store", store.root).json["runs"]
    assert len(two) == 2
    ended = run("runs", "list", "--store", store.root, "--limit", "3")
    assert ended.status == 0 and "the flow diverged" in ended.out and "6 runs, 3 shown" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80
    # the settings in which the runs of a study differ, and no others
    shown = {line.split()[0]: line for line in ended.out.splitlines() if "init.a=" in line}
    assert [line.split("init.a=")[1].split()[0] for line in shown.values()] == ["0.4", "0.3", "0.2"]
    assert "dim" not in ended.out and "status" in ended.out
    single = run("runs", "list", "--store", store.root, "spec.init.a=0.2").out
    assert "1 run" in single and "setting" not in single


def test_long_settings_are_wrapped_and_not_cut(run, store):
    store.plan(PlannedRun(id="1" * 32, kind="flow", spec={"dim": 5, "init": {"b": "x" * 60}}, code="1"))
    out = run("runs", "list", "--store", store.root).out
    assert max(map(len, out.splitlines())) <= 80
    cells = "".join(line[39:59].strip() for line in out.splitlines())
    assert f"init.b={'x' * 23}…" in cells  # as long as values are shown


def test_show(run, store):
    done, failed = (hashlib.sha256(text).hexdigest()[:32] for text in (b"0", b"4"))
    found = run("runs", "show", done[:9], "--store", store.root, "--json").json
    assert found["id"] == done and found["status"] == "done" and list(found["files"]) == ["trajectory.nc"]
    assert found["provenance"]["mesascope"] and found["folder"] == str(store.folder(done))
    ended = run("runs", "show", failed, "--store", store.root)
    assert ended.status == 0 and "Traceback …" in ended.out and "the flow diverged" in ended.out


def test_compare(run, store):
    ids = [hashlib.sha256(str(k).encode()).hexdigest()[:32] for k in (1, 2)]
    found = run("runs", "compare", *ids, "--store", store.root, "--json").json
    assert found == {"ids": ids, "differences": {"spec.init.a": [0.1, 0.2], "outcome.loss": [0.5, 1.0]}}
    assert "spec.init.a" in run("runs", "compare", *ids, "--store", store.root).out
    assert "at least two" in run("runs", "compare", ids[0], "--store", store.root).refusal


def test_remove(run, store):
    message = run("runs", "rm", "--store", store.root).refusal
    assert "name the runs to remove by ids or filters, or give --all" in message
    assert "not both" in run("runs", "rm", "status=done", store.ids()[0], "--store", store.root).refusal
    assert "--all" in run("runs", "rm", "status=done", "--all", "--store", store.root).refusal
    assert len(store.ids()) == 6
    with store.holding(store.ids()[2]):
        assert "is being computed" in run("runs", "rm", "--all", "--store", store.root).refusal
    assert len(store.ids()) == 6
    assert len(run("runs", "rm", "status=failed", "--store", store.root, "--json").json["removed"]) == 1
    assert run("runs", "rm", store.ids()[0][:8], "--store", store.root).out == "1 removed\n"
    assert len(run("runs", "list", "--store", store.root, "--json").json["runs"]) == 4
    assert run("runs", "rm", "--all", "--store", store.root).out == "4 removed\n" and store.ids() == []


@pytest.mark.slow
def test_remove_a_study(run, store):
    ids = sorted(store.ids())
    axes = (StudyAxis(name="n", labels=(1,)),)
    points = (StudyPoint(run=ids[3], place=(0,)),)
    store.write_study(StudyRecord(name="shares", kind="flow", spec={}, axes=axes, points=points))
    ended = run("runs", "rm", "--study", "six", "--dry-run", "--store", store.root)
    assert ended.out.splitlines() == [*ids[:3], *ids[4:], "5 would be removed"] and store.ids() == ids
    assert "no study 'sx'" in run("runs", "rm", "--study", "sx", "--store", store.root).refusal
    assert "study name '../six'" in run("runs", "rm", "--study", "../six", "--store", store.root).refusal
    assert "alone" in run("runs", "rm", "--study", "six", "--all", "--store", store.root).refusal
    with store.holding(ids[0]):
        assert "is being computed" in run("runs", "rm", "--study", "six", "--store", store.root).refusal
    assert store.ids() == ids and store.studies() == ["shares", "six"]
    removed = run("runs", "rm", "--study", "six", "--store", store.root, "--json").json
    assert removed == {"chosen": [*ids[:3], *ids[4:]], "removed": [*ids[:3], *ids[4:]]}
    assert store.ids() == [ids[3]] and store.studies() == ["shares"]
    assert run("runs", "verify", "--store", store.root).out == "1 run, no problems\n"
    found = run("runs", "rm", ids[3], ids[3][:9], "--dry-run", "--store", store.root, "--json").json
    assert found == {"chosen": [ids[3]], "removed": []} and store.ids() == [ids[3]]


def test_verify_and_reindex(run, store):
    assert run("runs", "verify", "--store", store.root).out == "6 runs, no problems\n"
    file = store.folder(store.ids()[0]) / "planned.json"
    file.write_bytes(file.read_bytes()[:40])
    ended = run("runs", "verify", "--store", store.root, "--json")
    assert ended.status == 1 and len(ended.json["problems"]) == 1 and "is torn" in ended.json["problems"][0]
    (store.root / "index.sqlite").write_bytes(b"rubbish" * 1000)
    with pytest.warns(UserWarning, match="built again from the folders"):
        assert run("runs", "reindex", "--store", store.root, "--json").json == {
            "runs": 6,
            "unreadable": [],
            "damaged_studies": [],
        }
    assert len(run("runs", "list", "--store", store.root, "--json").json["runs"]) == 6


@pytest.mark.slow
def test_every_command_says_what_cannot_be_read(run, store, tmp_path):
    run("runs", "list", "--store", store.root)
    torn, other = (hashlib.sha256(text).hexdigest()[:32] for text in (b"0", b"1"))
    file = store.folder(torn) / "run.json"
    file.write_bytes(file.read_bytes()[:100])
    out = tmp_path / "out"
    for words in (
        ("list",),
        ("list", "status=done"),
        ("list", "--json"),
        ("show", torn),
        ("show", torn, "--json"),
        ("compare", torn, other),
        ("export", "--format", "csv", "--out", f"{out}.csv", "status=done"),
        ("export", "--format", "netcdf", "--out", f"{out}.nc", "--study", "six"),
        ("reindex",),
    ):
        ended = run("runs", *words, "--store", store.root)
        assert ended.status == 1, words
        assert ended.err.splitlines() == [ended.err.strip()] and str(file) in ended.err and ";" in ended.err
    listed = {one["id"]: one for one in run("runs", "list", "--store", store.root, "--json").json["runs"]}
    assert listed[torn]["status"] == "unreadable" and listed[torn]["outcome"] == {}
    found = run("runs", "reindex", "--store", store.root, "--json").json
    assert found == {"runs": 6, "unreadable": [torn], "damaged_studies": []}
    assert run("runs", "list", "spec.init.a=0.3", "--store", store.root).status == 0
    assert run("runs", "rm", torn, "--store", store.root).status == 0
    assert run("runs", "list", "--store", store.root).status == 0
    (store.root / "studies" / "six.json").write_text("{")
    found = run("runs", "reindex", "--store", store.root, "--json").json
    assert found == {"runs": 5, "unreadable": [], "damaged_studies": ["six"]}


@pytest.mark.slow
def test_an_index_that_is_built_again_is_reported_in_one_line(store):
    (store.root / "index.sqlite").write_bytes(b"rubbish" * 1000)
    command = [sys.executable, "-m", "mesascope", "runs", "list", "--json", "--store", store.root]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["runs"]) == 6
    assert done.stderr.startswith("mesascope: index sqlite:///") and len(done.stderr.splitlines()) == 1
    assert "is built again from the folders" in done.stderr
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a command: list, show, compare, export, rm, reindex, verify; mesascope runs --help"),
        (("lst",), "unknown command 'lst'; did you mean 'list'?"),
        (("--json",), "unknown option '--json'; options come after the command"),
        (("list",), "Missing from mesascope runs list: --store DIR|URL; see mesascope runs list --help"),
        (("list", "--store", "none"), "none is not a store of runs"),
        (("list", "--store", "STORE", "--lmit", "3"), "unknown option '--lmit'; did you mean '--limit'?"),
        (("list", "--store", "STORE", "--limit", "0"), "--limit is 0; give a number from 1"),
        (("list", "sate=done", "--store", "STORE"), "filter 'sate=done': filter by one of status, study"),
        (("list", "state=done", "--store", "STORE"), "; did you mean 'status'?"),
        (("list", "study=sx", "--store", "STORE"), "no study 'sx' in this store; it has: six"),
        (("rm", "study!=sx", "--store", "STORE"), "no study 'sx' in this store; it has: six"),
        (("list", "spec.init.z=3", "--store", "STORE"), "'spec.init.z=3': no run has a field spec.init.z;"),
        (("rm", "spec.init.z!=3", "--store", "STORE"), "'spec.init.z!=3': no run has a field spec.init.z;"),
        (
            ("list", "outcome.w.0.0<3", "--store", "STORE"),
            "no run has a field outcome.w.0.0 that is searched",
        ),
        (
            ("export", "--study", "sx", "--format", "csv", "--out", "x", "--store", "STORE"),
            "no study 'sx' in this",
        ),
        (
            ("export", "--format", "csv", "--out", "/dev/null/x", "--store", "STORE"),
            "output folder '/dev/null' cannot be written to: is a file; choose another folder",
        ),
        (("export", "--format", "csv", "--out", ".", "--store", "STORE"), ". is a folder; name a file in it"),
        (("show", "fffffff", "--store", "STORE"), "no run begins with 'fffffff'"),
        (("show", "../x", "--store", "STORE"), "an id, or how it begins, is made of hexadecimal digits"),
        (("export", "--store", "STORE", "--format", "xls", "--out", "x"), "invalid choice 'xls'"),
        (("list", "--store", "STORE", "--index", "oracle://x"), "is not supported; use postgresql://"),
        (("list", "--store", "postgresql://me:hidden@127.0.0.1:1/x"), "index postgresql://me@127.0.0.1:1/x"),
        (
            ("list", "postgresql://me:hidden@host/x", "--store", "STORE"),
            "'postgresql://me:***@host/x': write NAME",
        ),
        (
            ("list", "--store", "postgresql:/me:hidden@host/x"),
            "the store's name looks like the address of a database and is none",
        ),
    ],
)
def test_refused(run, store, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    refusal = run("runs", *(store.root if one == "STORE" else one for one in arguments)).refusal
    assert message in refusal and "hidden" not in refusal
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("part", PARTS)
def test_help_is_80_columns_wide(capsys, part):
    with pytest.raises(SystemExit):
        main(["runs", part, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[1:])) <= 80 and "--json" in "".join(lines)  # the first line is the usage


def test_help_loads_nothing_heavy():
    code = """
import sys
from mesascope.cli import main
for arguments in (["runs", "--help"], ["runs", "list", "--help"]):
    try:
        main(arguments)
    except SystemExit as end:
        assert not end.code
sys.exit(", ".join({"jax", "numpy", "pydantic", "sqlalchemy", "xarray"} & set(sys.modules)) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for part in PARTS:
        assert part in done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("store.json", "lies among the files of the store; name a file elsewhere"),
        ("index.sqlite", "lies among the files of the store"),
        ("runs/ab/table.csv", "lies among the files of the store"),
        ("runs/../studies/six.json", "lies among the files of the store"),
    ],
)
def test_an_export_replaces_nothing_of_the_store(run, store, name, message):
    run("runs", "list", "--store", store.root)  # which makes the index
    before = {path: path.stat().st_size for path in store.root.rglob("*") if "index" not in path.name}
    out = store.root / name
    for form in ("csv", "mlflow"):
        assert message in run("runs", "export", "--format", form, "--out", out, "--store", store.root).refusal
    assert before == {path: path.stat().st_size for path in store.root.rglob("*") if "index" not in path.name}
