"""The contract of every law. A new kind of law is tested by its example: nothing here changes for it."""

import itertools
from fractions import Fraction
from functools import partial
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import exact, named_key
from mesascope.processes import (
    MAX_ORDER,
    Constant,
    Empirical,
    Gaussian,
    Law,
    Mixture,
    Moments,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)
from mesascope.specs import field_help, known_kinds

DIM = 3
TABLE = [[1.0, -2.0, 0.5], [0.0, 1.0, 3.0], [-1.5, 0.25, 0.0], [1.0, -2.0, 0.5]]
ORBIT = sorted(set(itertools.permutations([1.0, -2.0, 0.0])))  # one row with all its rearrangements

# Laws as their constructions, so that a test can build an equal one again. The heavy-tailed law has df > 12:
# the Monte Carlo test of E x^6 needs the variance of x^6.
LAWS = {
    "gaussian": lambda: Gaussian(0.8),
    "gaussian-rational": lambda: Gaussian("3/2"),
    "sparse": lambda: Sparse(1.5),
    "constant-vector": lambda: Constant([1, "-1/2", 0.0]),
    "rademacher": lambda: Rademacher("2/3"),
    "uniform": lambda: Uniform(2),
    "studentt": lambda: StudentT(15, 0.7),
    "moments": lambda: Moments([1, 0, 1, 0, 3, 0, 15]),
    "moments-skewed": lambda: Moments([1, "1/2", "1/3", "1/4", "1/5", "1/6", "1/7"]),
    "moments-three-atoms": lambda: Moments([1, 0, "1/2", 0, "1/2", 0, "1/2"]),
    "empirical": lambda: Empirical([1.0, -1.0, 2.0, 0.0, 2.0]),
    "empirical-columns": lambda: Empirical(TABLE),
    "empirical-joint": lambda: Empirical(TABLE, joint=True),
    "empirical-orbit": lambda: Empirical(ORBIT, joint=True),
    "mixture": lambda: Mixture([("1/3", Gaussian(0.5)), ("1/2", Sparse(2)), ("1/6", Rademacher())]),
    "mixture-floats": lambda: Mixture([(0.1, Uniform(1)), (0.2, Constant(2)), (0.7, Empirical([0.0, 1.0]))]),
    "mixture-vectors": lambda: Mixture([(0.5, Constant([1, 2, 3])), (0.5, Gaussian(1))]),
    "mixture-nested": lambda: Mixture([(1, Mixture([("1/4", Sparse()), ("3/4", Uniform(1))]))]),
}
LAWS |= {name: kind.example for name, kind in known_kinds("law").items() if name not in LAWS}
MONTE_CARLO_SEEDS = (0, 1)
every_law = pytest.mark.parametrize("name", LAWS)


def expectation(terms, orders):
    """E Π_j x_j^orders[j], from the law as a mixture of products."""
    return sum(exact(p) * prod(exact(m[n]) for m, n in zip(ms, orders, strict=True)) for p, ms in terms)


def quadrature(terms, orders):
    """The same from quadrature, and the sum of the absolute values of the terms."""
    value = size = 0.0
    for probability, rules in terms:
        factors = [(w @ x**n, w @ abs(x) ** n) for (x, w), n in zip(rules, orders, strict=True)]
        value += probability * prod(f for f, _ in factors)
        size += probability * prod(a for _, a in factors)
    return value, size


def multi_indices(dim=DIM, total=MAX_ORDER):
    return [n for n in itertools.product(range(total + 1), repeat=dim) if sum(n) <= total]


@every_law
def test_moments_of_products_and_quadrature_agree(name):
    law = LAWS[name]()
    products, rules = law.product_terms(DIM), law.quadrature(DIM)
    for orders in multi_indices():
        value, size = quadrature(rules, orders)
        # Rules are computed to a few units in the last place; twenty terms of them are added at most.
        assert value == pytest.approx(float(expectation(products, orders)), abs=1e-13 * max(size, 1)), orders


