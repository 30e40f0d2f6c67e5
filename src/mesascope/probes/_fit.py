"""Hyperparameters of learners fitted to predictions: Levenberg–Marquardt from many initial values, integers by trial."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import quick_jit
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
_CONTENDERS = 4  # integers with which all tasks are fitted
_ERRORS, _EQUAL_COST = 2.0, 1e-12  # costs differ by more standard errors than this, and by more than rounding
_LARGEST = 1e300  # a larger cost of a task is infinite, so that sums do not overflow
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
        or_more: whether larger values of its integer, such as more steps, fit as well.
    """

    learner: Learner
    cost: float
    determined: bool = True
    or_more: bool = False


class Fitter(eqx.Module):
    """Fits learners of one kind to predictions.

    Attributes:
        kind: the class.
        fitting: the hyperparameters, and how they are fitted.
        given: hyperparameters that come from the process of the data, by name.
    """

    kind: type[Learner] = eqx.field(static=True)
    fitting: Fitting = eqx.field(static=True)
    given: dict[str, Array] = eqx.field(default_factory=dict)

    def build(self, coordinates: Any, integer: Any) -> Learner:
        """Return the learner at the coordinates of its scalars."""
        how = self.fitting
        values = {s.name: s.value(coordinates[i]) for i, s in enumerate(how.scalars)}
        values |= dict(how.fixed) | self.given
        if how.integer is not None:
            values[how.integer] = integer
        return (how.make or self.kind)(**values)

    def fit(self, evidence: Sequence[Evidence]) -> Fitted:
        """Return the minimum of the sum over the evidence of the weighted |f − g|², relative to the size of f in each.

        Of integers whose costs are not distinguished, by their mean or by the number of tasks on which each is better, the
        smallest is taken: the mean of a few tasks on which an algorithm diverges would choose at random.
        """
        trial = _Data.of(self, evidence, _TRIAL_TASKS)
        grid = self._grid(_typical_eigenvalue(evidence[0].problems))
        ends: dict[int, _End] = {}

        def cost(integer: int) -> float:
            equations = _Equations(trial, integer)
            ends[integer] = _minimize(equations, _best_starts(equations, grid), _TRIAL_GAIN)
            return ends[integer].cost

        best = best_integer(cost, self.fitting.largest)
        contenders = [k for k in sorted(ends) if k <= best and not ends[k].is_worse_than(ends[best])]
        places = np.linspace(0, len(contenders) - 1, min(_CONTENDERS, len(contenders))).round().astype(int)
        many = _Data.of(self, evidence, self.fitting.tasks)
        fits = {
            k: _minimize(_Equations(many, k), ends[k].point[None], _FIT_GAIN)
            for k in (contenders[i] for i in places)
        }
        least = min(fits.values(), key=lambda end: end.cost)
        chosen = next(k for k, end in fits.items() if not end.is_worse_than(least))
        learner = self.build(jnp.asarray(fits[chosen].point), chosen)
        or_more = chosen < max(ends) and not ends[max(ends)].is_worse_than(ends[chosen])
        return Fitted(learner, fits[chosen].cost, or_more=or_more)

    def fit_beyond(self, special: Fitted, fitted: Fitted, evidence: Sequence[Evidence]) -> Fitted:
        """Return the special case itself, unless the fit, or one that starts from it, is better than by chance."""
        assert self.fitting.extends is not None
        values = special.learner.hyperparameters | dict(self.fitting.extends[1])
        try:
            same = (self.fitting.make or self.kind)(**values)
        except ValueError:  # such as ridge with penalty 0 for a filter that needs a positive one
            return fitted
        integer = int(values[self.fitting.integer]) if self.fitting.integer else 1
        start = np.array([[s.coordinate(float(values[s.name])) for s in self.fitting.scalars]])
        equations = _Equations(_Data.of(self, evidence, self.fitting.tasks), integer)
        end = _minimize(equations, start, _FIT_GAIN)
        near = Fitted(self.build(jnp.asarray(end.point), integer), end.cost)
        best = min(fitted, near, key=lambda one: one.cost)
        ends = [_End(end.point, equations.costs_of(learner)) for learner in (same, best.learner)]
        same_fit = Fitted(same, ends[0].cost, or_more=special.or_more)
        return best if ends[0].is_worse_than(ends[1]) else same_fit

    def _grid(self, eigenvalue: float) -> np.ndarray:
        scalars = self.fitting.scalars
        if not scalars:
            return np.zeros((1, 0))
        count = {1: 16, 2: 6}[len(scalars)]
        return np.array(list(product(*(s.starts(count, eigenvalue) for s in scalars))))


