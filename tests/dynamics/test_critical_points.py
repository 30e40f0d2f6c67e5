"""Critical points: Newton's order, the spectrum at known points against closed forms, rates, and what many starts find."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope import (
    Constant,
    DiagonalUnitary,
    ExactMoments,
    FactoredLinearAttention,
    Gaussian,
    LinearAttention,
    LinearSelfAttention,
    NextToken,
    Sparse,
    Uniform,
    gradient_flow,
)
from mesascope.dynamics import (
    InvariantManifold,
    Polishing,
    critical_point,
    critical_points,
    observed_rate,
    real_vector,
    stability,
)
from mesascope.theory import zheng2024 as theory

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(20)
PRODUCT = float(theory.limit_product(PROCESS, TASK))


def _minimum(stretch=1.0, dim=2):
    process = DiagonalUnitary(Gaussian(1.0), dim)
    root = np.sqrt(float(theory.limit_product(process, TASK)))
    return LinearAttention.diagonal(dim, root * stretch, root / stretch)


def _disturbed(model, size, seed=0):
    rng = np.random.default_rng(seed)
    shift = [size * rng.normal(size=w.shape) for w in (model.w_kq, model.w_pv)]
    return LinearAttention(np.asarray(model.w_kq) + shift[0], np.asarray(model.w_pv) + shift[1])


@pytest.mark.slow
def test_newton_is_quadratic():
    """Near the end every residual is a constant times the square of the one before."""
    point = critical_point(_disturbed(_minimum(), 0.003), PROCESS, TASK)
    assert point.converged
    large = point.residuals[point.residuals > 1e-13]
    slopes = np.diff(np.log(large[1:])) / np.diff(np.log(large[:-1]))
    assert len(large) >= 3
    assert slopes[-1] > 1.8, point.residuals  # the first steps are not yet in the region of order 2


@pytest.mark.slow
def test_polishing_arrives_at_the_closed_form():
    point = critical_point(_disturbed(_minimum(), 0.02), PROCESS, TASK)
    products = np.asarray(point.model.products())
    np.testing.assert_allclose(products, PRODUCT, rtol=1e-12)
    assert point.loss == pytest.approx(float(theory.limit_loss(PROCESS, TASK)), rel=1e-13)
    assert point.gradient_norm < 1e-12


def test_polishing_does_not_move_along_symmetries():
    """An exact critical point that is far out on its orbit stays where it is."""
    guess = _minimum(stretch=3.0)
    point = critical_point(guess, PROCESS, TASK)
    assert point.converged
    assert point.distance < 1e-12
    nudged = critical_point(_disturbed(guess, 1e-3), PROCESS, TASK)
    assert nudged.converged
    assert nudged.distance < 0.05  # the balanced point of the orbit is 1.2 away


def test_polishing_works_at_every_scale():
    for scale in (1e-2, 1e2):
        process = DiagonalUnitary(Gaussian(scale), 2)
        root = np.sqrt(float(theory.limit_product(process, TASK)))
        guess = _disturbed(LinearAttention.diagonal(2, root, root), 0.01 * root)
        point = critical_point(guess, process, TASK)
        assert point.converged
        np.testing.assert_allclose(np.asarray(point.model.products()), root**2, rtol=1e-11)


@pytest.mark.slow
def test_a_guess_from_nowhere_says_so():
    """From these weights ‖∇L‖ falls to a minimum that is not zero, where the Hessian annuls the gradient."""
    far = LinearAttention.gaussian(2, 0.5, key=jax.random.key(23))
    point = critical_point(far, PROCESS, TASK, max_steps=1000)
    assert point.result is Polishing.NOT_NEAR
    assert not point.converged
    assert point.residual > 0.01
    assert "the guess is not near a critical point" in point.result.message
    assert "follow gradient_flow further" in point.result.message


@pytest.mark.slow
def test_too_few_steps_say_so():
    point = critical_point(_disturbed(_minimum(), 0.01), PROCESS, TASK, max_steps=1)
    assert point.result is Polishing.STEP_LIMIT
    assert len(point.residuals) == 2
    assert "raise max_steps" in point.result.message


@pytest.mark.slow
def test_masked_entries_stay():
    process = DiagonalUnitary(Constant(1.0), 2)
    start = LinearAttention.diagonal(2, 0.9, 0.9)
    point = critical_point(start, process, TASK, mask="off-diagonal")
    np.testing.assert_allclose(
        np.asarray(point.model.products()), float(theory.masked_full_one_limit(2, TASK)), rtol=1e-12
    )
    held = stability(point.model, process, TASK, mask="off-diagonal")
    assert held.kind == "minimum"
    assert held.curvatures.shape == (12,)
    with pytest.raises(ValueError, match=r"not a critical point.*polish it first"):
        stability(point.model, process, TASK)  # zheng2024, Proposition 4.2


@pytest.mark.slow
@pytest.mark.parametrize("law", [Gaussian(1.3), Uniform(2.0), Sparse(0.7)])
def test_the_origin_is_a_saddle_with_known_rates(law):
    """L = const − κ₁ Σ_t w_t Σ_j a_j b_j + O(θ⁴) for an even law: d rates ±κ₁ Σ_t w_t, all other curvatures 0.

    Only x_{t+1,j}* x_{i,j} x_{i−1,j}* x_{t,j} has exponents of λ that cancel: κ₁ = E x_j⁴, and Σ_i cancels ρ_t = t − 1.
    """
    dim, process = 2, DiagonalUnitary(law, 2)
    rate = float(law.joint_moment((4,), dim)) * 18  # weight 1 on t = 2 … 19
    at = stability(LinearAttention.diagonal(dim, 0.0, 0.0), process, TASK)
    assert at.kind == "saddle"
    assert at.index == dim
    np.testing.assert_allclose(at.escape_rates, rate, rtol=1e-12)
    np.testing.assert_allclose(at.curvatures[-dim:], rate, rtol=1e-12)
    np.testing.assert_allclose(at.curvatures[dim:-dim], 0, atol=1e-12 * rate)
    # the flow leaves along a_j = b_j, in the blocks of the paper's diagonal initialization
    directions = np.asarray(at.escape_directions.w_kq)
    outside = directions.copy()
    outside[:, [2, 3], [0, 1]] = 0
    assert np.abs(outside).max() < 1e-10
    np.testing.assert_allclose((directions**2).sum((1, 2)), 0.5, rtol=1e-10)


@pytest.mark.slow
def test_a_flow_leaves_the_origin_at_the_rate_said():
    rate = stability(LinearAttention.diagonal(2, 0.0, 0.0), PROCESS, TASK).escape_rates[0]
    flow = gradient_flow(LinearAttention.diagonal(2, 1e-6, 1e-6), PROCESS, TASK, until=5 / rate)
    grown = np.log(float(flow.model.w_kq[2, 0]) / 1e-6) / flow.time
    assert grown == pytest.approx(rate, rel=1e-7)  # corrections are of the order of the weights squared, 1e-8


def test_the_minimum_and_its_symmetry():
    at = stability(_minimum(stretch=1.5), PROCESS, TASK)
    assert (at.kind, at.index, at.symmetric, at.degenerate) == ("minimum", 0, 1, 0)
    assert np.sum(np.abs(at.curvatures) < 1e-9 * at.curvatures[-1]) == 1


@pytest.mark.slow
def test_curvatures_along_the_diagonal_manifold_are_the_closed_form():
    """a' = −b(αc − β) and b' = −a(αc − β) end at c = β/α with the rate α(a² + b²)."""
    root = np.sqrt(PRODUCT)
    model = LinearAttention.diagonal(2, 2 * root, root / 2)
    at = stability(InvariantManifold.diagonal(2).reduce(model), PROCESS, TASK)
    closed = theory.diagonal_flow(PROCESS, TASK, 2 * root, root / 2).rate
    assert at.curvatures.shape == (2,)
    assert at.convergence_rate == pytest.approx(float(closed), rel=1e-12)


@pytest.mark.slow
def test_one_hot_tokens_have_a_degenerate_minimum():
    """At a_j b_j = 1 the change δk₁₁ ∝ −δp₁ leaves the prediction as it is to first order, but no symmetry does."""
    at = stability(LinearAttention.diagonal(2, 1.0, 1.0), DiagonalUnitary(Sparse(1.0), 2), TASK)
    assert at.kind == "degenerate"
    assert at.degenerate == 2
    assert at.symmetric == 8 + 2
    assert at.convergence_rate == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 1])
def test_flows_converge_at_the_rate_of_the_least_curvature(start):
    flow = gradient_flow(LinearAttention.gaussian(2, 0.3, key=jax.random.key(start)), PROCESS, TASK)
    expected = stability(critical_point(flow.model, PROCESS, TASK).model, PROCESS, TASK).convergence_rate
    # the next curvature is larger by 0.2 and more: over ten decades of decay its part has fallen by another two
    assert observed_rate(flow) == pytest.approx(expected, rel=5e-3)


def test_a_rate_needs_a_flow_at_rest():
    flow = gradient_flow(LinearAttention.diagonal(2, 0.1, 0.1), PROCESS, TASK, until=0.01)
    with pytest.raises(ValueError, match="not in a steady state"):
        observed_rate(flow)


@pytest.mark.slow
def test_enumeration_of_two_coordinates():
    """Every coordinate is on or off, with a sign: a_j b_j = ±… on the diagonal, and the loss knows how many are on.

    Two signs agree or not: the two minima have one loss but different curvatures, so that no symmetry maps them.
    """
    found = critical_points(LinearAttention.diagonal(2, 0.1, 0.1), PROCESS, TASK, starts=120)
    objective = ExactMoments().objective(PROCESS, TASK)
    losses = [float(objective(LinearAttention.diagonal(2, 0.0, 0.0)).value)]
    losses = [float(theory.limit_loss(PROCESS, TASK)), *_one_coordinate(objective), *losses]
    got = sorted({round(point.stability.loss, 7) for point in found.points})
    np.testing.assert_allclose(got, sorted(losses), rtol=1e-7)
    minima = [point for point in found.points if point.stability.kind == "minimum"]
    assert len(minima) == 2
    assert {point.family for point in minima} == {0, 1}
    for point in minima:
        np.testing.assert_allclose(np.abs(point.model.products()), PRODUCT, rtol=1e-9)
        np.testing.assert_allclose(np.sum(point.model.w_kq**2), np.sum(point.model.w_pv**2), rtol=1e-9)
    signs = [np.prod(np.sign(np.diagonal(np.asarray(point.model.w_kq)[2:, :2]))) for point in minima]
    assert sorted(signs) == [-1, 1]
    assert [p.stability.index for p in found.points] == [0, 0, 1, 2]
    assert sum(point.found for point in found.points) + found.lost == found.starts
    for point in found.points:
        slope = jax.grad(lambda v, m=point.model: objective(real_vector(m)[1](v)).value)(
            jnp.asarray(real_vector(point.model)[0])
        )
        assert np.abs(slope).max() < 1e-8


def _one_coordinate(objective):
    """The loss with a₁b₁ = c and all else 0, minimized over c by its values at three points."""
    values = []
    for c in (0.0, 0.1, 0.2):
        w_kq, w_pv = np.zeros((4, 4)), np.zeros((2, 4))
        w_kq[2, 0], w_pv[0, 0] = 1.0, c
        values.append(float(objective(LinearAttention(w_kq, w_pv)).value))
    curve = np.polynomial.Polynomial.fit((0.0, 0.1, 0.2), values, 2)
    return [float(curve(curve.deriv().roots()[0]))]


@pytest.mark.slow
def test_families_are_orbits_of_permutations():
    """d = 3: four patterns of relative signs, + + + alone, and the three with one minus, which permutations exchange."""
    process = DiagonalUnitary(Gaussian(1.0), 3)
    found = critical_points(LinearAttention.diagonal(3, 0.1, 0.1), process, TASK, starts=120)
    minima = [point for point in found.points if point.stability.kind == "minimum"]
    assert len(minima) == 4
    families = [point.family for point in minima]
    assert sorted(families.count(f) for f in set(families)) == [1, 3]
    same = [point for point in minima if families.count(point.family) == 3]
    for one, other in itertools.combinations(same, 2):
        diagonals = [np.diagonal(np.asarray(p.model.w_kq)[3:, :3]) for p in (one, other)]
        permuted = [np.array(p) for p in itertools.permutations(diagonals[0])]
        assert any(np.allclose(s * p, diagonals[1], atol=1e-6) for p in permuted for s in (1, -1))


def test_enumeration_is_for_linear_attention():
    with pytest.raises(TypeError, match="must be linear attention"):
        critical_points(LinearSelfAttention.gaussian(4, 4, 0.1, key=jax.random.key(0)), PROCESS, TASK)


@pytest.mark.slow
def test_rank_deficient_factors_are_degenerate():
    """W_K* W_Q of rank 2 with four keys: unused keys may turn up together to second order, which no symmetry does."""
    minimum = _minimum()
    u, s, v = np.linalg.svd(np.asarray(minimum.w_kq))
    keys, queries = (np.sqrt(s)[:, None] * u.T)[None], (np.sqrt(s)[:, None] * v)[None]
    model = FactoredLinearAttention(keys, queries, np.eye(2)[None], np.asarray(minimum.w_pv)[None])
    at = stability(model, PROCESS, TASK)
    assert at.kind == "degenerate"
    thin = FactoredLinearAttention(
        keys[:, :2], queries[:, :2], np.eye(2)[None], np.asarray(minimum.w_pv)[None]
    )
    at = stability(thin, PROCESS, TASK)
    assert (at.kind, at.symmetric, at.degenerate) == ("minimum", 4 + 4 + 1, 0)
