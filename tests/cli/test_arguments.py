"""Arguments that the command line accepts and refuses, and its help."""

import re
import subprocess
import sys

import pytest

from mesascope.cli import _main, main

COMMANDS = ("reproduce", "claims", "loss", "flow", "formula", "train", "identify", "report", "cite")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (),
            "mesascope: give a command: reproduce, claims, loss, flow, formula, train, identify, certify, "
            "counterexample, sweep, runs, report, kinds, benchmark, lab, cite; mesascope --help explains them",
        ),
        (("los", "x"), "mesascope: unknown command 'los'; did you mean 'loss'?"),
        (("--verson",), "mesascope: unknown option '--verson'; "),
        (("loss",), "mesascope loss: Missing from mesascope loss: SPEC; see mesascope loss --help"),
        (("flow", "a", "b"), "mesascope flow: unknown argument 'b'; "),
        (("flow", "a", "--jsn"), "mesascope flow: unknown option '--jsn'; did you mean '--json'?"),
        (
            ("reproduce", "--preset", "long"),
            "mesascope reproduce: invalid choice 'long' for argument '--preset'.",
        ),
        (("train", "a", "--exprt"), "mesascope train: unknown option '--exprt'; did you mean '--export'?"),
        (("train", "-"), "mesascope train: standard input has no name for the folder of the checkpoints"),
        (("train", "none.toml"), "mesascope train: none.toml: no such file; check the path"),
        (("reproduce", "--out"), "mesascope reproduce: Missing value for argument '--out'."),
        (
            ("reproduce", "invented", "--json", "invented"),
            "mesascope reproduce: unknown argument 'invented'; give it before",
        ),
        (
            ("claims", "zheng2023"),
            "mesascope claims: paper 'zheng2023' is unknown (did you mean 'zheng2024'?)",
        ),
        (
            ("claims", "zheng2024/theorem-9.1"),
            "mesascope claims: claim 'zheng2024/theorem-9.1' is unknown (did you",
        ),
        (("reproduce", "zheng2023"), "mesascope reproduce: paper 'zheng2023' is unknown (did you mean"),
        (("reproduce", "zheng2024/conservatoin"), "(did you mean 'zheng2024/conservation'?)"),
        (("kinds", "uniform"), "mesascope kinds: 'uniform' is a kind; see `mesascope kinds law uniform`"),
        (
            ("kinds", "rule", "deltanet"),
            "mesascope kinds: unknown rule 'deltanet'; did you mean 'delta-net'?",
        ),
        (("kinds", "", "delta-net"), "mesascope kinds: unknown family ''; use one of"),
        (("kinds", "lawn"), "mesascope kinds: unknown family 'lawn'; did you mean 'law'?"),
        (("cite", "zheng2023"), "mesascope cite: unknown reference 'zheng2023'; did you mean 'zheng2024'?"),
    ],
)
def test_refused(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in run(*arguments).refusal
    assert not list(tmp_path.iterdir())  # nothing was written


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_options_are_compared_with_all_options(run, capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    listed = set(re.findall(r"^[│ ]+(?:-h, )?(--[a-z][a-z-]*)", capsys.readouterr().out, re.MULTILINE)) - {
        "--help"
    }
    assert "--json" in listed
    message = run(
        command, *(["a"] if command in ("loss", "flow", "formula", "train") else []), "--zqxv"
    ).refusal
    assert set(re.findall(r"--[a-z-]+", message.partition("; use ")[2])) == listed


@pytest.mark.parametrize("command", [("lab",), ("runs", "list"), ()])
def test_help_fits_the_terminal(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "90")
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    words = [line for line in lines if " " in line.strip()]  # the names of all commands are one word
    assert words and max(map(len, words)) <= 90


def test_help_ends_on_a_terminal_of_one_column(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1")
    with pytest.raises(SystemExit):
        main(["cite", "--help"])
    assert "--help" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (["benchmark", "write", "new"], "the folder is not finished: remove it, or name a new one"),
        (["benchmark", "answer", "old"], "answers that were written are kept, and the same command resumes"),
        (["sweep", "file"], "runs that have ended are kept, and the same command resumes"),
        (["formula", "sweep"], ""),
    ],
)
def test_what_an_interrupt_leaves_depends_on_the_command(given, left):
    assert _main._left_by(given).removeprefix("; ") == left


LONG = "x" * 5000  # more than a file may be called


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "--out", LONG),
        ("report", LONG, "--results", LONG),
        ("train", "-", "--out", LONG),
        ("certify", "--check", LONG),
        ("identify", "--along", LONG),
        ("benchmark", "write", LONG),
        ("benchmark", "answer", LONG, "--out", LONG),
        ("runs", "list", "--store", LONG),
        ("runs", "list", "--store", "s", "--index", f"sqlite:////{LONG}"),
        ("sweep", LONG, "--store", LONG),
        ("sweep", "s", "--store", "s", "--workers", "9" * 5000),
        ("loss", "s", "--plugin", LONG),
        ("kinds", LONG),
        ("cite", LONG),
    ],
)
def test_a_name_of_thousands_of_letters_is_refused_and_shortened(run, arguments):
    assert len(run(*arguments).refusal) < 2500


@pytest.mark.slow
def test_help_and_version_load_nothing_heavy():
    code = """
import sys
from mesascope.cli import main
assert main(["--version"]) == 0
def loaded(*asked):
    for arguments in asked:
        try:
            main(arguments)
        except SystemExit as end:
            assert not end.code
    return set(sys.modules)
heavy = {"numpy", "pydantic", "jax", "scipy", "matplotlib", "xarray", "rich"} & loaded(["--help"], ["reproduce", "-h"])
heavy |= {"jax", "scipy", "matplotlib", "xarray"} & loaded(["loss", "--help"], ["train", "--help"], ["identify", "--help"])
sys.exit(", ".join(heavy) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mesascope 0.")
    for command in COMMANDS:
        assert command in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 128  # the list of all commands


def test_cite(run):
    assert run("cite", "zheng2024", "jax").out.count("\n@") == 1
    entries = run("cite", "zheng2024", "--json").json["entries"]
    assert list(entries) == ["zheng2024"] and entries["zheng2024"].startswith("@inproceedings{zheng2024,")
    assert len(run("cite", "--json").json["entries"]) > 5


def test_claims(run):
    listed = run("claims", "zheng2024", "--json").json["claims"]
    assert len(listed) > 10
    words = {"id", "title", "statement", "source", "origin", "criterion", "history", "settings"}
    assert set(listed[0]) == words | {"evidence", "outcome", "verdict"}
    lines = run("claims", "zheng2024").out.splitlines()
    assert [line.split()[0] for line in lines[:-3]] == [claim["id"] for claim in listed]  # one line each
    assert any("holds" in line and "exact" in line and "a² − b² is conserved" in line for line in lines)
    assert lines[-3].startswith("of papers, programs and reviews: ") and lines[-2].startswith("ours: ")
    assert lines[-1].endswith("`mesascope claims ID` shows all of a claim")
    one = run("claims", "zheng2024/conservation")
    assert one.out.startswith("zheng2024/conservation: a² − b² is conserved")
    assert "outcome     holds (exact)" in one.out and "horizon" in one.out
    assert max(map(len, one.out.splitlines())) <= 80


def test_one_kind_of_a_family(run):
    status, out, err = run("kinds", "rule", "delta-net")
    assert (status, err) == (0, "")
    assert out.startswith("delta-net  ") and "titans" not in out
