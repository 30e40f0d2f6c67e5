"""Levenberg–Marquardt from many initial values, for whatever builds predictions from coordinates.

A fitter is any pytree with `features(evidence)`, what its learners read, and `build(coordinates, integer)`, which returns an
object with `respond(features)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import quick_jit
from mesascope.learners import Learner

from ._evidence import Evidence

_STARTS = {
    1: 4,
    2: 6,
    3: 8,
}  # number of initial values that are optimized, by the number of scalars: with two there are several local minima
_ITERATIONS = 40
_PATIENCE = 12  # iterations in which the best of several starts has to gain, or the search ends
_ERRORS, _EQUAL_COST = 2.0, 1e-12  # costs differ by more standard errors than this, and by more than rounding
_STATIONARY = 1e-13  # a smaller relative gain that a step promises is rounding
EXACT = 1e-24  # a smaller cost, relative to the size of the predictions, is rounding
_LARGEST = 1e300  # a larger cost of a task is infinite, so that sums do not overflow


class End(NamedTuple):
    """The best point that a minimization reached, and the cost of every task there."""

    point: np.ndarray
    costs: np.ndarray

    @property
    def cost(self) -> float:
        return float(self.costs.sum())

    def is_worse_than(self, other: End) -> bool:
        """Return whether its mean cost, or the number of tasks on which it is larger, is larger by two standard errors."""
        with np.errstate(invalid="ignore", over="ignore"):
            more = self.costs - other.costs
            error = np.std(more) * np.sqrt(len(more))
            mean_is_worse = more.sum() > max(_ERRORS * error, _EQUAL_COST)
        worse, better = (np.sum(sign * more > _EQUAL_COST / len(more)) for sign in (1, -1))
        return bool(mean_is_worse or worse - better > _ERRORS * np.sqrt(worse + better))


class Data(NamedTuple):
    """Evidence as learners of one fitter read it: features, predictions and square roots of weights."""

    fitter: Any
    arrays: list[tuple[Any, Array, Array]]

    @classmethod
    def of(cls, fitter: Any, evidence: Sequence[Evidence], tasks: int, lengths: int | None = None) -> Data:
        """Return the first tasks of the evidence, after the numbers of examples that count, or some `lengths` of these."""
        parts = [e.part(0, min(tasks, e.problems.tasks)) for e in evidence]
        return cls(fitter, [_read(fitter, e, _spread(e.problems.lengths, lengths)) for e in parts])


def _spread(lengths: np.ndarray, most: int | None) -> np.ndarray:
    """Return at most `most` of some numbers of examples, denser where they are few."""
    if most is None or len(lengths) <= most:
        return lengths
    return lengths[np.unique(np.geomspace(1, len(lengths), most).round().astype(int)) - 1]


def _read(fitter: Any, evidence: Evidence, lengths: np.ndarray) -> tuple[Any, Array, Array]:
    """Return features, predictions and square roots of weights after some numbers of examples."""
    count = evidence.answers.shape[1]

    def of_lengths(leaf: Any) -> Any:
        array = np.asarray(leaf)
        return array[:, lengths] if array.shape[1:2] == (count,) else array  # else it is of all numbers

    features = jax.tree.map(of_lengths, fitter.features(evidence))
    weights = np.sqrt(evidence.weights / evidence.size)
    return features, jnp.asarray(evidence.answers[:, lengths]), jnp.asarray(weights[:, lengths])


class Equations:
    """Costs, gradient and Gauss–Newton matrix at many coordinates, for one value of the integer."""

    def __init__(self, data: Data, integer: Any):
        self._data, self._integer = data, integer

    def __call__(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the costs of all tasks (points, tasks), and gradients and matrices summed over the evidence."""
        integer = jnp.asarray(self._integer)  # traced: one compiled program is used for every number of steps
        parts = [
            _normal_equations(self._data.fitter, integer, jnp.asarray(coordinates), *one)
            for one in self._data.arrays
        ]
        costs = np.concatenate([np.asarray(part[0]) for part in parts], 1)
        with np.errstate(invalid="ignore", over="ignore"):  # where costs are infinite
            slope, matrix = (np.sum([np.asarray(part[i]) for part in parts], 0) for i in (1, 2))
        return np.where(costs < _LARGEST, costs, np.inf), slope, matrix

    def costs_of(self, learner: Learner) -> np.ndarray:
        """Return the costs of all tasks for a learner with given hyperparameters."""
        off = [
            (responses(learner, seen) - answers) * weights[..., None]
            for seen, answers, weights in self._data.arrays
        ]
        return np.concatenate([np.sum(np.abs(one) ** 2, (1, 2)) for one in off])


