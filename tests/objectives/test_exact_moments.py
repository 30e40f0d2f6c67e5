"""ExactMoments, compared with Enumeration."""

import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesascope.models import FactoredLinearAttention, LinearAttention, MultiHeadLinearAttention
from mesascope.objectives import Enumeration, ExactMoments, population_loss
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Empirical,
    Gaussian,
    Mixture,
    Moments,
    NextToken,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)

# What the library promises. Both engines add up a few thousand terms of rounding 1e-16; the loss of zero
# weights is the scale below which cancellation between the terms of the loss cannot be asked to reach.
RTOL = 1e-10


def growing(t):
    return 1 + t**1.5 / 4


NORMALIZERS = ["t-1", "t", "1", growing]


def random_model(form, dim, normalizer, kind, rng, heads=2):
    def draw(*shape):
        real = 0.6 * rng.normal(size=shape)
        return real + 0.6j * rng.normal(size=shape) if kind == "complex" else real

    if form == "merged":
        return LinearAttention(draw(2 * dim, 2 * dim), draw(dim, 2 * dim), normalizer)
    if form == "heads":
        return MultiHeadLinearAttention(draw(heads, 2 * dim, 2 * dim), draw(heads, dim, 2 * dim), normalizer)
    factors = draw(heads, 2, 2 * dim), draw(heads, 2, 2 * dim), draw(heads, dim, 2), draw(heads, 2, 2 * dim)
    return FactoredLinearAttention(*factors, normalizer)


def zero(model):
    return jax.tree.map(jnp.zeros_like, model)


def assert_same_loss(model, process, task, gradients=False):
    def evaluate(engine):
        return float(population_loss(model, process, task, engine).value)

    exact, listed = evaluate(ExactMoments()), evaluate(Enumeration())
    scale = max(abs(listed), float(population_loss(zero(model), process, task).value))
    assert abs(exact - listed) <= RTOL * scale, (exact, listed)
    if gradients:
        one, other = (
            jax.tree.leaves(jax.grad(lambda m, e=engine: population_loss(m, process, task, e).value)(model))
            for engine in (ExactMoments(), Enumeration())
        )
        largest = max(float(abs(slope).max()) for slope in other)
        for found, expected in zip(one, other, strict=True):
            np.testing.assert_allclose(found, expected, rtol=RTOL, atol=RTOL * largest)


def from_atoms(atoms, weights):
    """Moments of a law on the line with these atoms, including odd moments."""
    total = sum(weights)
    return Moments(
        [
            sum(Fraction(w, total) * Fraction(x) ** n for x, w in zip(atoms, weights, strict=True))
            for n in range(7)
        ]
    )


# --- every kind of law, form of model and gradient -----------------------------------------------------------

