"""Formulas for pools of regression tasks: limits, the exact minimum against the exact engine, samples of the features."""

from decimal import Decimal, localcontext
from math import inf

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

from mesascope.core import named_key
from mesascope.models import LastEntry, LinearAttentionStack, LinearSelfAttention, PromptModel, StackedPrompt
from mesascope.objectives import population_loss
from mesascope.processes import FewShot, LinearRegression, NoiseRange, TaskPool, Uniform
from mesascope.theory import lu2024
from theory.regression_pools import features, process


def model(gamma):
    construction = lu2024.layer(gamma)
    layer = LinearSelfAttention(construction.w_kq, construction.w_pv, "t-1", "examples")
    return PromptModel(StackedPrompt(len(gamma)), LinearAttentionStack([layer]), LastEntry(1.0))


@pytest.mark.parametrize("x", [0.3, 2.0])
@pytest.mark.parametrize("kappa", [0.2, 1.0, 5.0])
def test_the_resolvent_solves_its_equation(x, kappa):
    m = lu2024.resolvent(x, kappa)
    assert m == pytest.approx(1 / (x + kappa / (kappa + m)), rel=1e-12)


def test_the_resolvent_is_that_of_a_large_pool():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(600, 1200))
    values = np.linalg.eigvalsh(w @ w.T / 1200)
    # fluctuations of such traces are of order 1/d, their mean error of 1/d²
    assert np.mean(1 / (values + 0.4)) == pytest.approx(lu2024.resolvent(0.4, 2), rel=5e-3)


def test_many_prompts_and_many_tasks_are_limits():
    args = (2.0, 0.7, 0.25)
    assert lu2024.icl_error(*args, tau=1e8) == pytest.approx(lu2024.icl_error(*args), rel=1e-7)
    x = 1.25 / 2
    assert lu2024.icl_error(2.0, inf, 0.25) == pytest.approx(0.25 + x / (1 + x), rel=1e-12)
    assert lu2024.icl_error(2.0, 1e8, 0.25) == pytest.approx(0.25 + x / (1 + x), rel=1e-7)
    assert lu2024.idg_error(2.0, inf, 0.25) == pytest.approx(lu2024.icl_error(2.0, inf, 0.25), rel=1e-12)
    assert lu2024.icl_error(2.0, 1e-9, 0.25) == pytest.approx(1.25, rel=1e-6)  # no better than answering 0


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.3, 4.0])
def test_errors_are_those_of_least_squares_extrapolated_in_the_dimension(tau):
    """Errors e + c/d at d = 12 and 24, of few pools: e within four of their standard errors and 3 % of order 1/d²."""
    found = {
        dim: np.array([_fitted_errors(dim, 1, 0.5, 0.5, int(tau * dim**2), seed) for seed in range(pools)])
        for dim, pools in ((12, 40), (24, 10))
    }
    (small, large), (rough, fine) = (
        [many.mean(0) for many in found.values()],
        [many.std(0, ddof=1) / len(many) ** 0.5 for many in found.values()],
    )
    for place, error in enumerate((lu2024.icl_error, lu2024.idg_error)):
        limit = error(1.0, 0.5, 0.25, tau)
        off = abs(2 * large[place] - small[place] - limit)
        assert off < 4 * np.hypot(2 * fine[place], rough[place]) + 0.03 * limit
        # the limit for infinitely many prompts is another
        assert min(abs(one[place] - error(1.0, 0.5, 0.25)) for one in (small, large)) > 2 * off


def test_the_error_on_the_pool_of_many_prompts_is_that_of_the_minimum():
    assert lu2024.idg_error(2.0, 0.7, 0.25, 1e8) == pytest.approx(lu2024.idg_error(2.0, 0.7, 0.25), rel=1e-7)
    # no prompts: nothing is learned but what is of order τ, and tasks of the pool have mean square 1
    for tau in (1e-6, 1e-30):
        assert lu2024.idg_error(2.0, 0.7, 0.25, tau) == pytest.approx(1.25, rel=5 * tau + 1e-12)


