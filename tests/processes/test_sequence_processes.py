"""Sequence processes, compared with their definitions. Sampled means must agree within 5 standard errors."""

import numpy as np
import pytest

from mesascope.core import named_key
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Gaussian,
    LinearAR,
    NonlinearAR,
    OrthogonalAR,
    RotationAR,
)
from mesascope.processes._draws import haar_orthogonal
from sampled_means import draw, judge

COUNT = 20_000


def sample(process, seed, horizon, batch):
    return np.asarray(draw(process, named_key(seed), horizon, batch))


def transitions(tokens):
    """The W of each sequence with x_{t+1} = W x_t, by least squares."""
    return np.stack([np.linalg.lstsq(x[:-1], x[1:])[0].T for x in tokens])


@pytest.fixture(scope="module")
def haar():
    return np.asarray(haar_orthogonal(named_key(0), 4, COUNT))


def test_haar_matrices_are_orthogonal(haar):
    np.testing.assert_allclose(haar @ haar.swapaxes(1, 2), np.broadcast_to(np.eye(4), haar.shape), atol=1e-14)
    np.testing.assert_allclose(haar.swapaxes(1, 2) @ haar, np.broadcast_to(np.eye(4), haar.shape), atol=1e-14)


def test_haar_matrices_have_the_haar_distribution(haar):
    judge(haar, 0)
    judge(haar**2, 1 / 4)
    judge(haar[:, 0, 0] ** 2 * haar[:, 1, 1] ** 2, (4 + 1) / ((4 - 1) * 4 * (4 + 2)))
    judge(np.linalg.det(haar), 0)
    # Invariance: for any fixed orthogonal V the trace of V W has the moments 0, 1, 0, 3 of a standard normal.
    for fixed in (np.eye(4), haar[0]):
        traces = np.trace(fixed @ haar[1:], axis1=1, axis2=2)
        for order, moment in enumerate((0, 1, 0, 3), start=1):
            judge(traces**order, moment)


@pytest.mark.parametrize("basis", [None, 2])
def test_orthogonal_tokens_follow_one_orthogonal_matrix(basis):
    tokens = sample(OrthogonalAR(Gaussian(), 4, basis=basis), 0, 12, 50)
    # The Gram matrix of an orbit of an orthogonal matrix depends on t − s only.
    gram = np.einsum("bsi,bti->bst", tokens, tokens)
    np.testing.assert_allclose(gram[:, 1:, 1:], gram[:, :-1, :-1], atol=1e-12)
    # The residuals have the size of rounding, whatever the conditioning of the least-squares problem.
    for x, transition in zip(tokens, transitions(tokens), strict=True):
        np.testing.assert_allclose(x[1:], x[:-1] @ transition.T, atol=1e-11)


@pytest.mark.slow
def test_noise_adds_its_variance_in_every_step():
    process = OrthogonalAR(Gaussian(2), 4, noise=0.5)
    squares = (sample(process, 0, 12, COUNT) ** 2).sum(axis=-1)
    judge(squares[:, 0], 4 * 4)
    judge(np.diff(squares, axis=1), 4 * 0.25)


def test_transitions_in_a_shared_basis_commute():
    def found(basis, seed):
        # Least squares loses digits where two angles of a sequence nearly agree: the median sequence is judged.
        return transitions(sample(OrthogonalAR(Gaussian(), 4, basis=basis), seed, 12, 50))

    def commutators(one, two):
        return np.median(abs(one @ two - two @ one).max(axis=(1, 2)))

    assert commutators(found(2, seed=0), found(2, seed=1)) < 1e-12
    assert commutators(found(2, seed=0), found(3, seed=1)) > 0.1
    assert commutators(found(None, seed=0), found(None, seed=1)) > 0.1


def test_commuting_rotations_have_uniform_angles():
    turned = sample(OrthogonalAR(Constant([1, 0, 0, 0]), 4, basis=2), 0, 12, COUNT)
    # The component of x_1 in each plane turns by a uniform angle: tokens after the first average to 0, and
    # E x_{t+1} x_{t+2}ᵀ too.
    judge(turned[:, 1:], 0)
    judge(turned[:, 1, :, None] * turned[:, 2, None, :], 0)


def test_rotations_from_an_axis_are_the_diagonal_unitary_process():
    complex_tokens = sample(DiagonalUnitary(Gaussian(), 3), 0, 6, 5)
    real_tokens = sample(RotationAR(Gaussian(), 6, start="axis"), 0, 6, 5)
    np.testing.assert_array_equal(real_tokens[..., 0::2], complex_tokens.real)
    np.testing.assert_array_equal(real_tokens[..., 1::2], complex_tokens.imag)


