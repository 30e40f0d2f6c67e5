"""The best layers whose preconditioners are multiples of Σ⁻¹, and whose input updates are multiples of I."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .._minimized import Best, Minimum, best_of, minimized
from ._common import Inputs
from ._spectra import Spectrum

NEARNESS = 1e-6
_SLOPE = 1e-7


class Multiples(NamedTuple):
    """A_ℓ = a_ℓ Σ⁻¹, B_ℓ = b_ℓ I, both (L,), and their loss E(ŷ − y)², the authors' scale."""

    a: np.ndarray
    b: np.ndarray
    loss: float

    def facts(self) -> dict[str, object]:
        """For a record."""
        return {"a": self.a.tolist(), "b": self.b.tolist(), "loss": self.loss}


class Search(Inputs):
    """The number of layers, and of random starts."""

    layers: int = 3
    starts: int = 100


def best_steps(spectrum: Spectrum, settings: Search) -> tuple[Multiples, Best]:
    """The best multiples a_ℓ with B = 0."""
    return _best(spectrum, settings, settings.layers)


def best_multiples(spectrum: Spectrum, settings: Search) -> tuple[Multiples, Best]:
    """The best multiples a_ℓ and b_ℓ; the last layer's B moves nothing that is read."""
    return _best(spectrum, settings, 2 * settings.layers - 1)


def minimum_near(spectrum: Spectrum, a: list[float], b: list[float]) -> Multiples:
    """The local minimum of the multiples that descent from (a, b) leads to."""
    return _multiples(_descended(spectrum, np.array([*a, *b[: len(a) - 1]]), len(a)), len(a))


def multiples_loss(spectrum: Spectrum, a: np.ndarray, b: np.ndarray) -> float:
    """E(ŷ − y)²."""
    return _loss(spectrum, np.array([*a, *b[: len(a) - 1]]), len(a))[0]


def left(values: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The part of w that is not learned along eigenvectors of S with these eigenvalues.

    With w ~ N(0, Σ⁻¹) the layers are steps on inputs Σ^{-1/2} x ~ N(0, I): of size a_ℓ for the labels, a_ℓ b_ℓ for the inputs.
    """
    rest, moved = np.ones_like(values), np.ones_like(values)
    for step, update in zip(a, b, strict=True):
        seen = values * moved**2
        rest, moved = rest * (1 - step * seen), moved * (1 - step * update * seen)
    return rest


def _best(spectrum: Spectrum, settings: Search, unknowns: int) -> tuple[Multiples, Best]:
    layers = settings.layers
    starts = _starts(spectrum, settings, unknowns)
    found = best_of(lambda start: _descended(spectrum, start, layers), starts, NEARNESS)
    return _multiples(Minimum(found.point, found.value), layers), found


def _starts(spectrum: Spectrum, settings: Search, unknowns: int) -> Iterator[np.ndarray]:
    """Random ones that are no worse than answers 0."""
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
    return minimized(lambda v: _loss(spectrum, v, layers), start, _SLOPE, gtol=1e-11, maxiter=600)


def _multiples(found: Minimum, layers: int) -> Multiples:
    """B is 0 where the point has no numbers for it."""
    b = np.zeros(layers)
    b[: len(found.point) - layers] = found.point[layers:]
    return Multiples(found.point[:layers], b, found.value)


def _loss(spectrum: Spectrum, v: np.ndarray, layers: int) -> tuple[float, np.ndarray]:
    """E(ŷ − y)² = E Σ_k r(λ_k)² with r of `left`, and its gradient by v = (a, b)."""
    values, weights = spectrum
    a, b = v[:layers], np.append(v[layers:], np.zeros(2 * layers - len(v)))
    rest, moved = np.ones_like(values), np.ones_like(values)
    by_rest, by_moved = np.zeros((2, 2 * layers, len(values)))
    with np.errstate(over="ignore", invalid="ignore"):  # a search may try points from which it turns back
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
