"""Quadrature of the tasks (Σ, w, σ²) of regression prompts, exact for polynomials of low degree."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.processes import Gaussian, LinearRegression, NoiseRange, RandomDiagonal
from mesascope.specs import Number

_MAX_NODES = 100_000


class Tasks(eqx.Module):
    """Weighted nodes: means of polynomials of degree ≤ 5 in w, ≤ 3 in every variance of Σ and ≤ 2 in σ² are exact.

    Attributes:
        covariances: Σ, shape (n, d, d).
        vectors: w, shape (n, d).
        noises: σ², shape (n,).
        weights: weights with sum 1, which may be negative, shape (n,).
    """

    covariances: Array
    vectors: Array
    noises: Array
    weights: Array


@lru_cache(maxsize=64)
def regression_tasks(process: LinearRegression) -> Tasks:
    """Return the nodes of a process with Gaussian inputs.

    Raises:
        TypeError: for inputs of another law, or sparse weights.
        ValueError: more than 100 000 nodes are needed.
    """
    if not isinstance(process.law, Gaussian):
        raise TypeError(
            f"ExactMoments supports regression with Gaussian inputs only, not {process.law.describe()}; use MonteCarlo"
        )
    if process.sparsity is not None:
        raise TypeError("ExactMoments supports regression without sparsity only; use MonteCarlo")
    parts = (_covariances(process), _vectors(process.prior_root()), _noises(process.noise))
    count = np.prod([len(weights) for _, weights in parts])
    if count > _MAX_NODES:
        raise ValueError(
            f"ExactMoments needs {count} nodes for {process.describe()}; use MonteCarlo, or a smaller dim"
        )
    index = np.array(list(product(*(range(len(weights)) for _, weights in parts)))).T
    covariances, vectors, noises = (jnp.asarray(v[i]) for (v, _), i in zip(parts, index, strict=True))
    weights = np.prod([w[i] for (_, w), i in zip(parts, index, strict=True)], axis=0)
    return Tasks(covariances, vectors, noises, jnp.asarray(weights))


def _covariances(process: LinearRegression) -> tuple[np.ndarray, np.ndarray]:
    scale, d = float(process.law.moment(2)), process.dim
    if process.covariance is None:
        return scale * np.eye(d)[None], np.ones(1)
    if not isinstance(process.covariance, RandomDiagonal):
        return scale * np.array(process.covariance)[None], np.ones(1)
    values, weights = [], []
    for term in process.covariance.law.quadrature(d):
        rules = [_squared(rule.nodes, rule.weights) for rule in term.rules]
        if np.prod([len(w) for _, w in rules]) > _MAX_NODES:
            raise ValueError(
                f"ExactMoments needs too many nodes for {process.describe()}; use MonteCarlo, or a smaller dim"
            )
        values += [scale * np.diag(chosen) for chosen in product(*(nodes for nodes, _ in rules))]
        weights += [float(term.probability) * np.prod(w) for w in product(*(w for _, w in rules))]
    return np.array(values), np.array(weights)


def _squared(nodes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rule of s² from that of s, with nodes ±s merged."""
    squares, place = np.unique(np.round(nodes**2, 12), return_inverse=True)
    exact = np.zeros(len(squares))
    exact[place] = nodes**2
    return exact, np.bincount(place, weights)


def _vectors(root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a rule of degree 5 for N(0, P), P = root rootᵀ, with 2d² + 1 nodes: 0, ±√3 e_i and ±√3 e_i ± √3 e_j."""
    d = len(root)
    one = 3**0.5 * np.eye(d)
    axes = [sign * one[i] for i in range(d) for sign in (1, -1)]
    planes = [
        s * one[i] + r * one[j] for i, j in combinations(range(d), 2) for s, r in product((1, -1), repeat=2)
    ]
    nodes = np.array([np.zeros(d), *axes, *planes])
    weights = [1 + (d * d - 7 * d) / 18, *[(4 - d) / 18] * len(axes), *[1 / 36] * len(planes)]
    return nodes @ root.T, np.array(weights)


def _noises(noise: Number | NoiseRange) -> tuple[np.ndarray, np.ndarray]:
    """Return a rule for σ²: one node for a fixed σ, three for a uniform σ."""
    if not isinstance(noise, NoiseRange):
        return np.array([float(noise) ** 2]), np.ones(1)
    nodes, weights = np.polynomial.legendre.leggauss(3)
    return (float(noise.largest) * (nodes + 1) / 2) ** 2, weights / 2