@every_law
def test_terms_are_valid(name):
    law = LAWS[name]()
    products, rules = law.product_terms(DIM), law.quadrature(DIM)
    assert sum(exact(p) for p, _ in products) == 1
    assert sum(p for p, _ in rules) == pytest.approx(1, abs=1e-15)
    for _, moments in products:
        assert len(moments) == DIM
        assert all(len(m) == MAX_ORDER + 1 and m[0] == 1 for m in moments)
        assert all(isinstance(v, Fraction) for m in moments for v in m)
    for _, coordinate_rules in rules:
        assert len(coordinate_rules) == DIM
        for nodes, weights in coordinate_rules:
            assert nodes.shape == weights.shape
            assert (weights > 0).all()
            assert weights.sum() == pytest.approx(1, abs=1e-15)


@every_law
def test_joint_moments_agree_with_products_exactly(name):
    law = LAWS[name]()
    terms = law.product_terms(DIM)
    for orders in multi_indices():
        if law.exchangeable:
            moment = law.joint_moment(orders, DIM)
            assert moment == expectation(terms, orders), orders
            assert isinstance(moment, Fraction)
            if orders[1:] == (0, 0):
                assert law.moment(orders[0], DIM) == law.joint_moment(orders[:1], DIM) == moment
        else:
            with pytest.raises(ValueError, match="depends on the coordinate: use product_terms"):
                law.joint_moment(orders, DIM)
    if law.exchangeable:
        assert law.joint_moment((), DIM) == 1
        assert law.joint_moment((2,) * (DIM + 1), DIM) == 0


@every_law
def test_declared_symmetries_hold(name):
    law = LAWS[name]()
    terms = law.product_terms(DIM)
    for orders in multi_indices():
        moment = expectation(terms, orders)
        if law.exchangeable:
            assert all(expectation(terms, p) == moment for p in itertools.permutations(orders)), orders
        if law.even and any(n % 2 for n in orders):
            assert moment == 0, orders


@every_law
def test_symmetries_that_are_not_declared_do_not_hold(name):
    # The converse of the test above, for the laws listed here; a mixture may be symmetric by coincidence.
    law = LAWS[name]()
    terms = law.product_terms(DIM)
    moments = {orders: expectation(terms, orders) for orders in multi_indices()}
    if not law.exchangeable:
        assert any(moments[orders] != moments[tuple(sorted(orders))] for orders in moments)
    if not law.even:
        assert any(moment for orders, moment in moments.items() if any(n % 2 for n in orders))


@every_law
@pytest.mark.parametrize("seed", MONTE_CARLO_SEEDS)
def test_samples_have_the_moments(name, seed):
    law = LAWS[name]()
    count = 100_000
    x = np.asarray(law.sample(named_key(seed, "law contract", name), DIM, (count,)))
    terms = law.product_terms(DIM)
    powers = x[None] ** np.arange(MAX_ORDER + 1)[:, None, None]
    for orders in multi_indices():
        products = prod(powers[n, :, j] for j, n in enumerate(orders))
        error = products.std(ddof=1) / count**0.5
        # 84 moments × 19 laws × 2 seeds: five standard errors leave a chance of 0.2 % of one false alarm for
        # normal means; products of order 6 have heavy tails, which a sixth covers. The seeds are fixed.
        assert products.mean() == pytest.approx(float(expectation(terms, orders)), abs=6 * error + 1e-12), (
            orders
        )
    zeros = (x == 0).mean(axis=1)
    expected = float(law.zero_probability(DIM))
    assert zeros.mean() == pytest.approx(expected, abs=6 * zeros.std(ddof=1) / count**0.5 + 1e-12)


@pytest.mark.slow
@every_law
def test_sampling_under_jit(name):
    law, key = LAWS[name](), named_key(0, "jit", name)
    traces = []

    def draw(law: Law, key, shape):
        traces.append(law)
        return law.sample(key, DIM, shape)

    jitted = jax.jit(draw, static_argnums=(0, 2))
    compiled = jitted(law, key, (2, 3))
    assert compiled.shape == (2, 3, DIM)
    assert compiled.dtype == jnp.result_type(float)
    # Compiled arithmetic may fuse and round differently in the last place.
    np.testing.assert_allclose(compiled, law.sample(key, DIM, (2, 3)), rtol=1e-14)
    jitted(LAWS[name](), named_key(1, "jit", name), (2, 3))
    assert len(traces) == 1  # an equal law compiled nothing
    for shape in ((), (0,), (4,)):
        assert jax.eval_shape(lambda k, s=shape: law.sample(k, DIM, s), key).shape == (*shape, DIM)
    # As an ordinary argument a law is a pytree without leaves.
    assert jax.tree.leaves(law) == []
    assert jax.eval_shape(lambda law, key: law.sample(key, DIM), law, key).shape == (DIM,)


