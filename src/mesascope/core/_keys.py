"""Random keys identified by their purpose: different purposes have independent randomness, in any order of calls."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..specs import show
from ._checks import integer_at_least

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


def random_key(key: Any) -> PRNGKeyArray:
    """Return `key` after checking that it is a random key, or an array of them: of `jax.random.key` or `PRNGKey`.

    Raises:
        TypeError: it is something else, such as a seed.
    """
    import jax
    import jax.numpy as jnp

    kind = getattr(key, "dtype", None)
    is_raw = kind == np.uint32 and key.ndim > 0  # made by PRNGKey
    if kind is None or not (is_raw or jnp.issubdtype(kind, jax.dtypes.prng_key)):
        raise TypeError(f"key must be a random key such as jax.random.key(0), got {show(key)}")
    return key


def split_keys(key: Any, count: int = 2) -> PRNGKeyArray:
    """Return `count` independent keys made of one, shape `(count,)`: `jax.random.split`.

    Raises:
        TypeError: as for `random_key`.
    """
    import jax

    return jax.random.split(random_key(key), count)


def named_key(seed: int, *names: str) -> PRNGKeyArray:
    """Return the random key of `seed` for the purpose given by `names`.

    The key is `jax.random.key(seed)` with the SHA-256 digest of the names folded in, so `named_key(0,
    "init")` and `named_key(0, "data", "epoch-3")` are independent streams, the same on every machine and in
    every run. `("ab", "c")` and `("a", "bc")` give different keys. Without names it is `jax.random.key(seed)`
    itself.

    Args:
        seed: an integer, 0 ≤ seed < 2**32 (the range in which 32- and 64-bit mode of JAX give the same key).
        *names: what the randomness is for, from general to particular.

    Raises:
        TypeError: `seed` is not an integer, or a name is not a string.
        ValueError: `seed` is out of range.
    """
    import jax

    seed = integer_at_least("seed", seed, 0)
    if seed >= 2**32:
        raise ValueError(f"seed must be below 2**32 = {2**32}, got {seed}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"named_key names must be strings, got {show(name)}; write str(...) around it")
    key = jax.random.key(seed)
    if names:
        # Each name is preceded by its length: joined alone, ("ab", "c") and ("a", "bc") would be the same
        # bytes.
        encoded = [name.encode() for name in names]
        digest = hashlib.sha256(b"".join(len(e).to_bytes(8, "big") + e for e in encoded)).digest()
        for start in range(0, len(digest), 4):
            key = jax.random.fold_in(key, int.from_bytes(digest[start : start + 4], "big"))
    return key
