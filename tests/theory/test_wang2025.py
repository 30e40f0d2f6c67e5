"""Exact errors of memories, compared with quadrature over all random numbers, with samples, and with layers."""

from itertools import repeat

import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.models import prompt_memory_solver
from mesascope.processes import DriftingRegression
from mesascope.theory import wang2025

COVARIANCE = np.array([[2.0, 0.6], [0.6, 1.0]])
DRIFT, NOISE, EXAMPLES = 0.4, 0.3, 5


def linear(eta, phi):
    return lambda memory, state, x, y, i: (phi * memory + eta * y * x, state)


def delta(eta, phi):
    def write(memory, state, x, y, i):
        return phi * memory + eta * (y - phi * dot(memory, x)) * x, state

    return write


def momentum(eta, beta, alpha):
    def write(memory, velocity, x, y, i):
        velocity = beta * velocity + eta * (y - dot(memory, x)) * x
        return (1 - alpha) * memory + velocity, velocity

    return write


def batches(eta, size):
    def write(memory, before, x, y, i):
        before = memory if i % size == 0 else before
        return memory + eta * (y - dot(before, x)) * x, before

    return write


def normalized(rate, offset):
    def write(memory, state, x, y, i):
        return memory + rate / (offset + dot(x, x)) * (y - dot(memory, x)) * x, state

    return write


def dot(a, b):
    return (a * b).sum(0)


RULES = {
    "linear": (wang2025.linear_attention(0.1, 0.9), linear(0.1, 0.9)),
    "delta": (wang2025.delta_rule(0.1, 0.9), delta(0.1, 0.9)),
    "momentum": (wang2025.momentum(0.1, 0.5, 0.1), momentum(0.1, 0.5, 0.1)),
    "mini-batches": (wang2025.mini_batches(0.08, 2), batches(0.08, 2)),
}
every_rule = pytest.mark.parametrize(("steps", "write"), RULES.values(), ids=RULES)


