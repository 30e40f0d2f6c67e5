"""Products of the matrices that data are made of, in full precision on every device."""

from functools import partial

import jax.numpy as jnp

# By default GPUs multiply 32-bit numbers with 10 bits of mantissa: good enough for the layers of a model, but a
# transition would be orthogonal to three digits only.
einsum = partial(jnp.einsum, precision="highest")
