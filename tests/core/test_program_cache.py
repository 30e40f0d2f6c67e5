"""Compiled programs that commands keep."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mesascope.core import _program_cache
from mesascope.core._program_cache import program_folder

PROGRAM = """
import sys
from mesascope.core import enable_x64, keep_programs
keep_programs()
enable_x64()
import jax
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)  # all of them, however fast this machine is
import mesascope as ms
flow = ms.gradient_flow(ms.LinearAttention.diagonal(1, 0.5, 0.5), ms.DiagonalUnitary(ms.Gaussian(1.0), 1), ms.NextToken(3))
print(bytes(memoryview(flow.model.w_kq)).hex())
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    return tmp_path


@pytest.mark.slow
def test_a_second_process_loads_what_the_first_compiled_and_gives_the_same_bits(cache):
    results, kept = [], []
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
        results.append(ended.stdout)
        kept.append({path.name for path in Path(program_folder()).iterdir() if path.name.endswith("-cache")})
    assert results[0] == results[1] and kept[0] == kept[1] != set()
    for path in Path(program_folder()).iterdir():  # torn, as by a killed process
        path.write_bytes(path.read_bytes()[:10])
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == (results[0], "")


def test_no_other_user_writes_there(cache, monkeypatch):
    (cache / "mesascope").mkdir(mode=0o777)
    folder = Path(program_folder())
    assert folder.parent == cache / "mesascope" / "programs"
    assert {one.stat().st_mode & 0o777 for one in (folder, folder.parent, folder.parent.parent)} == {0o700}
    monkeypatch.setattr("os.geteuid", lambda: folder.stat().st_uid + 1)
    assert program_folder() == ""


def test_machines_of_other_cpus_have_their_own(cache, monkeypatch):
    here = program_folder()
    monkeypatch.setattr("platform.machine", lambda: "other")
    assert program_folder() != here


def test_without_a_place_nothing_is_kept(cache, monkeypatch):
    (cache / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "file"))
    assert program_folder() == ""


def test_a_relative_folder_is_ignored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert Path(program_folder()).is_relative_to(tmp_path / "home" / ".cache")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_the_oldest_are_removed_when_there_is_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(_program_cache, "_MAX_BYTES", 40)
    for number in range(6):
        path = tmp_path / str(number)
        path.write_bytes(bytes(10))
        os.utime(path, (number, number))
    _program_cache._remove_oldest(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4", "5"]
    _program_cache._remove_oldest(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
