"""Every learner against its definition, written as loops and solves in numpy, one problem and one length at a time."""

import itertools

import numpy as np
import pytest

from learners.definitions import (
    POOL,
    PRIOR,
    M,
    N,
    P,
    adaptive,
    chebyshev,
    conjugate_gradients,
    decayed,
    delta_rule,
    discounted_ridge,
    gradient_descent,
    heavy_ball,
    implicit_steps,
    jacobi,
    kalman,
    lasso,
    layered,
    layered_plus_plus,
    least_squares,
    memorizing,
    mini_batches,
    mixture,
    neighbours,
    nesterov,
    newton,
    normalized_lms,
    online,
    online_momentum,
    plus_plus,
    posterior,
    preconditioned,
    smoother,
    towards_ridge,
    tracking,
    weighted_ridge,
)
from mesascope.learners import (
    AdaptiveGradientDescent,
    Average,
    BayesMixture,
    Chebyshev,
    ConjugateGradients,
    DeltaRule,
    DirichletPosterior,
    DiscountedRidge,
    GradientDescent,
    GradientDescentPlusPlus,
    JacobiGradientDescent,
    KalmanFilter,
    KernelSmoother,
    Lasso,
    LastToken,
    LayeredGradientDescent,
    LayeredGradientDescentPlusPlus,
    LeastSquares,
    Memorizing,
    MiniBatchGradientDescent,
    Momentum,
    NearestNeighbours,
    Nesterov,
    Newton,
    NormalizedLMS,
    OnlineGradientDescent,
    OnlineMomentum,
    PosteriorMean,
    PreconditionedGradientDescent,
    RecursiveLeastSquares,
    Ridge,
    RidgeConjugateGradients,
    RidgeGradientDescent,
    TrackingConjugateGradients,
    Zero,
    predictions,
    prompt_examples,
)

PRECONDITIONER = np.arange(16).reshape(4, 4) / 40 - 0.1
fields = pytest.mark.parametrize("dtype", [float, complex])


def draw(dtype, seed=0):
    rng = np.random.default_rng(seed)

    def normal(*shape):
        real = rng.normal(size=shape)
        return real + 1j * rng.normal(size=shape) if dtype is complex else real

    return normal(N, P), normal(N, M), normal(N + 1, P)


CASES = [
    (Zero(), lambda x, y, q: np.zeros(M)),
    (LastToken(), lambda x, y, q: y[-1]),
    (Average(), lambda x, y, q: y.mean(0)),
    (GradientDescent(0.2), lambda *a: gradient_descent(*a, 0.2, 1)),
    (GradientDescent(0.2, steps=7), lambda *a: gradient_descent(*a, 0.2, 7)),
    (Momentum(0.2, 0.6, steps=5), lambda *a: heavy_ball(*a, 0.2, 0.6, 5)),
    (Nesterov(0.2, 0.6, steps=5), lambda *a: nesterov(*a, 0.2, 0.6, 5)),
    (Chebyshev(0.3, 4.0, steps=4), lambda *a: chebyshev(*a, 0.3, 4.0, 4)),
    (OnlineGradientDescent(0.05), lambda *a: online(*a, 0.05)),
    (DeltaRule(0.05, 0.9), lambda *a: delta_rule(*a, 0.05, 0.9)),
    (NormalizedLMS(0.8, 0.5), lambda *a: normalized_lms(*a, 0.8, 0.5)),
    (NormalizedLMS(1.0, 0.5), lambda *a: implicit_steps(*a, 2.0)),
    (OnlineMomentum(0.05, 0.6, 0.1), lambda *a: online_momentum(*a, 0.05, 0.6, 0.1)),
    (MiniBatchGradientDescent(0.05, 3), lambda *a: mini_batches(*a, 0.05, 3)),
    (DiscountedRidge(0.7, 0.9), lambda *a: discounted_ridge(*a, 0.7, 0.9)),
    (TrackingConjugateGradients(0.7, 1), lambda *a: tracking(*a, 0.7, 1)),
    (TrackingConjugateGradients(0.7, 2), lambda *a: tracking(*a, 0.7, 2)),
    (
        PreconditionedGradientDescent(PRECONDITIONER),
        lambda *a: preconditioned(*a, PRECONDITIONER, np.eye(M), 1),
    ),
    (
        PreconditionedGradientDescent(PRECONDITIONER * (1 + 0.5j), [1, 2j], steps=3),
        lambda *a: preconditioned(*a, PRECONDITIONER * (1 + 0.5j), np.diag([1, 2j]), 3),
    ),
    (
        PreconditionedGradientDescent([0.1, 0.2, 0.3, 0], [[1, 2], [3, 4]], steps=2),
        lambda *a: preconditioned(*a, np.diag([0.1, 0.2, 0.3, 0]), np.array([[1, 2], [3, 4]]), 2),
    ),
    (GradientDescentPlusPlus(0.2, 0.1, steps=4), lambda *a: plus_plus(*a, 0.2, 0.1, 4)),
    (LayeredGradientDescent([0.3, -0.1, 0.5]), lambda *a: layered(*a, [0.3, -0.1, 0.5])),
    (
        LayeredGradientDescentPlusPlus([0.3, 0.1, 0.2], [0.2, 0.05]),
        lambda *a: layered_plus_plus(*a, [0.3, 0.1, 0.2], [0.2, 0.05]),
    ),
    (RidgeGradientDescent(0.2, 0.7, steps=5), lambda *a: decayed(*a, 0.2, 0.7, 5)),
    (AdaptiveGradientDescent(steps=4), lambda *a: adaptive(*a, 4)),
    (JacobiGradientDescent(0.4, steps=5), lambda *a: jacobi(*a, 0.4, 5)),
    (RidgeConjugateGradients(0.7, 1), lambda *a: towards_ridge(*a, 0.7, 1)),
    (RidgeConjugateGradients(0.7, 2), lambda *a: towards_ridge(*a, 0.7, 2)),
    (Newton(0.9, steps=0), lambda *a: newton(*a, 0.9, 0)),
    (Newton(0.9, steps=3), lambda *a: newton(*a, 0.9, 3)),
    (ConjugateGradients(1), lambda *a: conjugate_gradients(*a, 1)),
    (LeastSquares(), least_squares),
    (Ridge(0.7), lambda x, y, q: weighted_ridge(x, y, q, np.ones(len(x)), 0.7)),
    (PosteriorMean(PRIOR, 0.3), lambda *a: posterior(*a, PRIOR, 0.3)),
    (PosteriorMean(2.0, 0.3), lambda *a: posterior(*a, 2.0 * np.eye(P), 0.3)),
    (
        RecursiveLeastSquares(0.7, forgetting=0.8),
        lambda x, y, q: weighted_ridge(x, y, q, 0.8 ** np.arange(len(x) - 1, -1, -1.0), 0.7 * 0.8 ** len(x)),
    ),
    (KalmanFilter(0.7, drift=0.1), lambda *a: kalman(*a, 0.7, 0.1)),
    (NearestNeighbours(1), lambda *a: neighbours(*a, 1)),
    (NearestNeighbours(3), lambda *a: neighbours(*a, 3)),
    (NearestNeighbours(100), lambda *a: neighbours(*a, 100)),
    (KernelSmoother(0.7), lambda *a: smoother(*a, 0.7)),
    (KernelSmoother(-0.7), lambda *a: smoother(*a, -0.7)),
    (Lasso(0.3), lambda *a: lasso(*a, 0.3)),
    (Lasso(0.05), lambda *a: lasso(*a, 0.05)),
    (Memorizing(POOL, 0.8), lambda *a: memorizing(*a, 0.8)),
    (Memorizing(POOL, 0.0), lambda *a: memorizing(*a, 1e-9)),  # the limit of small noise
    (BayesMixture(POOL, 0.8, 0.7), lambda *a: mixture(*a, 0.8, 0.7)),
    (BayesMixture(POOL, 0.8, 0.7, PRIOR), lambda *a: mixture(*a, 0.8, 0.7, PRIOR)),
]