@pytest.mark.parametrize("tau", [1e-6, 0.3, 1 - 2**-30])
@pytest.mark.parametrize("kappa", [1e-8, 0.5, 1 + 1e-7, 1e8])
@pytest.mark.parametrize("alpha", [1e-30, 2.0, 1e30])
def test_few_prompts_have_their_digits_for_any_sizes(alpha, kappa, tau):
    """Against the formula of the program with 150 digits, and least squares on the pool as an equivalent ridge."""
    with localcontext(prec=150):
        rho = Decimal("0.25")
        x, k, t = (1 + rho) / Decimal(alpha), Decimal(kappa), Decimal(tau)

        def resolvent(at, ratio):
            shifted = at + 1 - 1 / ratio
            return 2 / (shifted + (shifted**2 + 4 * at / ratio).sqrt())

        mu = x * resolvent(x, k / t)
        new = (
            t * (1 + x) / (1 - t) * (1 - t * (1 - mu) ** 2 - (x - rho) / x * mu) - 2 * t * (1 - mu) + 1 + rho
        )
        # κ/τ is rounded, which counts 1e7 times where it is 1 + 1e-7
        assert lu2024.icl_error(alpha, kappa, 0.25, tau) == pytest.approx(float(new), rel=1e-9)
        low, high = Decimal("1e-120"), Decimal("1e120")
        for _ in range(450):
            middle = (low * high).sqrt()
            low, high = (middle, high) if 1 - middle * resolvent(x + middle, k) > t else (low, middle)
        m = resolvent(x + low, k)
        squared = m**2 / (1 - k * m**2 / (k + m) ** 2)
        end = resolvent(x, k)
        bias = x**2 * end + (low**2 - x**2) * m - low * (x + low) ** 2 * squared
        pool = (rho + x - x**2 * end + bias) / (1 - (1 - 2 * low * m + low**2 * squared) / t)
        assert lu2024.idg_error(alpha, kappa, 0.25, tau) == pytest.approx(float(pool), rel=1e-9)


def _fitted_errors(dim, alpha, kappa, noise, prompts, seed):
    """Errors on new tasks and on the pool of the layer that is fitted to prompts of a pool."""
    pool = TaskPool(process(dim, noise), tasks=int(kappa * dim), seed=seed)
    x, y = map(np.asarray, pool.sample(named_key(seed, "fit"), alpha * dim, prompts))
    summed = dim / (alpha * dim) * np.einsum("bn,bnd->bd", y[:, :-1], x[:, :-1])
    f = np.column_stack([summed, (y[:, :-1] ** 2).mean(1)])
    rows = np.einsum("bi,bj->bij", x[:, -1], f).reshape(prompts, -1)
    gamma = np.linalg.lstsq(rows, y[:, -1], rcond=None)[0].reshape(dim, dim + 1)
    return [features(one, alpha * dim).error(gamma) for one in (process(dim, noise), pool)]


def test_small_pools_cost_no_digits():
    # few tasks for infinitely many dimensions: nothing is learned, and on them everything
    assert lu2024.icl_error(2.0, 1e-200, 0.25) == pytest.approx(1.25, rel=1e-15)
    assert lu2024.icl_error(2.0, 0, 0.25) == pytest.approx(1.25, rel=1e-15)
    assert lu2024.idg_error(2.0, 0, 0.25) == pytest.approx(0.25, rel=1e-15)
    for tau in (0.5, 3.0):
        for error in (lu2024.icl_error, lu2024.idg_error):
            assert error(2.0, 0, 0.25, tau) == pytest.approx(error(2.0, 1e-9, 0.25, tau), rel=1e-7)


