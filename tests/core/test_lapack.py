"""Factorizations in pieces: equal to those in one call, under every transformation, and in concurrent programs."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import eigh, lu_factor


def hermitian(*shape, kind=np.float64):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind is np.complex128 else 0)
    return jnp.asarray(x + np.swapaxes(x.conj(), -1, -2))


@pytest.mark.parametrize("kind", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (0, 3, 3), (700, 5, 5), (3, 7, 40, 40)])
def test_factorizations_equal_those_of_lapack(shape, kind):
    matrices = hermitian(*shape, kind=kind)
    values, vectors = eigh(matrices)
    # LAPACK computes every matrix by itself: not a bit may differ
    np.testing.assert_array_equal(values, jnp.linalg.eigh(matrices)[0])
    np.testing.assert_array_equal(vectors, jnp.linalg.eigh(matrices)[1])
    for found, expected in zip(lu_factor(matrices), jax.scipy.linalg.lu_factor(matrices), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_under_vmap_and_jit_as_well():
    matrices = hermitian(6, 50, 5, 5)
    values, _ = jax.jit(jax.vmap(jax.vmap(eigh, in_axes=1)))(matrices.transpose(0, 2, 1, 3))
    np.testing.assert_array_equal(values, jnp.linalg.eigh(matrices)[0])


PROGRAM = """
import threading, jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from mesascope.core import eigh, lu_factor
both = jax.jit(lambda a: (eigh(a + jnp.swapaxes(a, -1, -2)), lu_factor(jnp.sin(a))))
given = [jax.random.normal(jax.random.key(i), (6000, 5, 5)) for i in range(4)]
def run(one):
    for _ in range(40):
        jax.block_until_ready(both(one))
threads = [threading.Thread(target=run, args=(one,)) for one in given]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.slow
def test_concurrent_programs_finish():
    """With the functions of jax this did not finish in 30 s (two cores, jaxlib 0.10); more cores may hide it."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
