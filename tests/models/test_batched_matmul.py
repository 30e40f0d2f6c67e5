"""Products of many small matrices: their values and derivatives, and what is compiled of them for CPUs."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.models._batched_matmul import batched_matmul


def drawn(*shapes, batch, complex_=False):
    rng = np.random.default_rng(0)
    real = [rng.normal(size=(*shape, batch)) for shape in shapes]
    return [one + 1j * rng.normal(size=one.shape) for one in real] if complex_ else real


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("batch", [3, 16])  # below and above eight, where the program is another one
@pytest.mark.parametrize(
    ("rows", "length", "columns"), [(4, 3, 5), (4, 3, 1), (1, 3, 4), (4, 1, 5), (1, 1, 1), (2, 40, 1)]
)
def test_products_and_their_derivatives(rows, length, columns, batch, complex_):
    left, right = drawn((rows, length), (length, columns), batch=batch, complex_=complex_)
    moved = drawn((rows, length), (length, columns), batch=batch, complex_=complex_)
    found, change = jax.jvp(batched_matmul, (left, right), tuple(moved))
    np.testing.assert_allclose(found, np.einsum("ikb,kjb->ijb", left, right), rtol=1e-12, atol=1e-12)
    expected = np.einsum("ikb,kjb->ijb", moved[0], right) + np.einsum("ikb,kjb->ijb", left, moved[1])
    np.testing.assert_allclose(change, expected, rtol=1e-12, atol=1e-12)


def test_what_uses_a_product_with_a_vector_does_not_compute_it_again():
    """M + (v − M k) k*: the program for the entries of this matrix holds no sum over the columns of M."""

    def corrected(memory, key):
        error = key - batched_matmul(memory, key[:, None])[:, 0]
        return memory + batched_matmul(error[:, None], key[None])

    memory, key = (jnp.asarray(one, jnp.float32) for one in drawn((16, 16), (16,), batch=64))
    text = jax.jit(corrected).lower(memory, key).compile().as_text()
    programs = [one for one in re.split(r"\n}\n", text) if re.search(r"ROOT \S+ = f32\[16,16,64\]", one)]
    assert programs and all(one.count(" multiply(") < 16 for one in programs)
