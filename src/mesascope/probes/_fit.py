"""Hyperparameters of learners fitted to predictions: Levenberg–Marquardt from many initial values, integers by trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mesascope.learners import Fitting, Learner, features_of

from ._integer_search import best_integer
from ._metrics import squared
from ._problems import Problems

_TRIAL_TASKS = 48  # enough to find integers, and good initial values of other hyperparameters
_STARTS = {
    1: 4,
    2: 9,
}  # number of initial values that are optimized, by the number of scalars: with two there are several local minima
_ITERATIONS = 40
MAX_MEDIANS = 10.0  # the maximal size of a task, in medians
_TRIAL_GAIN, _FIT_GAIN = 1e-2, 1e-13  # relative gains of an iteration below which a trial, and a fit, stops


class Evidence(NamedTuple):
    """Problems and the predictions of the model for them, shape (batch, N + 1, m)."""

    problems: Problems
    answers: np.ndarray

    def part(self, start: int, stop: int) -> Evidence:
        """Return the tasks start … stop − 1."""
        return Evidence(self.problems.part(start, stop), self.answers[start:stop])

    @property
    def weights(self) -> np.ndarray:
        r"""$w_n \min(1, 10 m / \|f\|^2)$, shape (batch, N + 1): no task counts more than ten medians.

        $\|f\|^2$ is the weighted sum of squared predictions in a task, $m$ its median over tasks. Otherwise rare tasks on
        which an algorithm diverges would dominate the fit and the distance.
        """
        sizes = squared(self.answers) @ self.problems.weights
        limit = MAX_MEDIANS * np.median(sizes)
        share = np.divide(limit, sizes, out=np.ones_like(sizes), where=sizes > limit) if limit > 0 else 1.0
        return np.outer(share * np.ones_like(sizes), self.problems.weights)

    @property
    def size(self) -> float:
        """The weighted sum of |f|² over all tasks, or 1 if all predictions are 0."""
        total = float(np.sum(self.weights * squared(self.answers)))
        return total if total > 0 else 1.0


class Fitted(NamedTuple):
    """A learner with fitted hyperparameters.

    Attributes:
        learner: the learner.
        cost: the remaining squared distance, relative to the size of the predictions.
        determined: whether the data determine the hyperparameters.
    """

    learner: Learner
    cost: float
    determined: bool = True


@dataclass(frozen=True)
class Family:
    """Learners of one kind with fitted hyperparameters.

    Attributes:
        kind: the class.
        fitting: the hyperparameters, and how they are fitted.
    """

    kind: type[Learner]
    fitting: Fitting

    def build(self, coordinates: Any, integer: Any) -> Learner:
        """Return the learner at the coordinates of its scalars."""
        how = self.fitting
        values = {s.name: s.value(coordinates[i]) for i, s in enumerate(how.scalars)}
        values |= dict(how.fixed)
        if how.integer is not None:
            values[how.integer] = integer
        return (how.make or self.kind)(**values)

    def fit(self, evidence: Sequence[Evidence]) -> Fitted:
        """Return the minimum of the sum over the evidence of the weighted |f − g|², relative to the size of f in each."""
        trial = [e.part(0, min(_TRIAL_TASKS, e.problems.tasks)) for e in evidence]
        eigenvalue = _typical_eigenvalue(evidence[0].problems)
        features = [_features(self.kind, e) for e in trial]
        ends: dict[int, _End] = {}

        def cost(integer: int) -> float:
            equations = _Equations(self, integer, trial, features)
            starts = _best_starts(equations, self._grid(eigenvalue))
            ends[integer] = _minimize(equations, starts, _TRIAL_GAIN)
            return float(ends[integer].costs.min())

        best = best_integer(cost, self.fitting.largest)
        start = ends[best].coordinates[np.argmin(ends[best].costs)]
        many = [e.part(0, min(self.fitting.tasks, e.problems.tasks)) for e in evidence]
        equations = _Equations(self, best, many, [_features(self.kind, e) for e in many])
        end = _minimize(equations, start[None], _FIT_GAIN)
        learner = self.build(jnp.asarray(end.coordinates[0]), best)
        return Fitted(learner, float(end.costs[0]))

    def _grid(self, eigenvalue: float) -> np.ndarray:
        scalars = self.fitting.scalars
        if not scalars:
            return np.zeros((1, 0))
        count = {1: 16, 2: 6}[len(scalars)]
        return np.array(list(product(*(s.starts(count, eigenvalue) for s in scalars))))


class _End(NamedTuple):
    coordinates: np.ndarray
    costs: np.ndarray


class _Equations:
    """Cost, gradient and Gauss–Newton matrix at many coordinates, summed over the evidence."""

    def __init__(self, family: Family, integer: int, evidence: Sequence[Evidence], features: Sequence[Any]):
        self._family, self._integer = family, integer
        self._data = [
            (seen, jnp.asarray(e.answers), jnp.asarray(np.sqrt(e.weights / e.size))[..., None])
            for e, seen in zip(evidence, features, strict=True)
        ]

    def __call__(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        integer = jnp.asarray(self._integer)  # traced: one compiled program is used for every number of steps
        parts = [
            _normal_equations(self._family, integer, jnp.asarray(coordinates), *data) for data in self._data
        ]
        cost, slope, matrix = (np.sum([np.asarray(part[i]) for part in parts], 0) for i in range(3))
        return np.where(np.isfinite(cost), cost, np.inf), slope, matrix


@eqx.filter_jit
def _normal_equations(
    family: Family, integer: Any, coordinates: Any, features: Any, answers: Any, weights: Any
) -> Any:
    def residual(at: Any) -> Any:
        return weights * (family.build(at, integer).respond(features) - answers)

    def one(at: Any) -> Any:
        residuals = residual(at)
        columns = (
            jax.jacfwd(residual)(at).reshape(residuals.size, len(at))
            if len(at)
            else residuals.reshape(-1, 1)[:, :0]
        )
        slope = jnp.real(columns.conj().T @ residuals.reshape(-1))
        return jnp.sum(jnp.abs(residuals) ** 2), slope, jnp.real(columns.conj().T @ columns)

    return jax.vmap(one)(coordinates)


def _best_starts(equations: _Equations, grid: np.ndarray) -> np.ndarray:
    """Return the best points of a grid, always the same number, to avoid recompilation."""
    if len(grid) == 1:
        return grid
    count = _STARTS[grid.shape[1]]
    costs = [equations(grid[i : i + count])[0] for i in range(0, len(grid), count)]
    return grid[np.argsort(np.concatenate(costs))[:count]]


def _minimize(equations: _Equations, coordinates: np.ndarray, gain: float) -> _End:
    """Return the results of Levenberg–Marquardt from all initial values, which stops if no relative gain exceeds `gain`."""
    costs, slopes, matrices = equations(coordinates)
    if coordinates.shape[1] == 0:
        return _End(coordinates, costs)
    damping = np.full(len(costs), 1e-3)
    for _ in range(_ITERATIONS):
        step = _steps(slopes, matrices, damping)
        # coordinates are logarithms: at most a factor of e² per step
        tried = coordinates - np.clip(step, -2, 2)
        new_costs, new_slopes, new_matrices = equations(tried)
        better = new_costs < costs
        gained = new_costs < (1 - gain) * costs
        coordinates = np.where(better[:, None], tried, coordinates)
        costs = np.where(better, new_costs, costs)
        slopes = np.where(better[:, None], new_slopes, slopes)
        matrices = np.where(better[:, None, None], new_matrices, matrices)
        damping = np.maximum(np.where(better, damping / 5, damping * 5), 1e-12)
        if not (gained | (damping < 1e3) & ~better).any():
            break
    return _End(coordinates, costs)


def _steps(slopes: np.ndarray, matrices: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Return (M + damping diag M)^{-1} slope, or 0 where that is undefined."""
    diagonal = np.einsum("gii->gi", matrices)
    diagonal = np.maximum(diagonal, 1e-12 * diagonal.max(-1, keepdims=True)) + 1e-200
    damped = matrices + np.einsum("g,gi,ij->gij", damping, diagonal, np.eye(slopes.shape[1]))
    usable = np.isfinite(damped).all((1, 2)) & np.isfinite(slopes).all(1)
    damped = np.where(usable[:, None, None], damped, np.eye(slopes.shape[1]))
    slopes = np.where(usable[:, None], slopes, 0)
    return np.stack([np.linalg.lstsq(m, s, rcond=None)[0] for m, s in zip(damped, slopes, strict=True)])


def _features(kind: type[Learner], evidence: Evidence) -> Any:
    problems = evidence.problems
    return features_of(kind, problems.x, problems.y, problems.queries)


def _typical_eigenvalue(problems: Problems) -> float:
    """Return the mean eigenvalue of the Gram matrix of one example, E‖x‖²/p."""
    return max(float(jnp.mean(jnp.abs(problems.queries) ** 2)), 1e-300)