@fields
@pytest.mark.parametrize(("learner", "definition"), CASES, ids=lambda case: getattr(case, "name", ""))
def test_predictions_equal_the_definition(learner, definition, dtype):
    for seed in range(3):
        x, y, queries = draw(dtype, seed)
        actual = predictions(learner, x, y, queries)
        expected = [definition(x[:n], y[:n], queries[n]) for n in range(1, N + 1)]
        np.testing.assert_allclose(actual[1:], expected, rtol=1e-10, atol=1e-10)


def test_tasks_that_fit_equally_well_share_the_weight_without_noise():
    pool = np.array([[1.0, 0.5], [1.0, -0.5], [0.0, 2.0]])
    x = np.stack(
        [np.random.default_rng(0).normal(size=7), np.zeros(7)], 1
    )  # the second coordinate is never seen
    answers = predictions(Memorizing(pool, 0.0), x, x[:, :1], np.tile([1.0, 1.0], (8, 1)))
    np.testing.assert_allclose(answers[1:], 1.0, rtol=1e-14)  # the mean of 1.5 and 0.5


@fields
@pytest.mark.parametrize("steps", [2, 3])
def test_conjugate_gradients_equal_those_of_the_vector_of_all_weights(dtype, steps):
    # From as many examples as steps on: with fewer the definition has converged and divides rounding by rounding.
    x, y, queries = draw(dtype)
    actual = predictions(ConjugateGradients(steps), x, y, queries)
    for n in range(steps, N + 1):
        expected = conjugate_gradients(x[:n], y[:n], queries[n], steps)
        np.testing.assert_allclose(actual[n], expected, rtol=1e-10, atol=1e-10)


def test_symbols_are_counted():
    rng, alpha, symbols = np.random.default_rng(0), 0.3, 4
    sequence = rng.integers(symbols, size=30)
    tokens = np.eye(symbols)[sequence]
    actual = predictions(DirichletPosterior(alpha), tokens[:-1], tokens[1:], tokens)
    for n in range(30):
        pairs = list(itertools.pairwise(sequence[: n + 1]))
        counts = np.array([pairs.count((sequence[n], b)) for b in range(symbols)])
        expected = (counts + alpha) / (counts + alpha).sum()
        np.testing.assert_allclose(actual[n], expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("variance", [1e-8, 1e-12, 1e-30])
def test_little_noise_leaves_the_nearest_task_of_a_pool(variance):
    rng = np.random.default_rng(0)
    tasks, x, y = rng.normal(size=(5, 3)), rng.normal(size=(20, 6, 3)), rng.normal(size=(20, 6))
    given = prompt_examples(x.astype(np.float32), y.astype(np.float32))
    found, limit = (predictions(Memorizing(tasks, noise), *given)[:, 1:] for noise in (variance, 0))
    np.testing.assert_allclose(found, limit, rtol=1e-5)
