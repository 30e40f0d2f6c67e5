"""Memory layers of small sizes, with random weights."""

import jax
import jax.numpy as jnp

from mesascope.models import MemoryLayer
from mesascope.models.rules._rule import Gate, MemorySizes
from mesascope.models.rules._test_time_training import InnerNorm
from mesascope.specs import known_kinds

SIZES = MemorySizes(width=3, heads=2, key=3, value=3)


def draw(rng, *shape, complex_numbers=False):
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if complex_numbers else real


def gate(rng, size=1, complex_numbers=False):
    return Gate(draw(rng, 2, size, 3, complex_numbers=complex_numbers), draw(rng, 2, size))


def layer_with(rng, rule, complex_numbers=False, **options):
    shapes = {"w_k": (2, 3, 3), "w_q": (2, 3, 3), "w_p": (2, 4, 3), "w_v": (2, 3, 3)}
    factors = {name: draw(rng, *shape, complex_numbers=complex_numbers) / 2 for name, shape in shapes.items()}
    return MemoryLayer(**factors, rule=rule, **options)


def norm_of(rng):
    return InnerNorm(jnp.asarray(draw(rng, 2, 3)), jnp.asarray(draw(rng, 2, 3)))


def of_kind(name, key=0, **options):
    return MemoryLayer.gaussian(
        3, known_kinds("rule")[name].example(), 2, 0.7, key=jax.random.key(key), **options
    )
