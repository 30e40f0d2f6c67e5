"""The package's own namespace: light to import, and every name in it leads somewhere."""

import importlib
import subprocess
import sys

import pytest
from write_names import pages, stubs

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


@pytest.mark.slow
def test_models_engines_and_starts_are_listed_without_jax():
    families = ("model", "init", "engine", "construction", "subset", "given-model")
    code = f"import sys; from mesascope.specs import known_kinds; assert all(map(known_kinds, {families})); "
    assert run(code + "print('jax' in sys.modules)") == "False"


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert mesascope.__version__ == version("mesascope")


@pytest.mark.parametrize("name", mesascope.__all__)
def test_every_name_leads_somewhere(name):
    assert getattr(mesascope, name) is not None
    assert name in dir(mesascope)


@pytest.mark.parametrize("room", ["core", "processes", "models", "learners", "objectives", "dynamics"])
def test_every_name_of_a_room_leads_somewhere(room):
    module = importlib.import_module(f"mesascope.{room}")
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_stubs_and_pages_name_every_kind():
    for path, text in {**stubs(), **pages()}.items():
        assert path.read_text(encoding="utf-8") == text, f"{path} lacks a kind: run `make names`"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'gradient_flaw'"):
        _ = mesascope.gradient_flaw
