"""The best layers whose preconditioners are multiples of Σ⁻¹, and whose input updates are multiples of I.

Their loss depends on the spectra of S = (1/n) Σ_i x_i x_iᵀ, x_i ~ N(0, I): drawn, or with their density, as Gauss nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from mesascope.models import PromptModel
from mesascope.processes import LinearRegression
from mesascope.theory import ahn2023 as theory

from .._minimized import Best, Minimum, best_of, minimized
from .._prompts import construction_model
from .._shared import shared
from .._spectral_steps import spectra
from ._common import Inputs

_NODES = 24  # exact up to degree 47; three layers that move the inputs need 26
_LARGEST = 25.0  # a share below e^{−200} lies beyond it for n = 20


class Spectrum(NamedTuple):
    """E Σ_k f(λ_k) = Σ_j weights_j f(values_j) for the eigenvalues λ_k of S and polynomials f of degree ≤ 47."""

    values: np.ndarray
    weights: np.ndarray


class Spectra(Inputs):
    """The number of drawn spectra."""

    spectra: int = 200_000


@shared(Spectra)
def drawn_spectrum(settings: Spectra) -> Spectrum:
    """The spectrum of drawn prompts."""
    process = LinearRegression(len(settings.eigenvalues))
    values = spectra(process, settings.examples, settings.spectra, settings.seed)
    return nodes(Spectrum(values.ravel(), np.full(values.size, 1 / len(values))))


def expected_spectrum(settings: Inputs) -> Spectrum:
    """The spectrum of all prompts, in expectation."""
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
    ).ravel()  # of x: without half-integer powers at 0
    x, width = root**2, 2 * root * (half * widths).ravel()
    shape = (examples - dim + 1) / 2 + np.arange(dim)[:, None]
    logarithm = (
        (shape - 1) * np.log(x)
        - examples * x / 2
        - scipy.special.gammaln(shape)
        + shape * np.log(examples / 2)
    )
    phi = np.exp(logarithm)  # each with integral 1
    beyond = 1 - 2 * scipy.special.gammainc(shape, examples * x / 2)  # ∫ sgn(y − x) φ(y) dy
    skew = (phi * width) @ beyond.T
    skew = (skew - skew.T) / 2
    if dim % 2:
        skew = np.block([[skew, np.ones((dim, 1))], [-np.ones((1, dim)), np.zeros((1, 1))]])
    inverse = np.linalg.inv(skew)
    rho = np.einsum("ij,jx,ix->x", inverse[:dim, :dim], phi, beyond)
    if dim % 2:
        rho = rho + inverse[dim, :dim] @ phi
    return x, width * rho


class Multiples(NamedTuple):
    """A_ℓ = a_ℓ Σ⁻¹, B_ℓ = b_ℓ I, both (L,), and their loss E(ŷ − y)², the authors' scale."""

    a: np.ndarray
    b: np.ndarray
    loss: float

    def model(self, sigma: np.ndarray) -> PromptModel:
        """The transformer of these layers."""
        a, b = (one[:, None, None] for one in (self.a, self.b))
        inverse, identity = np.linalg.inv(sigma), np.eye(len(sigma))
        return construction_model(theory.preconditioned_gradient_descent(a * inverse, b * identity))

    def facts(self) -> dict[str, object]:
        """The multiples and their loss, for a record."""
        return {"a": self.a.tolist(), "b": self.b.tolist(), "loss": self.loss}


class Search(Inputs):
    """The number of layers, and of random starts."""

    layers: int = 3
    starts: int = 100


def best_steps(spectrum: Spectrum, settings: Search) -> tuple[Multiples, Best]:
    """The best multiples a_ℓ with B = 0."""
    return _best(spectrum, settings, settings.layers)


def best_multiples(spectrum: Spectrum, settings: Search) -> tuple[Multiples, Best]:
    """The best multiples a_ℓ and b_ℓ. The last layer's B has no effect."""
    return _best(spectrum, settings, 2 * settings.layers - 1)


def minimum_near(spectrum: Spectrum, a: list[float], b: list[float]) -> Multiples:
    """The local minimum of the multiples that descent from (a, b) leads to."""
    found = _descended(spectrum, np.array([*a, *b[: len(a) - 1]]), len(a))
    return Multiples(*_split(found.point, len(a)), found.value)


def _best(spectrum: Spectrum, settings: Search, unknowns: int) -> tuple[Multiples, Best]:
    layers, starts = settings.layers, _starts(spectrum, settings, unknowns)
    found = best_of(lambda start: _descended(spectrum, start, layers), starts, nearness=1e-6)
    return Multiples(*_split(found.point, layers), found.value), found


def _starts(spectrum: Spectrum, settings: Search, unknowns: int) -> Iterator[np.ndarray]:
    """Random starts with a loss below that of answers 0."""
    rng = np.random.default_rng([settings.seed, unknowns])
    layers, dim = settings.layers, len(settings.eigenvalues)
    for _ in range(settings.starts):
        while True:
            start = np.exp(rng.uniform(np.log(0.2), np.log(12), unknowns))
            start[layers:] = rng.uniform(0, 1, unknowns - layers)
            if _loss(spectrum, start, layers)[0] < dim:
                yield start
                break


def _descended(spectrum: Spectrum, start: np.ndarray, layers: int) -> Minimum:
    return minimized(lambda v: _loss(spectrum, v, layers), start, 1e-7, gtol=1e-11, maxiter=600)


def _split(v: np.ndarray, layers: int) -> tuple[np.ndarray, np.ndarray]:
    """(a, b), both (L,); entries of b that v lacks are 0."""
    return v[:layers], np.append(v[layers:], np.zeros(2 * layers - len(v)))


def _loss(spectrum: Spectrum, v: np.ndarray, layers: int) -> tuple[float, np.ndarray]:
    """E(ŷ − y)² = E Σ_k r(λ_k)² with r of `residual` for steps a_ℓ and a_ℓ b_ℓ, and its gradient by v = (a, b).

    With w ~ N(0, Σ⁻¹) layers are steps on inputs Σ^{-1/2} x ~ N(0, I): of size a_ℓ for labels, a_ℓ b_ℓ for the inputs.
    """
    values, weights = spectrum
    a, b = _split(v, layers)
    rest, moved = np.ones_like(values), np.ones_like(values)
    by_rest, by_moved = np.zeros((2, 2 * layers, len(values)))
    with np.errstate(over="ignore", invalid="ignore"):  # a search may try points where the loss overflows
        for layer, (step, update) in enumerate(zip(a, b, strict=True)):
            seen, by_seen = values * moved**2, 2 * values * moved * by_moved
            labels, inputs = 1 - step * seen, 1 - step * update * seen
            by_rest = by_rest * labels - rest * step * by_seen
            by_rest[layer] -= rest * seen
            by_moved = by_moved * inputs - moved * step * update * by_seen
            by_moved[layer] -= moved * update * seen
            by_moved[layers + layer] -= moved * step * seen
            rest, moved = rest * labels, moved * inputs
        return float(weights @ rest**2), 2 * (by_rest @ (weights * rest))[: len(v)]
