"""Manifolds that the flow does not leave, and reduced flows against full ones."""

import jax.numpy as jnp
import numpy as np
import pytest

from mesascope import (
    Constant,
    DiagonalUnitary,
    ExactMoments,
    Gaussian,
    LinearAttention,
    NextToken,
    Sparse,
    gradient_flow,
)
from mesascope.dynamics import BLOCKS, InvariantManifold, ReducedLinearAttention
from mesascope.theory import zheng2024 as theory

TASK = NextToken(12)


def _process(law, dim=2):
    return DiagonalUnitary(law, dim)


@pytest.mark.parametrize("law", [Gaussian(1.0), Sparse(1.0)])
def test_diagonals_are_invariant_under_even_laws(law):
    for blocks in (("kq-yx", "pv-x"), BLOCKS):
        for kind in (InvariantManifold.diagonal, InvariantManifold.coordinatewise):
            assert kind(2, blocks).check_invariant(_process(law), TASK) < 1e-12


@pytest.mark.slow
def test_the_full_one_token_leaves_the_diagonal_but_not_the_exchangeable_manifold():
    """zheng2024, Proposition 4.2."""
    with pytest.raises(ValueError, match=r"not invariant, the gradient moves w_kq\[[23], [01]\]"):
        InvariantManifold.diagonal(2).check_invariant(_process(Constant(1.0)), TASK)
    for blocks in (("kq-yx", "pv-x"), BLOCKS):
        assert (
            InvariantManifold.exchangeable(2, blocks).check_invariant(_process(Constant(1.0)), TASK) < 1e-12
        )


@pytest.mark.slow
def test_unequal_coordinates_leave_the_exchangeable_manifold():
    with pytest.raises(ValueError, match="not invariant"):
        InvariantManifold.exchangeable(2).check_invariant(_process(Constant([1.0, 2.0])), TASK)


@pytest.mark.slow
def test_reduced_and_full_flow_agree_for_all_times():
    process, start = _process(Constant(1.0)), LinearAttention.diagonal(2, 0.2, 0.1)
    manifold = InvariantManifold.exchangeable(2)
    for until in (0.05, 0.3):
        reduced = gradient_flow(manifold.reduce(start), process, TASK, until=until)
        full = gradient_flow(start, process, TASK, until=until)
        merged = reduced.model.merged()
        # both solvers allow 1e-12 per step
        np.testing.assert_allclose(merged.w_kq, full.model.w_kq, rtol=0, atol=1e-8)
        np.testing.assert_allclose(merged.w_pv, full.model.w_pv, rtol=0, atol=1e-8)
        assert np.abs(np.asarray(full.model.w_kq)[2, 1]) > 1e-4  # the flow did leave the diagonal


@pytest.mark.slow
def test_the_diagonal_flow_is_the_closed_form():
    process, start = _process(Gaussian(1.0)), LinearAttention.diagonal(2, 0.2, 0.1)
    flow = gradient_flow(InvariantManifold.diagonal(2).reduce(start), process, TASK)
    exact = theory.diagonal_flow(process, TASK, 0.2, 0.1)(flow.times)
    w_kq, w_pv = flow.trajectory.heads()
    np.testing.assert_allclose(w_kq[:, 0, 2, 0], exact.a, rtol=1e-8)
    np.testing.assert_allclose(w_pv[:, 0, 1, 1], exact.b, rtol=1e-8)


