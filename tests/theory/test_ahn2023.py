from itertools import product

import numpy as np
import pytest

from mesascope.theory import ahn2023, vonoswald2023

SIZES = [(1, 1, 1), (2, 5, 3), (4, 3, 5)]


def matrices(dim, layers, seed):
    """Asymmetric, to detect wrong transposes."""
    return np.random.default_rng(seed).normal(size=(layers, dim, dim)) / 2


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "examples", "layers"), SIZES)
def test_layers_are_preconditioned_steps(prompt_model, prompts, dim, examples, layers):
    x, y = prompts(dim, examples)
    preconditioners = matrices(dim, layers, seed=1)
    predictions = prompt_model(ahn2023.preconditioned_gradient_descent(preconditioners))(x, y)
    for b in range(len(x)):
        w = np.zeros(dim)
        for a in preconditioners:
            w = w - a @ (x[b, :-1].T @ (x[b, :-1] @ w - y[b]) / examples)
        assert float(predictions[b]) == pytest.approx(w @ x[b, -1], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("dim", "examples", "layers"), SIZES)
def test_input_updates_are_applied_with_the_step(prompt_model, prompts, dim, examples, layers):
    x, y = prompts(dim, examples)
    a, b = matrices(dim, layers, seed=2), matrices(dim, layers, seed=3)
    predictions = prompt_model(ahn2023.preconditioned_gradient_descent(a, b))(x, y)
    for prompt in range(len(x)):
        inputs, labels = x[prompt], np.append(y[prompt], 0.0)
        for layer in range(layers):
            seen = inputs[:-1]
            gradient = -(seen.T @ labels[:-1]) / examples
            moved = np.eye(dim) - b[layer] @ (seen.T @ seen / examples) @ a[layer].T
            labels, inputs = labels + inputs @ a[layer] @ gradient, inputs @ moved.T
        assert float(predictions[prompt]) == pytest.approx(-labels[-1], rel=1e-12, abs=1e-12)


def test_the_papers_matrices():
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    q, p = (weights[0, 0] for weights in ahn2023.preconditioned_gradient_descent(a[None]))
    np.testing.assert_array_equal(q, [[-2, -1, 0], [-1, -3, 0], [0, 0, 0]])
    np.testing.assert_array_equal(p, np.diag([0, 0, 1]))


def gaussian_nodes(covariance, examples):
    """All inputs (examples, d) of a Gauss–Hermite rule, exact to degree 5 in each coordinate, with their weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    weights = weights / weights.sum()
    root = np.linalg.cholesky(covariance)
    dim = len(covariance)
    for index in product(range(3), repeat=dim * examples):
        z = nodes[list(index)].reshape(examples, dim)
        yield z @ root.T, np.prod(weights[list(index)])


@pytest.mark.parametrize(
    ("covariance", "examples"),
    [
        ([[2.0]], 1),
        ([[2.0]], 5),
        ([[2.0, 0.6], [0.6, 0.5]], 1),
        ([[2.0, 0.6], [0.6, 0.5]], 3),
        ([[1.0, 0.2, 0.0], [0.2, 2.0, -0.3], [0.0, -0.3, 0.7]], 2),
    ],
)
def test_one_layer_preconditioner_against_brute_force(covariance, examples):
    # The loss ½E tr Σ(AS − I)(AS − I)ᵀ is least squares in A, with one equation Σ^{1/2} A S = Σ^{1/2} for every node.
    sigma = np.array(covariance)
    root = np.linalg.cholesky(sigma).T
    rows, targets = [], []
    for x, weight in gaussian_nodes(sigma, examples):
        # vec(root A S) = (S ⊗ root) vec(A), columns stacked; S is symmetric
        rows.append(weight**0.5 * np.kron(x.T @ x / examples, root))
        targets.append(weight**0.5 * root.ravel(order="F"))
    best, _, rank, _ = np.linalg.lstsq(np.concatenate(rows), np.concatenate(targets))
    assert rank == sigma.size
    ours = ahn2023.one_layer_preconditioner(sigma, examples)
    # the conditioning of the equations, about 10, on top of rounding
    np.testing.assert_allclose(ours, best.reshape(sigma.shape, order="F"), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("dim", "examples"), [(1, 1), (3, 7)])
def test_isotropic_inputs_need_no_preconditioner(dim, examples):
    ours = ahn2023.one_layer_preconditioner(4 * np.eye(dim), examples)
    step = float(vonoswald2023.best_step_size(dim, examples, variance=4))
    np.testing.assert_allclose(ours, step * np.eye(dim), rtol=1e-14, atol=1e-15)
    assert step == pytest.approx(examples / (examples + dim + 1) / 4, rel=1e-14)


@pytest.mark.parametrize(
    ("covariance", "examples"), [([[2.0]], 3), ([[2.0, 0.6], [0.6, 0.5]], 1), ([[2.0, 0.6], [0.6, 0.5]], 3)]
)
def test_one_layer_loss_against_brute_force(covariance, examples):
    sigma = np.array(covariance)
    a = matrices(len(sigma), 1, seed=4)[0]
    expected = 0.0
    for x, weight in gaussian_nodes(sigma, examples):
        bias = a @ x.T @ x / examples - np.eye(len(sigma))
        expected += weight * np.trace(sigma @ bias @ bias.T) / 2
    assert ahn2023.one_layer_loss(a, sigma, examples) == pytest.approx(expected, rel=1e-12)


def test_one_layer_loss_is_minimal_at_the_preconditioner():
    sigma = np.array([[2.0, 0.6], [0.6, 0.5]])
    best = ahn2023.one_layer_preconditioner(sigma, 4)
    least = ahn2023.one_layer_loss(best, sigma, 4)
    for change in matrices(2, 5, seed=5):
        below, above = (ahn2023.one_layer_loss(best + h * change, sigma, 4) for h in (-1e-4, 1e-4))
        assert min(below, above) > least
        assert above - below == pytest.approx(0, abs=1e-11)  # flat there: only rounding is left of the slope
    with pytest.raises(ValueError, match=r"preconditioner must have the shape \(2, 2\)"):
        ahn2023.one_layer_loss(np.eye(3), sigma, 4)
