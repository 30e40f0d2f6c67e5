"""Spectra of S = (1/n) Σ_i x_i x_iᵀ for x_i ~ N(0, I): drawn, or with their density, as nodes for polynomials."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaln

from mesascope.processes import LinearRegression

from .._shared import shared
from .._spectral_steps import spectra
from ._common import Inputs

_NODES = 24  # exact up to degree 47; three layers that move the inputs need 26
_LARGEST = 25.0  # beyond it there is nothing: a share below e^{−200} for n = 20


class Spectrum(NamedTuple):
    """E Σ_k f(λ_k) = Σ_j weights_j f(values_j) for the eigenvalues λ_k of S and polynomials f of degree ≤ 47."""

    values: np.ndarray
    weights: np.ndarray


class Spectra(Inputs):
    """How many spectra are drawn."""

    spectra: int = 200_000


@shared(Spectra)
def drawn_spectrum(settings: Spectra) -> Spectrum:
    """Of as many prompts as `spectra` says."""
    process = LinearRegression(len(settings.eigenvalues))
    values = spectra(process, settings.examples, settings.spectra, settings.seed)
    return nodes(Spectrum(values.ravel(), np.full(values.size, 1 / len(values))))


def expected_spectrum(settings: Inputs) -> Spectrum:
    """Of all prompts."""
    return nodes(Spectrum(*density(settings.examples, len(settings.eigenvalues))))


def nodes(spectrum: Spectrum, count: int = _NODES) -> Spectrum:
    """Gauss's nodes for sums over a spectrum: the eigenvalues of the Jacobi matrix of its orthogonal polynomials."""
    values, weights = spectrum
    total = weights.sum()
    before, now = np.zeros_like(values), np.full_like(values, total**-0.5)
    diagonal, off_diagonal = np.zeros(count), np.zeros(count)
    for k in range(count):
        diagonal[k] = np.sum(weights * values * now**2)
        following = (values - diagonal[k]) * now - off_diagonal[k - 1] * before
        off_diagonal[k] = np.sum(weights * following**2) ** 0.5
        before, now = now, following / off_diagonal[k]
    jacobi = np.diag(diagonal) + np.diag(off_diagonal[:-1], 1) + np.diag(off_diagonal[:-1], -1)
    found, vectors = np.linalg.eigh(jacobi)
    return Spectrum(found, total * vectors[0] ** 2)


def density(examples: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes x and weights ρ(x) dx of the mean density ρ of the eigenvalues of S, whose integral is d; n ≥ d.

    The joint density ∝ Π_i λ_i^α e^{−nλ_i/2} Π_{i<j} |λ_i − λ_j|, α = (n − d − 1)/2, integrates to a Pfaffian of the skew
    moments ∫∫ sgn(y − x) φ_i(x) φ_j(y), φ_i(x) ∝ x^{α+i} e^{−nx/2}; ρ is the derivative of its logarithm by the weight at x.
    """
    points, widths = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(0, _LARGEST**0.5, 301)
    half = np.diff(edges)[:, None] / 2
    root = (
        (edges[1:] + edges[:-1])[:, None] / 2 + half * points
    ).ravel()  # of x: no powers of ½ are left at 0
    x, width = root**2, 2 * root * (half * widths).ravel()
    shape = (examples - dim + 1) / 2 + np.arange(dim)[:, None]
    logarithm = (shape - 1) * np.log(x) - examples * x / 2 - gammaln(shape) + shape * np.log(examples / 2)
    phi = np.exp(logarithm)  # each with integral 1
    beyond = 1 - 2 * gammainc(shape, examples * x / 2)  # ∫ sgn(y − x) φ(y) dy
    skew = (phi * width) @ beyond.T
    skew = (skew - skew.T) / 2
    if dim % 2:
        skew = np.block([[skew, np.ones((dim, 1))], [-np.ones((1, dim)), np.zeros((1, 1))]])
    inverse = np.linalg.inv(skew)
    rho = np.einsum("ij,jx,ix->x", inverse[:dim, :dim], phi, beyond)
    if dim % 2:
        rho = rho + inverse[dim, :dim] @ phi
    return x, width * rho
