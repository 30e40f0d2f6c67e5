r"""Certified signs of the eigenvalues of a Hessian that is known up to error bounds.

At a critical point the Hessian maps every orbit direction v∘θ to 0: these are its certain zeros. With U any matrix that
completes them to a basis B, Bᵀ H B is 0 beside Uᵀ H U, so that by Sylvester's law of inertia H has the signs of Uᵀ H U and
a zero for every orbit. U holds approximate eigenvectors from floating point, which makes Uᵀ H U nearly diagonal; that its
discs (Gershgorin) stay away from 0 is checked with balls, and so is that B is a basis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat

from ._krawczyk import NotProvedError


class Inertia(NamedTuple):
    """How many eigenvalues of a symmetric matrix are positive, negative and 0."""

    positive: int
    negative: int
    zero: int


def certified_inertia(hessian: Sequence[Sequence[Any]], orbits: Sequence[Sequence[Any]]) -> Inertia:
    """The signs of the eigenvalues.

    Args:
        hessian: an enclosure of the Hessian at a critical point, rows of balls.
        orbits: enclosures of the directions that it maps to 0, linearly independent.

    Raises:
        NotProvedError: the enclosures do not decide a sign: an eigenvalue is, or is nearly, 0.
    """
    size = len(hessian)
    middle = np.array([[float(entry.mid()) for entry in row] for row in hessian])
    values, vectors = np.linalg.eigh((middle + middle.T) / 2)
    nearest_zero = np.argsort(np.abs(values))
    others = np.sort(nearest_zero[len(orbits) :])
    basis = arb_mat(vectors[:, others].tolist())
    _check_basis(orbits, basis)
    reduced = basis.transpose() * arb_mat([list(row) for row in hessian]) * basis
    signs = [_sign(reduced, n, float(values[others[n]])) for n in range(size - len(orbits))]
    return Inertia(signs.count(1), signs.count(-1), len(orbits))


def _check_basis(orbits: Sequence[Sequence[Any]], basis: arb_mat) -> None:
    """That orbits and basis span everything; orbits are brought to size 1, which changes nothing about that."""
    rows = basis.transpose().tolist()
    for orbit in orbits:
        size = max(abs(float(entry.mid())) for entry in orbit) or 1.0
        rows.append([entry / size for entry in orbit])
    try:
        arb_mat(rows).inv()
    except ZeroDivisionError:
        raise NotProvedError(
            "the directions of the scalings may not be those in which the Hessian vanishes; ask for more digits"
        ) from None


def _sign(matrix: arb_mat, n: int, value: float) -> int:
    """The sign of the n-th disc."""
    around = sum((matrix[n, m].abs_upper() for m in range(matrix.ncols()) if m != n), arb(0))
    if matrix[n, n] - around > 0:
        return 1
    if matrix[n, n] + around < 0:
        return -1
    raise NotProvedError(
        f"the sign of an eigenvalue near {value:.3g} of the Hessian is not decided: it is 0, or too small for the radius; "
        "a degenerate critical point, or more digits are needed"
    )
