"""Compiled programs are forgotten before the system refuses more, and only then."""

import jax
import jax.numpy as jnp

from mesascope.core import _programs, forget_programs


def test_programs_are_forgotten_only_where_they_are_many(tmp_path, monkeypatch):
    traced = []

    @jax.jit
    def twice(x):
        traced.append(x)
        return 2 * x

    def calls():
        twice(jnp.ones(3))
        return len(traced)

    granted = tmp_path / "max_map_count"
    monkeypatch.setattr(_programs, "_MOST_MAPPINGS", granted)
    assert calls() == 1 and not forget_programs()  # the system does not tell
    granted.write_text("1000000000")
    assert not forget_programs() and calls() == 1
    granted.write_text("10")
    assert forget_programs() and calls() == 2
