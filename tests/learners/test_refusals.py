"""Invalid hyperparameters and data are refused in one line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.learners import (
    AdaptiveGradientDescent,
    BayesMixture,
    Chebyshev,
    ConjugateGradients,
    DeltaRule,
    DirichletPosterior,
    DiscountedRidge,
    GradientDescent,
    JacobiGradientDescent,
    KalmanFilter,
    Lasso,
    LayeredGradientDescent,
    LayeredGradientDescentPlusPlus,
    Memorizing,
    MiniBatchGradientDescent,
    Momentum,
    NearestNeighbours,
    Newton,
    NormalizedLMS,
    OnlineMomentum,
    PosteriorMean,
    PreconditionedGradientDescent,
    RecursiveLeastSquares,
    Ridge,
    RidgeConjugateGradients,
    RidgeGradientDescent,
    TrackingConjugateGradients,
    Zero,
    features_of,
    predictions,
)

X, Y, QUERIES = np.ones((5, 3)), np.ones((5, 2)), np.ones((6, 3))


@pytest.mark.parametrize(
    ("construct", "error", "message"),
    [
        (lambda: GradientDescent("fast"), ValueError, "step_size 'fast' is not a rational number"),
        (lambda: GradientDescent([0.1, 0.2]), TypeError, "step_size must be a number"),
        (lambda: GradientDescent(np.nan), ValueError, "step_size must be finite"),
        (lambda: GradientDescent(1j), TypeError, "step_size must be a number"),
        (lambda: GradientDescent(0.1, steps=0), ValueError, "steps must be at least 1, got 0"),
        (lambda: GradientDescent(0.1, steps=1.5), TypeError, "steps must be an integer"),
        (lambda: LayeredGradientDescent([]), ValueError, "step_sizes must have at least one entry"),
        (lambda: LayeredGradientDescent(0.1), ValueError, "step_sizes must be a list of real numbers"),
        (lambda: LayeredGradientDescent([1j]), ValueError, "step_sizes must be a list of real numbers"),
        (lambda: LayeredGradientDescent([np.nan]), ValueError, "step_sizes: every entry must be finite"),
        (
            lambda: LayeredGradientDescentPlusPlus([0.1, 0.2], [0.1, 0.1]),
            ValueError,
            "curvatures must be one fewer than the 2 step_sizes, got 2",
        ),
        (lambda: DeltaRule(0.1, 1.5), ValueError, "forgetting must be at most 1, got 1.5"),
        (lambda: NormalizedLMS(0.1, -1), ValueError, "offset must not be negative"),
        (lambda: OnlineMomentum(0.1, np.nan), ValueError, "momentum must be finite"),
        (lambda: MiniBatchGradientDescent(0.1, 0), ValueError, "batch must be at least 1, got 0"),
        (lambda: DiscountedRidge(0.0), ValueError, "penalty must be greater than 0"),
        (lambda: TrackingConjugateGradients(1.0, 0), ValueError, "steps must be at least 1, got 0"),
        (lambda: RidgeGradientDescent(0.1, -1, 2), ValueError, "penalty must not be negative"),
        (lambda: RidgeConjugateGradients(0.1, 0), ValueError, "steps must be at least 1"),
        (lambda: JacobiGradientDescent(np.inf, 2), ValueError, "damping must be finite"),
        (lambda: AdaptiveGradientDescent(0), ValueError, "steps must be at least 1"),
        (lambda: Momentum(0.1, np.inf, 2), ValueError, "momentum must be finite"),
        (lambda: Memorizing([1.0, 2.0], 0.1), ValueError, r"tasks must be real, of shape \(K, m, p\) or \(K, p\)"),
        (lambda: Memorizing([[1.0, np.inf]], 0.1), ValueError, "tasks: every entry must be finite"),
        (lambda: Memorizing([[1j]], 0.1), ValueError, "tasks must be real"),
        (lambda: Memorizing([[1.0]], -0.1), ValueError, "noise_variance must"),
        (lambda: BayesMixture([[1.0]], 0, 0.5), ValueError, "noise_variance must be greater than 0"),
        (lambda: BayesMixture([[1.0]], 0.1, 1.5), ValueError, "pool_share must be at most 1, got 1.5"),
        (
            lambda: predictions(Memorizing([[1.0, 2.0]], 0.1), X, Y, QUERIES),
            ValueError,
            r"tasks of shape \(1, 1, 2\) do not fit 2 outputs of 3 inputs",
        ),
        (lambda: Chebyshev(0, 1, 2), ValueError, "lower must be greater than 0"),
        (lambda: Chebyshev(2, 1, 2), ValueError, "upper must be at least lower = 2.0, got 1.0; swap the two"),
        (lambda: Newton(0, 2), ValueError, "start must be greater than 0"),
        (lambda: Newton(1, -1), ValueError, "steps must be at least 0"),
        (lambda: ConjugateGradients(0), ValueError, "steps must be at least 1"),
        (lambda: Ridge(-1), ValueError, "penalty must not be negative"),
        (lambda: Lasso(-1), ValueError, "penalty must not be negative"),
        (lambda: RecursiveLeastSquares(0), ValueError, "penalty must be greater than 0"),
        (lambda: RecursiveLeastSquares(1, 1.1), ValueError, "forgetting must be at most 1, got 1.1"),
        (lambda: KalmanFilter(1, -0.1), ValueError, "drift must not be negative"),
        (lambda: NearestNeighbours(0), ValueError, "neighbours must be at least 1"),
        (lambda: DirichletPosterior(0), ValueError, "concentration must be greater than 0"),
        (lambda: PosteriorMean(-1, 1), ValueError, "prior must be positive definite; add"),
        (lambda: PosteriorMean([1, 2], 1), ValueError, r"prior must be a number or a square matrix, got shape \(2,\)"),
        (lambda: PosteriorMean([[1, 1], [0, 1]], 1), ValueError, r"prior must be symmetric .*write \(A"),
        (lambda: PosteriorMean(np.eye(2), -1), ValueError, "noise_variance must not be negative"),
        (lambda: PosteriorMean("wide", 1), TypeError, "prior: not an array of numbers"),
        (lambda: PreconditionedGradientDescent(0.1), ValueError, r"square matrix or the diagonal of one, got shape \(\)"),
        (lambda: PreconditionedGradientDescent(np.ones((2, 3))), ValueError, r"preconditioner must be .*\(2, 3\)"),
        (lambda: PreconditionedGradientDescent([np.inf]), ValueError, "preconditioner: every entry must be finite"),
        (lambda: PreconditionedGradientDescent([1], [np.nan]), ValueError, "output_map: every entry must be finite"),
        (lambda: PreconditionedGradientDescent([1], steps=0), ValueError, "steps must be at least 1"),
    ],
)  # fmt: skip
def test_invalid_hyperparameters_are_refused(construct, error, message):
    with pytest.raises(error, match=message):
        construct()


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (PreconditionedGradientDescent([1.0, 2.0]), r"preconditioner of shape \(2,\) does not fit vectors of 3 entries"),
        (PreconditionedGradientDescent(np.eye(3), np.eye(3)), r"output_map of shape \(3, 3\) does not fit .* 2 entries"),
        (PosteriorMean(np.eye(2), 1.0), r"prior of shape \(2, 2\) does not fit inputs of 3 entries"),
    ],
)  # fmt: skip
def test_hyperparameters_that_do_not_fit_the_data_are_refused(learner, message):
    with pytest.raises(ValueError, match=message):
        predictions(learner, X, Y, QUERIES)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((X, Y, QUERIES[:-1]), r"queries \(…, N \+ 1, p\) with equal leading axes, got \[\(5, 3\), \(5, 2\), \(5, 3\)\]"),
        ((X, Y[:-1], QUERIES), "expected x"),
        ((X[None], Y, QUERIES), "expected x"),
        ((X, Y[:, 0], QUERIES), "at least 2 axes"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit(data, message):
    with pytest.raises(ValueError, match=message):
        predictions(Zero(), *data)
    with pytest.raises(ValueError, match=message):
        features_of(Zero, *data)


def test_full_memories_refuse_more_examples():
    state = Zero.init((), 3, 2, 1, float)
    state = Zero.update(state, X[0], Y[0])
    with pytest.raises(
        ValueError, match="the memory is full: it has room for 1 examples; create it with more"
    ):
        Zero.update(state, X[0], Y[0])


@pytest.mark.parametrize("kind", [Zero, Ridge])
def test_complex_data_need_a_complex_memory(kind):
    with pytest.raises(TypeError, match="memory of float64 got complex128; create it with a complex dtype"):
        kind.update(kind.init((), 3, 2, 5, float), 1j * X[0], Y[0])


def test_integers_are_accepted_as_numbers():
    assert predictions(Ridge(1), X.astype(int), Y.astype(int), QUERIES.astype(int)).dtype == float


@pytest.mark.slow
def test_traced_hyperparameters_are_accepted():
    def total(size):
        learners = (
            Ridge(size),
            RecursiveLeastSquares(size, size),
            Chebyshev(size, 2 * size, 2),
            PosteriorMean(size, size),
        )
        return sum(predictions(learner, X, Y, QUERIES).sum() for learner in learners)

    assert jnp.isfinite(jax.jit(jax.grad(total))(0.5))
