"""Gradients of every engine, compared with differences.

The loss is quadratic in every single weight matrix, so a central difference over *any* step is exact up to
rounding of the two losses: no step size to tune, no tolerance for curvature.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope.core import over_rows
from mesascope.models import FactoredLinearAttention, LinearAttention, MultiHeadLinearAttention
from mesascope.objectives import (
    Enumeration,
    ExactMoments,
    MonteCarlo,
    losses,
    losses_and_gradients,
    population_loss,
)
from mesascope.processes import Constant, DiagonalUnitary, Gaussian, NextToken, Rademacher, Sparse

KEY = jax.random.key(7)
TASK = NextToken(5, [1, 0.5, 2])


def complex_weights(model):
    turn = np.exp(0.7j)
    return jax.tree.map(lambda w: turn * w + 0.1j * w**2, model)


MODELS = {
    "merged": lambda: LinearAttention.gaussian(2, 0.6, key=KEY),
    "complex": lambda: complex_weights(LinearAttention.gaussian(2, 0.6, key=KEY)),
    "heads": lambda: MultiHeadLinearAttention.gaussian(2, 2, 0.6, key=KEY, normalizer="t"),
    "complex factors": lambda: complex_weights(
        FactoredLinearAttention.gaussian(2, 1, 0.6, key=KEY, key_size=2, normalizer="1")
    ),
}
SETTINGS = [
    ("merged", Sparse(1.2), ExactMoments()),
    ("heads", Gaussian(0.9), ExactMoments()),
    ("complex", Constant(1), ExactMoments()),
    pytest.param("complex", Constant([1.0, -2.0]), ExactMoments(), marks=pytest.mark.slow),
    ("complex factors", Rademacher(1), ExactMoments()),
    ("complex", Rademacher(1), Enumeration()),
    ("complex factors", Gaussian(0.9), MonteCarlo(50)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "form, law, engine", SETTINGS, ids=lambda x: x.describe() if hasattr(x, "describe") else str(x)
)
def test_gradients_equal_central_differences(form, law, engine):
    model = MODELS[form]()
    objective = engine.objective(DiagonalUnitary(law, 2), TASK, model.normalizer)
    value = jax.jit(lambda m: objective(m).value)
    gradient = jax.grad(value)(model)
    leaves, structure = jax.tree.flatten(model)
    slopes = jax.tree.leaves(gradient)
    largest = max(float(abs(slope).max()) for slope in slopes)
    directions = (1.0, 1j) if jnp.iscomplexobj(leaves[0]) else (1.0,)
    for k, slope in enumerate(slopes):
        for place in np.ndindex(*slope.shape):
            for direction in directions:
                up, down = (
                    float(value(jax.tree.unflatten(structure, [*leaves[:k], moved, *leaves[k + 1 :]])))
                    for moved in (leaves[k].at[place].add(sign * direction) for sign in (1, -1))
                )
                # jax.grad in a complex weight is the conjugate of the direction of ascent
                expected = float(jnp.real(slope[place] * direction))
                # rounding of losses some thousand times larger than their difference
                assert (up - down) / 2 == pytest.approx(expected, rel=1e-9, abs=1e-10 * largest)


def test_the_gradient_is_zero_only_at_zero_weights():
    process = DiagonalUnitary(Gaussian(1), 2)
    zero = LinearAttention(np.zeros((4, 4)), np.zeros((2, 4)))
    for model, still in ((zero, True), (MODELS["merged"](), False)):
        gradient = jax.grad(lambda m: population_loss(m, process, TASK).value)(model)
        assert all(bool((slope == 0).all()) is still for slope in jax.tree.leaves(gradient))


def test_rows_are_computed_in_pieces_of_few_lengths():
    sizes = ((1, [1]), (5, [6]), (7, [8]), (9, [12]), (13, [16]), (24, [24]), (37, [48]), (100, [128]))
    for count, lengths in (*sizes, (128, [128]), (129, 2 * [128]), (1000, 8 * [128])):
        rows = {"weights": np.arange(count) + 1j, "steps": np.arange(3)}
        pieces = []

        def twice(piece, pieces=pieces, rows=rows):
            assert piece["steps"] is rows["steps"]
            pieces.append(piece["weights"])
            return 2 * piece["weights"]

        np.testing.assert_array_equal(over_rows(twice, rows), 2 * rows["weights"])
        assert [len(one) for one in pieces] == lengths
        assert (np.concatenate(pieces)[count:] == count - 1 + 1j).all()


@pytest.mark.parametrize(
    "rows", [{}, {"a": np.zeros(()) + 0.5}, {"a": np.zeros((0, 2))}, (np.ones(5), np.ones(8))]
)
def test_rows_of_no_number_are_refused(rows):
    with pytest.raises(
        ValueError, match=r"^models: weights must be stacked along a first axis of one length"
    ):
        over_rows(lambda one: one, rows)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 24, 150])  # 24 are two batches, 150 two pieces
def test_many_models_at_once(count):
    process = DiagonalUnitary(Sparse(1), 2)
    models = jax.vmap(lambda key: LinearAttention.gaussian(2, 0.5, key=key))(jax.random.split(KEY, count))
    objective = ExactMoments().objective(process, TASK)
    values, gradients = losses_and_gradients(objective, models)
    assert values.shape == (count,)
    np.testing.assert_allclose(losses(objective, models), values, rtol=1e-13)
    single = jax.jit(jax.value_and_grad(lambda m: objective(m).value))
    for n in range(0, count, 6):
        loss, gradient = single(jax.tree.map(lambda w, n=n: w[n], models))
        # the same sums, perhaps in another order
        assert float(values[n]) == pytest.approx(float(loss), rel=1e-13)
        for found, expected in zip(jax.tree.leaves(gradients), jax.tree.leaves(gradient), strict=True):
            np.testing.assert_allclose(found[n], expected, rtol=1e-12, atol=1e-12 * abs(expected).max())
