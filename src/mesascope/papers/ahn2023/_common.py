"""Parts that claims of ahn2023 share: inputs with a rotated covariance, and the preconditioners of trained layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mesascope.models import PromptModel
from mesascope.processes import FewShot, LinearRegression

from .._claim import Settings
from .._prompts import layer_weights
from .._rotations import rotated

PAPER = "ahn2023"


class Inputs(Settings):
    """The eigenvalues of Σ, whose random axes follow from the seed, and the number of examples."""

    eigenvalues: tuple[float, ...] = (1.0, 1.0, 0.25, 0.0625, 1.0)
    examples: int = 20
    seed: int = 0


def covariance(eigenvalues: Sequence[float], seed: int) -> np.ndarray:
    """Σ = U diag(λ) Uᵀ with a random rotation U of the seed."""
    values = np.asarray(eigenvalues, float)
    sigma = rotated(values, np.random.default_rng([seed, len(values)]))
    return np.asarray((sigma + sigma.T) / 2)


def symmetric_power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    """A power of a symmetric positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * values**exponent @ vectors.T)


def data(settings: Inputs, prior: str) -> tuple[LinearRegression, FewShot]:
    """Inputs x ~ N(0, Σ), w ~ N(0, I) or N(0, Σ⁻¹), no noise."""
    sigma = covariance(settings.eigenvalues, settings.seed)
    return LinearRegression(len(sigma), covariance=sigma, prior=prior), FewShot(settings.examples)


def preconditioners(model: PromptModel) -> tuple[np.ndarray, np.ndarray]:
    """A_ℓ and B_ℓ of every layer, shape (L, d, d), in the scale in which P_ℓ = diag(B_ℓ, 1)."""
    w_kq, w_pv = (weights[:, 0] for weights in layer_weights(model))
    label = w_pv[:, -1:, -1:]
    return -np.swapaxes(w_kq[:, :-1, :-1], 1, 2) * label, w_pv[:, :-1, :-1] / label


def distance(matrix: Any, of: Any) -> float:
    """min_α ‖M − αN‖/‖M‖ in the Frobenius norm: how far M is from the multiples of N, 0 to 1."""
    part = np.sum(matrix * of) / np.sum(of * of)
    return float(np.linalg.norm(matrix - part * of) / np.linalg.norm(matrix))
