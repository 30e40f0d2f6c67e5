"""The loss as a polynomial with rational coefficients, compared with full quadrature and the moment plan."""

from fractions import Fraction

import jax
import numpy as np
import pytest
from flint import arb, fmpq

from mesascope.models import LinearAttention
from mesascope.objectives import ExactMoments, loss_polynomial
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Gaussian,
    Mixture,
    Moments,
    NextToken,
    Sparse,
    StudentT,
    Uniform,
)

LAWS = {
    "gaussian": Gaussian(1),
    "full-one": Constant(1),
    "vector": Constant(["1/2", -2]),
    "one-hot": Sparse("3/2"),
    "uniform": Uniform(2),
    "student": StudentT(8, 1),
    "mixture": Mixture([("1/3", Gaussian(1)), ("2/3", Constant("1/2"))]),
    "moments": Moments([1, "1/10", 1, "1/5", 3, 0, 15]),
}


def rationals(count, seed=0):
    rng = np.random.default_rng(seed)
    return [fmpq(int(p), 7) for p in rng.integers(-9, 10, count)]


def model_of(theta, dim, normalizer="t-1"):
    values = np.array([int(entry.p) / int(entry.q) for entry in theta])
    cut = 4 * dim**2
    return LinearAttention(values[:cut].reshape(2 * dim, -1), values[cut:].reshape(dim, -1), normalizer)


def decimal(value):
    return int(value.p) / int(value.q)


SCHEDULES = ((NextToken(12), "t-1"), (NextToken(5, {2: 1, 4: "1/3"}), "t"), (NextToken(9), "1"))


def test_values_and_gradients_equal_full_quadrature(reference):
    process, task, case = reference
    exact = loss_polynomial(process, task, case["rho"])
    theta = [fmpq(*x.as_integer_ratio()) for name in ("w_kq", "w_pv") for row in case[name] for x in row]
    # rounding of the quadrature
    assert decimal(exact.value(theta)) == pytest.approx(case["loss"], rel=1e-12)
    expected = np.concatenate([np.ravel(case["grad_w_kq"]), np.ravel(case["grad_w_pv"])])
    found = np.array([decimal(entry) for entry in exact.gradient(theta)])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "task", "normalizer"), [(name, *SCHEDULES[n % 3]) for n, name in enumerate(LAWS)], ids=list(LAWS)
)
def test_value_gradient_and_curvature_equal_the_moment_plan(name, task, normalizer):
    process = DiagonalUnitary(LAWS[name], 2)
    exact, theta = loss_polynomial(process, task, normalizer), rationals(24)
    objective, model = ExactMoments().objective(process, task, normalizer), model_of(theta, 2, normalizer)

    def loss(vector):
        return objective(
            LinearAttention(vector[:16].reshape(4, 4), vector[16:].reshape(2, 4), normalizer)
        ).value

    vector = np.concatenate([np.ravel(model.w_kq), np.ravel(model.w_pv)])
    # rounding of some hundred terms of the plan, relative to the largest entry
    assert decimal(exact.value(theta)) == pytest.approx(float(loss(vector)), rel=1e-12)
    slope = np.array([decimal(entry) for entry in exact.gradient(theta)])
    np.testing.assert_allclose(slope, jax.grad(loss)(vector), atol=1e-12 * np.abs(slope).max(), rtol=0)
    curvature = np.array([[decimal(entry) for entry in row] for row in exact.hessian(theta)])
    np.testing.assert_allclose(
        curvature, jax.hessian(loss)(vector), atol=1e-12 * np.abs(curvature).max(), rtol=0
    )


