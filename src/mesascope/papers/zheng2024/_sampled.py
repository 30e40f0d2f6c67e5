"""The authors' experiment from its formulas: descent on the squared error of drawn sequences, complex weights, in NumPy alone.

It shares nothing with models, engines and solvers of the package, so that they can be compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

_CHUNK = 25  # sequences at a time: few enough for the cache, and for BLAS not to start threads for so small products


class Sequences(NamedTuple):
    """Sequences x_{t+1} = λ x_t: first tokens and factors, shapes (n, d)."""

    first: np.ndarray
    factors: np.ndarray


def drawn(law: str, scale: float, dim: int, count: int, seed: int) -> Sequences:
    """Sequences with factors uniform on the unit circle; first tokens Gaussian, or ±scale in one coordinate.

    Raises:
        ValueError: the law is another one.
    """
    numbers = np.random.default_rng(seed)
    factors = np.exp(2j * np.pi * numbers.random((count, dim)))
    if law == "gaussian":
        return Sequences(scale * numbers.normal(size=(count, dim)), factors)
    if law != "one-hot":
        raise ValueError(f"law: {law!r} is not drawn here; use 'gaussian' or 'one-hot'")
    signs = scale * numbers.choice((-1.0, 1.0), count)
    return Sequences(np.eye(dim)[numbers.integers(dim, size=count)] * signs[:, None], factors)


def drawn_by_the_program(scale: float, dim: int, count: int, seed: int) -> Sequences:
    """The first Gaussian sequences that the authors' program draws under a seed, from PyTorch's stream of random numbers.

    That stream is MT19937. A uniform number takes 24 bits of one word. Normal numbers come in pairs by Box and Muller's
    method from two uniform ones of 53 bits, each of two words, and the second of a pair is kept for the next number asked
    for. The program draws, sequence by sequence, d uniform and d normal numbers.

    Args:
        scale: of the first tokens.
        dim: d.
        count: an even number, so that no normal number is kept at the end.
        seed: that of the program.
    """
    generator = np.random.MT19937()
    generator._legacy_seeding(seed)
    pairs = (dim + 1) // 2, dim // 2  # of every other sequence: one normal number may be left for the next
    words = generator.random_raw(count // 2 * (2 * dim + 4 * dim)).reshape(count // 2, -1)
    parts = np.split(words, np.cumsum((dim, 4 * pairs[0], dim)), axis=1)
    angles = np.stack([(parts[0] & 0xFFFFFF) / 2.0**24, (parts[2] & 0xFFFFFF) / 2.0**24], 1)
    wide = np.concatenate([parts[1], parts[3]], 1).reshape(count // 2, -1, 2, 2)
    uniform = (((wide[..., 0] << 32) | wide[..., 1]) & ((1 << 53) - 1)) / 2.0**53
    radius, angle = np.sqrt(-2 * np.log1p(-uniform[..., 1])), 2 * np.pi * uniform[..., 0]
    normal = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1)
    return Sequences(
        scale * normal.reshape(count, dim).astype(np.float32), np.exp(2j * np.pi * angles.reshape(count, dim))
    )


class _Contexts(NamedTuple):
    """What training asks of a chunk of n sequences, for the context lengths t = 2 … T−1; N = (T − 2) n.

    Attributes:
        tokens: e_t = (x_t; x_{t−1}), shape (2d, N).
        targets: x_{t+1}, shape (d, N).
        grams: Σ_{i<t} x_i x_i*, shape (d, d, N).
        first: x_1, shape (d, N).
        factors: shape (d, N).
        rates: 1/(t − 1), shape (N,).
    """

    tokens: np.ndarray
    targets: np.ndarray
    grams: np.ndarray
    first: np.ndarray
    factors: np.ndarray
    rates: np.ndarray

    def attended(self, vectors: np.ndarray) -> np.ndarray:
        """Σ_{i≤t} e_i e_i* v / (t − 1) for v of shape (2d, N).

        With A = Σ_{i<t} x_i x_i* and z = A (W* p + q) for v = (p; q) it is (W z + x_1 x_1* p; z), since x_{i+1} = W x_i.
        """
        d = len(self.first)
        upper, lower = vectors[:d] * self.rates, vectors[d:] * self.rates
        factors = self.factors.conj() * upper + lower
        z = (self.grams * factors).sum(1)
        return np.concatenate([self.factors * z + self.first * (self.first * upper).sum(0), z])


def _contexts(sequences: Sequences, horizon: int) -> Iterator[_Contexts]:
    for start in range(0, len(sequences.first), _CHUNK):
        first, factors = (part[start : start + _CHUNK].T for part in sequences)
        tokens = first[:, None] * factors[:, None] ** np.arange(horizon)[None, :, None]  # (d, T, n)
        grams = np.cumsum(tokens[:, None] * tokens[None].conj(), axis=2)
        yield _Contexts(
            np.concatenate([_flat(tokens[:, 1:-1]), _flat(tokens[:, :-2])]),
            _flat(tokens[:, 2:]),
            _flat(grams[:, :, :-2]),
            np.tile(first, horizon - 2).astype(np.complex64),
            np.tile(factors, horizon - 2).astype(np.complex64),
            np.repeat(1 / np.arange(1, horizon - 1), first.shape[1]).astype(np.float32),
        )


def _flat(values: np.ndarray) -> np.ndarray:
    """(…, T − 2, n) as (…, N), in the precision of the authors' program."""
    return np.ascontiguousarray(values.reshape(*values.shape[:-2], -1), np.complex64)


