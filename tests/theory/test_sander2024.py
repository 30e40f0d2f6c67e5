"""Closed forms of sander2024, compared with sums over roots of unity in loops, and brute force."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mesascope.theory import sander2024

RNG = np.random.default_rng(0)


def sequences(dim, context, pairs):
    """All sequences x_1 … x_{T+1} whose angles are multiples of 2π/(4T): sums over them are exact."""
    drawn = dim // 2 if pairs else dim
    for angles in product(range(4 * context), repeat=drawn):
        eigenvalues = np.exp(2j * np.pi * np.array(angles) / (4 * context))
        if pairs:
            eigenvalues = np.ravel(np.column_stack([eigenvalues, eigenvalues.conj()]))
        yield np.array([eigenvalues**t for t in range(context + 1)])


def loss_of_heads(a, b, positions, pairs):
    """E‖x̂ − x‖² from the definition, head by head and token by token."""
    context, dim = len(positions), a.shape[1]
    total, count = 0.0, 0
    for x in sequences(dim, context, pairs):
        predicted = np.zeros(dim, complex)
        for head_a, head_b in zip(a, b, strict=True):
            for t in range(context):
                score = np.vdot(x[context - 2], head_a * x[t])
                predicted += positions[t] * score * head_b * x[t]
        total, count = total + np.linalg.norm(predicted - x[context]) ** 2, count + 1
    return total / count


@pytest.mark.parametrize(
    ("dim", "context", "heads", "pairs"),
    [(1, 3, 1, False), (2, 2, 1, False), (2, 4, 3, False), (2, 3, 2, True), (4, 2, 3, True), (2, 5, 1, True)],
)
def test_losses_are_those_of_the_layer(dim, context, heads, pairs):
    a, b = RNG.normal(size=(2, heads, dim))
    positions = RNG.normal(size=context)
    closed_form = sander2024.rotation_loss if pairs else sander2024.unitary_loss
    expected = loss_of_heads(a, b, positions, pairs)
    assert closed_form(b.T @ a, positions) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scale", [1.0, -1.202])
def test_minimisers_have_zero_loss_and_gradient(scale):
    for loss, (heads, positions) in (
        (sander2024.unitary_loss, sander2024.unitary_minimiser(3, 5, scale)),
        (sander2024.rotation_loss, sander2024.rotation_minimiser(4, 5, scale)),
        (sander2024.rotation_loss, sander2024.rotation_minimiser(4, 5, scale, 0.3)),
    ):
        assert loss(heads, positions) == pytest.approx(0, abs=1e-13)
        for _ in range(20):
            moved = heads + 1e-3 * RNG.normal(size=heads.shape), positions + 1e-3 * RNG.normal(size=5)
            assert 0 < loss(*moved) < 1e-3


def test_the_papers_minimisers():
    heads, positions = sander2024.rotation_minimiser(4, 3, 2.0)
    np.testing.assert_array_equal(heads, 2 * np.kron(np.eye(2), np.ones((2, 2))))
    np.testing.assert_array_equal(positions, [0, -0.25, 0.5])
    heads, positions = sander2024.unitary_minimiser(2, 3, 4.0)
    np.testing.assert_array_equal(heads, 4 * np.eye(2))
    np.testing.assert_array_equal(positions, [0, 0, 0.25])


@pytest.mark.parametrize("heads", [1, 2, 3, 5])
def test_few_heads_do_not_go_below_the_minimal_loss(heads):
    dim, least = 4, sander2024.unitary_least_loss(4, heads)
    for _ in range(200):
        a, b = RNG.normal(size=(2, heads, dim))
        c = b.T @ a
        best = np.zeros(4)
        best[-1] = np.trace(c) / np.sum(c**2)
        assert sander2024.unitary_loss(c, best) >= least - 1e-12
    kept = np.eye(dim)[:heads]
    assert sander2024.unitary_loss(kept.T @ kept, [0, 0, 1]) == least


@pytest.mark.parametrize(("dim", "context"), [(1, 2), (2, 3), (3, 4)])
def test_the_best_step_by_brute_force(dim, context):
    answers, targets = [], []
    for x in sequences(dim, context, False):
        w = sum(np.outer(x[t + 1], x[t].conj()) for t in range(context - 1))
        answers.append(w @ x[context - 1])
        targets.append(x[context])
    answers, targets = np.array(answers), np.array(targets)
    best = np.vdot(answers, targets).real / np.vdot(answers, answers).real
    assert sander2024.augmented_step(dim, context) == Fraction(1, context + dim - 2)
    assert best == pytest.approx(float(sander2024.augmented_step(dim, context)), rel=1e-12)
    loss = np.mean(np.sum(np.abs(best * answers - targets) ** 2, 1)) / 2
    assert loss == pytest.approx(float(sander2024.augmented_loss(dim, context)), abs=1e-12)


@pytest.mark.parametrize(("context", "largest"), [(2, 1.0), (5, 0.3), (6, 2.5)])
def test_the_loss_of_positions_alone(context, largest):
    """From the definition of the layer, with the mean over angles by a quadrature that is exact to rounding."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    positions = RNG.normal(size=context)
    expected = 0.0
    for angle, weight in zip(largest * (nodes + 1) / 2, weights / 2, strict=True):
        x = np.exp(1j * angle * np.arange(context + 1))
        predicted = sum(positions[t] * x[context - 2].conj() * x[t] * x[t] for t in range(context))
        expected += weight * abs(predicted - x[context]) ** 2
    missed = positions - np.eye(context)[-1]
    assert missed @ sander2024.position_gram(context, largest) @ missed == pytest.approx(expected, rel=1e-12)


def test_positions_by_descent_step_by_step():
    gram, positions = sander2024.position_gram(6, 0.4), np.zeros(6)
    for steps in range(30):
        found = sander2024.descended_positions(gram, 0.05, steps)
        np.testing.assert_allclose(found, positions, atol=1e-14)
        positions -= 0.05 * 2 * gram @ (positions - np.eye(6)[-1])
