"""Factorizations of many small matrices, so that programs that run side by side do not wait for each other for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

_WORK = 8192
"""n³ times the number of n × n matrices that LAPACK is given at once: a quarter of the most seen not to be shared out."""


def _in_pieces(factorize: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """`factorize`, for any number of matrices (…, n, n), in pieces that are too small to be shared out among threads.

    Up to jaxlib 0.10 on CPUs a batched factorization waits, within a worker of XLA's pool, for pieces of its own that other
    workers of the pool have to do: as many of them at once as there are workers, from as many threads, never end.
    """

    @jax.custom_batching.custom_vmap
    def flat(matrices: Array) -> Any:
        n = matrices.shape[-1]
        return jax.lax.map(factorize, matrices, batch_size=max(1, _WORK // max(n, 1) ** 3))

    @flat.def_vmap  # vmap of lax.map would put the pieces of all of its members together
    def _(axis: int, is_batched: list[bool], matrices: Array) -> tuple[Any, Any]:
        found = apply(matrices)
        return found, jax.tree.map(lambda _: True, found)

    def apply(matrices: Array) -> Any:
        shape = matrices.shape[:-2]
        found = flat(matrices.reshape(-1, *matrices.shape[-2:]))
        return jax.tree.map(lambda part: part.reshape(*shape, *part.shape[1:]), found)

    return apply


def eigh(matrices: Array) -> tuple[Array, Array]:
    """`jax.numpy.linalg.eigh` of Hermitian matrices (…, n, n): eigenvalues (…, n) and eigenvectors (…, n, n)."""
    values, vectors = _eigh(matrices)
    return values, vectors


def lu_factor(matrices: Array) -> tuple[Array, Array]:
    """`jax.scipy.linalg.lu_factor` of matrices (…, n, n): factors (…, n, n) and pivots (…, n)."""
    factors, pivots = _lu_factor(matrices)
    return factors, pivots


_eigh = _in_pieces(lambda matrix: tuple(jnp.linalg.eigh(matrix)))
_lu_factor = _in_pieces(lambda matrix: tuple(jax.scipy.linalg.lu_factor(matrix)))