class Curves(NamedTuple):
    """What is plotted along a descent.

    Attributes:
        products: ab, averaged over the coordinates, before the first and after every epoch.
        losses: on the test sequences, after every so many epochs from 0 on.
        quotients: mean of Re ŷ/(x + 10⁻⁵) over test sequences and coordinates at the longest context, after the same epochs.
    """

    products: np.ndarray
    losses: np.ndarray
    quotients: np.ndarray


def descent(
    training: Sequences, tests: Sequences, horizon: int, start: Any, rate: float, epochs: int, every: int
) -> Curves:
    """Full-batch descent on ½ Σ_t |ŷ_t − x_{t+1}|², averaged over the sequences, with ŷ_t = P Σ_{i≤t} e_i e_i* Q e_t/(t − 1).

    P and Q are complex and all their entries are free; both start as a multiple of the identity in one block.

    Args:
        training: all of them are used in every step.
        tests: what losses and quotients are of.
        horizon: T.
        start: (a0, b0).
        rate: learning rate.
        epochs: steps.
        every: epochs from one evaluation on the test sequences to the next.
    """
    count, d = training.first.shape
    chunks, held_out = list(_contexts(training, horizon)), list(_contexts(tests, horizon))
    q, p = np.zeros((2 * d, 2 * d), complex), np.zeros((d, 2 * d), complex)
    q[d:, :d], p[:, :d] = start[0] * np.eye(d), start[1] * np.eye(d)
    products, evaluated = [], []
    for epoch in range(epochs + 1):
        products.append((np.diagonal(q[d:, :d]).real * np.diagonal(p[:, :d]).real).mean())
        q32, p32 = q.astype(np.complex64), p.astype(np.complex64)
        if epoch % every == 0:
            evaluated.append(_evaluated(held_out, q32, p32))
        if epoch == epochs:
            break
        slope_q, slope_p = np.zeros_like(q), np.zeros_like(p)
        for chunk in chunks:
            read = chunk.attended(q32 @ chunk.tokens)
            missed = p32 @ read - chunk.targets
            slope_p += missed @ read.conj().T
            slope_q += chunk.attended(p32.conj().T @ missed) @ chunk.tokens.conj().T
        q, p = q - rate / count * slope_q, p - rate / count * slope_p
    return Curves(np.array(products), *np.array(evaluated).T)


def one_hot_descent(
    training: Sequences, tests: Sequences, horizon: int, start: Any, rate: float, epochs: int, every: int
) -> Curves:
    """The same descent on one-hot tokens, coordinate by coordinate, with a coordinate's share of the sequences in its rate.

    No weight between two coordinates ever moves: on one-hot tokens it meets a zero in every term of its gradient.
    """
    curves, shares = [], []
    for j in range(training.first.shape[1]):
        own, held_out = (
            Sequences(*(part[one.first[:, j] != 0, j : j + 1] for part in one)) for one in (training, tests)
        )
        share = len(own.first) / len(training.first)
        curves.append(descent(own, held_out, horizon, start, share * rate, epochs, every))
        shares.append(len(held_out.first) / len(tests.first))
    products, losses, quotients = (np.array(columns) for columns in zip(*curves, strict=True))
    return Curves(products.mean(0), np.array(shares) @ losses, quotients.mean(0))


def _evaluated(chunks: list[_Contexts], q: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Loss and mean quotient."""
    loss, quotients = 0.0, []
    for chunk in chunks:
        count = np.count_nonzero(chunk.rates == 1)  # one for every sequence: the context of length 2
        predicted = p @ chunk.attended(q @ chunk.tokens)
        loss += float((np.abs(predicted - chunk.targets) ** 2).sum()) / 2
        last = predicted[:, -count:] / (chunk.targets[:, -count:] + np.float32(1e-5))
        quotients.append(last.real.mean(0))
    every = np.concatenate(quotients)
    return loss / len(every), float(every.mean())
