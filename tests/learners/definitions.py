"""Learners as loops and solves in numpy: the predictions for one query from the examples of one problem."""

import numpy as np
from numpy.polynomial.chebyshev import Chebyshev as Series

N, P, M = 9, 4, 2  # both fewer and more examples than inputs occur
PRIOR = np.diag([1.0, 2.0, 0.5, 0.2]) + 0.1
POOL = np.random.default_rng(1).normal(size=(5, M, P))


def gradient(weights, x, y):
    """Gradient of the mean loss ½/n Σ |y_i − W x_i|², summed over single examples."""
    total = np.zeros_like(weights)
    for a, b in zip(x, y, strict=True):
        total -= np.outer(b - weights @ a, a.conj()) / len(x)
    return total


def zeros(x, y):
    return np.zeros((y.shape[1], x.shape[1]), np.result_type(x, y))


def gradient_descent(x, y, q, step_size, steps):
    weights = zeros(x, y)
    for _ in range(steps):
        weights = weights - step_size * gradient(weights, x, y)
    return weights @ q


def heavy_ball(x, y, q, step_size, momentum, steps):
    weights = before = zeros(x, y)
    for _ in range(steps):
        new = weights - step_size * gradient(weights, x, y) + momentum * (weights - before)
        weights, before = new, weights
    return weights @ q


def nesterov(x, y, q, step_size, momentum, steps):
    weights = before = zeros(x, y)
    for _ in range(steps):
        ahead = weights + momentum * (weights - before)
        weights, before = ahead - step_size * gradient(ahead, x, y), weights
    return weights @ q


def chebyshev(x, y, q, lower, upper, steps):
    """Gradient steps whose step sizes are the inverse roots of the minimax polynomial on [lower, upper]."""
    roots = (upper + lower) / 2 + (upper - lower) / 2 * Series.basis(steps).roots()
    weights = zeros(x, y)
    for root in roots:
        weights = weights - gradient(weights, x, y) / root
    return weights @ q


def online(x, y, q, step_size):
    weights = zeros(x, y)
    for a, b in zip(x, y, strict=True):
        weights = weights - step_size * gradient(weights, a[None], b[None])
    return weights @ q


def delta_rule(x, y, q, step_size, forgetting):
    """Σ_i η y_i x_i* Π_{s=i+1}^{n} φ (I − η x_s x_s*), applied to the query."""
    answer = np.zeros(M, complex)
    for a, b in zip(x[::-1], y[::-1], strict=True):
        answer = answer + step_size * b * np.vdot(a, q)
        q = forgetting * (q - step_size * a * np.vdot(a, q))
    return answer if np.iscomplexobj(x) else answer.real


def normalized_lms(x, y, q, rate, offset):
    weights = zeros(x, y)
    for a, b in zip(x, y, strict=True):
        weights = weights + rate / (offset + np.vdot(a, a).real) * np.outer(b - weights @ a, a.conj())
    return weights @ q


def implicit_steps(x, y, q, weight):
    """Every step is the minimum of ‖W − W_{i−1}‖² + β |y_i − W x_i|²."""
    weights = zeros(x, y)
    for a, b in zip(x, y, strict=True):
        system = np.eye(len(a)) + weight * np.outer(a, a.conj())
        weights = (weights + weight * np.outer(b, a.conj())) @ np.linalg.inv(system)
    return weights @ q


def online_momentum(x, y, q, step_size, momentum, forgetting):
    weights = velocity = zeros(x, y)
    for a, b in zip(x, y, strict=True):
        velocity = momentum * velocity - step_size * gradient(weights, a[None], b[None])
        weights = (1 - forgetting) * weights + velocity
    return weights @ q


def mini_batches(x, y, q, step_size, size):
    weights = zeros(x, y)
    for i in range(0, len(x), size):
        batch = x[i : i + size], y[i : i + size]
        weights = weights - step_size * len(batch[0]) * gradient(weights, *batch)
    return weights @ q


def discounted_ridge(x, y, q, penalty, forgetting):
    """Least squares of rows multiplied by √φ^{n−i}, with rows √r e_j whose outputs are 0."""
    roots = np.sqrt(forgetting ** np.arange(len(x))[::-1])[:, None]
    rows = np.concatenate([roots * x, np.sqrt(penalty) * np.eye(P)])
    return np.linalg.lstsq(rows, np.concatenate([roots * y, np.zeros((P, M))]))[0].T @ q


