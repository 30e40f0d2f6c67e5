"""Closed forms of kim2024, compared with enumerated prompts, sampled prompts and quadrature."""

import itertools

import numpy as np
import pytest

from mesascope.theory import kim2024 as theory

RNG = np.random.default_rng(0)
H, F = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 2))
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
MOMENTS = theory.feature_moments(H, F, WEIGHTS)


def _enumerated_loss(attention, examples, tau):
    """Every prompt of the four inputs; v is one of ±√(kτ) e_j, whose sign does not matter."""
    total = 0.0
    for *prompt, query in itertools.product(range(4), repeat=examples + 1):
        chance = np.prod(WEIGHTS[[*prompt, query]])
        for j in range(2):
            y = np.sqrt(2 * tau) * F[:, j]
            answer = sum(y[i] * H[i] @ attention @ H[query] for i in prompt) / examples
            total += chance / 2 * (answer - y[query]) ** 2 / 2
    return total


@pytest.mark.parametrize("examples", [1, 3])
def test_the_loss_is_that_of_all_prompts(examples):
    attention = RNG.normal(size=(3, 3))
    expected = _enumerated_loss(attention, examples, 0.7)
    assert theory.attention_loss(attention, MOMENTS, examples, 0.7) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("examples", [1, 3, 50])
def test_no_attention_near_it_is_better(examples):
    best = theory.optimal_attention(MOMENTS, examples)
    least = theory.optimal_loss(MOMENTS, examples, 0.7)
    assert theory.attention_loss(best, MOMENTS, examples, 0.7) == pytest.approx(least, rel=1e-12)
    for step in RNG.normal(size=(20, 3, 3)) * 0.1:
        sides = [theory.attention_loss(best + sign * step, MOMENTS, examples, 0.7) for sign in (1, -1)]
        assert min(sides) > least
        assert sides[0] == pytest.approx(sides[1], rel=1e-9)  # no slope


def test_infinite_contexts_give_the_distance_from_the_span():
    left = np.trace(MOMENTS.targets) / 2 * theory.distance_from_span(MOMENTS)
    assert theory.optimal_loss(MOMENTS, 10**7) == pytest.approx(left, rel=1e-4)  # what 1/N leaves
    mixed = theory.feature_moments(H @ RNG.normal(size=(3, 3)), F, WEIGHTS)
    assert theory.distance_from_span(mixed) == pytest.approx(theory.distance_from_span(MOMENTS), rel=1e-9)
    inside = theory.feature_moments(H, H[:, :2] @ RNG.normal(size=(2, 2)), WEIGHTS)
    assert theory.distance_from_span(inside) == pytest.approx(0, abs=1e-12)
    assert theory.optimal_attention(inside, 10**9)[:2, :2].shape == (2, 2)


def test_relu_kernel_is_its_integral():
    a, b = np.array([[1.0, 0.5]]), np.array([[-0.3, 2.0]])

    # in polar coordinates the radius gives E r² = 2, and the angle a mean over the circle
    angle = np.linspace(0, 2 * np.pi, 200_001)[:-1]
    circle = np.stack([np.cos(angle), np.sin(angle)])
    expected = 2 * np.mean(np.maximum(a @ circle, 0) * np.maximum(b @ circle, 0))
    assert theory.relu_kernel(a, b)[0, 0] == pytest.approx(expected, abs=1e-9)  # kinks: the grid squared
    assert theory.relu_kernel(a, a)[0, 0] == pytest.approx(np.sum(a**2) / 2, rel=1e-14)
    assert theory.relu_kernel(a, -a)[0, 0] == pytest.approx(0, abs=1e-15)


def test_the_loss_of_relu_features_has_its_gradient_and_vanishes_on_the_targets():
    targets, vectors = RNG.normal(size=(3, 4)), RNG.normal(size=(5, 4))
    value, slope = theory.relu_span_loss(vectors, targets)
    moments = theory.FeatureMoments(
        theory.relu_kernel(vectors, vectors),
        theory.relu_kernel(targets, vectors),
        theory.relu_kernel(targets, targets),
        np.zeros((5, 5)),
    )
    assert value == pytest.approx(theory.distance_from_span(moments), abs=1e-7)  # the ridge
    for place in np.ndindex(vectors.shape):
        moved = np.zeros_like(vectors)
        moved[place] = 1e-5
        difference = (
            theory.relu_span_loss(vectors + moved, targets)[0]
            - theory.relu_span_loss(vectors - moved, targets)[0]
        ) / 2e-5
        assert slope[place] == pytest.approx(difference, abs=1e-8)  # the third derivative times 10⁻¹⁰
    assert theory.relu_span_loss(3 * targets, targets)[0] == pytest.approx(0, abs=1e-7)  # the ridge


def test_the_loss_of_neurons_is_a_distance_from_their_span_and_has_its_gradients():
    rng = np.random.default_rng(3)
    a, w, v = rng.normal(size=(5, 2)), rng.normal(size=(5, 3)), rng.normal(size=(2, 3))
    value, by_outputs, by_vectors = theory.mean_field_loss(a, w, v)
    for at, slopes in ((a, by_outputs), (w, by_vectors)):
        for place in ((0, 0), (3, 1)):
            ends = []
            for step in (1e-6, -1e-6):
                at[place] += step
                ends.append(theory.mean_field_loss(a, w, v)[0])
                at[place] -= step
            # differences of 1e-6 leave 1e-16/1e-6
            assert slopes[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)
    # as many outputs as neurons span what the neurons do, whose loss has a ridge of 1e-9
    square, single = rng.normal(size=(2, 2)), w[:2]
    assert theory.mean_field_loss(square, single, v)[0] == pytest.approx(
        theory.relu_span_loss(single, v)[0], abs=1e-7
    )
    assert 0 < value < 1
    with pytest.raises(ValueError, match="outputs must have shape"):
        theory.mean_field_loss(a.T, w, v)
