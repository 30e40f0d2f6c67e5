"""Continuous symmetries of an objective, found from its gradients.

A flow θ ↦ exp(sX)θ leaves L as it is exactly when ∇L(θ)·Xθ = 0 for all θ, and a shift θ ↦ θ + su when ∇L(θ)·u = 0.
Both are linear in X and u: gradients at enough random points leave exactly the symmetries as a null space. The X that
are looked for scale single entries of a weight array, or mix the slices along one of its axes: (W^KQ, W^PV) → (s W^KQ,
W^PV/s), a scaling for every coordinate of one-hot tokens, (W_K, W_Q) → (M^{−*} W_K, M W_Q), phases of complex weights.
Those that mix different arrays are not looked for: d = 1 with two heads has two of them, d = 2 none.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mesascope.objectives import Engine
from mesascope.processes import NextToken

from .._parameters import Mask
from ._landscape import Landscape, gradients, landscape_of, natural_size

_SPARE_POINTS = 40
_ROUNDING = 1e-9
# Singular values of the symmetries are rounding (≤ 1e-13 of the largest), the others are of the order of the inverse
# number of unknowns to the power of one or two (≥ 1e-6 for every model tried): the threshold lies in the middle.


class Symmetries(eqx.Module):
    """The Lie algebra of the linear symmetries of an objective, and its shifts.

    Attributes:
        generators: matrices X with ∇L(θ)·Xθ = 0 for all θ, orthonormal as vectors, shape (r, n, n).
        shifts: orthonormal u with ∇L(θ)·u = 0 for all θ (what nothing depends on), shape (q, n).
        separation: largest singular value taken for 0 and smallest one taken for another, relative to the largest.
    """

    generators: np.ndarray
    shifts: np.ndarray
    separation: tuple[float, float]

    def tangents(self, vector: np.ndarray) -> np.ndarray:
        """An orthonormal basis of what the symmetries span at θ, shape (n, k)."""
        moved = np.concatenate([self.generators @ vector, self.shifts]).T
        if not moved.size:
            return moved
        basis, values, _ = np.linalg.svd(moved, full_matrices=False)
        size = float(np.abs(vector).max())  # of what generators move; shifts move every weight by about 1
        return basis[:, values > _ROUNDING * (max(size, 1.0) if len(self.shifts) else size)]


def symmetries(
    model: eqx.Module,
    process: Any,
    task: NextToken,
    *,
    engine: Engine | None = None,
    mask: Mask | None = None,
    seed: int = 0,
) -> Symmetries:
    """The continuous symmetries of the objective in the weights of `model`: ∇L(θ)·Xθ = 0 for all θ.

    Args:
        model: gives the structure (and the values of masked entries).
        process: what generates the sequences.
        task: horizon and weights of the context lengths.
        engine: how the expectation is computed; `ExactMoments()` by default.
        mask: masked entries (see `Mask`); then only scalings of the others are looked for.
        seed: of the random points.

    Raises:
        ValueError, TypeError: as `gradient_flow`; ValueError when 64-bit mode is off.
    """
    return find_symmetries(landscape_of("symmetries", model, process, task, engine, mask), seed)


def find_symmetries(landscape: Landscape, seed: int = 0) -> Symmetries:
    """The continuous symmetries of a landscape."""
    free = np.asarray(landscape.allowed) == 1
    n, held = len(free), not free.all()
    family = _Family(landscape)
    count = (int(free.sum()) if held else family.size) + _SPARE_POINTS
    rng = np.random.default_rng(seed)
    sizes = natural_size(landscape) * np.exp(rng.uniform(-1, 1, size=(count, 1)))
    points = np.asarray(landscape.placed(jnp.asarray(sizes * rng.normal(size=(count, n)))))
    slopes = gradients(landscape, points)
    shifts, gap = _null_space(slopes[:, free])
    whole = np.zeros((len(shifts), n))
    whole[:, free] = shifts
    if held:
        scalings, other = _null_space((slopes * points)[:, free])
        found = np.zeros((len(scalings), n, n))
        found[:, free, free] = scalings
    else:
        combinations, other = _null_space(family.products(slopes, points))
        found = family.matrices(combinations)
    return Symmetries(found, whole, (max(gap[0], other[0]), min(gap[1], other[1])))


def _null_space(rows: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """An orthonormal basis of the null space of rows, (k, m) → (r, m), and its separation."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    _, values, basis = np.linalg.svd(rows / np.where(lengths > 0, lengths, 1.0), full_matrices=False)
    relative = values / max(values[0], np.finfo(float).tiny)
    null = relative <= _ROUNDING
    return basis[null], (float(relative[null].max(initial=0.0)), float(relative[~null].min(initial=1.0)))


class _Family:
    """Generators that scale one entry, or add one row, column or head of a weight array to another one.

    Together they are linearly independent, so that what is null is a symmetry.
    """

    def __init__(self, landscape: Landscape):
        self._rebuild, self._size = landscape.rebuild, len(landscape.start)
        self.size = self.products(np.zeros((1, self._size)), np.zeros((1, self._size))).shape[1]

    def products(self, slopes: np.ndarray, points: np.ndarray) -> np.ndarray:
        """∇L(θ)·Xθ for every generator, (k, n) and (k, n) → (k, size)."""
        columns = []
        for g, w in zip(self._arrays(slopes), self._arrays(points), strict=True):
            for unit in (1.0, 1j) if np.iscomplexobj(w) else (1.0,):
                columns.append(np.real(g.conj() * unit * w).reshape(len(g), -1))
                columns += [
                    np.real(unit * _off_diagonal(np.einsum(mixing, g.conj(), w))) for mixing in _MIXINGS
                ]
        return np.concatenate(columns, axis=1)

    def matrices(self, combinations: np.ndarray) -> np.ndarray:
        """X as matrices, (r, size) → (r, n, n)."""
        if not len(combinations):
            return np.zeros((0, self._size, self._size))
        basis = np.eye(self._size)
        # ∇L·Xθ at the unit vectors is the matrix X itself
        rows = [self.products(np.broadcast_to(e, basis.shape), basis) @ combinations.T for e in basis]
        return np.moveaxis(np.stack(rows), 2, 0)

    def _arrays(self, vectors: np.ndarray) -> list[np.ndarray]:
        """Gradients or weights, each as (k, heads, rows, columns)."""
        leaves = jax.tree.leaves(eqx.filter(self._rebuild(vectors), eqx.is_inexact_array))
        return [np.asarray(leaf).reshape(_as_heads(leaf.shape)) for leaf in leaves]


_MIXINGS = ("nhic,nhjc->nhij", "nhri,nhrj->nhij", "nirc,njrc->nij")


def _as_heads(shape: tuple[int, ...]) -> tuple[int, ...]:
    count, *rest = shape
    if len(rest) < 2:
        return (count, 1, *rest, *(1,) * (2 - len(rest)))
    return (count, -1, *rest[-2:])


def _off_diagonal(values: np.ndarray) -> np.ndarray:
    mixed = values[..., ~np.eye(values.shape[-1], dtype=bool)]
    return mixed.reshape(len(mixed), -1)
