"""Models whose algorithm is known: a learner with random hyperparameters behind a function of NumPy arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import mesascope as ms
from mesascope import learners
from mesascope.learners import predictions

DIM, HORIZON = 3, 12
PROCESS = ms.LinearAR.contracting(ms.Gaussian(1.0), DIM, 0.3, 0.9, noise=0.5)
TASK = ms.NextToken(HORIZON)


def planted(number: int) -> learners.Learner:
    """The learner number 0, 1, 2 …: all kinds by turns, hyperparameters at random, reproducibly."""
    rng = np.random.default_rng(number)
    step, momentum = 10 ** rng.uniform(-1.2, -0.4), rng.uniform(0.2, 0.8)
    penalty, few = 10 ** rng.uniform(-1, 1), int(rng.integers(2, 7))
    matrix = step * (np.eye(DIM) + 0.3 * rng.normal(size=(DIM, DIM)))
    steps = int(rng.integers(2, 13))
    makers = (
        lambda: learners.Zero(),
        lambda: learners.LastToken(),
        lambda: learners.Average(),
        lambda: learners.GradientDescent(step),
        lambda: learners.GradientDescent(step, steps),
        lambda: learners.Momentum(step, momentum, steps),
        lambda: learners.Nesterov(step, momentum, steps),
        lambda: learners.Chebyshev(step, step * 10 ** rng.uniform(0.5, 1.5), steps),
        lambda: learners.OnlineGradientDescent(step),
        lambda: learners.PreconditionedGradientDescent(matrix),
        lambda: learners.PreconditionedGradientDescent(step * (1 + np.arange(DIM)) / DIM),
        lambda: learners.GradientDescentPlusPlus(step, step * rng.uniform(0.2, 1), steps),
        lambda: learners.Newton(rng.uniform(0.3, 1.7), few),
        lambda: learners.ConjugateGradients(int(rng.integers(1, DIM))),
        lambda: learners.LeastSquares(),
        lambda: learners.Ridge(penalty),
        lambda: learners.PosteriorMean(1.0, penalty),
        lambda: learners.RecursiveLeastSquares(penalty, rng.uniform(0.7, 0.95)),
        lambda: learners.KalmanFilter(penalty, 10 ** rng.uniform(-2, 0)),
        lambda: learners.NearestNeighbours(few),
        lambda: learners.KernelSmoother(10 ** rng.uniform(-1, 0.5)),
        lambda: learners.Lasso(10 ** rng.uniform(-1.5, -0.5)),
        lambda: learners.LayeredGradientDescent(np.sort(step * rng.uniform(0.3, 3, 3))),
        lambda: learners.LayeredGradientDescentPlusPlus(
            step * rng.uniform(0.5, 2, 2), step * rng.uniform(0.5, 1, 1)
        ),
        lambda: learners.RidgeGradientDescent(step, penalty, max(steps, 4)),
        lambda: learners.RidgeConjugateGradients(penalty, 2),
        lambda: learners.AdaptiveGradientDescent(few),
        lambda: learners.JacobiGradientDescent(0.5, few),
        lambda: learners.DeltaRule(step, rng.uniform(0.7, 0.95)),
        lambda: learners.NormalizedLMS(rng.uniform(0.3, 1.5), 10 ** rng.uniform(-1, 1)),
        lambda: learners.OnlineMomentum(step / 2, momentum, rng.uniform(0.05, 0.2)),  # β ≤ 1 − α, as fitted
        lambda: learners.MiniBatchGradientDescent(step / 2, few),
        lambda: learners.DiscountedRidge(penalty, rng.uniform(0.7, 0.95)),
        lambda: learners.TrackingConjugateGradients(penalty, 1),
    )
    return makers[number % len(makers)]()


KINDS = 34


class Marked(NamedTuple):
    """How an identification of a planted learner is to be marked.

    Attributes:
        right: whether the planted learner is among those that the verdict speaks of.
        named: whether it is the only one, up to learners that are the same as fitted.
        error: largest error of its hyperparameters: of numbers relative to them, of entries relative to the largest; NaN
            unless it is right and named.
    """

    right: bool
    named: bool
    error: float


def marked(learner: learners.Learner, answer: ms.Identification) -> Marked:
    """Compare an answer with what was planted."""
    spoken_of = [entry for entry in answer.ranking if entry.learner in answer.candidates]
    right = learner.name in {name for entry in spoken_of for name in (entry.learner, *entry.contains)}
    named = answer.verdict == "identified"
    if not (right and named):
        return Marked(right, named, float("nan"))
    found = answer.entry(learner.name).hyperparameters
    errors = [0.0]
    for name, value in learner.hyperparameters.items():
        if value is not None:
            one, other = _whole(found[name]), _whole(value)
            errors.append(float(np.abs(one - other).max() / np.abs(other).max()))
    return Marked(right, named, max(errors))


def _whole(value: Any) -> np.ndarray:
    """A matrix for the diagonal of one; everything else as it is."""
    array = np.asarray(value, float)
    return np.diag(array) if array.ndim == 1 else array


def as_model(learner: learners.Learner, noise: float = 1e-3) -> Any:
    """The learner as a function of contexts, with noise that is a function of the context.

    The noise has the given size relative to each prediction's mean square, so that it is small everywhere.
    """

    def predict(contexts: np.ndarray) -> np.ndarray:
        contexts = np.asarray(contexts)
        length = contexts.shape[1]
        # Filled up to the horizon, so that one compiled program answers contexts of every length: it looks back only.
        whole = np.pad(contexts, ((0, 0), (0, HORIZON - length), (0, 0)))
        exact = np.asarray(predictions(learner, whole[:, :-1], whole[:, 1:], whole))[:, length - 1]
        phase = 1e4 * np.abs(contexts).sum((1, 2))[:, None] + 7.0 * np.arange(exact.shape[1])
        size = np.sqrt(np.mean(np.abs(exact) ** 2, -1, keepdims=True))
        return exact + noise * np.sqrt(2) * size * np.cos(phase)

    return predict
