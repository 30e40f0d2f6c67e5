"""When two sets of weights are the same up to continuous symmetries."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts are imported where they are first used: half a second, which few programs need

_ITERATIONS, _LONGEST, _BALANCED = 30, 1.0, 1e-14


def balanced(vector: np.ndarray, generators: np.ndarray) -> np.ndarray:
    """The shortest vector of the orbit of θ under the symmetric generators: where every θᵀS_iθ = 0.

    The length is convex along exp(sS)θ, so that there is one such point up to rotations (Kempf and Ness); Newton's method on
    θᵀS_iθ finds it. Where the orbit reaches its least length only in the limit, θ itself is returned.

    Args:
        vector: θ, shape (n,).
        generators: orthonormal S_i, shape (r, n, n).
    """
    shortest = vector
    for _ in range(_ITERATIONS if len(generators) else 0):
        moved = generators @ shortest
        values = moved @ shortest
        if np.abs(values).max() <= _BALANCED * float(shortest @ shortest):
            return shortest
        step = np.linalg.lstsq(2 * moved @ moved.T, values, rcond=1e-12)[0]
        step *= min(1.0, _LONGEST / np.linalg.norm(step))
        shortest = scipy.linalg.expm(-np.tensordot(step, generators, 1)) @ shortest
    return vector


def same_predictions(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two models of linear attention, or equal weights, predict the same: Σ_h W^PV_h ⊗ W^KQ_h is equal.

    Args:
        one: W^KQ and W^PV of every head, shapes (heads, 2d, 2d) and (heads, d, 2d).
        other: likewise.
        tolerance: on the difference of the tensors, relative to the larger one.
    """
    own, its, mixed = _product(one, one), _product(other, other), _product(one, other)
    return own + its - 2 * mixed <= max(tolerance**2 * max(own, its), 1e-14 * max(own, its))


def _product(one: Any, other: Any) -> float:
    """The real inner product of the tensors Σ_h W^PV_h ⊗ W^KQ_h."""
    (kq, pv), (its_kq, its_pv) = one, other
    keys = np.einsum("hij,gij->hg", kq.conj(), its_kq)
    values = np.einsum("hij,gij->hg", pv.conj(), its_pv)
    return float(np.real(np.sum(keys * values)))
