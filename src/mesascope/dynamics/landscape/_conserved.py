"""What a gradient flow conserves: one quadratic form for every symmetric generator of a symmetry."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import numpy as np

from mesascope.objectives import Engine
from mesascope.processes import NextToken
from mesascope.records import Printed

from .._flow import Flow
from .._parameters import Mask, real_vector
from ._landscape import landscape_of, real_vectors
from ._symmetry import Symmetries, find_symmetries

_ROUNDING = 1e-9


class ConservedQuantities(Printed, eqx.Module):
    """Quadratic forms Q_i(θ) = θᵀS_iθ that no gradient flow of the objective changes.

    Along θ' = −∇L: dQ_i/dt = −2 ∇L·S_iθ = 0, because the flow θ ↦ exp(sS_i)θ is a symmetry and S_i is symmetric. (A skew
    generator, a rotation, conserves nothing.)

    Attributes:
        forms: the matrices S_i in the coordinates of `real_vector`, in reduced echelon form: few entries, the first of
            them 1, shape (r, n, n).
    """

    forms: np.ndarray

    def _printed(self) -> tuple[str, dict[str, str]]:
        return "ConservedQuantities", {"number": str(len(self)), "weights": str(self.forms.shape[-1])}

    def __len__(self) -> int:
        return len(self.forms)

    def __call__(self, model: eqx.Module) -> np.ndarray:
        """Q_i of one model, shape (r,)."""
        vector = np.asarray(real_vector(model)[0])
        return np.einsum("rij,i,j->r", self.forms, vector, vector)

    def along(self, flow: Flow[Any]) -> np.ndarray:
        """Q_i at the saved points of a flow, shape (points, r)."""
        vectors = real_vectors(flow.trajectory)
        return np.einsum("rij,ti,tj->tr", self.forms, vectors, vectors, optimize=True)

    def drift(self, flow: Flow[Any]) -> np.ndarray:
        """The largest |Q_i(t) − Q_i(0)| along a flow, relative to the largest Σ_jk |θ_j S_jk θ_k| there, shape (r,)."""
        values, sizes = self.along(flow), np.abs(real_vectors(flow.trajectory))
        largest = np.einsum("rij,ti,tj->tr", np.abs(self.forms), sizes, sizes, optimize=True).max(0)
        changed = np.abs(values - values[0]).max(0)
        return changed / np.where(largest > 0, largest, 1.0)


def conserved_quantities(
    model: eqx.Module,
    process: Any,
    task: NextToken,
    *,
    engine: Engine | None = None,
    mask: Mask | None = None,
) -> ConservedQuantities:
    """All quadratic forms that gradient flow conserves because of a symmetry of the loss in the weights of `model`.

    Merged weights: ‖W^KQ‖² − ‖W^PV‖² (for one-hot tokens one such form per coordinate, and the entries that nothing
    depends on); heads: W^KQ_g · W^KQ_h − W^PV_g · W^PV_h for all g, h; factored weights: W_K W_K* − W_Q W_Q* and
    W_P* W_P − W_V W_V* of every head; on the manifold of `InvariantManifold.diagonal`: a² − b².

    Args:
        model: gives the structure (and the values of masked entries).
        process: what generates the sequences.
        task: horizon and weights of the context lengths.
        engine: how the expectation is computed; `ExactMoments()` by default.
        mask: masked entries (see `Mask`); then only sums of squares are looked for.

    Raises:
        ValueError, TypeError: as `gradient_flow`; ValueError when 64-bit mode is off.
    """
    landscape = landscape_of("conserved_quantities", model, process, task, engine, mask)
    return ConservedQuantities(_echelon(symmetric_generators(find_symmetries(landscape))))


def symmetric_generators(known: Symmetries) -> np.ndarray:
    """An orthonormal basis of the generators that are symmetric matrices, (k, n, n)."""
    found = known.generators
    if not len(found):
        return found
    skew = (found - np.swapaxes(found, 1, 2)).reshape(len(found), -1)
    values, basis = np.linalg.eigh(skew @ skew.T)
    symmetric = basis[:, values <= _ROUNDING * max(1.0, values[-1])].T
    made = np.tensordot(symmetric, found, 1)
    return (made + np.swapaxes(made, 1, 2)) / 2


def _echelon(forms: np.ndarray) -> np.ndarray:
    """Another basis of the same space, in which every form has an entry 1 where all others have 0."""
    rows = forms.reshape(len(forms), math.prod(forms.shape[1:])).copy()
    for i in range(len(rows)):
        pivot = int(np.argmax(np.abs(rows[i])))
        rows[i] /= rows[i, pivot]
        others = np.arange(len(rows)) != i
        rows[others] -= np.outer(rows[others, pivot], rows[i])
    rows[np.abs(rows) < _ROUNDING] = 0.0
    return rows.reshape(forms.shape)
