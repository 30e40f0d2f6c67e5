"""Models under jax: cost linear in the horizon, jit, vmap, grad, and no repeated compilation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

from mesascope.models import FactoredLinearAttention, LinearAttention, MultiHeadLinearAttention

MODELS = {
    "merged": lambda: LinearAttention.gaussian(2, 0.5, key=jax.random.key(0)),
    "heads": lambda: MultiHeadLinearAttention.gaussian(2, 2, 0.5, key=jax.random.key(1)),
    "factored": lambda: FactoredLinearAttention.gaussian(2, 2, 0.5, key=jax.random.key(2)),
}


def tokens(horizon, batch=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(batch, horizon, 2)) + 1j * rng.normal(size=(batch, horizon, 2))


def inner(params):
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item


def work(jaxpr, times=1):
    """Number of multiplications, including all iterations of loops, and the largest array of a computation."""
    operations, largest = 0, 0
    for equation in jaxpr.eqns:
        repeats = times * equation.params["length"] if equation.primitive.name == "scan" else times
        nested = [work(body, repeats) for body in inner(equation.params)]
        sizes = [
            int(np.prod(v.aval.shape)) for v in (*equation.invars, *equation.outvars) if hasattr(v, "aval")
        ]
        contracted = 1
        if equation.primitive.name == "dot_general":
            (left, _), _ = equation.params["dimension_numbers"]
            contracted = int(np.prod([equation.invars[0].aval.shape[axis] for axis in left]))
        if not nested:
            operations += times * contracted * sum(int(np.prod(v.aval.shape)) for v in equation.outvars)
        operations += sum(count for count, _ in nested)
        largest = max([largest, *sizes, *(size for _, size in nested)])
    return operations, largest


@pytest.mark.parametrize("form", MODELS)
def test_work_and_memory_grow_linearly_with_the_horizon(form):
    model = MODELS[form]()
    for predict in (model.predictions, model):
        shapes = [jax.ShapeDtypeStruct((3, horizon, 2), complex) for horizon in (1000, 2000)]
        (once, small), (twice, large) = (work(jax.make_jaxpr(predict)(shape).jaxpr) for shape in shapes)
        assert once > 1000
        # exactly twice but for terms that do not grow; a T × T array or loop would give four times
        assert twice / once < 2.01
        assert large / small < 2.01


def test_the_count_of_operations_detects_quadratic_work():
    def quadratic(x):
        return jnp.tril(x @ x.conj().T) @ x

    counted = [work(jax.make_jaxpr(quadratic)(jnp.ones((n, 2), complex)).jaxpr) for n in (100, 200)]
    assert counted[1][0] / counted[0][0] > 3.9
    assert counted[1][1] / counted[0][1] == 4

    def looped(x):
        return jax.lax.scan(lambda carry, row: (carry, jnp.sum(x * row)), 0.0, x)[1]

    counted = [work(jax.make_jaxpr(looped)(jnp.ones((n, 2))).jaxpr) for n in (100, 200)]
    assert counted[1][0] / counted[0][0] > 3.9


@pytest.mark.slow
@pytest.mark.parametrize("form", MODELS)
def test_jit_and_vmap_change_nothing(form):
    model, sequences = MODELS[form](), tokens(6)
    expected = np.asarray(model.predictions(sequences))
    # the order of a few additions may change under fusion: rounding of sums of some hundred terms
    same = {"rtol": 1e-12, "atol": 1e-12 * abs(expected).max()}
    np.testing.assert_allclose(jax.jit(lambda m, x: m.predictions(x))(model, sequences), expected, **same)
    np.testing.assert_allclose(jax.vmap(model.predictions)(sequences), expected, **same)
    np.testing.assert_allclose(jax.jit(jax.vmap(model))(sequences), expected[:, -1], **same)
    # many models at once: their weights stacked
    models = jax.tree.map(lambda w: jnp.stack([w, 2 * w]), model)
    both = jax.vmap(lambda m: m.predictions(sequences))(models)
    np.testing.assert_allclose(both[0], expected, **same)
    degree = len(jax.tree.leaves(model))  # a product of all its matrices: two when merged, four when factored
    np.testing.assert_allclose(both[1], 2**degree * expected, rtol=1e-12, atol=2**degree * same["atol"])


@pytest.mark.slow
@pytest.mark.parametrize("form", MODELS)
def test_gradients_equal_differences(form):
    model, sequences = MODELS[form](), tokens(5, batch=2)
    probe = tokens(5, batch=2, seed=1)[:, 1:]

    def value(m):  # linear in every single weight matrix
        return jnp.sum(jnp.real(probe * m.predictions(sequences)))

    gradient = jax.grad(value)(model)
    leaves, structure = jax.tree.flatten(model)
    evaluate = jax.jit(value)
    for k, slope in enumerate(jax.tree.leaves(gradient)):
        for place in np.ndindex(*slope.shape):
            moved = [w.at[place].add(1.0) if i == k else w for i, w in enumerate(leaves)]
            difference = evaluate(jax.tree.unflatten(structure, moved)) - evaluate(model)
            # linear, so that a difference over any step is exact up to rounding of the values themselves
            assert slope[place] == pytest.approx(float(difference), rel=1e-9, abs=1e-10)


@pytest.mark.slow
def test_complex_gradients_are_conjugates_of_ascent():
    model = jax.tree.map(lambda w: w.astype(complex), MODELS["merged"]())
    sequences, probe = tokens(5), tokens(5, seed=1)[:, 1:]

    def value(m):
        return jnp.sum(jnp.real(probe * m.predictions(sequences)))

    gradient = jax.grad(value)(model)
    for name in ("w_kq", "w_pv"):
        for direction in (1.0, 1j):
            moved = LinearAttention(
                **{"w_kq": model.w_kq, "w_pv": model.w_pv, name: direction + getattr(model, name)}
            )
            difference = float(value(moved) - value(model))
            slope = float(jnp.sum(jnp.real(getattr(gradient, name) * direction)))
            assert slope == pytest.approx(difference, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("form", MODELS)
def test_a_second_call_compiles_nothing(form, compilations):
    model = MODELS[form]()
    other = jax.tree.map(lambda w: w + 1, model)
    first, second = tokens(9), tokens(9, seed=1)
    gradient = jax.grad(lambda m, x: jnp.sum(jnp.abs(m.predictions(x)) ** 2))
    uses = (lambda m, x: m.predictions(x), lambda m, x: m(x), gradient)
    for use in uses:
        use(model, first)
    with compilations() as made:
        for use in uses:
            jax.block_until_ready(use(other, second))
    assert not made