def test_rotations_turn_each_plane_at_one_speed():
    tokens = sample(RotationAR(Gaussian(3), 4), 0, 6, COUNT)
    judge(tokens[:, 0] ** 2, 9)
    planes = tokens[..., 0::2] + 1j * tokens[..., 1::2]
    speeds = planes[:, 1:] / planes[:, :-1]
    np.testing.assert_allclose(abs(speeds), 1, rtol=1e-13)
    np.testing.assert_allclose(speeds, np.broadcast_to(speeds[:, :1], speeds.shape), rtol=0, atol=1e-13)
    for power in (1, 2, 3):
        judge((speeds[:, 0] ** power).real, 0)
        judge((speeds[:, 0] ** power).imag, 0)
    judge((speeds[:, 0, 0] * speeds[:, 0, 1].conj()).real, 0)


@pytest.mark.slow
def test_linear_systems_have_the_given_spectrum():
    found = transitions(sample(LinearAR(Gaussian(), 3, (-0.9, 0.4, 1)), 0, 12, 50))
    # Three coordinates and three well separated eigenvalues: least squares is off where a mode is hardly excited.
    np.testing.assert_allclose(found, found.swapaxes(1, 2), atol=1e-9)
    np.testing.assert_allclose(np.linalg.eigvalsh(found), np.tile([-0.9, 0.4, 1], (50, 1)), atol=1e-9)


TURNING = (0.9 + 0.3j, 0.5, -0.2 - 0.7j, 0.9 - 0.3j, -0.2 + 0.7j)


@pytest.mark.slow
def test_complex_eigenvalues_come_in_pairs_of_a_real_normal_matrix():
    found = transitions(sample(LinearAR(Gaussian(), 5, TURNING), 0, 12, 50))
    transposed = found.swapaxes(1, 2)
    np.testing.assert_allclose(found @ transposed, transposed @ found, atol=1e-9)  # 1e-9 as above
    assert abs(found - transposed).max() > 0.1
    for eigenvalues in np.linalg.eigvals(found):
        distances = abs(eigenvalues[:, None] - np.array(TURNING))
        assert distances.min(0).max() < 1e-9
        assert distances.min(1).max() < 1e-9
    traces = transitions(sample(LinearAR(Gaussian(), 2, (1j, -1j)), 0, 12, 50))
    np.testing.assert_allclose(traces @ traces, np.broadcast_to(-np.eye(2), (50, 2, 2)), atol=1e-12)


def test_planes_are_isotropic():
    # W projects onto a random plane, turns it by a right angle, one way or the other, and halves it.
    tokens = sample(LinearAR(Constant([1, 0, 0]), 3, (0.5j, 0, -0.5j)), 0, 2, COUNT)[:, 1]
    judge(tokens, 0)
    judge((tokens**2).sum(1), 1 / 4 * 2 / 3)  # E |P x_1|² = 2/3
    np.testing.assert_allclose(tokens[:, 0], 0, atol=1e-15)
    judge(tokens[:, 1] ** 2 - tokens[:, 2] ** 2, 0)


@pytest.mark.slow
def test_states_with_noise_become_stationary_for_every_spectrum():
    sizes = abs(np.array(TURNING)) ** 2
    tokens = sample(LinearAR(Gaussian(2), 5, TURNING, noise=0.3), 0, 40, COUNT)
    for t in (1, 2, 39):  # E |h_{t+1}|² = Σ_j |λ_j|^{2t} 4 + σ² (1 − |λ_j|^{2t})/(1 − |λ_j|²)
        noise = 0.09 * (1 - sizes**t) / (1 - sizes)
        judge((tokens[:, t] ** 2).sum(1), (4 * sizes**t + noise).sum())
    # a law of this covariance, from the start: sizes are those of the limit σ² (I − W Wᵀ)⁻¹ at once
    still = sample(LinearAR(Gaussian(0.5), 2, (0.6j, -0.6j), noise=0.4), 0, 9, COUNT)
    for t in range(9):
        judge(still[:, t, :, None] * still[:, t, None, :], 0.25 * np.eye(2))


def test_pairs_on_the_unit_circle_are_stable():
    turn = np.exp(1j * np.arange(1, 200))
    assert (abs(turn) > 1).any()  # by rounding
    for point in turn:
        assert LinearAR(Gaussian(), 2, (point, point.conjugate())).spectrum[0] == point


@pytest.mark.slow
def test_contracting_systems_draw_their_spectrum():
    process = LinearAR.contracting(Gaussian(), 1, 0.3, 0.9)
    assert process.spectral_radius == 0.9
    tokens = sample(process, 0, 3, COUNT)[..., 0]
    eigenvalues = tokens[:, 1] / tokens[:, 0]
    np.testing.assert_allclose(tokens[:, 2] / tokens[:, 1], eigenvalues, rtol=1e-13)
    assert eigenvalues.min() >= 0.3 - 1e-15
    assert eigenvalues.max() <= 0.9 + 1e-15
    judge(eigenvalues, 0.6)
    judge((eigenvalues - 0.6) ** 2, 0.6**2 / 12)


