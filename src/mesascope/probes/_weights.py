r"""The convex mixture of given predictions that is nearest to a model's, with intervals over tasks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

from ._answers import MAX_SIZE
from ._candidates import Judgement
from ._evidence import Evidence
from ._intervals import Measured, ratio, resampled_means
from ._metrics import inner

ENDS = 0.05, 0.95  # an interval that holds both of them says nothing of a weight
_ROUNDING = 1e-9  # of weights
_RIDGE = 1e-12  # relative; keeps the equations of predictions that coincide solvable


class Products(NamedTuple):
    r"""Inner products of K predictions $g_k$ and the model's $f$: of a task, of means over tasks, or of many of these.

    Attributes:
        cross: $\langle g_k, g_l \rangle$, shape (…, K, K).
        with_model: $\langle g_k, f \rangle$, shape (…, K).
        model: $\|f\|^2$, shape (…).
    """

    cross: np.ndarray
    with_model: np.ndarray
    model: np.ndarray

    def chosen(self, places: Sequence[int]) -> Products:
        """Return those of some of the predictions."""
        rows = list(places)
        return Products(self.cross[..., rows, :][..., rows], self.with_model[..., rows], self.model)

    def unexplained(self, weights: np.ndarray) -> np.ndarray:
        r"""Return $\|f - \sum_k \pi_k g_k\|^2 / \|f\|^2$ for weights of shape (…, K)."""
        return ratio(self.apart(weights), self.model)

    def apart(self, weights: np.ndarray) -> np.ndarray:
        r"""Return $\|f - \sum_k \pi_k g_k\|^2$ for weights of shape (…, K)."""
        both = np.einsum("...k,...k->...", weights, self.with_model)
        own = np.einsum("...k,...kl,...l->...", weights, self.cross, weights)
        return np.maximum(self.model - 2 * both + own, 0.0)

    @property
    def distances(self) -> np.ndarray:
        r"""$\|f - g_k\|^2 / \|f\|^2$, shape (…, K)."""
        count = self.with_model.shape[-1]
        return np.stack([self.unexplained(np.eye(count)[k]) for k in range(count)], -1)


def products(answers: Sequence[np.ndarray], evidence: Evidence) -> Products:
    """Return the inner products of predictions, each of shape (batch, N + 1, m), of every task; with the weights of the task.

    On a task on which a prediction is not finite, or so large that its square is not, it counts as orthogonal to all others and
    to the model, and of the largest size.
    """
    model, found = evidence.answers, np.stack(answers)
    usable = np.isfinite(found.astype(complex)).all((2, 3)) & (np.abs(found).max((2, 3)) < MAX_SIZE)
    others = np.where(usable[:, :, None, None], found, 0)
    weights = evidence.weights

    def mean(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.sum(weights * inner(one, other), -1)

    cross = np.stack([np.stack([mean(one, other) for other in others], -1) for one in others], -1)
    np.einsum("tkk->tk", cross)[~usable.T] = MAX_SIZE**2
    with_model = np.stack([mean(one, model) for one in others], -1)
    return Products(cross, with_model, mean(model, model))


def mean_over_tasks(each: Products) -> Products:
    """Return the means over tasks."""
    return Products(*(one.mean(0) for one in each))


def resampled(each: Products, seed: int) -> Products:
    """Return the means over 1000 resamples of the tasks, the same ones for one seed."""
    count = each.with_model.shape[-1]
    table = np.concatenate([each.cross.reshape(-1, count**2), each.with_model, each.model[:, None]], -1)
    means = resampled_means(table, seed)
    cross, with_model, model = np.split(means, [count**2, count**2 + count], -1)
    return Products(cross.reshape(-1, count, count), with_model, model[:, 0])


def nearest_weights(found: Products) -> np.ndarray:
    r"""Return the weights $\pi_k \ge 0$ with the sum 1 whose mixture is nearest to the model, shape (…, K).

    The minimum of a convex function on a simplex is the stationary point of one of its faces: those of all faces are compared.
    """
    count = found.with_model.shape[-1]
    faces = chain.from_iterable(combinations(range(count), size) for size in range(1, count + 1))
    best = np.zeros(found.with_model.shape)
    least = np.full(found.model.shape, np.inf)
    for face in faces:
        weights = np.zeros(found.with_model.shape)
        weights[..., list(face)] = _stationary(found.chosen(face))
        value = np.where(weights.min(-1) >= -_ROUNDING, found.apart(weights), np.inf)
        better = value < least - _ROUNDING * found.model
        best[better], least = weights[better], np.where(better, value, least)
    return np.clip(best, 0.0, 1.0)


def _stationary(found: Products) -> np.ndarray:
    """Return the weights with the sum 1 where the distance is stationary, of any sign: Lagrange's equations."""
    count = found.with_model.shape[-1]
    size = np.trace(found.cross, axis1=-2, axis2=-1)[..., None, None] / count
    scale = np.where(size > 0, size, 1.0)
    matrix = np.ones((*found.model.shape, count + 1, count + 1))
    matrix[..., :count, :count] = found.cross / scale + _RIDGE * np.eye(count)
    matrix[..., count, count] = 0.0
    right = np.concatenate([found.with_model / scale[..., 0], np.ones((*found.model.shape, 1))], -1)
    return np.linalg.solve(matrix, right[..., None])[..., :count, 0]


