"""The log of the lab: what it prints is safe, short, and about something."""

import asyncio
import logging
from contextlib import suppress

import pytest

from mesascope.lab._log import PrintableLines, RepeatedErrors, is_meaningful, log_printable_lines


@pytest.mark.slow
def test_an_end_that_names_no_tasks_is_not_logged(caplog, monkeypatch):
    from nicegui import background_tasks, core

    async def slow_to_cancel():  # as asyncio.wait_for of Python 3.11 where a cancellation and a result come together
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    async def end():
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        background_tasks.create(slow_to_cancel())
        await asyncio.sleep(0)
        await background_tasks.teardown()

    asyncio.run(end())
    (record,) = caplog.records
    assert record.getMessage() == "Could not cancel 1 tasks within timeout: "
    assert not is_meaningful(record)
    record.args = (1, "a task that goes on")
    assert is_meaningful(record)
    assert is_meaningful(logging.LogRecord("nicegui", logging.ERROR, "", 0, "anything else", None, None))


def test_the_log_shows_paths_of_requests_as_one_short_line():
    def logged(message, *arguments, error=None):
        info = (type(error), error, None) if error else None
        record = logging.LogRecord("nicegui", logging.WARNING, "", 0, message, arguments, info)
        return PrintableLines().format(record)

    assert logged("%s not found", "/\x1b]0;a\x07\r\nb") == "/\\x1b]0;a\\x07 b not found"
    assert logged("%s not found", "/x?a=1&token=secret&b=2") == "/x?a=1&token=…&b=2 not found"
    assert len(logged("/" + "a" * 60_000)) < 500
    assert len(logged("/" + "a " * 30_000)) < 1100
    assert logged("failed", error=ValueError("\x1b[2J")) == "failed\nValueError: \\x1b[2J"
    assert logged("failed", error=ValueError("/?token=secret")) == "failed\nValueError: /?token=…"


def test_a_flood_of_one_error_is_one_traceback_and_a_few_lines():
    def fails_in_ours():
        is_meaningful("no record")

    def fails_below_ours():
        raise KeyError("a message that nothing reads")

    shown, once = [], RepeatedErrors()
    for fails in [fails_in_ours] * 1000 + [fails_below_ours] * 2:
        try:
            fails()
        except Exception as error:
            info = (type(error), error, error.__traceback__)
            record = logging.LogRecord("nicegui", logging.ERROR, "", 0, "Task exception", None, info)
        if once.filter(record):
            shown.append(PrintableLines().format(record))
    assert [text.count("Traceback") for text in shown] == [1] + 11 * [0]
    assert shown[0].endswith("AttributeError: 'str' object has no attribute 'args'")
    assert shown[9].startswith("AttributeError: 'str' object has no attribute 'args' (512 times so far, ")
    told = "KeyError: 'a message that nothing reads' ("
    assert shown[10].startswith(told + __file__) and shown[11].startswith(told + "2 times so far, ")
    assert once.filter(logging.LogRecord("nicegui", logging.ERROR, "", 0, "no error", None, None))


def test_messages_of_the_sockets_are_printed_once(monkeypatch):
    monkeypatch.setattr(logging.root, "handlers", [])
    sockets = logging.getLogger("engineio.server")
    monkeypatch.setattr(sockets, "handlers", [logging.StreamHandler()])
    log_printable_lines()
    assert not sockets.handlers and len(logging.root.handlers) == 1


def test_a_long_traceback_shows_its_ends():
    def even(steps):  # two functions: of one that calls itself, Python shortens the traceback
        return odd(steps - 1) if steps else 1 / steps

    def odd(steps):
        return even(steps - 1)

    try:
        even(300)
    except ZeroDivisionError as error:
        text = PrintableLines().formatException((type(error), error, error.__traceback__))
    assert len(text.splitlines()) == 61
    assert text.startswith("Traceback") and text.endswith("ZeroDivisionError: division by zero")