@pytest.mark.slow
def test_eigenvectors_are_isotropic():
    tokens = sample(LinearAR(Constant([1, 0]), 2, (1, 0)), 0, 3, COUNT)
    # x_2 = q qᵀ x_1 with q uniform on the circle: E q_1² = 1/2, E q_1⁴ = 3/8.
    judge(tokens[:, 1, 0], 1 / 2)
    judge(tokens[:, 1] ** 2, (3 / 8, 1 / 8))
    np.testing.assert_allclose(tokens[:, 2], tokens[:, 1], atol=1e-14)


@pytest.mark.slow
def test_state_noise_is_white():
    # With W = 0 all tokens after the first are noise alone.
    tokens = sample(LinearAR(Gaussian(), 3, (0, 0, 0), noise=0.3), 0, 3, COUNT)
    late = tokens[:, 1:].reshape(COUNT, -1)
    judge(late, 0)
    judge(late[:, :, None] * late[:, None, :], 0.09 * np.eye(6))


@pytest.mark.slow
def test_observed_tokens_are_a_mixture_of_fewer_states():
    process = LinearAR(Gaussian(2), 2, (0.9, -0.5), observed=4)
    assert (process.dim, process.state_dim) == (4, 2)
    tokens = sample(process, 0, 5, COUNT)
    judge(tokens[:, 0] ** 2, 4)  # E (C h)_i² = |h|²/n
    judge(tokens[:, 0, 0] * tokens[:, 0, 1], 0)
    singular = np.linalg.svd(tokens[:50], compute_uv=False)
    assert (singular[:, 2:] < 1e-14 * singular[:, :1]).all()
    # The tokens obey the recursion of the characteristic polynomial (λ − 0.9)(λ + 0.5).
    np.testing.assert_allclose(tokens[:, 2:], 0.4 * tokens[:, 1:-1] + 0.45 * tokens[:, :-2], atol=1e-12)


@pytest.mark.slow
def test_unstable_systems_grow_when_allowed():
    tokens = sample(LinearAR(Gaussian(), 2, (1.5, -1.5), unstable=True), 0, 6, 5)
    norms = np.linalg.norm(tokens, axis=-1)
    np.testing.assert_allclose(norms[:, 1:], 1.5 * norms[:, :-1], rtol=1e-13)


@pytest.mark.slow
def test_nonlinear_tokens_of_one_unit_follow_one_map():
    tokens = sample(NonlinearAR(Gaussian(), 1, hidden=1, gain=2), 0, 5, 2000)[..., 0]
    # Given a tanh(b x): scan b for the one that explains the first two transitions and check the others.
    checked = 0
    for x in tokens[abs(tokens).min(axis=1) > 0.2]:
        slopes = np.geomspace(1e-3, 30, 200_000)
        gap = np.tanh(slopes * abs(x[1])) / np.tanh(slopes * abs(x[0])) - abs(x[2] / x[1])
        roots = np.flatnonzero(np.diff(np.sign(gap)))
        if len(roots) != 1:
            continue
        slope = slopes[roots[0]]
        outer = x[1] / np.tanh(slope * x[0])
        # The grid finds the slope to 5e-5 relative; tanh passes that on, divided by at most the small |x|.
        np.testing.assert_allclose(x[1:], outer * np.tanh(slope * x[:-1]), rtol=1e-3)
        checked += 1
        if checked == 20:
            break
    assert checked == 20


def test_small_tokens_are_multiplied_by_the_gains():
    # tanh is the identity to 1e-6 relative here, and E |A B x|² = g⁴ |x|².
    tokens = sample(NonlinearAR(Constant(1e-3), 3, hidden=5, gain=1.5), 0, 2, COUNT)
    judge((tokens[:, 1] ** 2).sum(axis=-1) / 3e-6, 1.5**4)


@pytest.mark.slow
def test_nonlinear_tokens_are_bounded_for_every_gain():
    tokens = sample(NonlinearAR(Gaussian(), 3, hidden=5, gain=100), 0, 20, 100)
    # |x_{t+1,i}| ≤ Σ_k |A_ik|: five normal numbers of standard deviation 100/√5 do not sum to 1500.
    assert abs(tokens).max() < 1500
    assert abs(tokens[:, -1]).max() > 10


@pytest.mark.slow
def test_nonlinear_noise_has_the_given_size():
    # A gain of 1e-3 leaves 1e-6 of the token before: all others are noise.
    tokens = sample(NonlinearAR(Gaussian(), 3, hidden=5, gain=1e-3, noise=0.2), 0, 3, COUNT)
    judge(tokens[:, 1:] ** 2, 0.04)
    judge(tokens[:, 1] * tokens[:, 2], 0)
