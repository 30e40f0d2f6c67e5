"""What is printed of names from files, stores and requests."""

import json

import pytest

from mesascope.cli._output import print_json, results, say

NAME = "a\x1b]0;b\x07\r\nc\x9b31m\u202e"
SHOWN = "a\\x1b]0;b\\x07 c\\x9b31m\\u202e"


def test_a_line_has_no_control_characters_and_no_long_words(capsys):
    say(NAME)
    assert capsys.readouterr().err == f"{SHOWN}\n"
    say(f"cannot read {'x' * 2500}{'y' * 2500} at all")
    assert capsys.readouterr().err == f"cannot read {'x' * 200}…{'y' * 200} at all\n"
    path = f"/home/{'folder/' * 50}"
    say(path)
    assert capsys.readouterr().err == f"{path}\n"


@pytest.mark.parametrize("table", [False, True])
def test_results_have_no_control_characters(capsys, table):
    from rich.table import Table

    shown = Table.grid()
    shown.add_row(NAME)
    results().print(shown if table else NAME, markup=False)
    out = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in out)
    assert "a\\x1b" in out and (
        table or "\\x9b31m\\u202e" in out
    )  # a column is cut at the width of the text itself


def test_json_is_printed_without_control_characters(capsys):
    print_json({NAME: NAME})
    out = capsys.readouterr().out
    assert not any("\x7f" <= c <= "\x9f" or c < " " for c in out.strip("\n"))
    assert json.loads(out) == {NAME: NAME}