def tracking(x, y, q, penalty, steps):
    """K conjugate steps are the minimum over the Krylov space of as many matrices, from the weights before."""
    weights = zeros(x, y)
    for i in range(1, len(x) + 1):
        gram, cross = x[:i].T @ x[:i].conj() + penalty * np.eye(P), y[:i].T @ x[:i].conj()
        space = [cross - weights @ gram]
        while len(space) < steps:
            space.append(space[-1] @ gram)
        products = [[np.vdot(a, b @ gram).real for b in space] for a in space]
        sizes = np.linalg.lstsq(np.array(products), [np.vdot(a, space[0]).real for a in space])[0]
        weights = weights + sum(size * one for size, one in zip(sizes, space, strict=True))
    return weights @ q


def preconditioned(x, y, q, matrix, output_map, steps):
    weights = zeros(x, y).astype(np.result_type(x, matrix))
    for _ in range(steps):
        weights = weights - gradient(weights, x, y) @ matrix
    return output_map @ weights @ q


def plus_plus(x, y, q, step_size, curvature, steps):
    """Tokens are updated; the query is a token whose output is initially 0."""
    inputs, outputs, n = np.vstack([x, q]), np.vstack([y, np.zeros(y.shape[1])]), len(x)
    for _ in range(steps):
        seen = inputs[:n]
        second = sum(np.outer(a, a.conj()) for a in seen) / n
        cross = sum(np.outer(b, a.conj()) for a, b in zip(seen, outputs[:n], strict=True)) / n
        outputs = outputs - step_size * inputs @ cross.T
        inputs = inputs - curvature * inputs @ second.T
    return -outputs[n]


def newton(x, y, q, start, steps):
    gram = x.T @ x.conj()
    inverse = start * gram / np.linalg.norm(gram, 2) ** 2
    for _ in range(steps):
        inverse = inverse @ (2 * np.eye(P) - gram @ inverse)
    return y.T @ x.conj() @ inverse @ q


def layered(x, y, q, step_sizes):
    weights = zeros(x, y)
    for step_size in step_sizes:
        weights = weights - step_size * gradient(weights, x, y)
    return weights @ q


def layered_plus_plus(x, y, q, step_sizes, curvatures):
    """Tokens are updated; the query is a token whose output is initially 0."""
    inputs, outputs, n = np.vstack([x, q]), np.vstack([y, np.zeros(y.shape[1])]), len(x)
    for step_size, curvature in zip(step_sizes, (*curvatures, 0), strict=True):
        seen = inputs[:n]
        second = sum(np.outer(a, a.conj()) for a in seen) / n
        cross = sum(np.outer(b, a.conj()) for a, b in zip(seen, outputs[:n], strict=True)) / n
        outputs, inputs = outputs - step_size * inputs @ cross.T, inputs - curvature * inputs @ second.T
    return -outputs[n]


def decayed(x, y, q, step_size, penalty, steps):
    weights = zeros(x, y)
    for _ in range(steps):
        weights = weights - step_size * (gradient(weights, x, y) + penalty / len(x) * weights)
    return weights @ q


def adaptive(x, y, q, steps):
    values = np.linalg.svd(x, compute_uv=False) ** 2 / len(x)
    return gradient_descent(x, y, q, 2 / (values.min() + values.max()), steps)


def jacobi(x, y, q, damping, steps):
    """Entry by entry, as linear equations are solved."""
    weights, gram, cross = zeros(x, y), x.T @ x.conj(), y.T @ x.conj()
    for _ in range(steps):
        new = weights.copy()
        for row in range(M):
            for entry in range(P):
                off = cross[row, entry] - sum(weights[row, k] * gram[k, entry] for k in range(P))
                new[row, entry] += damping * off / gram[entry, entry]
        weights = new
    return weights @ q


def towards_ridge(x, y, q, penalty, steps):
    """Conjugate gradients with the examples √r e_j ↦ 0 added: their sum of squares is that of ridge regression."""
    extra = np.sqrt(penalty) * np.eye(P)
    return conjugate_gradients(np.vstack([x, extra]), np.vstack([y, np.zeros((P, M))]), q, steps)


