"""Critical points on regression prompts: those that many starts find are those of the formulas."""

import jax
import numpy as np
import pytest

from mesascope import (
    FewShot,
    LinearRegression,
    preconditioned_linear_transformer,
    prompt_linear_transformer,
)
from mesascope.dynamics import critical_points
from mesascope.objectives import MonteCarlo, population_loss
from mesascope.theory import zhang2025 as theory


@pytest.mark.slow
def test_one_head_of_rank_one_has_a_point_for_every_eigenvector_and_nothing_learned():
    eigenvalues, examples = [0.7, 0.3], 9
    process = LinearRegression(2, covariance=np.diag(eigenvalues))
    head = prompt_linear_transformer(2, 1, rank=1, key=jax.random.key(0))
    found = critical_points(head, process, FewShot(examples), starts=40)
    losses = np.array([point.stability.loss for point in found.points])
    for which in ([0], [1], []):
        expected = theory.fixed_point_error(eigenvalues, examples, which) / 2
        assert abs(losses / expected - 1).min() < 1e-9  # points of equal loss to 1e-9 count as one
    assert found.points[0].stability.kind == "minimum"
    # of a hundred numbers one lies beyond 5.5 standard errors in 2000 trials, by Student's law with 29 degrees of freedom
    for point in found.points:
        slope, error = sampled_slope(point.model, process, FewShot(examples))
        assert (abs(slope) <= 5.5 * error + 1e-12).all()  # 1e-12 where all samples vanish but for rounding
    elsewhere = jax.tree.map(lambda weights: 1.1 * weights, found.points[0].model)
    slope, error = sampled_slope(elsewhere, process, FewShot(examples))
    assert (abs(slope) > 5.5 * error).any()


def sampled_slope(model, process, task):
    """The gradient of the loss on fresh prompts, all weights in one vector, and its standard error."""
    slopes = np.array([slope_of(model, process, task, seed) for seed in range(30)])
    return slopes.mean(0), slopes.std(0, ddof=1) / 30**0.5


def slope_of(model, process, task, seed):
    engine = MonteCarlo(2000, seed=seed, batch=2000)
    slope = jax.grad(lambda one: population_loss(one, process, task, engine).value)(model)
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(slope)])


def test_preconditioned_layers_are_refused_with_what_finds_their_critical_points():
    model = preconditioned_linear_transformer(2, 2, key=jax.random.key(0))
    with pytest.raises(TypeError, match="one layer of linear attention; for others critical_point finds"):
        critical_points(model, LinearRegression(2), FewShot(5))
