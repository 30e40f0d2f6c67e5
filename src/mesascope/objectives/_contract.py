"""The evaluation of moment plans: reduce the factors to features, then contract; every step costs at most O(d³)."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from ._plan import Feature, Form, Plan, Type

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
        total = total + _FORMS[form.name](form, a, k, last, weights)
    return total


def _vector_form(form: Form, a: Array, k: Array, z: Array, weights: Weights) -> Array:
    dim = a.shape[-1]
    fa, fk, fz = (_vectors(f, m, dim, weights) for f, m in zip(form.features, (a, k, z), strict=True))
    products = (fk[:, None] * fz[None]).reshape(-1, dim)
    coefficients = form.coefficients.reshape(len(fa), -1)
    return jnp.sum(fa * (coefficients @ products))


def _middle_a(form: Form, a: Array, k: Array, z: Array, weights: Weights) -> Array:
    dim = a.shape[-1]
    fa = _matrices(form.features[0], a, weights)
    fk = _vectors(form.features[1], k, dim, weights)
    fz = _vectors(form.features[2], z, dim, weights)
    mixed = jnp.einsum("akz,zj->akj", form.coefficients, fz)
    return jnp.sum(fa * (jnp.swapaxes(jnp.broadcast_to(fk, (len(fa), *fk.shape)), 1, 2) @ mixed))


def _middle_k(form: Form, a: Array, k: Array, z: Array, weights: Weights) -> Array:
    dim = a.shape[-1]
    fa = _vectors(form.features[0], a, dim, weights)
    fk = _matrices(form.features[1], k, weights)
    fz = _vectors(form.features[2], z, dim, weights)
    mixed = jnp.einsum("akz,zj->kaj", form.coefficients, fz)
    return jnp.sum(fk * (jnp.swapaxes(jnp.broadcast_to(fa, (len(fk), *fa.shape)), 1, 2) @ mixed))


def _pair_kz(form: Form, a: Array, k: Array, z: Array, weights: Weights) -> Array:
    dim = a.shape[-1]
    fk, fz = _matrices(form.features[1], k, weights), _matrices(form.features[2], z, weights)
    fa = _planes(form.features[0], a, dim, weights)
    mixed = jnp.tensordot(form.coefficients, fz, ((2,), (0,)))
    return jnp.sum(fa * jnp.sum(mixed * fk, 1))


def _pair_ak(form: Form, a: Array, k: Array, z: Array, weights: Weights) -> Array:
    dim = a.shape[-1]
    fa, fk = _matrices(form.features[0], a, weights), _matrices(form.features[1], k, weights)
    fz = _planes(form.features[2], z, dim, weights)
    mixed = jnp.tensordot(jnp.transpose(form.coefficients, (2, 0, 1)), fk, ((2,), (0,)))
    return jnp.sum(fz * jnp.sum(mixed * fa, 1))


def _triangle(form: Form, a: Array, k: Array, z: Array, weights: Weights) -> Array:
    fa = _matrices(form.features[0], a, weights)
    fk, fz = _matrices(form.features[1], k, weights), _matrices(form.features[2], z, weights)
    dim = fa.shape[-1]
    # Σ_z first: one matrix per (a, k); then Σ_k K_jk W_ki as one product with the concatenated K
    mixed = jnp.tensordot(form.coefficients, fz, ((2,), (0,))).reshape(len(fa), len(fk) * dim, dim)
    concatenated = jnp.transpose(fk, (1, 0, 2)).reshape(dim, len(fk) * dim)
    return jnp.sum(jnp.swapaxes(fa, 1, 2) * (concatenated @ mixed))


_FORMS = {
    "vector": _vector_form,
    "middle-a": _middle_a,
    "middle-k": _middle_k,
    "pair-kz": _pair_kz,
    "pair-ak": _pair_ak,
    "triangle": _triangle,
}


def _matrices(features: tuple[Feature, ...], blocks: Array, weights: Weights) -> Array:
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
