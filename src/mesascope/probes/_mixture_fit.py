"""Convex mixtures of learners, fitted to predictions: hyperparameters and weights together, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import stdtrit

from mesascope.core import quick_jit
from mesascope.learners import Learner

from ._evidence import Evidence
from ._fit import Fitter
from ._intervals import Measured
from ._least_squares import Data, End, Equations, minimize

_GAIN = 1e-13  # relative gain of an iteration below which a fit stops
_ROUNDING = 1e-9  # of weights
_FLAT = 1e-9  # curvatures relative to the largest, below which the data do not determine a direction


class Mixed(eqx.Module):
    r"""Learners that predict together: $\sum_k \pi_k g_k$.

    Attributes:
        parts: the learners $g_1 \dots g_K$.
        weights: $\pi$ with the sum 1, shape (K,), or (N + 1, K) for weights that depend on the number of examples.
    """

    parts: tuple[Learner, ...]
    weights: Array

    def respond(self, features: Sequence[Any]) -> Array:
        """Return the predictions, shape (batch, N + 1, m), from the features that each of the learners reads."""
        answers = [part.respond(seen) for part, seen in zip(self.parts, features, strict=True)]
        return sum(
            (self.weights[..., k, None] * answer for k, answer in enumerate(answers)), start=jnp.zeros(())
        )


class MixtureFitter(eqx.Module):
    """Fits mixtures of learners of given kinds to predictions.

    Coordinates are those of the hyperparameters of each learner, then all weights but the last one, which is 1 minus their
    sum: for all numbers of examples together, or for each of them.

    Attributes:
        parts: a fitter for each learner.
        rows: which row of weights each number of examples 0 … N has; empty if all have the same.
        lengths: the number of examples of each row.
    """

    parts: tuple[Fitter, ...]
    rows: tuple[int, ...] = eqx.field(static=True, default=())
    lengths: tuple[int, ...] = eqx.field(static=True, default=())

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of scalars of each learner."""
        return tuple(len(part.fitting.scalars) for part in self.parts)

    def build(self, coordinates: Any, integers: Any) -> Mixed:
        """Return the mixture at coordinates; `integers` holds one integer for each learner, which some do not use."""
        ends = np.cumsum(self.sizes)
        cuts = jnp.split(jnp.asarray(coordinates), ends)
        parts = tuple(
            part.build(at, integers[k])
            for k, (part, at) in enumerate(zip(self.parts, cuts[:-1], strict=True))
        )
        free = cuts[-1].reshape(-1, len(self.parts) - 1)
        weights = jnp.concatenate([free, 1 - free.sum(-1, keepdims=True)], -1)
        return Mixed(parts, weights[jnp.asarray(self.rows)] if self.rows else weights[0])

    def features(self, evidence: Evidence) -> tuple[Any, ...]:
        """Return what each of the learners reads."""
        return tuple(part.features(evidence) for part in self.parts)

    def fit(self, evidence: Evidence, integers: Sequence[int], start: np.ndarray) -> FittedMixture:
        """Return the local minimum that a start leads to."""
        counted = evidence.problems.lengths
        here = replace(self, rows=tuple(self.rows[n] for n in counted)) if self.rows else self
        data = Data.of(here, [evidence], evidence.problems.tasks)
        end = minimize(Equations(data, tuple(integers)), start[None], _GAIN)
        return FittedMixture(self, tuple(integers), end)

    def influence(self, evidence: Evidence, integers: Sequence[int], point: np.ndarray) -> np.ndarray:
        """Return how far every task moves the minimum, times their number, shape (tasks, coordinates); see `moves`."""
        arrays = self.features(evidence), jnp.asarray(evidence.answers), jnp.asarray(evidence.weights)
        return moves(*map(np.asarray, _scores(self, jnp.asarray(integers), jnp.asarray(point), *arrays)))


def moves(scores: np.ndarray, hessians: np.ndarray) -> np.ndarray:
    r"""Return $-(H - H_i/n)^{-1} s_i$ for every task i of n, shape (tasks, coordinates): the jackknife.

    That is a step of Newton's from the minimum of all tasks to that of the others, times −n. (With H alone intervals are too
    short: a task that counts much pulls the minimum towards itself.) It is infinite for what is not determined: coordinates
    that change next to nothing, such as a penalty near 0, which the others do not depend on; along other directions in which H
    is flat; and for a task without which a direction is flat.

    Args:
        scores: gradients $s_i$ of the squared distance on each task, shape (tasks, coordinates).
        hessians: $H_i$, shape (tasks, coordinates, coordinates); H is their mean.
    """
    curvatures = np.diag(hessians.mean(0))
    telling = curvatures > _FLAT * curvatures.max()
    found = np.full(scores.shape, np.inf)
    if telling.any():
        found[:, telling] = _moves(scores[:, telling], hessians[:, telling][:, :, telling])
    return found


