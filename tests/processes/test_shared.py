"""Draws from a fixed seed are the same in both precisions, inside and outside compiled code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.processes import Gaussian, OrthogonalAR, RandomFeatures


def test_features_do_not_depend_on_the_precision():
    target, x = RandomFeatures(6, seed=3), np.random.default_rng(0).normal(size=(4, 2))
    double = np.asarray(target.feature_values(jnp.asarray(x)))
    with jax.enable_x64(False):
        single = np.asarray(jax.jit(target.feature_values)(jnp.asarray(x, jnp.float32)))
    assert (double.dtype, single.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-5)  # single precision, numbers of order 10


@pytest.mark.slow
def test_bases_do_not_depend_on_the_precision():
    """W W'ᵀ of two sequences commutes with every other transition of the process, in both precisions."""
    process, key = OrthogonalAR(Gaussian(1.0), 4, basis=5), jax.random.key(0)

    def transitions():
        tokens = np.asarray(jax.jit(lambda k: process.sample(k, 9, 2))(key), float)
        return [np.linalg.lstsq(one[:-1], one[1:], rcond=None)[0] for one in tokens]

    double = transitions()
    with jax.enable_x64(False):
        single = transitions()
    for one in double:
        for other in single:
            # least squares on eight tokens in single precision; for another basis the difference is of order 1
            np.testing.assert_allclose(one @ other, other @ one, rtol=0, atol=1e-3)