@pytest.mark.parametrize("tau", [0.2, 0.7, 1.5, 100.0])
@pytest.mark.parametrize(("alpha", "kappa", "rho"), [(1, 1, 0.1), (0.5, 0.3, 0.25), (3, 2.5, 0.0)])
def test_the_error_of_few_prompts_is_that_of_the_equivalent_ridge(alpha, kappa, rho, tau):
    r"""Least squares is a ridge λ with mean (r + x)/(r + x + λ) = τ over the spectrum, or 0, and the noise that it fits.

    The spectrum r is that of Marchenko and Pastur; means over it by the trapezoidal rule in an angle.
    """
    x, width = (1 + rho) / alpha, kappa**-0.5
    angle = (np.arange(4000) + 0.5) * np.pi / 4000
    r = 1 + width**2 + 2 * width * np.cos(angle)
    density = 2 * np.sin(angle) ** 2 / r / len(r)
    r, density = np.append(r, 0), np.append(density, max(0, 1 - kappa))
    assert density.sum() == pytest.approx(1, rel=1e-12)
    rates = r + x
    ridge = 0.0
    if tau < 1:
        ridge = brentq(lambda one: density @ (rates / (rates + one)) - tau, 0, 1e6, xtol=1e-14)
    g = r / (rates + ridge)
    of_mean = rho + 1 + density @ ((1 + x) * g**2 - 2 * g)
    mean_on_pool = rho + density @ (r - 2 * g * r + rates * g**2)
    fitted_noise = density @ (rates / (rates + ridge)) ** 2 / tau
    on_pool = mean_on_pool / (1 - fitted_noise)
    expected = of_mean + (1 + x) / tau * on_pool * (density @ (rates / (rates + ridge) ** 2))
    assert lu2024.idg_error(alpha, kappa, rho, tau) == pytest.approx(on_pool, rel=1e-11)
    assert lu2024.icl_error(alpha, kappa, rho, tau) == pytest.approx(expected, rel=1e-11)