TABLE = [[1.0, -0.5, 2.0], [0.0, 1.0, -1.5]]
EVERY_LAW = {
    "gaussian": lambda dim: Gaussian(0.8),
    "sparse": lambda dim: Sparse("3/2"),
    "full-one": lambda dim: Constant(1),
    "constant": lambda dim: Constant([1.0, -0.5, 2.0][:dim]),
    "rademacher": lambda dim: Rademacher(0.7),
    "uniform": lambda dim: Uniform(1.5),
    "student": lambda dim: StudentT(9, 0.5),
    "moments": lambda dim: from_atoms([-1, "1/2", 2], [3, 1, 2]),  # every odd moment is there
    "pool": lambda dim: Empirical([1.0, -0.5, 2.0, 0.0]),
    "columns": lambda dim: Empirical([row[:dim] for row in TABLE]),
    "rows": lambda dim: Empirical([row[:dim] for row in TABLE], joint=True),
    "orbit": lambda dim: Empirical(sorted(set(itertools.permutations([2.0, -0.5, 0.0][:dim]))), joint=True),
    "mixture": lambda dim: Mixture([("1/3", Gaussian(0.5)), ("1/2", Sparse(2)), ("1/6", Constant(1))]),
    "mixture-of-vectors": lambda dim: Mixture([(0.75, Constant([1.0, -2.0, 0.5][:dim])), (0.25, Uniform(2))]),
}
FORMS = ["merged", "heads", "factored"]
CASES = [
    # dimension, form, kind and normalizer take turns
    (name, dim, FORMS[(n + dim) % 3], ["complex", "real"][(n // 2 + dim) % 2], NORMALIZERS[(n + 2 * dim) % 4])
    for n, name in enumerate(EVERY_LAW)
    for dim in (2, 1 + 2 * (n % 2))
]


@pytest.mark.parametrize(
    "name, dim, form, kind, normalizer", CASES, ids=lambda x: getattr(x, "__name__", str(x))
)
def test_every_law(name, dim, form, kind, normalizer):
    rng = np.random.default_rng([dim, len(name)])
    model = random_model(form, dim, normalizer, kind, rng)
    task = NextToken(3 if dim == 3 else 5, None if dim == 1 else [0.5] if dim == 3 else [0.5, 2, 1])
    assert_same_loss(model, DiagonalUnitary(EVERY_LAW[name](dim), dim), task)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, form, kind",
    [
        ("moments", "merged", "complex"),
        ("orbit", "heads", "real"),
        ("mixture", "factored", "complex"),
        ("rows", "merged", "real"),
    ],
)
def test_gradients(name, form, kind):
    model = random_model(form, 2, "t", kind, np.random.default_rng(len(name)))
    assert_same_loss(model, DiagonalUnitary(EVERY_LAW[name](2), 2), NextToken(5), gradients=True)


@pytest.mark.parametrize(
    "law, dim, horizon",
    [
        (Gaussian(1.0), 1, 41),
        (from_atoms([-1, "1/2"], [2, 1]), 1, 30),
        (Constant([1.0, -0.5]), 2, 20),
        (Sparse(1.3), 2, 25),
        (Rademacher(0.8), 2, 16),
    ],
    ids=lambda x: x.describe() if hasattr(x, "describe") else str(x),
)
def test_horizons_beyond_the_start_of_the_polynomials(law, dim, horizon):
    model = random_model("merged", dim, "t-1", "complex", np.random.default_rng(horizon))
    assert_same_loss(model, DiagonalUnitary(law, dim), NextToken(horizon))
    assert_same_loss(model, DiagonalUnitary(law, dim), NextToken.last(horizon))


# --- laws that hypothesis makes up -------------------------------------------------------------------------

scales = st.sampled_from([0.5, 1, "2/3", 1.25])
values = st.integers(-6, 6).map(lambda n: n / 4)
probabilities = st.integers(1, 5)


@st.composite
def moments_laws(draw):
    atoms = draw(st.lists(values, min_size=1, max_size=4, unique=True))
    return from_atoms(atoms, [draw(probabilities) for _ in atoms])


def single_laws(dim):
    vectors = st.lists(values, min_size=dim, max_size=dim)
    tables = st.lists(vectors, min_size=1, max_size=3)
    return st.one_of(
        scales.map(Gaussian),
        scales.map(Sparse),
        scales.map(Rademacher),
        scales.map(Uniform),
        st.builds(StudentT, st.sampled_from([7, 8.5, 12]), scales),
        values.filter(bool).map(Constant),
        vectors.map(Constant),
        moments_laws(),
        st.lists(values, min_size=1, max_size=4).map(Empirical),
        tables.map(Empirical),
        tables.map(lambda rows: Empirical(rows, joint=True)),
    )


def laws(dim):
    def mix(parts):
        total = sum(weight for weight, _ in parts)
        return Mixture([(Fraction(weight, total), law) for weight, law in parts])

    pairs = st.tuples(probabilities, single_laws(dim))
    return st.one_of(single_laws(dim), st.lists(pairs, min_size=2, max_size=2).map(mix))


@st.composite
def tasks(draw, largest):
    horizon = draw(st.integers(3, largest))
    kind = draw(st.sampled_from(["equal", "last", "random", "sequence"]))
    if kind == "equal":
        return NextToken(horizon)
    if kind == "last":
        return NextToken.last(horizon)
    weight = st.sampled_from([0.25, 1, "1/3", 2.5])
    if kind == "random":
        return NextToken(horizon, draw(st.dictionaries(st.integers(2, horizon - 1), weight, min_size=1)))
    return NextToken(horizon, draw(st.lists(weight, min_size=horizon - 2, max_size=horizon - 2)))


LARGEST_HORIZON = {1: 7, 2: 7, 3: 4}  # d = 3, T = 4 has 12⁶ sequences per node, the limit for a test


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 3])
@given(data=st.data())
@settings(max_examples=15)
def test_exact_equals_enumeration(dim, data):
    law = data.draw(laws(dim), label="law")
    task = data.draw(tasks(LARGEST_HORIZON[dim]), label="task")
    form, heads = data.draw(st.sampled_from([("merged", 1), ("heads", 1), ("heads", 3), ("factored", 2)]))
    kind = data.draw(st.sampled_from(["real", "complex"]))
    normalizer = data.draw(st.sampled_from(NORMALIZERS))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    model = random_model(form, dim, normalizer, kind, rng, heads)
    assert_same_loss(model, DiagonalUnitary(law, dim), task)
