"""The loss on prompts as a rational polynomial: against the engine in doubles, and against moments written out by hand."""

from fractions import Fraction
from itertools import product

import jax
import numpy as np
import pytest
from flint import fmpq

from mesascope import FewShot, Gaussian, LinearRegression, NoiseChoice, NoiseRange, prompt_linear_transformer
from mesascope.dynamics import real_vector
from mesascope.models import FactoredLinearSelfAttention, LastEntry, PromptModel, StackedPrompt
from mesascope.objectives import PromptLayer, objective_of, prompt_polynomial
from mesascope.processes import RandomDiagonal, Uniform

SIGMA = [["7/10", "1/5"], ["1/5", "3/10"]]
PRIOR = [[2, "1/3"], ["1/3", 1]]


def layer(heads=1, **more):
    return prompt_linear_transformer(2, 1, heads, key=jax.random.key(0), **more)


def factored():
    rng = np.random.default_rng(1)
    shapes = {"w_k": (2, 2, 3), "w_q": (2, 2, 3), "w_p": (2, 1, 3), "w_v": (2, 3, 3)}
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    return PromptModel(StackedPrompt(2), FactoredLinearSelfAttention(**weights), LastEntry(-1))


CASES = {
    "merged": (layer(), LinearRegression(2, covariance=SIGMA, noise=NoiseChoice(("1/3", 2))), FewShot(5)),
    "many lengths": (
        layer(2, normalizer="t", context="all"),
        LinearRegression(2, Gaussian("1/2"), covariance=SIGMA, prior="inverse", noise="1/3"),
        FewShot(5, {0: 1, 2: "1/3", 5: 2}),
    ),
    "rank one": (
        layer(3, rank=1, context="all"),
        LinearRegression(2, covariance=SIGMA, prior="sphere", noise=NoiseRange(2)),
        FewShot.every(3),
    ),
    "factored": (factored(), LinearRegression(2, prior=PRIOR, noise="1/5"), FewShot(4)),
}


def decimal(values):
    return np.vectorize(lambda value: int(value.p) / int(value.q))(np.array(values, object))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_value_and_derivatives_are_those_of_the_engine(name):
    model, process, task = CASES[name]
    exact = prompt_polynomial(process, task, PromptLayer.of(model, 2))
    vector, rebuild = real_vector(model)
    assert exact.size == len(vector)
    theta = [fmpq(int(n), 7) for n in np.random.default_rng(2).integers(-5, 6, exact.size)]
    objective = objective_of(model, process, task, None)
    both = jax.jit(jax.value_and_grad(lambda one: objective(rebuild(one)).value))
    value, slope = both(decimal(theta))
    assert decimal([exact.value(theta)])[0] == pytest.approx(
        float(value), rel=1e-12
    )  # rounding of the engine
    np.testing.assert_allclose(decimal(exact.gradient(theta)), slope, rtol=0, atol=1e-12 * abs(slope).max())
    # the Hessian times a vector is the slope of the gradient, of degree ≤ 7: differences of order 8 are exact
    step = [fmpq(int(n)) for n in np.random.default_rng(3).integers(-2, 3, exact.size)]
    sides = [
        [exact.gradient([x + s * h for x, h in zip(theta, step, strict=True)]) for s in (k, -k)]
        for k in (1, 2, 3, 4)
    ]
    weights = (fmpq(4, 5), fmpq(-1, 5), fmpq(4, 105), fmpq(-1, 280))
    across = [
        sum(w * (up[n] - down[n]) for w, (up, down) in zip(weights, sides, strict=True))
        for n in range(exact.size)
    ]
    assert across == [sum(c * h for c, h in zip(row, step, strict=True)) for row in exact.hessian(theta)]


def gaussian_mean(powers):
    """E Π x^n of independent standard normal numbers: odd factorials."""
    return (
        0
        if any(n % 2 for n in powers)
        else int(np.prod([np.prod(range(n - 1, 0, -2), dtype=int) for n in powers]))
    )


def times(a, b):
    """The product of two polynomials, exponents → coefficient."""
    out = {}
    for (p, c), (q, d) in product(a.items(), b.items()):
        key = tuple(map(sum, zip(p, q, strict=True)))
        out[key] = out.get(key, 0) + c * d
    return out


def plus(*terms):
    out = {}
    for key, c in (item for term in terms for item in term.items()):
        out[key] = out.get(key, 0) + c
    return out


def by_hand(keys, values, examples, noise, with_query):
    """The loss in one dimension, inputs and w of variance 1: the square of the error as a polynomial of all normal numbers.

    These are w, x_q, the noise of the query, then x_n and its noise for every example.
    """
    size = 3 + 2 * examples

    def number(n, c=1):
        return {tuple(int(n == m) for m in range(size)): Fraction(c)}

    def pair(n, e):
        return number(n), plus(times(number(0), number(n)), number(e, noise))

    def combined(weights, token):
        return plus(*({key: w * c for key, c in one.items()} for w, one in zip(weights, token, strict=True)))

    tokens = [pair(3 + 2 * n, 4 + 2 * n) for n in range(examples)]
    if with_query:
        tokens.append((number(1), {}))
    guess = plus(*(times(combined(values, e), times(combined(keys, e), number(1))) for e in tokens))
    error = combined((Fraction(1, len(tokens)), -1), (guess, pair(1, 2)[1]))
    return sum(c * gaussian_mean(key) for key, c in times(error, error).items()) / 2


@pytest.mark.parametrize("context", ["examples", "all"])
def test_one_dimension_is_the_sum_over_all_pairings(context):
    normalizer = "t-1" if context == "examples" else "t"
    model = prompt_linear_transformer(1, 1, key=jax.random.key(0), context=context, normalizer=normalizer)
    exact = prompt_polynomial(LinearRegression(1, noise="1/2"), FewShot(2), PromptLayer.of(model, 1))
    k, u = (Fraction(2, 3), Fraction(-1, 2)), (Fraction(3, 5), Fraction(4, 7))
    theta = [k[0], 0, k[1], 0, 0, 0, *(-one for one in u)]  # the read-out has the sign −1
    found = exact.value([fmpq(Fraction(x).numerator, Fraction(x).denominator) for x in theta])
    assert Fraction(int(found.p), int(found.q)) == by_hand(k, u, 2, Fraction(1, 2), context == "all")


@pytest.mark.slow
def test_scalings_and_weights_that_nothing_depends_on():
    exact = prompt_polynomial(LinearRegression(2), FewShot(3), PromptLayer.of(layer(2, rank=1), 2))
    assert len(exact.scalings()) == 4  # of each head, two ratios of three factors
    # the label of the query is 0, and only the last row of W^PV is read
    assert len(exact.inert()) == 2 * (1 + 6)


@pytest.mark.parametrize(
    ("process", "told"),
    [
        (
            LinearRegression(2, Uniform(1)),
            r"Gaussian inputs with a fixed covariance.*MonteCarlo for other laws",
        ),
        (
            LinearRegression(2, covariance=RandomDiagonal(Uniform(1))),
            "use ExactMoments for random covariances",
        ),
        (LinearRegression(2, sparsity=1), "moments of sparse weights are not known; use MonteCarlo"),
    ],
)
def test_refused_processes(process, told):
    with pytest.raises(TypeError, match=told):
        prompt_polynomial(process, FewShot(3), PromptLayer.of(layer(), 2))


def test_refused_models():
    with pytest.raises(
        TypeError, match=r"one layer of real linear attention.*ExactMoments computes steps of"
    ):
        PromptLayer.of(prompt_linear_transformer(2, 2, key=jax.random.key(0)), 2)