class _End(NamedTuple):
    """The best point that a minimization reached, and the cost of every task there."""

    point: np.ndarray
    costs: np.ndarray

    @property
    def cost(self) -> float:
        return float(self.costs.sum())

    def is_worse_than(self, other: _End) -> bool:
        """Return whether its mean cost, or the number of tasks on which it is larger, is larger by two standard errors."""
        with np.errstate(invalid="ignore", over="ignore"):
            more = self.costs - other.costs
            error = np.std(more) * np.sqrt(len(more))
            mean_is_worse = more.sum() > max(_ERRORS * error, _EQUAL_COST)
        worse, better = (np.sum(sign * more > _EQUAL_COST / len(more)) for sign in (1, -1))
        return bool(mean_is_worse or worse - better > _ERRORS * np.sqrt(worse + better))


class _Data(NamedTuple):
    """Evidence as a learner reads it: features, predictions and square roots of weights."""

    fitter: Fitter
    arrays: list[tuple[Any, Array, Array]]

    @classmethod
    def of(cls, fitter: Fitter, evidence: Sequence[Evidence], tasks: int) -> _Data:
        """Return the first tasks of the evidence."""
        parts = [e.part(0, min(tasks, e.problems.tasks)) for e in evidence]
        return cls(
            fitter,
            [
                (_features(fitter.kind, e), jnp.asarray(e.answers), jnp.asarray(np.sqrt(e.weights / e.size)))
                for e in parts
            ],
        )


class _Equations:
    """Costs, gradient and Gauss–Newton matrix at many coordinates, for one value of the integer."""

    def __init__(self, data: _Data, integer: int):
        self._data, self._integer = data, integer

    def __call__(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the costs of all tasks (points, tasks), and gradients and matrices summed over the evidence."""
        integer = jnp.asarray(self._integer)  # traced: one compiled program is used for every number of steps
        parts = [
            _normal_equations(self._data.fitter, integer, jnp.asarray(coordinates), *one)
            for one in self._data.arrays
        ]
        costs = np.concatenate([np.asarray(part[0]) for part in parts], 1)
        slope, matrix = (np.sum([np.asarray(part[i]) for part in parts], 0) for i in (1, 2))
        return np.where(costs < _LARGEST, costs, np.inf), slope, matrix

    def costs_of(self, learner: Learner) -> np.ndarray:
        """Return the costs of all tasks for a learner with given hyperparameters."""
        off = [
            (np.asarray(learner.respond(seen)) - answers) * weights[..., None]
            for seen, answers, weights in self._data.arrays
        ]
        return np.concatenate([np.sum(np.abs(one) ** 2, (1, 2)) for one in off])


@quick_jit
def _normal_equations(
    fitter: Fitter, integer: Any, coordinates: Any, features: Any, answers: Any, weights: Any
) -> Any:
    def residual(at: Any) -> Any:
        return weights[..., None] * (fitter.build(at, integer).respond(features) - answers)

    def one(at: Any) -> Any:
        residuals = residual(at)
        columns = (
            jax.jacfwd(residual)(at).reshape(residuals.size, len(at))
            if len(at)
            else residuals.reshape(-1, 1)[:, :0]
        )
        slope = jnp.real(columns.conj().T @ residuals.reshape(-1))
        return jnp.sum(jnp.abs(residuals) ** 2, (1, 2)), slope, jnp.real(columns.conj().T @ columns)

    return jax.vmap(one)(coordinates)


def _best_starts(equations: _Equations, grid: np.ndarray) -> np.ndarray:
    """Return the best points of a grid, always the same number, to avoid recompilation."""
    if len(grid) == 1:
        return grid
    count = _STARTS[grid.shape[1]]
    costs = [equations(grid[i : i + count])[0].sum(1) for i in range(0, len(grid), count)]
    return grid[np.argsort(np.concatenate(costs))[:count]]


def _minimize(equations: _Equations, coordinates: np.ndarray, gain: float) -> _End:
    """Return the best result of Levenberg–Marquardt from all initial values; it stops if no relative gain exceeds `gain`."""
    of_tasks, slopes, matrices = equations(coordinates)
    if coordinates.shape[1] == 0:
        return _End(coordinates[0], of_tasks[0])
    costs = of_tasks.sum(1)
    damping = np.full(len(costs), 1e-3)
    for _ in range(_ITERATIONS):
        step = _steps(slopes, matrices, damping)
        # coordinates are logarithms: at most a factor of e² per step
        tried = coordinates - np.clip(step, -2, 2)
        new_of_tasks, new_slopes, new_matrices = equations(tried)
        new_costs = new_of_tasks.sum(1)
        better = new_costs < costs
        gained = new_costs < (1 - gain) * costs
        coordinates = np.where(better[:, None], tried, coordinates)
        costs, of_tasks = (
            np.where(better, new_costs, costs),
            np.where(better[:, None], new_of_tasks, of_tasks),
        )
        slopes = np.where(better[:, None], new_slopes, slopes)
        matrices = np.where(better[:, None, None], new_matrices, matrices)
        damping = np.maximum(np.where(better, damping / 5, damping * 5), 1e-12)
        if not (gained | (damping < 1e3) & ~better).any():
            break
    best = int(np.argmin(costs))
    return _End(coordinates[best], of_tasks[best])


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