def test_the_error_diverges_at_as_many_prompts_as_weights():
    below, above = lu2024.icl_error(1, 1, 0.1, 0.999), lu2024.icl_error(1, 1, 0.1, 1.001)
    assert min(below, above) > 50 * lu2024.icl_error(1, 1, 0.1)
    with pytest.raises(ValueError, match="tau must not be 1"):
        lu2024.icl_error(1, 1, 0.1, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("covariance", [np.eye(3) / 3, [[1, 0.2, 0], [0.2, 0.5, 0.1], [0, 0.1, 2]]])
def test_the_minimum_is_critical_and_has_the_loss_of_the_exact_engine(covariance):
    task = FewShot(6)
    base = LinearRegression(3, covariance=covariance, prior="sphere", noise=0.5)
    pool = TaskPool(base, tasks=4)
    found = features(pool, 6)
    best = model(found.minimum)
    loss, slope = jax.value_and_grad(lambda one: population_loss(one, pool, task).value)(best)
    assert 2 * float(loss) == pytest.approx(found.error(found.minimum), rel=1e-12)
    # Γ is all of the key-query matrix that reaches the prediction; the reduced problem fixes the other matrix
    assert float(abs(slope.network.layers[0].w_kq).max()) < 1e-12
    assert float(abs(slope.network.layers[0].w_pv).max()) > 1e-4  # so the whole layer has a lower minimum
    fresh = features(base, 6)
    assert 2 * float(population_loss(best, pool.process, task).value) == pytest.approx(
        fresh.error(found.minimum), rel=1e-12
    )


@pytest.mark.slow
def test_numbers_of_examples_are_averaged_with_their_weights():
    """The layer divides by the number of examples, so that its features are those of every number."""
    pool, task = TaskPool(process(3, 0.5), tasks=4), FewShot(4, {0: 1, 2: 3, 4: 0.5})
    found = lu2024.features(pool, task)
    best = model(found.minimum)
    loss, slope = jax.value_and_grad(lambda one: population_loss(one, pool, task).value)(best)
    assert 2 * float(loss) / 4.5 == pytest.approx(found.error(found.minimum), rel=1e-12)
    assert float(abs(slope.network.layers[0].w_kq).max()) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("covariance", [np.eye(3) / 3, np.diag([0.2, 1, 3])])
def test_feature_moments_are_those_of_samples(covariance):
    dim, ell, noise, count = 3, 5, 0.7, 100_000
    pool = TaskPool(LinearRegression(3, covariance=covariance, prior="sphere", noise=noise), tasks=2)
    x, y = map(np.asarray, pool.sample(named_key(0, "features"), ell, count))
    f = np.column_stack([dim / ell * np.einsum("bn,bnd->bd", y[:, :-1], x[:, :-1]), (y[:, :-1] ** 2).mean(1)])
    found = features(pool, ell)
    for sampled, exact in (
        (np.einsum("bi,bj->bij", f, f), found.gram),
        (y[:, -1, None, None] * np.einsum("bi,bj->bij", x[:, -1], f), covariance @ found.cross),
        (y[:, -1] ** 2, found.power),
    ):
        error = sampled.std(0) / count**0.5
        assert (np.abs(sampled.mean(0) - exact) < 4 * error).all()


@pytest.mark.parametrize("covariance", [np.eye(3) / 3, np.diag([0.2, 1, 3])])
def test_ridge_minimizes_its_objective(covariance):
    base = LinearRegression(3, covariance=covariance, prior="sphere", noise=0.5)
    found = features(TaskPool(base, tasks=2), 4)

    def objective(gamma):
        return found.error(gamma) + 0.3 / 3 * np.sum(gamma**2)

    best = found.ridge_minimum(0.3)
    rng = np.random.default_rng(0)
    for _ in range(5):
        step = 1e-3 * rng.normal(size=best.shape)
        # exactly quadratic: at the minimum both sides rise by the same
        up, down = objective(best + step) - objective(best), objective(best - step) - objective(best)
        assert up == pytest.approx(down, rel=1e-6)
        assert up > 0


def drawn(dim, prompts, noise, examples=4):
    """Prompts with tasks on the sphere, in NumPy."""
    rng = np.random.default_rng(prompts)
    w = rng.normal(size=(prompts, dim))
    w *= dim**0.5 / np.linalg.norm(w, axis=1, keepdims=True)
    x = rng.normal(size=(prompts, examples + 1, dim)) / dim**0.5
    return x, np.einsum("nld,nd->nl", x, w) + noise**0.5 * rng.normal(size=(prompts, examples + 1))


@pytest.mark.parametrize("prompts", [5, 12, 40])  # fewer than the 12 weights, as many, more
def test_a_layer_fitted_to_prompts_is_at_the_least_of_its_ridge_loss(prompts):
    x, y = drawn(3, prompts, 0.3)
    gamma = lu2024.fitted(*lu2024.prompt_features(x, y), 0.2)

    def loss(at):
        total = 0.2 * prompts / 3 * np.sum(at**2)
        for inputs, labels in zip(x, y, strict=True):
            seen = zip(inputs[:-1], labels[:-1], strict=True)
            f = [*(3 / 4 * sum(label * one for one, label in seen)), np.mean(labels[:-1] ** 2)]
            total += (labels[-1] - inputs[-1] @ at @ f) ** 2
        return total

    rng = np.random.default_rng(0)
    for _ in range(5):
        step = 1e-2 * rng.normal(size=gamma.shape)
        up, down = loss(gamma + step) - loss(gamma), loss(gamma - step) - loss(gamma)
        assert up == pytest.approx(down, rel=1e-6) and up > 0  # exactly quadratic


def test_without_a_penalty_fewer_prompts_than_weights_give_the_least_norm():
    queries, features, labels = lu2024.prompt_features(*drawn(3, 7, 0.3))
    h = np.einsum("nd,nf->ndf", queries, features).reshape(7, -1)
    least = np.linalg.lstsq(h, labels, rcond=None)[0].reshape(3, 4)
    np.testing.assert_allclose(lu2024.fitted(queries, features, labels, 1e-10), least, rtol=1e-6, atol=1e-8)


def test_many_prompts_give_the_exact_minimum():
    """The error of the fitted layer is above the least by p/n to first order: here 12/20000 of it, and at most twice that."""
    exact = features(process(3, 0.3**0.5), 4)
    gamma = lu2024.fitted(*lu2024.prompt_features(*drawn(3, 20_000, 0.3)), 1e-8)
    best = exact.error(exact.minimum)
    assert 0 < exact.error(gamma) - best < 2 * 12 / 20_000 * best


def test_prompts_of_another_shape_are_refused():
    x, y = drawn(3, 5, 0.3)
    with pytest.raises(ValueError, match=r"x and y must have shapes \(n, ℓ \+ 1, d\) and \(n, ℓ \+ 1\), got"):
        lu2024.prompt_features(x, y[:, :-1])
    with pytest.raises(ValueError, match="penalty"):
        lu2024.fitted(*lu2024.prompt_features(x, y), 0)


@pytest.mark.slow
def test_finite_dimensions_tend_to_the_limit_as_one_over_d():
    alpha, kappa, noise = 2.0, 0.5, 0.5
    gaps = []
    for dim in (16, 64):
        pools = [TaskPool(process(dim, noise), tasks=int(kappa * dim), seed=seed) for seed in range(20)]
        fresh = features(pools[0].process, int(alpha * dim))
        errors = [fresh.error(features(pool, int(alpha * dim)).minimum) for pool in pools]
        gaps.append(np.mean(errors) - lu2024.icl_error(alpha, kappa, noise**2))
    # four times the dimension: a quarter of the gap, which 20 pools know to a fifth
    assert gaps[1] / gaps[0] == pytest.approx(1 / 4, abs=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lu2024.resolvent(0, 1), "x must be"),
        (lambda: lu2024.icl_error(0, 1, 0.1), "alpha must be"),
        (lambda: lu2024.icl_error(1, -1, 0.1), "kappa must not be negative"),
        (lambda: lu2024.icl_error(1, 1, -0.1), "noise_variance must"),
        (lambda: lu2024.features(np.eye(2), FewShot(3)), "process must be LinearRegression or a TaskPool"),
        (lambda: lu2024.features(process(2, 0.1), 3), "task must be FewShot, got int"),
        (lambda: lu2024.features(LinearRegression(2, law=Uniform(1.0)), FewShot(3)), "Gaussian inputs"),
        (lambda: lu2024.features(LinearRegression(2, noise=NoiseRange(1)), FewShot(3)), "one noise"),
        (lambda: lu2024.layer(np.eye(3)), "gamma must have shape"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize("kappa", [0.05, 0.5, 0.9])
def test_at_the_border_the_layer_is_as_bad_as_the_answer_zero(kappa):
    border = lu2024.zero_answer_border(kappa, 0.25)
    assert lu2024.icl_error(border, kappa, 0.25) == pytest.approx(1.25, rel=1e-12)
    assert lu2024.icl_error(0.9 * border, kappa, 0.25) > 1.25 > lu2024.icl_error(1.1 * border, kappa, 0.25)


@pytest.mark.parametrize(("kappa", "border"), [(1 - 1e-9, 3.125e-10), (0.99999, 3.125e-6), (1e-300, 1.25)])
def test_the_border_has_its_digits_near_both_ends(kappa, border):
    # (1 + ρ)(1 − κ)/4 near 1, 1 + ρ near 0; corrections are of relative order 1 − κ and κ
    assert lu2024.zero_answer_border(kappa, 0.25) == pytest.approx(border, rel=1e-4)
    assert lu2024.zero_answer_border(kappa, 1e9) == pytest.approx(border * (1 + 1e9) / 1.25, rel=1e-4)


def test_a_border_exists_only_for_fewer_tasks_than_dimensions():
    assert lu2024.zero_answer_border(1e-6, 0.25) == pytest.approx(1.25, rel=1e-3)
    with pytest.raises(
        ValueError, match=r"kappa must be below 1, got 1\.0: with as many tasks no layer is worse"
    ):
        lu2024.zero_answer_border(1, 0.25)
    assert all(lu2024.icl_error(alpha, 1, 0.25) < 1.25 for alpha in (1e-3, 0.1, 10))


@pytest.mark.parametrize("value", [1e300, 1e-300])
def test_numbers_beyond_those_of_doubles_are_refused(value):
    with pytest.raises(ValueError, match="alpha must lie between 1e-50 and 1e50"):
        lu2024.icl_error(value, 0.5, 0.25)
    with pytest.raises(ValueError, match="tau must be at least 1e-200"):
        lu2024.idg_error(1.0, 0.5, 0.25, 1e-201)
    with pytest.raises(ValueError, match="kappa must be 0, infinite or between 1e-300 and 1e300"):
        lu2024.flow_errors(1.0, value**1.02, 0.25, 1.0)


def test_the_resolvent_of_any_sizes_is_finite():
    assert lu2024.resolvent(1.0, 1e308) == pytest.approx(0.5, rel=1e-15)
    assert lu2024.resolvent(1e300, 2.0) == pytest.approx(1e-300, rel=1e-15)
    assert lu2024.resolvent(1e-300, 0.5) == pytest.approx(0.5e300, rel=1e-15)
