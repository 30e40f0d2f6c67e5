"""The best layers whose preconditioners are multiples of Σ⁻¹, and whose input updates are multiples of I."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mesascope.processes import LinearRegression

from .._claim import Settings
from .._minimized import minimized_by_values
from .._spectral_steps import loss_of_steps, spectra


class Multiples(NamedTuple):
    """A_ℓ = a_ℓ Σ⁻¹, B_ℓ = b_ℓ I, both (L,), and their loss ½E(ŷ − y)²."""

    a: np.ndarray
    b: np.ndarray
    loss: float


_SEARCH = {"maxiter": 8000, "maxfev": 8000, "xatol": 1e-6, "fatol": 1e-12}


def _spectra(settings: Settings) -> np.ndarray:
    """With w ~ N(0, Σ⁻¹) layers A_ℓ = a_ℓ Σ⁻¹, B_ℓ = b_ℓ I are steps on inputs Σ^{-1/2} x ~ N(0, I)."""
    process = LinearRegression(len(settings["eigenvalues"]))
    return spectra(process, settings["examples"], settings["spectra"], settings["seed"])


def best_steps(settings: Settings) -> Multiples:
    """The best multiples a_ℓ with B = 0."""
    values, layers = _spectra(settings), settings["layers"]
    still = np.zeros(layers)
    found = minimized_by_values(
        lambda a: loss_of_steps(values, a, still, 1.0), np.geomspace(0.6, 2.0, layers), **_SEARCH
    )
    return Multiples(found.point, still, found.value)


def best_multiples(settings: Settings) -> Multiples:
    """The best multiples a_ℓ and b_ℓ: layer ℓ is a step of size a_ℓ and a curvature a_ℓ b_ℓ."""
    values, layers = _spectra(settings), settings["layers"]

    def parts(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return v[:layers], np.append(v[layers:], 0.0)  # the last layer's B moves nothing that is read

    def loss(v: np.ndarray) -> float:
        a, b = parts(v)
        return loss_of_steps(values, a, a * b, 1.0)

    start = np.concatenate([np.geomspace(0.6, 4.0, layers), np.full(layers - 1, 0.3)])
    found = minimized_by_values(loss, start, **_SEARCH)
    return Multiples(*parts(found.point), found.value)
