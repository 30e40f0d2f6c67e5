"""Continuous symmetries: counted by another route, and each of them leaves the loss as it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import mesascope as ms
from mesascope import (
    DiagonalUnitary,
    ExactMoments,
    FactoredLinearAttention,
    Gaussian,
    LinearAttention,
    MultiHeadLinearAttention,
    NextToken,
    Sparse,
)
from mesascope.dynamics import real_vector, symmetries

TASK = NextToken(12)
KEY = jax.random.key(3)


def _complex(model):
    return LinearAttention(model.w_kq + 0j, model.w_pv + 0j)


# 1 scaling; GL(heads) mixes heads; GL(key) × GL(value) × 1 scaling; complex: two dimensions of scaling, and the phase of
# time x_t → e^{iφ(t−1)} x_t, which turns the second block of tokens
CASES = {
    "merged": (LinearAttention.gaussian(1, 1.0, key=KEY), 1),
    "heads": (MultiHeadLinearAttention.gaussian(1, 2, 1.0, key=KEY), 4),
    "factored": (FactoredLinearAttention.gaussian(1, 1, 1.0, key=KEY), 6),
    "complex": (_complex(LinearAttention.gaussian(1, 1.0, key=KEY)), 3),
}


def _gradient(model):
    objective = ExactMoments().objective(DiagonalUnitary(Gaussian(1.0), model.dim), TASK)
    vector, rebuild = real_vector(model)
    return len(vector), jax.jit(jax.grad(lambda v: objective(rebuild(v)).value))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["merged", "factored", "complex"])
def test_all_linear_symmetries_are_found(name):
    """Counted among all n × n matrices, not only among those that scale entries and mix rows, columns and heads."""
    model, expected = CASES[name]
    n, gradient = _gradient(model)
    rng = np.random.default_rng(0)
    points = 0.7 * rng.normal(size=(n * n + 30, n))
    rows = np.stack([np.outer(gradient(jnp.asarray(p)), p).reshape(-1) for p in points])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    values = np.linalg.svd(rows, compute_uv=False)
    assert np.sum(values < 1e-9 * values[0]) == expected
    found = symmetries(model, DiagonalUnitary(Gaussian(1.0), 1), TASK)
    assert len(found.generators) == expected
    assert len(found.shifts) == 0
    assert found.separation[0] < 1e-12 < 1e-5 < found.separation[1]


@pytest.mark.slow
def test_heads_mix():
    model, expected = CASES["heads"]
    assert len(symmetries(model, DiagonalUnitary(Gaussian(1.0), 1), TASK).generators) == expected


@pytest.mark.parametrize("name", CASES)
def test_symmetries_leave_the_loss_as_it_is(name):
    model, _ = CASES[name]
    objective = ExactMoments().objective(DiagonalUnitary(Gaussian(1.0), 1), TASK)
    vector, rebuild = real_vector(model)
    loss = float(objective(model).value)
    for generator in symmetries(model, DiagonalUnitary(Gaussian(1.0), 1), TASK).generators:
        moved = rebuild(jnp.asarray(expm(0.8 * generator) @ vector))
        assert not np.allclose(real_vector(moved)[0], vector, atol=1e-3)
        assert float(objective(moved).value) == pytest.approx(loss, rel=1e-11)


@pytest.mark.slow
def test_heads_have_their_own_factor_symmetries():
    model = FactoredLinearAttention.gaussian(2, 2, 1.0, key=KEY, key_size=2, value_size=1)
    found = symmetries(model, DiagonalUnitary(Gaussian(1.0), 2), TASK)
    assert len(found.generators) == 2 * (4 + 1 + 1)


def test_one_hot_tokens_scale_by_coordinate_and_leave_entries_out():
    """W^KQ acts within a coordinate: 8 of its 16 entries at d = 2 reach nothing, and a_j, b_j scale for each j alone."""
    model = LinearAttention.gaussian(2, 1.0, key=KEY)
    found = symmetries(model, DiagonalUnitary(Sparse(1.0), 2), TASK)
    assert len(found.shifts) == 8
    assert len(found.generators) == 8 + 2


def test_found_whatever_the_scale_of_the_data():
    model = LinearAttention.gaussian(2, 1.0, key=KEY)
    for scale in (1e-3, 1e3):
        assert len(symmetries(model, DiagonalUnitary(Gaussian(scale), 2), TASK).generators) == 1


@pytest.mark.slow
def test_a_mask_leaves_scalings_of_what_moves():
    model = LinearAttention.diagonal(2, 0.1, 0.2)
    found = symmetries(model, DiagonalUnitary(Gaussian(1.0), 2), TASK, mask="off-diagonal")
    held = (
        np.concatenate([np.tile(np.eye(2), (2, 2)).reshape(-1), np.tile(np.eye(2), (1, 2)).reshape(-1)]) == 0
    )
    assert len(found.generators) == 1
    assert np.all(found.generators[0][held] == 0)
    only_kq = LinearAttention(np.ones((4, 4)), np.zeros((2, 4)))
    assert len(symmetries(model, DiagonalUnitary(Gaussian(1.0), 2), TASK, mask=only_kq).generators) == 0


def test_symmetries_do_not_depend_on_the_units_of_the_data():
    """With tokens 10¹² times as large the weights at the limit are 10⁻¹² times as large, and move along the same family."""
    found = []
    for scale in (1.0, 1e12):
        process, task = ms.DiagonalUnitary(ms.Gaussian(scale), 2), ms.NextToken(6)
        end = ms.gradient_flow(ms.LinearAttention.diagonal(2, 0.3 / scale, 0.3 / scale), process, task)
        found.append(ms.stability(end.model, process, task).kind)
    assert found == ["minimum", "minimum"]
