"""Equal learners: limits, special cases, and data on which two learners agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.learners import (
    AdaptiveGradientDescent,
    Average,
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
    sequence_examples,
)

N, P, M = 12, 3, 2
LEAST_SQUARES = LeastSquares()


def draw(dtype=complex, examples=N, seed=0):
    rng = np.random.default_rng(seed)

    def normal(*shape):
        real = rng.normal(size=shape)
        return real + 1j * rng.normal(size=shape) if dtype is complex else real

    return normal(4, examples, P), normal(4, examples, M), normal(4, examples + 1, P)


def orthogonal(dtype=complex, seed=0):
    """Examples whose Gram matrix is n/P times the identity whenever n is a multiple of P."""
    x, y, queries = draw(dtype, seed=seed)
    frames = [np.linalg.qr(x[:, i : i + P])[0] for i in range(0, N, P)]
    return np.concatenate(frames, 1), y, queries


def equal(one, other, data, tolerance=1e-11, lengths=slice(None)):
    first, second = (np.asarray(predictions(learner, *data))[:, lengths] for learner in (one, other))
    np.testing.assert_allclose(first, second, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("special", "general"),
    [
        (GradientDescent(0.2, steps=4), Momentum(0.2, 0.0, steps=4)),
        (GradientDescent(0.2, steps=4), Nesterov(0.2, 0.0, steps=4)),
        (GradientDescent(0.2, steps=4), GradientDescentPlusPlus(0.2, 0.0, steps=4)),
        (GradientDescent(0.2, steps=4), Chebyshev(5.0, 5.0, steps=4)),
        (GradientDescent(0.2, steps=4), PreconditionedGradientDescent([0.2] * P, steps=4)),
        (GradientDescent(0.2, steps=4), LayeredGradientDescent([0.2] * 4)),
        (GradientDescent(0.2, steps=4), RidgeGradientDescent(0.2, 0.0, steps=4)),
        (GradientDescentPlusPlus(0.2, 0.1, steps=3), LayeredGradientDescentPlusPlus([0.2] * 3, [0.1] * 2)),
        (LayeredGradientDescent([0.2, 0.5]), LayeredGradientDescentPlusPlus([0.2, 0.5], [0.0])),
        (LayeredGradientDescent([0.5, 0.2]), LayeredGradientDescent([0.2, 0.5])),
        # two steps of .5 and 1: f = 1.5 − .5 s, as two steps of 1/√2 with this momentum
        (LayeredGradientDescent([0.5, 1.0]), Momentum(0.5**0.5, 1.5 * 2**0.5 - 2, steps=2)),
        (ConjugateGradients(2), RidgeConjugateGradients(0.0, 2)),
        (Ridge(0.6), RidgeConjugateGradients(0.6, P)),
        (GradientDescent(0.2), Momentum(0.2, 0.7, steps=1)),
        (GradientDescent(0.2), Nesterov(0.2, 0.7, steps=1)),
        (GradientDescent(0.2), GradientDescentPlusPlus(0.2, 0.7, steps=1)),
        (GradientDescent(0.2), Chebyshev(3.0, 7.0, steps=1)),
        (GradientDescent(0.2), PreconditionedGradientDescent(0.1 * np.eye(P), [2.0] * M)),
        (Zero(), GradientDescent(0.0, steps=3)),
        (LEAST_SQUARES, Ridge(0.0)),
        (LEAST_SQUARES, PosteriorMean(3.0, 0.0)),
        (Ridge(0.6), PosteriorMean(0.5, 0.3)),
        (Ridge(0.6), PosteriorMean(0.5 * np.eye(P), 0.3)),
        (Ridge(0.6), RecursiveLeastSquares(0.6)),
        (Ridge(0.6), KalmanFilter(0.6, drift=0.0)),
        (Average(), KernelSmoother(0.0)),
        (Average(), NearestNeighbours(N)),
        (Zero(), Lasso(1e3)),
        (OnlineGradientDescent(0.05), DeltaRule(0.05, 1.0)),
        (OnlineGradientDescent(0.05), OnlineMomentum(0.05, 0.0, 0.0)),
        (OnlineMomentum(0.05, 0.6, 0.1), OnlineMomentum(0.05, 0.9, 0.4)),  # β and 1 − α exchanged
        (OnlineGradientDescent(0.05), MiniBatchGradientDescent(0.05, 1)),
        (Ridge(0.6), DiscountedRidge(0.6, 1.0)),
        (Ridge(0.6), TrackingConjugateGradients(0.6, P * M)),
    ],
    ids=lambda learner: learner.name,
)
def test_special_cases(special, general):
    equal(special, general, draw())


def test_jacobi_steps_converge_to_least_squares_where_that_is_unique():
    equal(JacobiGradientDescent(0.4, 1500), LEAST_SQUARES, draw(), 1e-8, slice(P + 1, None))


def test_a_diagonal_is_the_matrix_with_that_diagonal():
    diagonal, outputs = np.array([0.1, 0.2j, -0.3]), np.array([1.0, -2.0])
    equal(
        PreconditionedGradientDescent(diagonal, outputs, steps=3),
        PreconditionedGradientDescent(np.diag(diagonal), np.diag(outputs), steps=3),
        draw(),
    )


def test_signs_can_be_moved_between_the_two_maps():
    signs = np.array([1.0, -1.0, 1.0])
    x, _, queries = draw()
    one = PreconditionedGradientDescent(0.2 * signs, signs)
    equal(one, PreconditionedGradientDescent(-0.2 * signs, -signs), (x, x, queries))


@pytest.mark.parametrize(
    "learner",
    [
        GradientDescent(0.4, steps=1500),
        Momentum(0.4, 0.7, steps=300),
        Nesterov(0.4, 0.7, steps=300),
        Chebyshev(0.1, 2.5, steps=150),
        AdaptiveGradientDescent(300),
        Newton(1.0, steps=20),
        ConjugateGradients(P),
        ConjugateGradients(10 * P),
        Lasso(0.0),
    ],
    ids=lambda learner: learner.name,
)
def test_all_converge_to_least_squares_of_minimum_norm(learner):
    x, y, queries = orthogonal()
    x = x * np.random.default_rng(1).uniform(
        0.7, 1.5, size=(4, N, 1)
    )  # eigenvalues other than 0 from 0.1 to 2.3
    # With fewer than P examples the Lasso ends at another one of the W that fit.
    equal(learner, LEAST_SQUARES, (x, y, queries), lengths=slice(P if learner.name == "lasso" else 0, None))


@pytest.mark.parametrize(
    ("learner", "limit"),
    [
        (Ridge, LEAST_SQUARES),
        (
            lambda size: PosteriorMean(np.diag([1.0, 2.0, 3.0]), size),
            PosteriorMean(np.diag([1.0, 2.0, 3.0]), 0.0),
        ),
        (lambda size: Newton(size, steps=45), LEAST_SQUARES),
        (lambda size: DirichletPosterior(size), LEAST_SQUARES),
        (lambda size: RecursiveLeastSquares(1.0, forgetting=1 - size), Ridge(1.0)),
        (lambda size: KalmanFilter(1.0, drift=size), Ridge(1.0)),
        (lambda size: Lasso(size), LEAST_SQUARES),
    ],
    ids=["ridge", "posterior-mean", "newton", "dirichlet", "forgetting", "drift", "lasso"],
)
def test_distances_to_limits_are_proportional_to_the_parameter(learner, limit):
    if limit.name == "least-squares" and isinstance(learner(0.1), DirichletPosterior):
        symbols = np.eye(P)[np.random.default_rng(0).integers(P, size=(4, 40))]
        data = (symbols[:, :-1], symbols[:, 1:], symbols)  # least squares of symbols are frequencies
    else:
        data = draw(float, examples=39)
    late = slice(20, None)
    goal = np.asarray(predictions(limit, *data))[:, late]
    gaps = [
        np.abs(np.asarray(predictions(learner(size), *data))[:, late] - goal).max() for size in (1e-3, 1e-4)
    ]
    if isinstance(
        learner(0.1), Newton
    ):  # it converges to the limit from every start, more slowly from smaller ones
        assert max(gaps) < 1e-11
    else:
        assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.1)


def test_with_one_example_both_descents_are_equal():
    equal(OnlineGradientDescent(0.2), GradientDescent(0.2), draw(), lengths=slice(2))


def test_inputs_of_one_length_need_no_normalization():
    x, y, queries = draw()
    x = 1.5 * x / np.linalg.norm(x, axis=-1, keepdims=True)
    equal(OnlineGradientDescent(0.8 / (0.5 + 1.5**2)), NormalizedLMS(0.8, 0.5), (x, y, queries))


def test_a_batch_of_all_examples_is_one_step_of_gradient_descent():
    data = draw()
    one = np.asarray(predictions(GradientDescent(0.05), *data))
    all_at_once = np.asarray(predictions(MiniBatchGradientDescent(0.05, N), *data))
    np.testing.assert_allclose(all_at_once, one * np.arange(N + 1)[:, None], rtol=1e-11)  # not divided by n


def test_one_step_of_conjugate_gradients_is_the_best_step_of_gradient_descent():
    x, y, queries = (array[0] for array in draw())
    gram, cross = x.T @ x.conj() / N, y.T @ x.conj() / N
    best = np.vdot(cross, cross).real / np.vdot(cross, cross @ gram).real
    one, other = (
        predictions(ConjugateGradients(1), x, y, queries),
        predictions(GradientDescent(best), x, y, queries),
    )
    np.testing.assert_allclose(one[-1], other[-1], rtol=1e-12)


@pytest.mark.slow
def test_a_newton_iteration_doubles_the_steps_of_the_previous_one():
    # I − S M_{k+1} = (I − S M_k)²: on orthogonal examples it is 2^k gradient steps of another learner
    data = orthogonal()
    size = np.arange(P, N + 1, P)
    for steps in (1, 2, 5):
        equal(Newton(0.3, steps), GradientDescent(0.3 * P, 2**steps), data, lengths=size)


def test_on_orthogonal_examples_preconditioning_and_curvature_have_no_effect():
    data = orthogonal()
    size = np.arange(P, N + 1, P)
    f = 0.5 * (1 + (1 - 0.1 / P) ** 2 * (1 - 0.5 / P))  # two steps of GD++ by hand, s = 1/P
    equal(GradientDescentPlusPlus(0.5, 0.1, steps=2), GradientDescent(f), data, lengths=size)
    equal(Ridge(0.7), GradientDescent(P * 4 / (4 + 0.7)), data, lengths=slice(N, None))
    equal(ConjugateGradients(1), LEAST_SQUARES, data, lengths=size)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [0, 1, 300])
def test_the_lasso_of_many_problems_is_that_of_each(batch):
    rng = np.random.default_rng(0)
    x, y, queries = (rng.normal(size=(batch, *shape)) for shape in ((4, 3), (4, 1), (5, 3)))
    together = predictions(Lasso(0.1), x, y, queries)
    assert together.shape == (batch, 5, 1)
    for one in range(0, batch, 100):
        np.testing.assert_allclose(
            together[one], predictions(Lasso(0.1), x[one], y[one], queries[one]), rtol=1e-9, atol=1e-12
        )


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1e-3, 0.01])
def test_the_lasso_of_few_examples_meets_its_conditions(penalty):
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(200, 3, 6)), rng.normal(size=(200, 1, 6))
    y = np.einsum("bmp,bnp->bnm", w, x) + 0.3 * rng.normal(size=(200, 3, 1))
    # its answers to the unit vectors are its weights
    units = np.broadcast_to(np.eye(6), (200, 6, 6))
    found = np.stack(
        [predictions(Lasso(penalty), x, y, np.repeat(units[:, [j]], 4, 1))[:, -1, 0] for j in range(6)], -1
    )
    slopes = np.einsum("bn,bnp->bp", y[..., 0] - np.einsum("bp,bnp->bn", found, x), x) / 3
    off = np.where(found == 0, np.maximum(abs(slopes) - penalty, 0), abs(slopes - penalty * np.sign(found)))
    assert np.quantile(off, 0.99) < 1e-12 and off.max() < 1e-4  # a few end short of rounding


@pytest.mark.slow
def test_the_lasso_on_orthogonal_examples_shortens_every_weight():
    x, y, queries = (array[0] for array in orthogonal())
    weights = y.T @ x.conj() / N
    short = weights * np.maximum(0, 1 - 0.1 / np.abs(weights)) * P
    assert 0 < (short == 0).sum() < short.size
    np.testing.assert_allclose(predictions(Lasso(0.1), x, y, queries)[-1], short @ queries[-1], rtol=1e-12)


def test_very_sharp_kernels_select_one_example():
    x, y, queries = draw()
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)  # of equal length: the nearest overlaps most
    equal(KernelSmoother(1e4), NearestNeighbours(1), (x, y, queries))


def test_of_equally_near_examples_the_first_is_taken():
    x, y = np.zeros((3, 1)), np.array([[1.0], [2.0], [4.0]])
    assert predictions(NearestNeighbours(2), x, y, np.zeros((4, 1)))[-1, 0] == 1.5


def test_without_noise_the_posterior_interpolates_with_minimum_norm_of_the_prior():
    x, y, queries = (array[0] for array in draw(float, examples=2))
    root = np.diag([1.0, 2.0, 0.5])
    expected = np.linalg.lstsq(x @ root, y, rcond=None)[0].T @ root @ queries[-1]
    np.testing.assert_allclose(
        predictions(PosteriorMean(root @ root, 0.0), x, y, queries)[-1], expected, rtol=1e-11
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_noise_a_large_task_hides_no_difference_of_the_others(dtype):
    """Of (1, 0), (0.95, 0) and a task of any size the first has the exact labels: the limit of small noise is its answer."""
    large = 30.0 if dtype is np.float32 else 1e8
    pool = np.array([[1.0, 0.0], [0.95, 0.0], [large, 0.0]])
    x = np.array([[1.0, 0.5], [-0.7, 0.2], [1.3, -0.4]], dtype)
    queries = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], dtype)
    found = predictions(Memorizing(pool, 0.0), x, x[:, :1], queries)
    assert found[-1, 0] == 1.0


@pytest.mark.slow
def test_the_posterior_mean_has_the_smallest_error():
    rng, noise, prior = np.random.default_rng(0), 0.5, np.diag([4.0, 1.0, 0.1])
    tasks, n = 20_000, 5
    w = rng.normal(size=(tasks, P)) * np.sqrt(np.diag(prior))
    x = rng.normal(size=(tasks, n + 1, P))
    y = np.einsum("bp,bnp->bn", w, x)
    seen = y[:, :-1] + np.sqrt(noise) * rng.normal(size=(tasks, n))

    def error(learner):
        return np.mean((predictions(learner, *prompt_examples(x, seen))[:, -1, 0] - y[:, -1]) ** 2)

    best = error(PosteriorMean(prior, noise))
    others = PosteriorMean(prior, 1.2 * noise), PosteriorMean(1.7, noise), Ridge(0.3), LEAST_SQUARES
    assert all(best < error(other) for other in others)


def test_sequences_are_examples_of_the_next_token():
    tokens = draw()[2]
    x, y, queries = sequence_examples(tokens)
    last = predictions(LastToken(), x, y, queries)
    np.testing.assert_array_equal(last[:, 1:], tokens[:, 1:])
    step = predictions(GradientDescent(0.3), x, y, queries)[:, 5]
    expected = sum(
        0.3 / 5 * tokens[b, i + 1] * np.vdot(tokens[b, i], tokens[b, 5]) for b in [0] for i in range(5)
    )
    np.testing.assert_allclose(step[0], expected, rtol=1e-13)


def test_prompts_are_their_pairs():
    x, y = draw(float)[2], np.arange(4 * (N + 1.0)).reshape(4, N + 1)
    one, other = prompt_examples(x, y), prompt_examples(x, y[:, :-1])
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    assert [array.shape for array in one] == [(4, N, P), (4, N, 1), (4, N + 1, P)]
    np.testing.assert_array_equal(predictions(LastToken(), *one)[..., 1:, 0], y[:, :-1])


@pytest.mark.slow
def test_derivatives_exist_for_equal_eigenvalues():
    # One-hot inputs: with P examples all eigenvalues are equal, with fewer some are 0 and some are equal
    x, y, queries = draw(float, examples=P)
    x, direction = np.broadcast_to(np.eye(P), x.shape), draw(float, examples=P, seed=1)[0]
    step = 1e-5
    for learner in (GradientDescent(0.2, 3), Ridge(0.3), LEAST_SQUARES, PosteriorMean(2.0, 0.1)):

        def run(amount, learner=learner):
            return predictions(learner, x + amount * direction, y, queries)

        slope = jax.jvp(run, (0.0,), (1.0,))[1]
        np.testing.assert_allclose(slope, (run(step) - run(-step)) / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_newtons_start_has_a_derivative_only_if_the_largest_eigenvalue_is_simple():
    x, y, queries = draw(float, examples=P)
    x = np.broadcast_to(np.eye(P), x.shape)
    slope = jax.jacfwd(lambda x: predictions(Newton(0.5, 3), x, y, queries))(jnp.asarray(x))
    assert np.isfinite(slope).all()  # one of the directional derivatives, no NaN
