"""Theorems 3 and 4 as they are stated: critical points of the expected loss among multiples, by exact integration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._claim import Claim, Finding, Settings, presets
from .._identity import identities
from .._minimized import minimized
from ._common import PAPER, covariance, symmetric_power

_STEPS = 4  # of Newton's method, each of which doubles the digits


def _critical(settings: _Critical) -> Finding:
    """The full gradient where the gradient in the multiples is 0, relative to the full gradient a percent away."""
    theorems = (
        ("theorem 3: the gradient by all A", settings.cases["still"], False),
        ("theorem 4: the gradient by all A and B", settings.cases["moves"], True),
    )
    errors = {
        name: {
            f"d = {d}, n = {n}, {depth} layers": _error(settings, d, n, depth, moves) for d, n, depth in cases
        }
        for name, cases, moves in theorems
    }
    meaning = "largest entry of the gradient, relative to the same a percent away"
    return identities(errors, settings.tolerance, meaning=meaning)


def _error(settings: _Critical, dim: int, examples: int, depth: int, moves: bool) -> float:
    sigma = covariance(settings.eigenvalues[:dim], settings.seed)
    inverse = np.linalg.inv(sigma)
    degree = (3**depth - 1) // 2 if moves else depth  # in S, of the part of w that is not learned
    x, weights = _inputs(dim, examples, 2 * degree + 1)
    x = x @ symmetric_power(sigma, 0.5)
    second = jnp.asarray(np.einsum("bni,bnj->bij", x, x) / examples)
    loss = partial(
        _loss, second=second, weights=jnp.asarray(weights), sigma=jnp.asarray(sigma), inverse=inverse
    )
    by_all = jax.jit(jax.grad(lambda layers: loss(*layers)))
    by_multiples = jax.jit(jax.value_and_grad(lambda v: loss(*_layers(v, depth, inverse))))
    unknowns = 2 * depth - 1 if moves else depth
    start = np.full(unknowns, 0.3)
    start[depth:] = 0.1
    near_it = minimized(by_multiples, start, 1e-7, gtol=1e-12, maxiter=5000).point
    found = _newton(jax.jit(jax.grad(lambda v: loss(*_layers(v, depth, inverse)))), near_it)
    away = found * (1 + 0.01 * np.random.default_rng(settings.seed).choice([-1.0, 1.0], unknowns))
    there, near = (by_all(_layers(jnp.asarray(v), depth, inverse)) for v in (found, away))
    largest = [
        max(float(jnp.abs(one).max()) for one in (slopes if moves else slopes[:1]))
        for slopes in (there, near)
    ]
    return largest[0] / largest[1]


def _newton(slope: Callable[[Any], Array], point: np.ndarray) -> np.ndarray:
    """The zero of a gradient near a point, to rounding: descent ends where differences of the loss are rounding."""
    curvature = jax.jit(jax.jacfwd(slope))
    for _ in range(_STEPS):
        point = point - np.linalg.solve(np.asarray(curvature(point)), np.asarray(slope(point)))
    return point


def _layers(v: Any, depth: int, inverse: np.ndarray) -> tuple[Array, Array]:
    b = jnp.concatenate([v[depth:], jnp.zeros(2 * depth - len(v))])
    return v[:depth, None, None] * inverse, b[:, None, None] * jnp.eye(len(inverse))


def _inputs(dim: int, examples: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for X with entries N(0, 1), exact for polynomials of degree 2·count − 1 in each entry."""
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    grid = np.array(list(product(range(count), repeat=dim * examples)))
    return points[grid].reshape(-1, examples, dim), (weights / weights.sum())[grid].prod(1)


def _loss(a: Array, b: Array, second: Array, weights: Array, sigma: Array, inverse: Any) -> Array:
    """E(ŷ − y)² = E tr Σ K Σ⁻¹ Kᵀ, where K w is the part of w that is not learned."""
    identity = jnp.broadcast_to(jnp.eye(len(sigma)), second.shape)
    rest, moved = identity, identity
    for one, two in zip(a, b, strict=True):
        seen = moved @ second
        rest, moved = (
            rest - jnp.swapaxes(moved, 1, 2) @ one @ seen @ rest,
            moved - two @ seen @ jnp.swapaxes(moved, 1, 2) @ one.T @ moved,
        )
    return jnp.einsum("b,ij,bjk,kl,bil->", weights, sigma, rest, inverse, rest)


class _Critical(Settings):
    eigenvalues: tuple[float, ...] = (1.0, 0.25, 0.0625)
    cases: Mapping[str, Sequence[tuple[int, int, int]]]
    seed: int = 0
    tolerance: float = 1e-7


CLAIMS = (
    Claim(
        id=f"{PAPER}/critical-points",
        title="The loss has critical points among multiples of Σ⁻¹",
        evidence="exact",
        origin="paper",
        statement=(
            "Among A_i = a_i Σ⁻¹, and among these with B_i = b_i I, there are points where the gradient of the expected "
            "loss by all entries of A_i, and of B_i, is zero."
        ),
        source="ahn2023, Theorems 3 and 4",
        settings=presets(
            _Critical(cases={"still": ((2, 2, 3), (2, 3, 2), (3, 2, 2)), "moves": ((2, 2, 2), (2, 3, 2))})
        ),
        check=_critical,
        criterion=(
            "The expected loss of two and three layers, a polynomial in the inputs, is integrated exactly by Gauss's nodes. "
            "Descent in the multiples alone finds a critical point of these; there the largest entry of the whole gradient has "
            "to be below 1e-7 of its value a percent away, which is what double precision and the end of the descent leave."
        ),
    ),
)
