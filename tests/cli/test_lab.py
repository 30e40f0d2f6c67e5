"""`mesascope lab`, with a server that only says its address: what it is asked for, and whether a browser opens."""

import sys
import webbrowser
from pathlib import Path

import pytest

ADDRESS = "http://127.0.0.1:1/"
OWN = {
    **{"law": "gaussian", "dim": 2, "horizon": 6},
    "model": {"kind": "linear-attention", "init": {"kind": "diagonal", "a": 0.5, "b": 0.4}},
}


@pytest.fixture
def served(monkeypatch):
    """What the server was asked for, and from where modules were imported meanwhile."""
    asked = {}

    def serve(port, records, models, *, token, warm, ready):
        asked.update(models=models, token=token, warm=warm, path=list(sys.path))
        ready(ADDRESS)

    monkeypatch.setattr("mesascope.lab.serve", serve)
    return asked


@pytest.fixture
def opened(monkeypatch):
    """Addresses that a browser has opened, on a desktop."""
    addresses = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    monkeypatch.setenv("DISPLAY", ":0")
    return addresses


def in_a_terminal(monkeypatch):
    """Not as a fixture: pytest gives every phase of a test a standard output of its own."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def test_a_terminal_on_a_desktop_opens_the_browser(run, served, opened, monkeypatch):
    in_a_terminal(monkeypatch)
    ended = run("lab", "--port", 0, "--no-token")
    assert (ended.status, ended.out) == (0, f"mesascope lab: {ADDRESS}   (Ctrl-C ends it)\n")
    assert opened == [ADDRESS]


def test_no_browser_prints_the_address_only(run, served, opened, monkeypatch):
    in_a_terminal(monkeypatch)
    assert ADDRESS in run("lab", "--port", 0, "--no-browser").out
    assert opened == []


def test_nothing_is_opened_where_nobody_would_see_it(run, served, opened, monkeypatch):
    assert run("lab", "--port", 0).status == 0  # its output is read by a program
    in_a_terminal(monkeypatch)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert run("lab", "--port", 0).status == 0
    assert opened == []


def test_models_are_named_by_their_file_and_import_from_its_folder(run, served, spec):
    first, second = spec(OWN, "first.json"), spec({**OWN, "tasks": 100}, "second.json")
    before = list(sys.path)
    assert run("lab", "--port", 0, "--no-browser", "--models", first, second).status == 0
    assert {name: one.tasks for name, one in served["models"].items()} == {str(first): 2000, str(second): 100}
    assert str(Path(first).parent) in served["path"]
    assert sys.path == before


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({**OWN, "heads": 2}, "heads"),
        ({**OWN, "model": {"kind": "checkpoint", "path": "nowhere"}}, "nowhere"),
        ("dim 2", "question.json"),
    ],
)
def test_a_model_that_cannot_be_read_is_told_in_one_line(run, served, spec, table, told):
    file = spec(table, "question.json")
    refusal = run("lab", "--models", file).refusal
    assert refusal.startswith(f"mesascope lab: {file}") and told in refusal
    assert served == {}


def test_a_file_of_models_that_is_not_there_is_told_in_one_line(run, served, tmp_path):
    assert "nowhere.toml" in run("lab", "--models", tmp_path / "nowhere.toml").refusal
    assert served == {}