def responses(learner: Learner, features: Any) -> np.ndarray:
    """Return the predictions of a learner, by a program that is compiled once for all numbers of steps."""
    traced = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, int) else leaf, learner)
    return np.asarray(_respond(traced, features))


@quick_jit
def _respond(learner: Learner, features: Any) -> Any:
    return learner.respond(features)


@quick_jit
def _normal_equations(
    fitter: Any, integer: Any, coordinates: Any, features: Any, answers: Any, weights: Any
) -> Any:
    def residual(at: Any) -> tuple[Any, Any]:
        found = weights[..., None] * (fitter.build(at, integer).respond(features) - answers)
        return found, found

    def one(at: Any) -> Any:
        # one pass: XLA does not share a loop between residuals and their derivatives
        columns, residuals = jax.jacfwd(residual, has_aux=True)(at) if len(at) else residual(at)
        columns = columns.reshape(residuals.size, -1)[:, : len(at)]
        slope = jnp.real(columns.conj().T @ residuals.reshape(-1))
        return jnp.sum(jnp.abs(residuals) ** 2, (1, 2)), slope, jnp.real(columns.conj().T @ columns)

    return jax.vmap(one)(coordinates)


def best_starts(equations: Equations, grid: np.ndarray) -> np.ndarray:
    """Return the best points of a grid, always the same number, to avoid recompilation."""
    if len(grid) == 1:
        return grid
    count = _STARTS[grid.shape[1]]
    costs = [equations(grid[i : i + count])[0].sum(1) for i in range(0, len(grid), count)]
    return grid[np.argsort(np.concatenate(costs))[:count]]


def minimize(equations: Equations, coordinates: np.ndarray, gain: float) -> End:
    """Return the best result of Levenberg–Marquardt from all initial values.

    It stops if no iteration has a relative gain above `gain`, or no step without damping promises one above 1e-13; with several
    initial values also if the least cost has gained less in the last twelve iterations: of 730 searches that went on none ended
    more than 2 % lower. It goes on in any case while better steps are cut short that promise more than `gain`.
    """
    of_tasks, slopes, matrices = equations(coordinates)
    if coordinates.shape[1] == 0:
        return End(coordinates[0], of_tasks[0])
    costs = of_tasks.sum(1)
    damping, least = np.full(len(costs), 1e-3), [costs.min()]
    for _ in range(_ITERATIONS):
        with np.errstate(invalid="ignore"):  # infinite where predictions are
            promised = np.sum(slopes * _steps(slopes, matrices, np.zeros(len(costs))), 1)
        if not (promised > _STATIONARY * costs).any():
            break
        step = _steps(slopes, matrices, damping)
        # logarithms of hyperparameters change by at most a factor of e² per step
        tried = coordinates - np.clip(step, -2, 2)
        cut_short = (np.abs(step) > 2).any(1) & (promised > gain * costs)
        new_of_tasks, new_slopes, new_matrices = equations(tried)
        new_costs = new_of_tasks.sum(1)
        better = new_costs < costs
        gained = (new_costs < (1 - gain) * costs) | better & cut_short
        coordinates = np.where(better[:, None], tried, coordinates)
        costs, of_tasks = (
            np.where(better, new_costs, costs),
            np.where(better[:, None], new_of_tasks, of_tasks),
        )
        slopes = np.where(better[:, None], new_slopes, slopes)
        matrices = np.where(better[:, None, None], new_matrices, matrices)
        damping = np.maximum(np.where(better, damping / 5, damping * 5), 1e-12)
        least.append(costs.min())
        waited = len(costs) > 1 and len(least) > _PATIENCE and least[-1] > (1 - gain) * least[-1 - _PATIENCE]
        waited = waited and not (better & cut_short).any()
        if least[-1] <= EXACT or waited or not (gained | (damping < 1e3) & ~better).any():
            break
    best = int(np.argmin(costs))
    return End(coordinates[best], of_tasks[best])


def _steps(slopes: np.ndarray, matrices: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Return (M + damping diag M)^{-1} slope, or 0 where that is undefined."""
    diagonal = np.einsum("gii->gi", matrices)
    diagonal = np.maximum(diagonal, 1e-12 * diagonal.max(-1, keepdims=True)) + 1e-200
    damped = matrices + np.einsum("g,gi,ij->gij", damping, diagonal, np.eye(slopes.shape[1]))
    usable = np.isfinite(damped).all((1, 2)) & np.isfinite(slopes).all(1)
    damped = np.where(usable[:, None, None], damped, np.eye(slopes.shape[1]))
    slopes = np.where(usable[:, None], slopes, 0)
    return np.stack([np.linalg.lstsq(m, s, rcond=None)[0] for m, s in zip(damped, slopes, strict=True)])