def _moves(scores: np.ndarray, hessians: np.ndarray) -> np.ndarray:
    """Return the moves of coordinates with curvatures that are not 0."""
    hessian = hessians.mean(0)
    scale = np.sqrt(np.diag(hessian))
    values, vectors = np.linalg.eigh(hessian / np.outer(scale, scale))
    flat = values < _FLAT * values.max()
    steep = vectors[:, ~flat] / scale[:, None]
    others = np.diag(values[~flat]) - steep.T @ hessians @ steep / len(scores)
    alone = (np.linalg.eigvalsh(others) <= _FLAT * values.max()).any(1)
    others[alone] = np.eye(others.shape[-1])
    found: np.ndarray = -np.linalg.solve(others, (scores @ steep)[..., None])[..., 0] @ steep.T
    found[alone] = np.inf
    if flat.any():
        found[:, (np.abs(vectors[:, flat]) > 1e-3).any(1)] = np.inf
    return found


class Weights(NamedTuple):
    """Weights of a mixture with intervals over tasks.

    Attributes:
        rows: shape (1, K), or (lengths, K) where they depend on the number of examples.
        mean: of the rows, shape (K,).
    """

    rows: Measured
    mean: Measured


class FittedMixture(NamedTuple):
    """A mixture with fitted hyperparameters and weights.

    Attributes:
        fitter: of its kinds.
        integers: one for each learner.
        end: the coordinates, and the remaining squared distance of every task.
    """

    fitter: MixtureFitter
    integers: tuple[int, ...]
    end: End

    @property
    def mixed(self) -> Mixed:
        """The mixture."""
        return self.fitter.build(jnp.asarray(self.end.point), self.integers)

    @property
    def convex(self) -> bool:
        """Whether all weights lie between 0 and 1, but for rounding."""
        rows = self._rows
        return bool(rows.min() >= -_ROUNDING and rows.max() <= 1 + _ROUNDING)

    @property
    def smallest_weight(self) -> float:
        """The smallest weight of a learner, averaged over the rows."""
        return float(self._rows.mean(0).min())

    @property
    def _rows(self) -> np.ndarray:
        free = self.end.point[sum(self.fitter.sizes) :].reshape(-1, len(self.fitter.parts) - 1)
        return np.concatenate([free, 1 - free.sum(-1, keepdims=True)], -1)

    def weights(self, evidence: Evidence, level: float) -> Weights:
        r"""Return the weights with intervals over the tasks that they were fitted to.

        They are Student's, with standard errors of the jackknife: of the mean of the `moves` of all tasks. Ends are clipped to
        0 … 1, and are both of these for weights that the tasks do not determine.
        """
        rest, value = len(self.fitter.parts) - 1, self._rows
        influence = self.fitter.influence(evidence, self.integers, self.end.point)
        free = influence[:, sum(self.fitter.sizes) :].reshape(len(influence), -1, rest)
        with np.errstate(invalid="ignore"):  # of infinite ones
            all_of_them = np.concatenate([free, -free.sum(-1, keepdims=True)], -1)
            return Weights(
                _interval(value, all_of_them, level), _interval(value.mean(0), all_of_them.mean(1), level)
            )


def _interval(value: np.ndarray, moves: np.ndarray, level: float) -> Measured:
    """Return numbers with intervals from the moves (tasks, …) of each; 0 … 1 where some are infinite."""
    tasks = len(moves)
    half = stdtrit(tasks - 1, (1 + level) / 2) * moves.std(0, ddof=1) / np.sqrt(tasks)
    half = np.where(np.isfinite(half), half, 1.0)
    return Measured(*(np.clip(one, 0, 1) for one in (value, value - half, value + half)))


@quick_jit
def _scores(
    fitter: MixtureFitter, integers: Any, point: Any, features: Any, answers: Any, weights: Any
) -> Any:
    def costs(at: Any) -> Any:
        off = fitter.build(at, integers).respond(features) - answers
        return jnp.sum(weights[..., None] * jnp.abs(off) ** 2, (1, 2))

    # forwards twice: loops over a traced number of steps have no other derivative
    return jax.jacfwd(costs)(point), jax.jacfwd(jax.jacfwd(costs))(point)
