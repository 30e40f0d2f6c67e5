"""Lines of values in JSON texts."""

import json

import pytest

from mesascope.records._certificate import json_lines

CONTENT = {"a": [1, [2, 3], {"b": 'x, {y}: "z"'}], "empty": {}, "none": [], "c": {"d": None, "e": [[], 5]}}


def paths(value, at=()):
    """Every path of a value, its own included."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inside:
        yield from paths(one, (*at, str(name)))


@pytest.mark.parametrize("indent", [None, 0, 1, 4])
def test_exactly_the_values_have_lines(indent):
    assert set(json_lines(json.dumps(CONTENT, indent=indent))) == set(paths(CONTENT))


def test_lines_are_those_of_names_and_of_entries_of_lists():
    text = json.dumps(CONTENT, indent=1).splitlines()
    lines = json_lines("\n".join(text))
    assert text[lines["empty",] - 1].strip() == '"empty": {},'
    assert text[lines["a", "1", "1"] - 1].strip() == "3"
    assert text[lines["a", "2", "b"] - 1].strip().startswith('"b"')
    assert text[lines["c", "e", "1"] - 1].strip() == "5"
    assert set(json_lines(json.dumps(CONTENT)).values()) == {1}


def test_a_repeated_name_has_the_line_of_its_second_place():
    assert json_lines('{"a": 1,\n"b": 2,\n"a": 3}')["a",] == 3
