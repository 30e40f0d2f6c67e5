"""Factorizations of many small matrices that cannot deadlock when several programs run at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

_WORK = 8192
"""n³ times the number of n × n matrices in one call of LAPACK: a quarter of the largest amount seen to run in one thread."""


def _in_pieces(factorize: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """Return `factorize` for any number of matrices (…, n, n), in pieces that are too small to be divided among threads.

    Up to jaxlib 0.10 on CPUs, a batched factorization occupies one worker of XLA's thread pool while it waits for pieces
    that other workers must compute. As many factorizations at once as there are workers wait forever.
    """

    @jax.custom_batching.custom_vmap
    def flat(matrices: Array) -> Any:
        n = matrices.shape[-1]
        return jax.lax.map(factorize, matrices, batch_size=max(1, _WORK // max(n, 1) ** 3))

    @flat.def_vmap  # vmap of lax.map would merge the pieces of all members of the batch
    def _(axis: int, is_batched: list[bool], matrices: Array) -> tuple[Any, Any]:
        found = apply(matrices)
        return found, jax.tree.map(lambda _: True, found)

    def apply(matrices: Array) -> Any:
        shape = matrices.shape[:-2]
        found = flat(matrices.reshape(-1, *matrices.shape[-2:]))
        return jax.tree.map(lambda part: part.reshape(*shape, *part.shape[1:]), found)

    return apply


def eigh(matrices: Array) -> tuple[Array, Array]:
    """Return `jax.numpy.linalg.eigh` of Hermitian matrices (…, n, n): eigenvalues (…, n) and eigenvectors (…, n, n)."""
    values, vectors = _eigh(matrices)
    return values, vectors


def lu_factor(matrices: Array) -> tuple[Array, Array]:
    """Return `jax.scipy.linalg.lu_factor` of matrices (…, n, n): factors (…, n, n) and pivots (…, n)."""
    factors, pivots = _lu_factor(matrices)
    return factors, pivots


_eigh = _in_pieces(lambda matrix: tuple(jnp.linalg.eigh(matrix)))
_lu_factor = _in_pieces(lambda matrix: tuple(jax.scipy.linalg.lu_factor(matrix)))
