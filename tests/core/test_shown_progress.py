"""The bar of computations that are called without `progress`."""

import io
import multiprocessing
import sys
import threading
import time

import pytest

from mesascope.core import Progress, ProgressBar, _shown_progress, shows_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@shows_progress
def count(seconds=0.3, *, inner=None, progress=None):
    """A computation: the numbers of its reports that were taken."""
    if progress is not None:
        progress(Progress(3, 10))
    time.sleep(seconds)
    return progress is not None, inner and inner()


@pytest.fixture
def open_terminal(monkeypatch):
    """A function, since pytest replaces the stream between fixtures and test."""

    def opened():
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    monkeypatch.setattr(_shown_progress, "_PATIENCE", 0.1)
    return opened


def test_a_bar_is_shown_to_who_waits_and_only_then(open_terminal):
    terminal = open_terminal()
    assert count(0.0) == (True, None)
    assert terminal.getvalue() == ""
    assert count() == (True, None)
    assert "3/10" in terminal.getvalue()


def test_what_a_computation_computes_shows_no_bar_of_its_own(open_terminal):
    open_terminal()
    assert count(0.0, inner=count) == (True, (False, None))
    with ProgressBar():
        assert count(0.0) == (False, None)
    assert count(0.0) == (True, None)  # the bar is closed: the next computation has one again


def test_the_bar_ends_with_an_error(open_terminal):
    open_terminal()

    def fail():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        count(inner=fail)
    assert count(0.0) == (True, None)


def test_there_is_none_elsewhere(open_terminal, monkeypatch):
    open_terminal()
    found = []
    thread = threading.Thread(target=lambda: found.append(count(0.0)))
    thread.start()
    thread.join()
    given = count(0.0, progress=found.append)
    assert found == [(False, None), Progress(3, 10)] and given == (True, None)
    with monkeypatch.context() as patch:
        patch.setattr(multiprocessing, "parent_process", object)  # a worker of a sweep
        assert count(0.0) == (False, None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert count(0.0) == (False, None)