def test_derivatives_are_exact_differences():
    """For a polynomial of degree 4, combinations of central differences of several widths are exact."""
    exact = loss_polynomial(DiagonalUnitary(Gaussian(1), 1), NextToken(6))
    theta, slope = rationals(6), exact.gradient(rationals(6))
    for n in range(6):
        values = {}
        for step in (-2, -1, 1, 2):
            moved = list(theta)
            moved[n] += step
            values[step] = exact.value(moved)
        assert slope[n] == (8 * (values[1] - values[-1]) - (values[2] - values[-2])) / 12
        rows = []
        for step in (-1, 1):
            moved = list(theta)
            moved[n] += step
            rows.append(exact.gradient(moved))
        # the gradient is of degree 2 in each entry of P, and of K: its central difference is exact
        assert [(b - a) / 2 for a, b in zip(*rows, strict=True)] == exact.hessian(theta)[n]


def test_balls_enclose_exact_values():
    exact = loss_polynomial(DiagonalUnitary(Constant(1), 2), NextToken(7))
    theta = rationals(24)
    box = [arb(entry) + arb(0, 1e-3) for entry in theta]
    over = exact.over(arb)
    inside = [entry + fmpq((-1) ** n, 1000) for n, entry in enumerate(theta)]
    assert over.value(box).contains(exact.value(inside))
    for enclosure, value in zip(over.gradient(box), exact.gradient(inside), strict=True):
        assert enclosure.contains(value)
    for row, values in zip(over.hessian(box), exact.hessian(inside), strict=True):
        assert all(enclosure.contains(value) for enclosure, value in zip(row, values, strict=True))


def test_scalings_do_not_change_the_loss():
    for law, count in ((Gaussian(1), 1), (Sparse(1), 2)):
        exact = loss_polynomial(DiagonalUnitary(law, 2), NextToken(6))
        theta, scalings = rationals(24), exact.scalings()
        assert len(scalings) == count
        for powers in scalings:
            scaled = [entry * fmpq(3, 2) ** power for entry, power in zip(theta, powers, strict=True)]
            assert exact.value(scaled) == exact.value(theta)


def test_the_scaling_of_gaussian_tokens_is_that_of_the_two_matrices():
    exact = loss_polynomial(DiagonalUnitary(Gaussian(1), 2), NextToken(6))
    assert exact.scalings() == ((1,) * 16 + (-1,) * 8,)
    assert exact.inert() == ()


def test_with_one_hot_tokens_the_loss_is_independent_of_off_diagonal_w_kq():
    exact = loss_polynomial(DiagonalUnitary(Sparse(1), 2), NextToken(6))
    seen = np.arange(16).reshape(4, 4)[np.tile(np.eye(2, dtype=bool), (2, 2))]
    assert set(exact.inert()) == set(range(16)) - set(seen.tolist())


def test_long_horizons_are_exact():
    task = NextToken(2000)
    exact = loss_polynomial(DiagonalUnitary(Gaussian(1), 1), task)
    theta = rationals(6)
    value = float(ExactMoments().objective(DiagonalUnitary(Gaussian(1), 1), task)(model_of(theta, 1)).value)
    assert decimal(exact.value(theta)) == pytest.approx(value, rel=1e-12)  # rounding of the plan


@pytest.mark.parametrize(
    ("process", "task", "normalizer", "told"),
    [
        (None, NextToken(5), "t-1", "must be a DiagonalUnitary"),
        (DiagonalUnitary(Gaussian(1), 2), NextToken(200_000), "t-1", "at most 100000"),
        (DiagonalUnitary(Gaussian(1), 2), NextToken(5), np.sqrt, "exact sums need one of"),
        (DiagonalUnitary(StudentT(5, 1), 2), NextToken(5), "t-1", "E x"),
    ],
)
def test_refused(process, task, normalizer, told):
    with pytest.raises((TypeError, ValueError), match=told):
        loss_polynomial(process, task, normalizer)


def test_a_vector_of_another_size_is_refused():
    exact = loss_polynomial(DiagonalUnitary(Gaussian(1), 1), NextToken(4))
    with pytest.raises(ValueError, match="the 6 weights, got 5"):
        exact.value([Fraction(0)] * 5)
