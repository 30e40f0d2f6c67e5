import equinox as eqx
import jax.numpy as jnp
import pytest

from mesascope.core import _quick_jit, quick_jit


class Line(eqx.Module):
    slope: float
    name: str


def _value(line, x):
    return line.slope * jnp.sin(x)


@pytest.mark.parametrize("level", [0, 1])
def test_it_gives_what_equinox_gives(level):
    x = jnp.linspace(0, 1, 50)
    line = Line(2.0, "a text is no array")
    expected = eqx.filter_jit(_value)(line, x)
    assert jnp.allclose(
        quick_jit(_value, level)(line, x), expected, rtol=1e-14
    )  # but for the rounding of sin


@pytest.fixture
def options(monkeypatch):
    def use(**given):
        monkeypatch.setattr(_quick_jit, "_OPTIONS", given)
        _quick_jit._are_known.cache_clear()

    yield use
    _quick_jit._are_known.cache_clear()


def test_a_version_of_jax_without_the_options_compiles_as_always(options):
    options(xla_no_such_option=1)
    assert not _quick_jit._are_known()
    assert quick_jit(_value)(Line(2.0, ""), jnp.zeros(3)).shape == (3,)


def test_the_options_are_known_to_the_locked_version():
    assert _quick_jit._are_known()
