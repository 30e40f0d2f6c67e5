"""Theorem 3 at the authors' size: a critical point among multiples of Σ⁻¹, proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import numpy as np
from flint import arb, fmpq

from mesascope.core import spectral_moments
from mesascope.dynamics.certificates import NotProvedError, prove_minimum
from mesascope.models import preconditioned_linear_transformer
from mesascope.objectives import ExactMoments

from .._claim import Claim, Finding, UnsettledError, presets, verdict_if, within
from .._minimized import minimized
from ._common import PAPER, Inputs, data


def _proved(settings: _Proved) -> Finding:
    """A minimum among multiples, proved, and the whole gradient there, from another derivation of the loss."""
    dim, examples = len(settings.eigenvalues), settings.examples
    centres: dict[str, tuple[Fraction, ...]] = {}
    slopes: dict[str, float] = {}
    for layers in settings.layers:
        loss = MultiplesLoss(tuple(spectral_moments(2 * layers, dim, examples)))
        start = np.linspace(0.3, 1.5, layers)
        near = minimized(loss.in_floats, start, 1e-6, gtol=1e-9, maxiter=1000).point
        try:
            centre = prove_minimum(loss, near.tolist(), settings.digits)
        except NotProvedError as error:
            raise UnsettledError(f"not proved: {error}") from None
        centres[f"{layers}"] = centre
        slopes[f"{layers}"] = _whole_gradient(settings, np.array(centre, float))
    parts = {
        "a minimum among multiples": verdict_if(len(centres) == len(settings.layers)),
        "the gradient by all entries of all A": within(max(slopes.values()), settings.tolerance),
    }
    return Finding.of_parts(
        {"proved": len(centres), "gradient": slopes},
        {"proved": len(settings.layers), "gradient": 0.0},
        settings.tolerance,
        parts,
        {
            "multiples": {layers: [float(one) for one in centre] for layers, centre in centres.items()},
            "centres": {layers: list(map(str, centre)) for layers, centre in centres.items()},
            "within": f"1e-{settings.digits}",
            "meaning": "a_i of A_i = a_i Σ⁻¹; largest entry of the gradient, relative to the same a percent away",
        },
    )


def _whole_gradient(settings: _Proved, multiples: np.ndarray) -> float:
    """The largest entry of the gradient by all A_i, by pairings of inputs, relative to its size a percent away."""
    process, task = data(settings, "inverse")
    dim, key = len(settings.eigenvalues), jax.random.key(0)
    inverse = np.linalg.inv(process.input_covariance)
    objective = ExactMoments().objective(process, task)
    slope = jax.jit(jax.grad(lambda model: objective(model).value))

    def largest(a: np.ndarray) -> float:
        matrices = a[:, None, None] * inverse
        model = preconditioned_linear_transformer(dim, len(a), key=key, start=matrices)
        return max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(slope(model)))

    away = 1 + 0.01 * np.random.default_rng(settings.seed).choice([-1.0, 1.0], len(multiples))
    return largest(multiples) / largest(multiples * away)


@dataclass(frozen=True)
class MultiplesLoss:
    """E(ŷ − y)² = E tr Π_i (1 − a_i Ŝ)² as a function of a, for numbers that can be added and multiplied.

    Attributes:
        moments: E tr Ŝᵏ, k = 0 … 2L.
    """

    moments: tuple[Fraction, ...]

    def value(self, theta: Sequence[Any]) -> Any:
        """The loss."""
        return self._mean(_product([*theta, *theta]), 0)

    def gradient(self, theta: Sequence[Any]) -> list[Any]:
        """−2 E tr Ŝ (1 − a_i Ŝ) Π_{j≠i} (1 − a_j Ŝ)²."""
        return [-2 * self._mean(_product([*theta, *_without(theta, i)]), 1) for i in range(len(theta))]

    def hessian(self, theta: Sequence[Any]) -> list[list[Any]]:
        """2 E tr Ŝ² Π_{j≠i} (1 − a_j Ŝ)², and 4 E tr Ŝ² Π_{k≠i} (1 − a_k Ŝ) Π_{k≠j} (1 − a_k Ŝ) off the diagonal."""
        others = [_without(theta, i) for i in range(len(theta))]
        return [
            [(2 if i == j else 4) * self._mean(_product([*one, *other]), 2) for j, other in enumerate(others)]
            for i, one in enumerate(others)
        ]

    def in_floats(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient in double precision."""
        point = theta.tolist()
        return float(self.value(point)), np.array(self.gradient(point), float)

    def _mean(self, coefficients: Sequence[Any], power: int) -> Any:
        """E tr Ŝ^power f(Ŝ) for f(s) = Σ_k coefficients_k s^k."""
        balls = any(isinstance(one, arb) for one in coefficients)
        moments = [fmpq(m.numerator, m.denominator) if balls else float(m) for m in self.moments[power:]]
        return sum((c * m for c, m in zip(coefficients, moments, strict=True)), 0 * coefficients[-1])


def _product(theta: Sequence[Any]) -> list[Any]:
    """The coefficients of Π (1 − a s)."""
    found: list[Any] = [1]
    for a in theta:
        found = [one - a * before for one, before in zip([*found, 0], [0, *found], strict=True)]
    return found


def _without(theta: Sequence[Any], place: int) -> list[Any]:
    return [a for i, a in enumerate(theta) if i != place]


class _Proved(Inputs):
    layers: tuple[int, ...] = (2, 3)
    digits: int = 20
    tolerance: float = 1e-7


CLAIMS = (
    Claim(
        id=f"{PAPER}/critical-points-proved",
        title="Multiples of Σ⁻¹ where the whole gradient vanishes, proved",
        statement=(
            "For every Σ there are A_i = a_i Σ⁻¹, minima among multiples, where the gradient of the expected loss by all "
            "entries of the A_i of all layers is zero."
        ),
        source="ahn2023, Theorem 3",
        origin="paper",
        evidence="proved",
        settings=presets(_Proved()),
        check=_proved,
        criterion=(
            "For two and three layers, d = 5, n = 20: the loss of multiples has rational coefficients, moments of a Wishart "
            "matrix. By the test of Krawczyk, with balls, it has exactly one critical point within 1e-20 of the a found, and "
            "its curvatures are positive. The loss does not change when all Σ^{1/2}A_iΣ^{1/2} are rotated: at multiples the "
            "gradient by each is a multiple of I, 0 with its trace. As a check of both derivations the gradient by all "
            "entries, from the pairings of inputs, has to be below 1e-7 of its value a percent away, for the authors' Σ."
        ),
    ),
)
