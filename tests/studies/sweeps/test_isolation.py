"""Changes of one run to its process are undone before the next, and modules are imported from their files of now."""

import os
import py_compile
import random
import sys
import warnings

import jax
import numpy as np
import pytest

from mesascope.studies.sweeps._isolation import isolated
from mesascope.studies.sweeps._modules import importable, was_edited

RUN, OTHER = "0" * 31 + "1", "f" * 32


def test_changes_of_a_run_are_undone(tmp_path, monkeypatch):
    monkeypatch.setenv("MESASCOPE_KEPT", "1")
    folder, filters, states = os.getcwd(), list(warnings.filters), (random.getstate(), np.random.get_state())
    with pytest.raises(RuntimeError), isolated(RUN):
        os.environ["MESASCOPE_NEW"] = "2"
        del os.environ["MESASCOPE_KEPT"]
        os.chdir(tmp_path)
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        random.random(), np.random.random()
        jax.config.update("jax_enable_x64", False)
        raise RuntimeError
    assert os.environ["MESASCOPE_KEPT"] == "1" and "MESASCOPE_NEW" not in os.environ
    assert (os.getcwd(), list(warnings.filters)) == (folder, filters)
    assert np.geterr()["divide"] == "warn"
    assert random.getstate() == states[0]
    np.testing.assert_array_equal(np.random.get_state()[1], states[1][1])
    assert jax.config.jax_enable_x64


def test_the_environment_is_never_empty(monkeypatch):
    """Other threads of a worker read it."""
    seen = []
    real = type(os.environ).__delitem__

    def watched(self, name):
        seen.append(len(self))
        real(self, name)

    monkeypatch.setattr(type(os.environ), "__delitem__", watched)
    count = len(os.environ)
    with isolated(RUN):
        os.environ["MESASCOPE_NEW"] = "2"
    assert seen == [count + 1] and len(os.environ) == count


def test_random_numbers_depend_on_the_run_alone():
    def draw(run):
        with isolated(run):
            return random.random(), np.random.random()

    first = draw(RUN)
    assert draw(OTHER) != first
    np.random.random()
    assert draw(RUN) == first


def test_a_current_folder_that_is_removed(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    with isolated(RUN):
        gone.rmdir()
    with isolated(RUN):
        pass


NAME = "module_that_is_edited"


def value(folder, name=NAME):
    with importable([str(folder)]):
        return __import__(name).VALUE


def test_modules_are_imported_again_after_an_edit(tmp_path):
    (tmp_path / f"{NAME}.py").write_text("from helper_of_it import VALUE\n")
    helper = tmp_path / "helper_of_it.py"
    # Of the same length, within a second: stored bytecode would be that of the first.
    for number in range(1, 4):
        helper.write_text(f"VALUE = {number}\n")
        os.utime(helper, ns=(number * 10**8, number * 10**8))
        assert value(tmp_path) == number
        py_compile.compile(os.fspath(helper))
    assert NAME not in sys.modules and "helper_of_it" not in sys.modules


def test_modules_are_imported_once_without_an_edit(tmp_path):
    (tmp_path / f"{NAME}.py").write_text("import os\nVALUE = os.urandom(8)\n")
    assert value(tmp_path) == value(tmp_path)


def test_two_studies_may_have_modules_of_one_name(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{NAME}.py").write_text(f"VALUE = {name!r}\n")
    assert [value(tmp_path / name) for name in "aba"] == ["a", "b", "a"]


def test_modules_of_the_program_are_not_replaced(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, NAME, None)  # what was there before, nothing, is there again at the end
    del sys.modules[NAME]
    theirs = __import__(NAME)
    (tmp_path / f"{NAME}.py").write_text("VALUE = 22\n")
    assert value(tmp_path) == 22
    assert sys.modules[NAME] is theirs and theirs.VALUE == 1


def test_installed_packages_cannot_be_imported_again(tmp_path):
    file = tmp_path / "installed.py"
    file.write_text("VALUE = 1\n")
    assert not was_edited(file)
    file.write_text("VALUE = 22\n")
    assert was_edited(file)
    with importable([str(tmp_path)]):
        assert not was_edited(file)
