"""Exact moments of regression prompts: of an example and of the query, averaged over the tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import fmpq

from mesascope.core import exact
from mesascope.processes import Gaussian, LinearRegression, RandomDiagonal, noise_moment

Row = tuple[fmpq, ...]


@dataclass(frozen=True)
class PromptMoments:
    """Moments of examples e = (x, y) and of the query q = (x, 0), x ~ N(0, Σ).

    Attributes:
        inputs: Σ, rows.
        tasks: E v vᵀ for v = (1, w, wᵀΣw), rows.
        noise: E σ² and E σ⁴.
    """

    inputs: tuple[Row, ...]
    tasks: tuple[Row, ...]
    noise: tuple[fmpq, fmpq]

    @property
    def dim(self) -> int:
        """The dimension of the inputs."""
        return len(self.inputs)

    @property
    def power(self) -> fmpq:
        """E y²."""
        return self.tasks[0][-1] + self.noise[0]

    def example(self, a: int, i: int) -> fmpq:
        """Return E S_ai, S the covariance of an example given the task."""
        return self._mean(self._entry(a, i), {0: fmpq(1)}) + self._noisy(a, i) * self.noise[0]

    def examples(self, a: int, i: int, b: int, k: int) -> fmpq:
        """Return E S_ai S_bk."""
        one, other = self._entry(a, i), self._entry(b, k)
        found = self._mean(one, other)
        if self._noisy(a, i):
            found += self.noise[0] * self._mean(other, {0: fmpq(1)})
        if self._noisy(b, k):
            found += self.noise[0] * self._mean(one, {0: fmpq(1)})
        return found + self._noisy(a, i) * self._noisy(b, k) * self.noise[1]

    def label(self, a: int, i: int, j: int) -> fmpq:
        """Return E S_ai (Σw)_j."""
        found = self._mean(self._entry(a, i), self._entry(j, self.dim))
        return found + self._noisy(a, i) * self.noise[0] * self._mean(self._entry(j, self.dim), {0: fmpq(1)})

    def own_label(self, a: int, i: int, j: int) -> fmpq:
        """Return E q_a q_i x_j wᵀx."""
        places = (a, i, j)
        if self.dim in places:
            return fmpq(0)
        mean = [self._mean(self._entry(n, self.dim), {0: fmpq(1)}) for n in places]
        pairs = (self.inputs[i][j] * mean[0], self.inputs[a][j] * mean[1], self.inputs[a][i] * mean[2])
        return sum(pairs, fmpq(0))

    def query(self, *places: int) -> fmpq:
        """Return E Π_n q_n over some places, by all pairings."""
        if self.dim in places:
            return fmpq(0)
        return sum((self._paired(pairing) for pairing in _pairings(places)), fmpq(0))

    def _paired(self, pairing: tuple[tuple[int, int], ...]) -> fmpq:
        found = fmpq(1)
        for one, other in pairing:
            found *= self.inputs[one][other]
        return found

    def _noisy(self, a: int, i: int) -> bool:
        return a == i == self.dim

    def _entry(self, a: int, i: int) -> dict[int, fmpq]:
        """Return the coefficients of v in S_ai without noise: Σ_ai, (Σw)_a or wᵀΣw."""
        a, i = sorted((a, i))
        if i < self.dim:
            return {0: self.inputs[a][i]}
        if a < self.dim:
            return {1 + n: c for n, c in enumerate(self.inputs[a]) if c != 0}
        return {self.dim + 1: fmpq(1)}

    def _mean(self, one: dict[int, fmpq], other: dict[int, fmpq]) -> fmpq:
        """Return the mean of the product of two combinations of v."""
        return sum((c * b * self.tasks[n][m] for n, c in one.items() for m, b in other.items()), fmpq(0))


def prompt_moments(process: LinearRegression) -> PromptMoments:
    """Return the moments of a process with Gaussian inputs; a float is the rational number that it represents.

    Raises:
        TypeError: for another process or other inputs.
    """
    if not isinstance(process, LinearRegression):
        raise TypeError(
            f"process: rational losses of prompts need LinearRegression, not {type(process).__name__}; use ExactMoments, "
            "which computes in floating point"
        )
    if not isinstance(process.law, Gaussian) or isinstance(process.covariance, RandomDiagonal):
        raise TypeError(
            f"process: rational losses of prompts need Gaussian inputs with a fixed covariance, not {process.describe()}; "
            "use ExactMoments for random covariances, MonteCarlo for other laws"
        )
    covariance = process.exact_input_covariance
    tasks = process.weight_moments(covariance)
    noise = _rational(noise_moment(process.noise, 2)), _rational(noise_moment(process.noise, 4))
    return PromptMoments(_rational_rows(covariance), _rational_rows(tasks), noise)


def _rational_rows(matrix: np.ndarray) -> tuple[Row, ...]:
    return tuple(tuple(_rational(entry) for entry in row) for row in matrix)


def _rational(value: Any) -> fmpq:
    fraction = exact(value)
    return fmpq(fraction.numerator, fraction.denominator)


def _pairings(places: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield all ways to split places into pairs."""
    if not places:
        yield ()
        return
    first, *rest = places
    for n, other in enumerate(rest):
        for pairing in _pairings((*rest[:n], *rest[n + 1 :])):
            yield ((first, other), *pairing)
