"""What names, records and plugins say never becomes a part of the code of the page."""

import ast
from pathlib import Path

import mesascope.lab

SOURCES = sorted(Path(mesascope.lab.__file__).parent.rglob("*.py"))


def _written_texts(tree):
    """The arguments of all calls of `props`, which NiceGUI parses: a part that begins with a colon is run in the browser."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "props"]
    return [argument for call in named for argument in call.args]


def test_properties_of_elements_are_fixed_texts():
    """Others are set by name, as `element.props["data-fact"] = name`."""
    found = 0
    for path in SOURCES:
        for argument in _written_texts(ast.parse(path.read_text(encoding="utf-8"))):
            parts = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
            assert all(isinstance(part, ast.Constant) for part in parts), f"{path.name}:{argument.lineno}"
            found += 1
    assert found > 50
