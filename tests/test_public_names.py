"""The package's own namespace: light to import, and every name in it leads somewhere."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import mesascope


def run(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_import_takes_less_than_a_tenth_of_a_second_and_loads_no_array_library():
    code = (
        "import sys, time; before = time.perf_counter(); import mesascope; "
        "print(time.perf_counter() - before); "
        "assert not {'jax', 'numpy', 'pydantic'} & set(sys.modules), sys.modules"
    )
    assert min(float(run(code)) for _ in range(3)) < 0.1  # the least of three: a busy machine only adds


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert mesascope.__version__ == version("mesascope")


@pytest.mark.parametrize("name", sorted(mesascope._HOME))
def test_every_name_is_the_one_of_its_room(name):
    room = importlib.import_module(f"mesascope.{mesascope._HOME[name]}")
    assert mesascope.__getattr__(name) is getattr(mesascope, name) is getattr(room, name)
    assert name in dir(mesascope)


@pytest.mark.parametrize("name", sorted(mesascope._ROOMS))
def test_every_room_is_reached_as_an_attribute(name):
    assert mesascope.__getattr__(name) is importlib.import_module(f"mesascope.{name}")
    assert name in dir(mesascope)


def test_type_checkers_see_the_names_that_are_there_at_run_time():
    tree = ast.parse(Path(mesascope.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: statement.module
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    rooms = {name: "mesascope" for name in mesascope._ROOMS}
    assert seen == {**rooms, **{name: f"mesascope.{room}" for name, room in mesascope._HOME.items()}}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'gradient_flaw'"):
        _ = mesascope.gradient_flaw
