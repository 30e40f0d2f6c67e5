import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import Estimate


def test_reads_as_a_number_and_as_an_array():
    estimate = Estimate(2.5, 0.1)
    assert float(estimate) == 2.5
    np.testing.assert_array_equal(np.asarray(estimate), 2.5)
    assert np.asarray(Estimate(jnp.ones((2, 3))), dtype=np.float32).shape == (2, 3)


def test_interval_is_the_normal_one():
    half = 2 * 1.959963984540054  # the 97.5 % quantile of the normal distribution, from any table
    low, high = Estimate(1.0, 2.0).interval()
    np.testing.assert_allclose([low, high], [1 - half, 1 + half], rtol=1e-14)
    low, high = Estimate(0.0, 1.0).interval(0.99)
    np.testing.assert_allclose([low, high], [-2.5758293035489004, 2.5758293035489004], rtol=1e-14)


def test_an_exact_result_has_a_point_as_interval():
    exact = Estimate(jnp.arange(3.0))
    low, high = exact.interval()
    np.testing.assert_array_equal(low, high)
    assert float(exact.standard_error) == 0


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, float("nan")])
def test_interval_refuses_impossible_levels(level):
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        Estimate(1.0, 1.0).interval(level)


def test_estimates_pass_through_jit_and_vmap():
    batch = jax.jit(jax.vmap(lambda v: Estimate(v**2, v)))(jnp.arange(3.0))
    np.testing.assert_array_equal(batch.value, [0, 1, 4])
    np.testing.assert_array_equal(batch.standard_error, [0, 1, 2])


def test_repr_shows_the_numbers():
    assert repr(Estimate(2.5, 0.125)) == "Estimate(2.5 ± 0.125)"
    assert repr(Estimate(3.766625)) == "Estimate(3.766625, exact)"
    assert repr(Estimate(jnp.arange(2.0), 0.5)) == "Estimate([0. 1.] ± 0.5)"
    assert Estimate(2.5, 0.125)._repr_html_() == "<code>Estimate(2.5 ± 0.125)</code>"
    shown = []
    jax.jit(lambda value: shown.append(repr(Estimate(value))))(1.0)
    assert "value" in shown[0]  # traced: no numbers yet