class Weighed(NamedTuple):
    """Predictions, and their nearest convex mixture.

    Attributes:
        judgement: the distances of the predictions from the model.
        weights: of the mixture, shapes (K,).
        sums: of the first 1 … K weights, shapes (K,).
        unexplained: the distance of the mixture from the model, shapes ().
        determined: whether the tasks tell the weights: no interval holds both 0.05 and 0.95, and every change of the weights
            changes the predictions beyond the tolerance.
    """

    judgement: Judgement
    weights: Measured
    sums: Measured
    unexplained: Measured
    determined: bool


def weigh(
    answers: Sequence[np.ndarray], evidence: Evidence, tolerance: float, level: float, seed: int
) -> Weighed:
    """Return the nearest convex mixture of predictions, each of shape (batch, N + 1, m), with intervals over tasks.

    Weights are fitted to the tasks on which they are judged: at most three numbers, to hundreds of tasks.
    """
    each = products(answers, evidence)
    mean, many = mean_over_tasks(each), resampled(each, seed)
    value, drawn = nearest_weights(mean), nearest_weights(many)
    weights = _with_ends(value, drawn, level)
    sums = _with_ends(value.cumsum(), drawn.cumsum(-1), level)
    unexplained = _with_ends(mean.unexplained(value), many.unexplained(drawn), level)
    vague = ((weights.low < ENDS[0]) & (weights.high > ENDS[1])).any()
    finite = mean.chosen(
        np.flatnonzero(np.diag(mean.cross) < MAX_SIZE).tolist()
    )  # what diverges has no weight
    determined = bool(not vague and smallest_change(finite.cross, finite.model) > tolerance)
    return Weighed(Judgement(mean.distances, many.distances), weights, sums, unexplained, determined)


def smallest_change(cross: np.ndarray, model: Any) -> float:
    r"""Return the least $\|\sum_k \delta_k g_k\|^2/\|f\|^2$ of changes with $\|\delta\|^2 = 2$ and $\sum_k \delta_k = 0$.

    This is the size of the change that moves all weight from one of two predictions to the other.

    Args:
        cross: $\langle g_k, g_l \rangle$, shape (K, K); for one prediction the result is infinite.
        model: $\|f\|^2$.
    """
    count = len(cross)
    if count < 2:
        return np.inf
    tangent = np.linalg.qr(np.eye(count) - 1 / count)[0][:, : count - 1]
    return float(ratio(2 * np.linalg.eigvalsh(tangent.T @ cross @ tangent)[0], model))


def _with_ends(value: np.ndarray, drawn: np.ndarray, level: float) -> Measured:
    low = np.quantile(drawn, (1 - level) / 2, axis=0, method="lower")
    high = np.quantile(drawn, (1 + level) / 2, axis=0, method="higher")
    return Measured(value, np.minimum(low, value), np.maximum(high, value))