@every_rule
def test_errors_are_integrals_over_all_random_numbers(steps, write):
    """d = 1, N = 2: with 7 nodes in each of eight dimensions polynomials of degree 13 are integrated exactly."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    w, step_1, step_2, x_1, x_2, x_q, noise_1, noise_2 = np.ix_(*[nodes] * 8)
    variance, walk = 1.3, DRIFT
    x_1, x_2, x_q = (np.sqrt(variance) * x for x in (x_1, x_2, x_q))
    zero = np.zeros((1,) * 9)
    memory, state = write(zero, zero, x_1[None], w * x_1 + NOISE * noise_1, 0)
    memory, _ = write(memory, state, x_2[None], (w + walk * step_1) * x_2 + NOISE * noise_2, 1)
    error = (memory[0] * x_q - (w + walk * (step_1 + step_2)) * x_q) ** 2
    for _ in range(8):
        error = error @ weights / weights.sum()
    inputs = wang2025.gaussian_inputs([[variance]])
    exact = wang2025.squared_errors(steps, inputs, 2, drift=walk, noise=NOISE)
    np.testing.assert_allclose(exact[2], error + NOISE**2, rtol=1e-11)  # sums of 7⁸ products


def sampled(write, covariance, count=40_000):
    """Squared errors after 0 … N examples, shape (N + 1, count)."""
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(covariance)
    w = rng.normal(size=(len(covariance), count))
    memory, state, errors = np.zeros_like(w), np.zeros_like(w), []
    for i in range(EXAMPLES + 1):
        x = root @ rng.normal(size=w.shape)
        y = dot(w, x) + NOISE * rng.normal(size=count)
        errors.append((dot(memory, x) - y) ** 2)
        memory, state = write(memory, state, x, y, i)
        w = w + DRIFT * rng.normal(size=w.shape)
    return np.array(errors)


def assert_mean_is(errors, exact):
    """Within 4 standard errors."""
    deviations = (errors.mean(1) - exact) / (errors.std(1) / errors.shape[1] ** 0.5)
    assert np.abs(deviations).max() < 4


@every_rule
def test_errors_are_means_of_samples(steps, write):
    exact = wang2025.squared_errors(
        steps, wang2025.gaussian_inputs(COVARIANCE), EXAMPLES, drift=DRIFT, noise=NOISE
    )
    assert_mean_is(sampled(write, COVARIANCE), exact)


@pytest.mark.parametrize(("dim", "offset"), [(3, 0.0), (1, 0.5), (2, 2.0)])
def test_errors_of_normalized_steps_are_means_of_samples(dim, offset):
    inputs = wang2025.normalized_inputs(dim, offset)
    exact = wang2025.squared_errors(wang2025.delta_rule(0.8), inputs, EXAMPLES, drift=DRIFT, noise=NOISE)
    assert_mean_is(sampled(normalized(0.8, offset), np.eye(dim)), exact)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "steps"),
    [
        ({"kind": "gated-delta-net", "rate": 0.1, "decay": 0.9}, wang2025.delta_rule(0.1, 0.9)),
        (
            {"kind": "titans", "rate": 0.1, "momentum": 0.5, "forgetting": 0.1},
            wang2025.momentum(0.1, 0.5, 0.1),
        ),
        ({"kind": "retention", "decay": 0.9}, wang2025.linear_attention(1.0, 0.9)),
    ],
    ids=lambda one: one["kind"] if isinstance(one, dict) else "",
)
def test_errors_are_those_of_layers(rule, steps):
    process = DriftingRegression(2, DRIFT, COVARIANCE, NOISE)
    x, y = process.sample(named_key(0), EXAMPLES, 40_000)
    model = prompt_memory_solver(2, rule, key=named_key(0))
    errors = (np.asarray(model(x, y[:, :-1])) - np.asarray(y[:, -1])) ** 2
    inputs = wang2025.gaussian_inputs(COVARIANCE)
    exact = wang2025.squared_errors(steps, inputs, EXAMPLES, drift=DRIFT, noise=NOISE)
    assert_mean_is(errors[None], exact[-1])


def test_linear_attention_has_the_error_of_its_closed_form():
    """E |x_q (1 − η Σ x x*)|² for d inputs of variance 1: d (1 − 2 η N + η² N (N + d + 1))."""
    dim, eta = 4, 0.05
    n = np.arange(9)
    errors = wang2025.squared_errors(wang2025.linear_attention(eta), wang2025.gaussian_inputs(np.eye(dim)), 8)
    np.testing.assert_allclose(errors, dim * (1 - 2 * eta * n + eta**2 * n * (n + dim + 1)), rtol=1e-13)


def test_the_best_step_size_of_linear_attention_has_its_closed_form():
    """η = 1/(N + d + 1), with the error d (1 − N/(N + d + 1)), both from the polynomial above."""
    found, error = wang2025.best_step_size(wang2025.linear_attention, wang2025.gaussian_inputs(np.eye(4)), 10)
    np.testing.assert_allclose(found, 1 / 15, rtol=1e-6)  # a minimum: the root of the precision
    np.testing.assert_allclose(error, 4 * (1 - 10 / 15), rtol=1e-12)


def test_the_best_step_size_is_found_where_noise_makes_it_small():
    """After one example in one dimension the error is 1 + σ² − 2η + η²(3 + σ²)."""
    found, _ = wang2025.best_step_size(
        wang2025.linear_attention, wang2025.gaussian_inputs(np.eye(1)), 1, noise=200.0
    )
    # lower by 1/σ⁴ = 6e-10 of its size at the minimum, which rounding of 1e-16 moves by the root of the ratio, 4e-4
    np.testing.assert_allclose(found, 1 / (3 + 200.0**2), rtol=1e-2)


def test_a_step_size_that_noise_makes_too_small_is_refused():
    with pytest.raises(ValueError, match="no step size lowers the error by more than rounding"):
        wang2025.best_step_size(wang2025.linear_attention, wang2025.gaussian_inputs(np.eye(1)), 1, noise=1e5)


def test_the_best_error_of_linear_attention_has_its_closed_form_for_correlated_inputs():
    inputs = wang2025.gaussian_inputs(COVARIANCE)
    searched = wang2025.best_step_size(wang2025.linear_attention, inputs, 7, noise=NOISE)[1]
    exact = wang2025.best_linear_attention_error(COVARIANCE, 7, NOISE)
    np.testing.assert_allclose(searched, exact, rtol=1e-12)  # a minimum: the search's precision, squared


@pytest.mark.parametrize("covariance", [np.eye(2), COVARIANCE], ids=["uncorrelated", "correlated"])
def test_the_error_of_least_squares_is_a_mean_of_samples_for_every_covariance(covariance):
    rng, count, examples = np.random.default_rng(0), 20_000, 9
    root = np.linalg.cholesky(covariance)
    x = rng.normal(size=(count, examples, 2)) @ root.T
    noise, query = NOISE * rng.normal(size=(count, examples)), rng.normal(size=(count, 2)) @ root.T
    gram = np.einsum("bni,bnj->bij", x, x)
    missed = np.linalg.solve(gram, np.einsum("bni,bn->bi", x, noise)[..., None])[..., 0]
    errors = np.sum(missed * query, 1) ** 2 + NOISE**2
    assert_mean_is(errors[None], wang2025.least_squares_error(2, examples, NOISE))


def test_the_gain_of_linear_attention_is_a_step_size():
    inputs = wang2025.gaussian_inputs(COVARIANCE)
    one = wang2025.squared_errors(wang2025.linear_attention(0.05), inputs, 6, noise=NOISE)
    two = wang2025.squared_errors(wang2025.linear_attention(1.0), inputs, 6, noise=NOISE, gain=0.05)
    np.testing.assert_allclose(one, two, rtol=1e-13)


def test_the_delta_rule_is_stable_for_steps_below_two_over_the_dimension_and_two():
    """x ~ N(0, s²I): E (I − η x xᵀ)² = (1 − 2ηs² + (d + 2) η²s⁴) I."""
    dim, variance = 4, 1.5
    for share in (0.5, 0.99, 1.01):
        eta = share * 2 / ((dim + 2) * variance)
        factor = 1 - 2 * eta * variance + (dim + 2) * (eta * variance) ** 2
        assert (factor < 1) == (share < 1)
        errors = wang2025.squared_errors(
            wang2025.delta_rule(eta), wang2025.gaussian_inputs(variance * np.eye(dim)), 50
        )
        np.testing.assert_allclose(errors[1:] / errors[:-1], factor, rtol=1e-10)


def test_a_memory_that_diverges_has_infinite_errors():
    errors = wang2025.squared_errors(wang2025.delta_rule(5.0), wang2025.gaussian_inputs(np.eye(2)), 500)
    assert np.isinf(errors[-1]) and np.isfinite(errors[:10]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wang2025.gaussian_inputs([[1.0, 2.0], [2.0, 1.0]]), "covariance"),
        (lambda: wang2025.normalized_inputs(2, 0.0), "offset: must be > 0 for dim = 2"),
        (lambda: wang2025.mini_batches(0.1, 0), "batch"),
        (lambda: wang2025.delta_rule(np.nan), "step_size"),
        (lambda: wang2025.best_linear_attention_error(np.eye(2), 0), "examples"),
        (lambda: wang2025.least_squares_error(3, 4, 0.1), "examples must be at least 5"),
        (lambda: wang2025.squared_errors(repeat(0), wang2025.gaussian_inputs(np.eye(1)), 0), "examples"),
        (
            lambda: wang2025.squared_errors(
                wang2025.delta_rule(0.1), wang2025.gaussian_inputs(np.eye(1)), 2, drift=-1
            ),
            "drift",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
