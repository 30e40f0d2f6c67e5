"""Compiled programs are cleared before the limit of the system, and only then."""

import platform
import resource
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from mesascope.core import _programs, forget_programs


@pytest.mark.slow
def test_programs_are_cleared_only_if_there_are_many(tmp_path, monkeypatch):
    traced = []

    @jax.jit
    def twice(x):
        traced.append(x)
        return 2 * x

    def calls():
        twice(jnp.ones(3))
        return len(traced)

    granted = tmp_path / "max_map_count"
    monkeypatch.setattr(_programs, "_MAX_MAPPINGS", granted)
    assert calls() == 1 and not forget_programs()  # the system does not tell
    granted.write_text("1000000000")
    assert not forget_programs() and calls() == 1
    granted.write_text("10")
    assert forget_programs() and calls() == 2


def _resident() -> int:
    """Bytes of resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return resource.getpagesize() * pages


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="returns memory through a function of glibc")
def test_memory_of_cleared_programs_is_returned_to_the_system(tmp_path, monkeypatch):
    granted = tmp_path / "max_map_count"
    granted.write_text("10")
    monkeypatch.setattr(_programs, "_MAX_MAPPINGS", granted)
    blocks = [
        bytes(10_000) for _ in range(10_000)
    ]  # small enough for the heap, which ends where something is in use
    last, held = bytes(10_000), _resident()
    blocks.clear()
    assert forget_programs() and len(last) == 10_000
    assert (
        held - _resident() > 80_000_000
    )  # of 100 000 000; with holes below `last`, nothing went back by itself
