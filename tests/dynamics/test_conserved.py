"""What gradient flow conserves: the quantities of the literature, and no drift along solved flows."""

import jax
import numpy as np
import pytest

from mesascope import (
    DiagonalUnitary,
    FactoredLinearAttention,
    Gaussian,
    LinearAttention,
    MultiHeadLinearAttention,
    NextToken,
    Sparse,
    gradient_flow,
)
from mesascope.dynamics import InvariantManifold, conserved_quantities

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(12)


def _spans(quantities, models, expected):
    """Whether the quantities found and the expected ones are linear combinations of each other, on many models."""
    found = np.stack([quantities(model) for model in models])
    wanted = np.stack([expected(model) for model in models])
    rank = np.linalg.matrix_rank
    both = rank(np.hstack([found, wanted]), tol=1e-8)
    return rank(found, tol=1e-8) == both == rank(wanted, tol=1e-8) == len(quantities)


@pytest.mark.slow
def test_merged_weights_conserve_the_difference_of_norms():
    model = LinearAttention.gaussian(2, 0.3, key=jax.random.key(0))
    quantities = conserved_quantities(model, PROCESS, TASK)
    assert len(quantities) == 1
    expected = np.sum(model.w_kq**2) - np.sum(model.w_pv**2)
    assert abs(quantities(model)[0]) == pytest.approx(abs(float(expected)), rel=1e-12)
    flow = gradient_flow(model, PROCESS, TASK)
    assert quantities.along(flow).shape == (len(flow.times), 1)
    # local errors of 1e-12 over some thousand steps
    assert quantities.drift(flow).max() < 1e-10


def test_what_is_not_conserved_drifts():
    model = LinearAttention.gaussian(2, 0.3, key=jax.random.key(0))
    flow = gradient_flow(model, PROCESS, TASK)
    conserved = conserved_quantities(model, PROCESS, TASK)
    spoiled = type(conserved)(np.abs(conserved.forms))
    assert spoiled.drift(flow).max() > 0.01


@pytest.mark.slow
def test_factored_weights_conserve_matrices():
    """W_K W_K* − W_Q W_Q*, W_P* W_P − W_V W_V*, and the difference of the norms of both pairs."""
    draw = lambda seed: FactoredLinearAttention.gaussian(1, 1, 0.5, key=jax.random.key(seed))  # noqa: E731

    def expected(model):
        k, q, p, v = (np.asarray(w)[0] for w in (model.w_k, model.w_q, model.w_p, model.w_v))
        keys, values = k @ k.T - q @ q.T, p.T @ p - v @ v.T
        both = np.sum(k**2) + np.sum(q**2) - np.sum(p**2) - np.sum(v**2)
        upper = np.triu_indices(len(keys))
        return np.concatenate([keys[upper], values[np.triu_indices(len(values))], [both]])

    process = DiagonalUnitary(Gaussian(1.0), 1)
    quantities = conserved_quantities(draw(0), process, TASK)
    assert len(quantities) == 3 + 1 + 1
    assert _spans(quantities, [draw(seed) for seed in range(12)], expected)
    flow = gradient_flow(draw(0), process, TASK, until=0.5)
    assert quantities.drift(flow).max() < 1e-10


@pytest.mark.slow
def test_heads_conserve_a_matrix():
    """W^KQ_g · W^KQ_h − W^PV_g · W^PV_h for all heads g, h: heads may be mixed by any invertible matrix."""
    draw = lambda seed: MultiHeadLinearAttention.gaussian(1, 2, 0.5, key=jax.random.key(seed))  # noqa: E731

    def expected(model):
        kq, pv = (np.asarray(w).reshape(2, -1) for w in (model.w_kq, model.w_pv))
        return (kq @ kq.T - pv @ pv.T)[np.triu_indices(2)]

    process = DiagonalUnitary(Gaussian(1.0), 1)
    quantities = conserved_quantities(draw(0), process, TASK)
    assert _spans(quantities, [draw(seed) for seed in range(12)], expected)
    flow = gradient_flow(draw(0), process, TASK, until=0.5)
    assert quantities.drift(flow).max() < 1e-10


@pytest.mark.slow
def test_one_hot_tokens_conserve_by_coordinate_on_the_diagonal():
    """a_j² − b_j² for every j; Gaussian tokens couple the coordinates, and only the sum over j is left."""
    reduced = InvariantManifold.coordinatewise(2).reduce(LinearAttention.diagonal(2, 0.1, 0.3))
    assert len(conserved_quantities(reduced, PROCESS, TASK)) == 1
    quantities = conserved_quantities(reduced, DiagonalUnitary(Sparse(1.0), 2), TASK)

    def expected(model):
        merged = model.merged()
        a, b = np.diagonal(np.asarray(merged.w_kq)[2:, :2]), np.diagonal(np.asarray(merged.w_pv)[:, :2])
        return a**2 - b**2

    rng = np.random.default_rng(0)
    models = [type(reduced)(rng.normal(size=4), reduced.manifold) for _ in range(8)]
    assert _spans(quantities, models, expected)


@pytest.mark.slow
def test_a_mask_that_holds_one_matrix_leaves_nothing():
    only_kq = LinearAttention(np.ones((4, 4)), np.zeros((2, 4)))
    assert len(conserved_quantities(LinearAttention.diagonal(2, 0.1, 0.3), PROCESS, TASK, mask=only_kq)) == 0
