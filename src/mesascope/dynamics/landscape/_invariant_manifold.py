"""Linear manifolds that gradient flow does not leave, and the flow on them, generated from the same objective.

A manifold θ = Bz with BᵀB = 1 is invariant where ∇L(Bz) lies in the span of B for all z. The flow on it is then the gradient
flow of z ↦ L(Bz), with as few unknowns as B has columns; a `ReducedLinearAttention` is linear attention with the
weights z, so that everything that treats linear attention (flows, critical points, stability, training) treats it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import integer_at_least
from mesascope.models import LinearAttention, LinearAttentionModel, Normalizer
from mesascope.objectives import Engine
from mesascope.processes import NextToken
from mesascope.specs import show

from ._landscape import gradients, landscape_of, natural_size

BLOCKS = ("kq-xx", "kq-xy", "kq-yx", "kq-yy", "pv-x", "pv-y")
"""The d × d blocks of W^KQ (row, column) and of W^PV (column); x: the token x_i, y: the token before it, x_{i−1}."""
STEP = ("kq-yx", "pv-x")
"""The blocks in which one step of gradient descent lives (zheng2024, Assumption 3.1)."""
_ROUNDING, _DUST, _POINTS = 1e-10, 1e-15, 8


class InvariantManifold:
    """The weights of `LinearAttention` that are linear combinations of given ones: θ = Bz.

    Attributes:
        dim: token dimension d.
        basis: B with orthonormal columns, shape (6d², m): W^KQ row by row, then W^PV.
    """

    def __init__(self, directions: Any):
        """The span of some weights, which need not be orthogonal.

        Raises:
            ValueError: without directions, or for complex, linearly dependent or differently sized ones.
        """
        models = list(directions) if isinstance(directions, Iterable) else []
        if not all(isinstance(m, LinearAttention) for m in models) or len({m.dim for m in models}) != 1:
            raise ValueError("directions: give at least one LinearAttention, all of one dim")
        columns = np.stack([_flat(m) for m in models], axis=1)
        lengths = np.linalg.norm(columns, axis=0)
        q, r = np.linalg.qr(columns / np.where(lengths > 0, lengths, 1.0))
        if np.iscomplexobj(columns) or np.abs(np.diagonal(r)).min() < 1e-8 or len(models) > len(q):
            raise ValueError(
                "directions: must be real and linearly independent; leave out what the others span"
            )
        self.dim = models[0].dim
        self.basis = q * np.sign(np.diagonal(r))
        self.basis[np.abs(self.basis) < _DUST] = 0.0
        self.basis.setflags(write=False)

    @classmethod
    def of_blocks(cls, dim: int, patterns: Iterable[Any], blocks: Iterable[str] = STEP) -> Self:
        """Every block named is a combination of the d × d matrices `patterns`, all other blocks are 0.

        Coordinates count blocks first, in the order given.

        Raises:
            ValueError: for an unknown block, or patterns that are linearly dependent.
        """
        names = tuple(blocks)
        unknown = [name for name in names if name not in BLOCKS]
        if unknown:
            raise ValueError(f"blocks: {show(unknown[0])} is unknown; choose from {', '.join(BLOCKS)}")
        matrices = [np.asarray(pattern, float) for pattern in patterns]
        return cls(_with_block(dim, name, matrix) for name in names for matrix in matrices)

    @classmethod
    def diagonal(cls, dim: int, blocks: Iterable[str] = STEP) -> Self:
        """Every block is a multiple of the identity: the diagonal initialization, with a and b only by default."""
        return cls.of_blocks(dim, [np.eye(integer_at_least("dim", dim, 1))], blocks)

    @classmethod
    def coordinatewise(cls, dim: int, blocks: Iterable[str] = STEP) -> Self:
        """Every block is diagonal: a_1 … a_d and b_1 … b_d by default."""
        return cls.of_blocks(dim, [np.diag(e) for e in np.eye(integer_at_least("dim", dim, 1))], blocks)

    @classmethod
    def exchangeable(cls, dim: int, blocks: Iterable[str] = STEP) -> Self:
        """Every block is αI + β11ᵀ: invariant under permutations of the coordinates; dim ≥ 2."""
        d = integer_at_least("dim", dim, 2)
        return cls.of_blocks(d, [np.eye(d), np.ones((d, d))], blocks)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, InvariantManifold)
            and self.dim == other.dim
            and np.array_equal(self.basis, other.basis)
        )

    def __hash__(self) -> int:
        return hash((self.dim, self.basis.tobytes()))

    def __repr__(self) -> str:
        return f"InvariantManifold(dim={self.dim}, coordinates={self.basis.shape[1]})"

    def reduce(self, model: LinearAttention) -> ReducedLinearAttention:
        """The coordinates of a model on the manifold.

        Raises:
            ValueError: for a model that is not on it; names the largest entry that is not.
        """
        if model.dim != self.dim:
            raise ValueError(f"model has dim {model.dim}, the manifold has dim {self.dim}; make them equal")
        vector = _flat(model)
        coordinates = self.basis.T @ vector
        off = np.abs(vector - self.basis @ coordinates)
        if off.max() > _ROUNDING * np.abs(vector).max():
            raise ValueError(
                f"model: not on the manifold, {_entry(int(off.argmax()), self.dim)} is off by {off.max():.1e}; start on it, or "
                "use a larger manifold"
            )
        return ReducedLinearAttention(coordinates, self, model.normalizer)

    def check_invariant(
        self, process: Any, task: NextToken, *, engine: Engine | None = None, normalizer: Normalizer = "t-1"
    ) -> float:
        """Check that gradient flow does not leave the manifold: ∇L(Bz) = BBᵀ∇L(Bz) at random z.

        Returns:
            The largest component of ∇L off the manifold, relative to its largest component.

        Raises:
            ValueError: where it is more than rounding; names the entry that leaves fastest.
            ValueError, TypeError: as `gradient_flow`.
        """
        model = LinearAttention.diagonal(self.dim, 1.0, 1.0, normalizer)
        landscape = landscape_of("check_invariant", model, process, task, engine, None)
        size = natural_size(landscape) * np.sqrt(self.dim)
        points = size * np.random.default_rng(0).normal(size=(_POINTS, self.basis.shape[1])) @ self.basis.T
        slopes = gradients(landscape, points)
        off = np.abs(slopes - slopes @ self.basis @ self.basis.T) / np.abs(slopes).max(1, keepdims=True)
        if off.max() > _ROUNDING:
            entry = _entry(int(off.max(0).argmax()), self.dim)
            raise ValueError(
                f"manifold: not invariant, the gradient moves {entry} off it by {off.max():.1e} of its largest component; "
                "add that direction, or choose a law without the moments that cause it"
            )
        return float(off.max())


class ReducedLinearAttention(LinearAttentionModel):
    """Linear attention whose weights are the coordinates z on a manifold: (W^KQ, W^PV) = Bz.

    Attributes:
        coordinates: z, shape (m,).
        manifold: B.
        normalizer: as in `LinearAttention`.
    """

    coordinates: Array
    manifold: InvariantManifold = eqx.field(static=True)
    normalizer: Normalizer = eqx.field(static=True)

    def __init__(self, coordinates: Any, manifold: InvariantManifold, normalizer: Normalizer = "t-1"):
        self.coordinates = jnp.asarray(coordinates, float)
        self.manifold = manifold
        self.normalizer = normalizer

    def heads(self) -> tuple[Array, Array]:
        """One head: shapes (…, 1, 2d, 2d) and (…, 1, d, 2d)."""
        d, vector = self.manifold.dim, self.coordinates @ self.manifold.basis.T
        lead = vector.shape[:-1]
        w_kq, w_pv = vector[..., : 4 * d * d], vector[..., 4 * d * d :]
        return w_kq.reshape(*lead, 1, 2 * d, 2 * d), w_pv.reshape(*lead, 1, d, 2 * d)

    def merged(self) -> LinearAttention:
        """The same model with its weights written out."""
        w_kq, w_pv = self.heads()
        return LinearAttention(w_kq[0], w_pv[0], self.normalizer)


def _flat(model: LinearAttention) -> np.ndarray:
    return np.concatenate([np.asarray(model.w_kq).reshape(-1), np.asarray(model.w_pv).reshape(-1)])


def _with_block(dim: int, name: str, matrix: np.ndarray) -> LinearAttention:
    if matrix.shape != (dim, dim):
        raise ValueError(f"patterns: expected shape {(dim, dim)}, got {matrix.shape}")
    w_kq, w_pv = np.zeros((2 * dim, 2 * dim)), np.zeros((dim, 2 * dim))
    kind, place = name.split("-")
    rows, *columns = (slice(0, dim) if token == "x" else slice(dim, None) for token in place)
    if kind == "kq":
        w_kq[rows, columns[0]] = matrix
    else:
        w_pv[:, rows] = matrix
    return LinearAttention(w_kq, w_pv)


def _entry(number: int, dim: int) -> str:
    wide = 2 * dim
    if number < wide * wide:
        return f"w_kq[{number // wide}, {number % wide}]"
    number -= wide * wide
    return f"w_pv[{number // wide}, {number % wide}]"