@every_law
def test_sampling_follows_the_precision_of_jax(name):
    with jax.enable_x64(False):
        sample = LAWS[name]().sample(named_key(0, name), DIM, (2,))
    assert sample.dtype == jnp.float32


@every_law
def test_distinct_keys_draw_distinct_tokens(name):
    law = LAWS[name]()
    first, second = (np.asarray(law.sample(named_key(seed), DIM, (50,))) for seed in (0, 1))
    assert np.array_equal(first, second) == isinstance(law, Constant)


@every_law
def test_equal_constructions_are_equal_and_hash_alike(name):
    law, again = LAWS[name](), LAWS[name]()
    assert law == again
    assert hash(law) == hash(again)
    assert (law != again) is False
    others = [LAWS[other]() for other in LAWS if other != name]
    assert all(law != other for other in others)
    assert len({law, again, *others}) == len(LAWS)
    assert law != name


@every_law
def test_descriptions(name):
    law = LAWS[name]()
    assert law.describe()
    assert "\n" not in law.describe()
    assert law.describe().startswith(type(law).__name__ + "(")
    assert repr(law).startswith(type(law).__name__ + "(")
    if "Empirical" not in repr(law):  # which names its samples instead of listing them
        names = {kind.__name__: kind for kind in known_kinds("law").values()}
        assert eval(repr(law), {"Fraction": Fraction, **names}) == law


@every_law
def test_dimensions_are_checked(name):
    law = LAWS[name]()
    assert law.check_dim(DIM) == DIM
    assert law.fixed_dim in (None, DIM)
    methods = (law.check_dim, law.product_terms, law.quadrature, law.zero_probability)
    calls = [*methods, lambda dim: law.sample(named_key(0), dim)]
    if law.exchangeable:
        calls.append(lambda dim: law.joint_moment((2,), dim))
    for call in calls:
        with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
            call(0)
        with pytest.raises(TypeError, match="dim must be an integer"):
            call(2.5)
        if law.fixed_dim is not None:
            with pytest.raises(ValueError, match=r"dim is 4, but tokens of .* have dimension 3"):
                call(4)


@every_law
def test_orders_are_checked(name):
    law = LAWS[name]()
    if not law.exchangeable:
        return
    assert law.moment(0, DIM) == 1
    for call in (lambda n: law.moment(n, DIM), lambda n: law.joint_moment((2, n), DIM)):
        with pytest.raises(ValueError, match="order must be at least 0, got -1"):
            call(-1)
        with pytest.raises(TypeError, match="order must be an integer"):
            call(2.0)


SCALED = [
    partial(kind, **kind.example_fields)
    for kind in known_kinds("law").values()
    if "scale" in {field.name for field in field_help(kind)}
]


@pytest.mark.parametrize("construct", SCALED)
@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), "zero"])
def test_impossible_scales_are_refused(construct, scale):
    with pytest.raises(ValueError, match="scale"):
        construct(scale=scale)


@pytest.mark.parametrize("construct", SCALED)
@pytest.mark.parametrize("scale", [None, 1j, [1.0], True])
def test_scales_that_are_not_numbers_are_type_errors(construct, scale):
    with pytest.raises(TypeError, match="scale"):
        construct(scale=scale)


@pytest.mark.parametrize("construct", SCALED)
def test_equal_numbers_make_equal_laws(construct):
    assert (
        construct(scale=2) == construct(scale=2.0) == construct(scale="2") == construct(scale=np.float64(2))
    )
    assert hash(construct(scale=2)) == hash(construct(scale=2.0)) == hash(construct(scale="2"))
    assert construct(scale=2) != construct(scale=3)
    # a float is the rational number it is, not the one it looks like
    assert construct(scale="1/10") != construct(scale=0.1)


def test_laws_of_different_kinds_differ_at_equal_parameters():
    assert len({Gaussian(1), Sparse(1), Rademacher(1), Uniform(1), Constant(1)}) == 5


@every_law
def test_values_that_are_not_keys_are_refused(name):
    law = LAWS[name]()
    if isinstance(law, Constant):  # its key plays no part
        return
    with pytest.raises(TypeError, match=r"^key must be a random key such as jax\.random\.key\(0\), got 0$"):
        law.sample(0, DIM)