@pytest.mark.slow
def test_the_full_one_limit_of_five_coordinates():
    """αI + β11ᵀ: preconditioned gradient descent; the loss and entries that the full flow ends with."""
    process, task = _process(Constant(1.0), 5), NextToken(100)
    start = LinearAttention.diagonal(5, 0.1, 0.1)
    flow = gradient_flow(InvariantManifold.exchangeable(5).reduce(start), process, task)
    end = flow.model.merged()
    keys, values = np.asarray(end.w_kq)[5:, :5], np.asarray(end.w_pv)[:, :5]
    off = ~np.eye(5, dtype=bool)
    assert flow.converged
    assert flow.loss[-1] == pytest.approx(38.17957874025589, rel=1e-12)
    # four decimals were published
    np.testing.assert_allclose(np.diagonal(keys), 0.9224, atol=5e-5)
    np.testing.assert_allclose(keys[off], -0.0485, atol=5e-5)
    np.testing.assert_allclose(np.diagonal(values), 0.9255, atol=5e-5)
    np.testing.assert_allclose(values[off], -0.0304, atol=5e-5)
    rest = np.asarray(end.w_kq).copy()
    rest[5:, :5] = 0
    assert np.all(rest == 0)


@pytest.mark.slow
def test_the_metric_is_that_of_the_weights():
    """Directions that are neither orthogonal nor of equal length give the same flow."""
    process = _process(Gaussian(1.0))
    one, two = LinearAttention.diagonal(2, 3.0, 0.0), LinearAttention.diagonal(2, 1.0, 0.2)
    skewed = InvariantManifold([one, two])
    np.testing.assert_allclose(skewed.basis.T @ skewed.basis, np.eye(2), atol=1e-14)
    start = LinearAttention.diagonal(2, 0.2, 0.1)
    ends = [
        gradient_flow(manifold.reduce(start), process, TASK, until=0.1).model.merged()
        for manifold in (skewed, InvariantManifold.diagonal(2))
    ]
    np.testing.assert_allclose(ends[0].w_kq, ends[1].w_kq, atol=1e-10)


def test_reducing_and_merging_are_inverse():
    manifold = InvariantManifold.exchangeable(2, BLOCKS)
    assert manifold.basis.shape == (24, 12)
    model = ReducedLinearAttention(np.arange(12.0), manifold, "t")
    again = manifold.reduce(model.merged())
    np.testing.assert_allclose(again.coordinates, model.coordinates, atol=1e-13)
    assert again.normalizer == "t"
    tokens = np.random.default_rng(0).normal(size=(3, 6, 2))
    np.testing.assert_allclose(model(tokens), model.merged()(tokens), rtol=1e-12)


def test_equal_manifolds_share_compiled_code():
    one, other = InvariantManifold.diagonal(3), InvariantManifold.diagonal(3)
    assert one == other
    assert hash(one) == hash(other)
    assert one != InvariantManifold.exchangeable(3)


def test_one_loss_for_both():
    process = _process(Gaussian(1.0))
    objective = ExactMoments().objective(process, TASK)
    model = ReducedLinearAttention(jnp.array([0.3, 0.4]), InvariantManifold.diagonal(2))
    merged = LinearAttention.diagonal(2, 0.3 / np.sqrt(2), 0.4 / np.sqrt(2))
    assert float(objective(model).value) == pytest.approx(float(objective(merged).value), rel=1e-14)


def test_refusals_say_what_to_do():
    manifold = InvariantManifold.diagonal(2)
    off = LinearAttention(np.eye(4), np.zeros((2, 4)))
    with pytest.raises(
        ValueError, match=r"not on the manifold, w_kq\[0, 0\] is off by 1\.0e\+00; start on it"
    ):
        manifold.reduce(off)
    with pytest.raises(ValueError, match="dim 3, the manifold has dim 2"):
        manifold.reduce(LinearAttention.diagonal(3, 1.0, 1.0))
    with pytest.raises(ValueError, match="'kq' is unknown; choose from kq-xx"):
        InvariantManifold.diagonal(2, ("kq",))
    with pytest.raises(ValueError, match="linearly independent"):
        InvariantManifold([off, off])
    with pytest.raises(ValueError, match="at least one LinearAttention"):
        InvariantManifold([])
    with pytest.raises(ValueError, match=r"expected shape \(2, 2\), got \(3, 3\)"):
        InvariantManifold.of_blocks(2, [np.eye(3)])
    with pytest.raises(ValueError, match="at least 2"):
        InvariantManifold.exchangeable(1)
