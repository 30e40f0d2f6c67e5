"""What every rule answers, from the sums and minima that define it, for one head: in numpy, with one loop over queries.

Each function takes keys and queries (n, w), values (n, m), gates (n, size) by name, and returns the answers (n, m).
"""

import numpy as np


def outer(value, key):
    return np.outer(value, key.conj())


def weighted_sum(keys, queries, values, weight):
    """Σ_{i≤t} v_i k_i* D_{t,i} q_t with a weight D_{t,i} for every pair: a number, or one for every entry of the keys."""
    return np.array(
        [
            sum(outer(values[i], keys[i]) @ (weight(t, i) * queries[t]) for i in range(t + 1))
            for t in range(len(keys))
        ]
    )


def linear_attention(keys, queries, values):
    return weighted_sum(keys, queries, values, lambda t, i: 1)


def normalized_linear_attention(keys, queries, values):
    weights = np.tril(queries @ keys.conj().T)
    return weights @ values / weights.sum(1, keepdims=True)


def retention(keys, queries, values, decay):
    return weighted_sum(keys, queries, values, lambda t, i: decay ** (t - i))


def gated_linear_attention(keys, queries, values, decay):
    return weighted_sum(keys, queries, values, lambda t, i: np.prod(decay[i + 1 : t + 1], 0))


def gated_delta_net(keys, queries, values, rate, decay):
    """Σ_i β_i v_i k_i* Π_{s=i+1}^{t} α_s (I − β_s k_s k_s*)."""
    answers = []
    for t in range(len(keys)):
        memory, kept = 0, np.eye(keys.shape[1])
        for i in range(t, -1, -1):
            memory = memory + rate[i] * outer(values[i], keys[i]) @ kept
            kept = decay[i] * (np.eye(len(kept)) - rate[i] * outer(keys[i], keys[i])) @ kept
        answers.append(memory @ queries[t])
    return np.array(answers)


def delta_net(keys, queries, values, rate):
    return gated_delta_net(keys, queries, values, rate, np.ones_like(rate))


def longhorn(keys, queries, values, rate):
    """Rows of the minimum of ‖M − M_{t−1}‖² + Σ_j β_j |v_j − (M k)_j|²: normal equations with I + β_j k k*."""
    memory, answers = np.zeros((values.shape[1], keys.shape[1]), keys.dtype), []
    for key, query, value, beta in zip(keys, queries, values, rate, strict=True):
        rows = [
            np.linalg.solve((np.eye(len(key)) + b * outer(key, key)).T, row + b * v * key.conj())
            for row, b, v in zip(memory, beta, value, strict=True)
        ]
        memory = np.array(rows)
        answers.append(memory @ query)
    return np.array(answers)


def diagonal_longhorn(keys, queries, values, rate):
    memory, answers = np.zeros((values.shape[1], keys.shape[1]), keys.dtype), []
    for key, query, value, beta in zip(keys, queries, values, rate, strict=True):
        step = beta / (1 + beta * np.vdot(key, key).real)
        memory = (1 - np.outer(step, abs(key) ** 2)) * memory + np.outer(step * value, key.conj())
        answers.append(memory @ query)
    return np.array(answers)


def titans(keys, queries, values, rate, momentum, forgetting):
    """The paper's M_t and S_t, with its θ = half of ours and the gradient of ‖M k − v‖²."""
    memory = surprise = np.zeros((values.shape[1], keys.shape[1]), keys.dtype)
    answers = []
    for t, (key, query, value) in enumerate(zip(keys, queries, values, strict=True)):
        gradient = 2 * outer(memory @ key - value, key)
        surprise = momentum[t] * surprise - rate[t] / 2 * gradient
        memory = (1 - forgetting[t]) * memory + surprise
        answers.append(memory @ query)
    return np.array(answers)


def normalized(z, gain, shift):
    centered = z - z.mean()
    return gain * centered / np.sqrt(np.mean(centered**2) + 1e-6) + shift


def ttt_linear(keys, queries, values, rate, w_0, b_0, mini_batch, norm=None):
    """Gradients of ½ ‖f(k) − v‖² in z = W k + b, where f is normalized by complex steps, exact to rounding."""

    def loss(z, key, value):
        output = z if norm is None else key + normalized(z, *norm)
        return 0.5 * np.sum((output - value) ** 2)

    def gradient(z, key, value):
        if norm is None:
            return z - value
        return np.array([loss(z + 1e-30j * step, key, value).imag / 1e-30 for step in np.eye(len(z))])

    start = np.concatenate([w_0, b_0[:, None]], 1)
    now, answers = start, []
    for t, (key, query, value) in enumerate(zip(keys, queries, values, strict=True)):
        if t % mini_batch == 0:
            start = now
        long = np.append(key, 1)
        now = now - rate[t] * np.outer(gradient(start @ long, key, value), long)
        answer = now @ np.append(query, 1)
        answers.append(answer if norm is None else query + normalized(answer, *norm))
    return np.array(answers)


def weighted_moments(keys, values, rate, decay, t):
    weights = [rate[i] * np.prod(decay[i + 1 : t + 1]) for i in range(t + 1)]
    gram = sum(w * outer(k, k) for w, k in zip(weights, keys, strict=False))
    return sum(w * outer(v, k) for w, v, k in zip(weights, values, keys, strict=False)), gram


def mesa_net(keys, queries, values, rate, decay, penalty, steps=None):
    """Weighted ridge regression; with steps of conjugate gradients, the minimum over the Krylov space of as many vectors."""
    answers = []
    for t, query in enumerate(queries):
        products, gram = weighted_moments(keys, values, rate, decay, t)
        system = gram + np.diag(penalty)
        space = np.eye(len(query)) if steps is None else krylov(system, query, steps)
        solution = space @ np.linalg.solve(space.conj().T @ system @ space, space.conj().T @ query)
        answers.append(products @ solution)
    return np.array(answers)


def krylov(system, query, steps):
    vectors = [query]
    for _ in range(steps - 1):
        vectors.append(system @ vectors[-1])
    return np.linalg.qr(np.array(vectors).T)[0]
