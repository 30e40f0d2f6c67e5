import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.processes import Constant, DiagonalUnitary, Gaussian, Sparse, Uniform


@pytest.mark.slow
def test_tokens_follow_one_diagonal_unitary_transition():
    tokens = DiagonalUnitary(Gaussian(2), 3).sample(named_key(0), 50, 20)
    assert tokens.shape == (20, 50, 3)
    assert tokens.dtype == jnp.complex128
    first = tokens[:, 0]
    np.testing.assert_array_equal(first.imag, 0)
    transition = tokens[:, 1] / first
    np.testing.assert_allclose(abs(transition), 1, rtol=1e-14)
    powers = transition[:, None, :] ** np.arange(50)[:, None]
    np.testing.assert_allclose(tokens, first[:, None, :] * powers, rtol=1e-12)


def test_long_sequences_stay_on_the_circle():
    tokens = DiagonalUnitary(Constant(1), 2).sample(named_key(0), 100_000, 1)
    np.testing.assert_allclose(abs(tokens), 1, rtol=1e-14)


@pytest.mark.parametrize("seed", [0, 1])
def test_transitions_are_uniform_and_independent_of_everything(seed):
    count = 50_000
    tokens = DiagonalUnitary(Uniform(1), 2).sample(named_key(seed, "uniform"), 2, count)
    first, transition = tokens[:, 0].real, tokens[:, 1] / tokens[:, 0]
    one, two = transition[:, 0], transition[:, 1]
    # Uniform on the circle: E λ^k = 0 for k ≠ 0. Independent: products with x_1 and the other λ average to 0.
    for mean in (one, one**2, one**3, one**5, one * two, one * two.conj(), one**2 * two.conj()):
        assert abs(mean.mean()) < 5 * count**-0.5
    for mean in (first[:, 0] * one, first[:, 1] * one, (first[:, 0] ** 2 - 1 / 3) * one):
        assert abs(mean.mean()) < 5 * count**-0.5


@pytest.mark.slow
def test_sampling_is_jittable_with_the_process_static_or_not():
    process = DiagonalUnitary(Sparse(2), 4)
    key = named_key(0)
    eager = process.sample(key, 5, 2)
    static = jax.jit(lambda p, k: p.sample(k, 5, 2), static_argnums=0)(process, key)
    pytree = jax.jit(lambda p, k: p.sample(k, 5, 2))(process, key)
    np.testing.assert_allclose(static, eager, rtol=1e-14)
    np.testing.assert_allclose(pytree, eager, rtol=1e-14)