def conjugate_gradients(x, y, q, steps):
    """On the vector of all weights as real numbers, two for every complex one."""
    shape = zeros(x, y).shape

    def real(weights):
        return np.concatenate([weights.real.ravel(), weights.imag.ravel()])

    def apply(vector):
        weights = (vector[: P * M] + 1j * vector[P * M :]).reshape(shape)
        return real(gradient(weights, x, 0 * y.astype(complex)))

    weights = np.zeros(2 * P * M)
    residual = direction = -real(gradient(weights[: P * M].reshape(shape).astype(complex), x, y))
    for _ in range(steps):
        size = residual @ residual / (direction @ apply(direction))
        weights, new = weights + size * direction, residual - size * apply(direction)
        direction, residual = new + new @ new / (residual @ residual) * direction, new
    weights = (weights[: P * M] + 1j * weights[P * M :]).reshape(shape)
    return weights @ q


def least_squares(x, y, q):
    return np.linalg.lstsq(x, y, rcond=None)[0].T @ q


def weighted_ridge(x, y, q, weights, penalty):
    root = np.sqrt(weights)[:, None]
    rows = np.vstack([root * x, np.sqrt(penalty) * np.eye(P)])
    return least_squares(rows, np.vstack([root * y, np.zeros((P, y.shape[1]))]), q)


def scores(x, y, noise):
    """Log likelihood of every task of the pool, without the normalization that all share."""
    scale = 1.0 if np.iscomplexobj(y) else 0.5
    return np.array([-scale * np.sum(np.abs(y - x @ w.T) ** 2) / noise for w in POOL])


def memorizing(x, y, q, noise):
    found = scores(x, y, noise)
    shares = np.exp(found - found.max())
    return sum(p * (w @ q) for p, w in zip(shares / shares.sum(), POOL, strict=True))


def mixture(x, y, q, noise, share, prior=None):
    """The prior N(0, P) has the marginal N(0, X P X* + σ² I) of the labels, of every output."""
    scale = 1.0 if np.iscomplexobj(y) else 0.5
    prior = np.eye(x.shape[1]) if prior is None else prior
    marginal = x @ prior @ x.conj().T / noise + np.eye(len(x))
    fitted = np.sum(y.conj() * np.linalg.solve(marginal, y)).real / noise
    gaussian = -scale * (fitted + y.shape[1] * np.linalg.slogdet(marginal)[1])
    found = np.append(scores(x, y, noise) + np.log(share / len(POOL)), gaussian + np.log(1 - share))
    shares = np.exp(found - found.max())
    pool = sum(p * (w @ q) for p, w in zip(shares, POOL, strict=False))
    return (pool + shares[-1] * posterior(x, y, q, prior, noise)) / shares.sum()


def posterior(x, y, q, prior, noise):
    """E[W q | y] by conditioning the joint Gaussian of the outputs and W q, in the space of the examples."""
    covariance = x @ prior @ x.conj().T + noise * np.eye(len(x))
    between = x @ prior @ q.conj()
    return np.linalg.solve(covariance, y).T @ between.conj()


def kalman(x, y, q, penalty, drift):
    """The filter of the whole trajectory of weights at once: condition the joint Gaussian of all outputs and W_{n+1} q."""
    time = np.arange(len(x))
    variances = 1 / penalty + drift * np.minimum(time[:, None], time)
    covariance = variances * (x @ x.conj().T) + np.eye(len(x))
    between = (1 / penalty + drift * time) * (x @ q.conj())
    return np.linalg.solve(covariance, y).T @ between.conj()


def neighbours(x, y, q, count):
    order = sorted(range(len(x)), key=lambda i: np.linalg.norm(x[i] - q))
    return np.mean([y[i] for i in order[:count]], axis=0)


def smoother(x, y, q, sharpness):
    weights = np.array([np.exp(sharpness * np.vdot(a, q).real) for a in x])
    return weights @ y / weights.sum()


def lasso(x, y, q, penalty):
    """Proximal gradient descent until convergence."""
    weights, step = zeros(x, y), len(x) / np.linalg.norm(x, 2) ** 2
    for _ in range(100_000):
        moved = weights - step * gradient(weights, x, y)
        length = np.maximum(np.abs(moved), 1e-300)
        new = moved * np.maximum(0, 1 - step * penalty / length)
        if np.abs(new - weights).max() < 1e-15:
            break
        weights = new
    return new @ q
