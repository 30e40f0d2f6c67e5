"""Steps with sizes of their own, as the layers of a network have, fitted to predictions of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.learners import (
    GradientDescent,
    LayeredGradientDescent,
    LayeredGradientDescentPlusPlus,
    Learner,
    Spectrum,
)

from ._evidence import Evidence
from ._fit import FIT_GAIN, TRIAL, TRIAL_GAIN, Fitted, typical_eigenvalue
from ._least_squares import Data, End, Equations, minimize

_LAYERS: dict[type[Any], int] = {
    LayeredGradientDescent: 6,
    LayeredGradientDescentPlusPlus: 3,
}  # the most that are tried
_TASKS = 400
_SIZES = (0.1, 0.3, 1.0)  # of equal steps at the start, in units of the inverse typical eigenvalue
_CURVATURES = (0.1, 0.3)


class LayersFitter(eqx.Module):
    r"""Fits step sizes, and curvature corrections, of 1 … L layers; of numbers that fit equally well the smallest is taken.

    Without corrections a prediction is $\bar C f(\bar S) q$ with a polynomial $f$ of degree K − 1. Its K coefficients are found
    by linear least squares; the step sizes are the inverse roots of $1 - s f(s)$. Where roots are complex, no real step sizes
    give this polynomial, and Levenberg and Marquardt's method starts from the real parts of the inverse roots. With corrections
    it starts from the sizes without them, in both orders, and from several equal steps.

    Attributes:
        kind: the class.
        eigenvalue: the typical eigenvalue of the data: coordinates are sizes times it.
    """

    kind: type[Any] = eqx.field(static=True)
    eigenvalue: Any = 1.0

    @property
    def layers(self) -> int:
        """The most layers that are tried."""
        return _LAYERS[self.kind]

    @property
    def curved(self) -> bool:
        """Whether the layers also correct the inputs."""
        return self.kind is LayeredGradientDescentPlusPlus

    def build(self, coordinates: Any, integer: Any) -> Learner:
        """Return the learner with `layers` steps, of which the first `integer` are those of the coordinates, the others 0."""
        numbers = jnp.asarray(coordinates) / self.eigenvalue
        place = jnp.arange(self.layers)
        sizes = jnp.where(place < integer, numbers[: self.layers], 0)
        corrections = jnp.where(place[1:] < integer, numbers[self.layers :], 0) if self.curved else None
        return self.kind(sizes, corrections) if self.curved else self.kind(sizes)

    def features(self, evidence: Evidence) -> Spectrum:
        """Return what the learner reads."""
        found: Spectrum = evidence.problems.features(self.kind)
        return found

    def fit(self, evidence: Sequence[Evidence]) -> Fitted:
        """Return the minimum of the sum over the evidence of the weighted |f − g|², relative to the size of f in each."""
        here = LayersFitter(self.kind, typical_eigenvalue(evidence[0].problems))
        trial, many = Data.of(here, evidence, *TRIAL), Data.of(here, evidence, _TASKS)
        ends: dict[int, End] = {}
        for count in range(1, self.layers + 1):
            found = minimize(Equations(trial, count), here._starts(count, trial), TRIAL_GAIN)
            ends[count] = minimize(Equations(many, count), found.point[None], FIT_GAIN)
        least = min(ends.values(), key=lambda end: end.cost)
        chosen = next(count for count, end in ends.items() if not end.is_worse_than(least))
        or_more = chosen < self.layers and not ends[self.layers].is_worse_than(ends[chosen])
        return Fitted(
            here._learner(ends[chosen].point, chosen), ends[chosen].cost, or_more=or_more, integer=chosen
        )

    def fit_beyond(self, special: Fitted, fitted: Fitted, evidence: Sequence[Evidence]) -> Fitted:
        """Return the special case itself, unless the fit is better than by chance."""
        same = self.like(special.learner)
        if same is None:
            return fitted
        equations = Equations(Data.of(self, evidence, _TASKS), 1)
        ends = [End(np.zeros(0), equations.costs_of(one)) for one in (same, fitted.learner)]
        return (
            fitted if ends[0].is_worse_than(ends[1]) else Fitted(same, ends[0].cost, integer=special.integer)
        )

    def like(self, special: Learner) -> Learner | None:
        """Return the learner that equals its special case; None for one with more steps than layers."""
        if isinstance(special, GradientDescent):
            steps = int(special.steps)
            return self.kind(np.full(steps, special.step_size)) if steps <= self.layers else None
        assert isinstance(special, LayeredGradientDescent)
        sizes = special.step_sizes
        return self.kind(sizes, np.zeros(sizes.size - 1)) if sizes.size <= self.layers else None

    def _learner(self, coordinates: np.ndarray, count: int) -> Learner:
        """Return the learner with so many steps; the order of sizes without corrections makes no difference."""
        numbers = coordinates / self.eigenvalue
        sizes = numbers[:count]
        if not self.curved:
            return self.kind(np.sort(sizes))
        return self.kind(sizes, numbers[self.layers : self.layers + count - 1])

    def _starts(self, count: int, data: Data) -> np.ndarray:
        """Return initial coordinates, always the same number, to avoid recompilation."""
        plain = [_inverse_roots(count, data, self.eigenvalue)]
        plain += [np.full(count, size) for size in _SIZES]
        if not self.curved:
            return np.array([self._padded(sizes, 0.0) for sizes in plain])
        bent = [self._padded(sizes, gamma) for sizes in plain[1:] for gamma in _CURVATURES]
        ordered = [
            self._padded(sizes, gamma)
            for sizes in (plain[0], plain[0][::-1])
            for gamma in (0.0, *_CURVATURES)
        ]
        return np.array(bent + ordered)

    def _padded(self, sizes: np.ndarray, curvature: float) -> np.ndarray:
        rest = np.full(self.layers - 1, curvature) if self.curved else np.zeros(0)
        return np.concatenate([sizes, np.zeros(self.layers - len(sizes)), rest])


def _inverse_roots(count: int, data: Data, eigenvalue: float) -> np.ndarray:
    """Return the real parts of the inverse roots of 1 − s f(s), ascending, for the best polynomial f of degree `count` − 1.

    s is in units of the typical eigenvalue; roots that are missing, of a smaller degree, are steps of size 0.
    """
    columns, answers = zip(*(_columns(count, *one, eigenvalue) for one in data.arrays), strict=True)
    design, right = np.concatenate(columns), np.concatenate(answers)
    found = np.linalg.lstsq(design, right, rcond=None)[0]
    inverse = np.roots(np.concatenate([[1.0], -found]))  # of z^K (1 − f(1/z)/z): the roots are sizes
    return np.sort(inverse.real)


def _columns(
    count: int, features: Spectrum, answers: Array, weights: Array, eigenvalue: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted predictions of s^0 … s^(count − 1), and of the model, as real rows."""
    values = np.asarray(features.values) / eigenvalue
    parts = np.asarray(features.cross) * np.asarray(features.query)[..., None, :] / eigenvalue
    scale = np.asarray(weights)[..., None]
    powers = [scale * np.einsum("...mk,...k->...m", parts, values**power) for power in range(count)]
    rows = np.stack([one.reshape(-1) for one in powers], -1)
    return _as_real(rows), _as_real((scale * np.asarray(answers)).reshape(-1))


def _as_real(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array.real, array.imag]) if np.iscomplexobj(array) else array
