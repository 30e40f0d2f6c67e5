"""The evaluation of moment plans: reduce the factors to features, then contract; every step costs at most O(d³)."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from ._plan import Feature, Plan, Type

Weights = Mapping[Type, Array]
"""Weight vector (d,) of every block type; empty when moments are scalars."""


def contract(plan: Plan, a: Array, k: Array, z: Array | None, weights: Weights) -> Array:
    """Return the sum over the forms of a plan.

    Args:
        plan: from `moment_plan`.
        a: blocks of A = P*P, shape (4, d, d) with label 2α' + α; or of P, shape (2, d, d), for the cross
            term.
        k: blocks of K, shape (4, d, d) with label 2β + γ.
        z: blocks of K̄, same shape; `None` for the cross term.
        weights: weight vectors of the block types of a typed plan.
    """
    total = jnp.zeros((), jnp.result_type(a, k))
    last = jnp.ones((1, 1, 1)) if z is None else z  # the cross term has only the unit feature of it
    for form in plan:
        contraction, reductions = _FORMS[form.name]
        sides = zip(reductions, form.features, (a, k, last), strict=True)
        reduced = (reduce(features, m, a.shape[-1], weights) for reduce, features, m in sides)
        total = total + contraction(form.coefficients, *reduced)
    return total


def _vector_form(c: Array, fa: Array, fk: Array, fz: Array) -> Array:
    products = (fk[:, None] * fz[None]).reshape(-1, fk.shape[-1])
    return jnp.sum(fa * (c.reshape(len(fa), -1) @ products))


def _middle_a(c: Array, fa: Array, fk: Array, fz: Array) -> Array:
    return _middle(fa, fk, jnp.einsum("akz,zj->akj", c, fz))


def _middle_k(c: Array, fa: Array, fk: Array, fz: Array) -> Array:
    return _middle(fk, fa, jnp.einsum("akz,zj->kaj", c, fz))


def _middle(matrices: Array, vectors: Array, mixed: Array) -> Array:
    """Return Σ_m Σ_ij M_ij Σ_v v_i w_j over matrices M = m, vectors v and w = mixed[m, v]."""
    columns = jnp.swapaxes(jnp.broadcast_to(vectors, (len(matrices), *vectors.shape)), 1, 2)
    return jnp.sum(matrices * (columns @ mixed))


def _pair_kz(c: Array, fa: Array, fk: Array, fz: Array) -> Array:
    mixed = jnp.tensordot(c, fz, ((2,), (0,)))
    return jnp.sum(fa * jnp.sum(mixed * fk, 1))


def _pair_ak(c: Array, fa: Array, fk: Array, fz: Array) -> Array:
    mixed = jnp.tensordot(jnp.transpose(c, (2, 0, 1)), fk, ((2,), (0,)))
    return jnp.sum(fz * jnp.sum(mixed * fa, 1))


def _triangle(c: Array, fa: Array, fk: Array, fz: Array) -> Array:
    dim = fa.shape[-1]
    # Σ_z first: one matrix per (a, k); then Σ_k K_jk W_ki as one product with the concatenated K
    mixed = jnp.tensordot(c, fz, ((2,), (0,))).reshape(len(fa), len(fk) * dim, dim)
    concatenated = jnp.transpose(fk, (1, 0, 2)).reshape(dim, len(fk) * dim)
    return jnp.sum(jnp.swapaxes(fa, 1, 2) * (concatenated @ mixed))


def _matrices(features: tuple[Feature, ...], blocks: Array, dim: int, weights: Weights) -> Array:
    """Return weighted blocks (n, d, d), transposed so that the first index of the contraction is first."""
    return jnp.concatenate([_matrix(feature, blocks, weights) for feature in features])


def _vectors(features: tuple[Feature, ...], blocks: Array, dim: int, weights: Weights) -> Array:
    """Return reduced vectors (n, d), with scalars as constant vectors."""
    runs = [_vector(feature, blocks, weights) for feature in features]
    return jnp.concatenate([jnp.broadcast_to(run, (len(run), dim)) for run in runs])


def _planes(features: tuple[Feature, ...], blocks: Array, dim: int, weights: Weights) -> Array:
    """Return features as functions of (i, j), shape (n, d, d): matrices, vectors along one axis, scalars."""
    return jnp.concatenate([_plane(feature, blocks, dim, weights) for feature in features])


def _plane(feature: Feature, blocks: Array, dim: int, weights: Weights) -> Array:
    if feature.kind == "matrix":
        return _matrix(feature, blocks, weights)
    vector = _vector(feature, blocks, weights)
    along = vector[:, None, :] if feature.place == "j" else vector[:, :, None]
    return jnp.broadcast_to(along, (len(vector), dim, dim))


def _matrix(feature: Feature, blocks: Array, weights: Weights) -> Array:
    weighted = _weigh(blocks, feature.weights, weights)
    return weighted if feature.place == "ij" else jnp.swapaxes(weighted, 1, 2)


def _vector(feature: Feature, blocks: Array, weights: Weights) -> Array:
    """Return one kind of vector (labels, d) or scalar (labels, 1) of every block."""
    if feature.kind == "unit":
        return jnp.ones((1, 1))
    if feature.kind in ("diagonal", "trace"):
        dim = blocks.shape[-1]
        # a strided slice: XLA turns `jnp.diagonal` into a gather, several times slower
        diagonal = blocks.reshape(len(blocks), dim * dim)[:, :: dim + 1]
        (kind,) = feature.weights
        weighted = diagonal * weights[kind] if kind else diagonal
        return weighted if feature.kind == "diagonal" else jnp.sum(weighted, 1, keepdims=True)
    weighted = _weigh(blocks, feature.weights, weights)
    if feature.kind == "row-sum":
        return jnp.sum(weighted, 2)
    if feature.kind == "column-sum":
        return jnp.sum(weighted, 1)
    return jnp.sum(weighted, (1, 2))[:, None]


def _weigh(blocks: Array, types: tuple[Type, ...], weights: Weights) -> Array:
    row, column = types
    if row:
        blocks = blocks * weights[row][:, None]
    return blocks * weights[column] if column else blocks


_FORMS = {
    "vector": (_vector_form, (_vectors, _vectors, _vectors)),
    "middle-a": (_middle_a, (_matrices, _vectors, _vectors)),
    "middle-k": (_middle_k, (_vectors, _matrices, _vectors)),
    "pair-kz": (_pair_kz, (_planes, _matrices, _matrices)),
    "pair-ak": (_pair_ak, (_matrices, _matrices, _planes)),
    "triangle": (_triangle, (_matrices, _matrices, _matrices)),
}
"""Every contraction, and how its three factors are reduced."""
