"""The law of the tasks (Σ, w, σ²) of regression prompts: nodes of Σ and σ², and given Σ moments of w, of the query's, too."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TypeAlias

import equinox as eqx
import numpy as np

from mesascope.processes import (
    Gaussian,
    InWeightsRegression,
    LinearRegression,
    RandomDiagonal,
    TaskPool,
    noise_rule,
)

Regression: TypeAlias = LinearRegression | TaskPool | InWeightsRegression
"""Prompts of linear regression."""
_MAX_NODES = 100_000


class Tasks(eqx.Module):
    """Means of polynomials of degree ≤ 4 in w, ≤ 3 in every variance of Σ and ≤ 2 in σ² are exact.

    Attributes:
        covariances: nodes of Σ, shape (n, d, d).
        moments: E v vᵀ for v = (1, w, wᵀΣw) of the examples, given Σ, shape (n, d + 2, d + 2).
        query: E v qᵀ, q being v for the weights of the query; the same matrices where the query is like the examples.
        noises: nodes of σ², shape (m,).
        weights: weights of (Σ, σ²) with sum 1, shape (n, m).
        power: E y² of the query.
        unexplained: the part of it that the examples say nothing about: σ², or all of it where their labels are noise.
    """

    covariances: np.ndarray
    moments: np.ndarray
    query: np.ndarray
    noises: np.ndarray
    weights: np.ndarray
    power: np.ndarray
    unexplained: np.ndarray


def regression_tasks(process: Regression) -> Tasks:
    """Return the tasks of a process with Gaussian inputs.

    Raises:
        TypeError: for pools of nonlinear regression, inputs of another law, or sparse weights that are not of a pool.
        ValueError: more than 100 000 nodes are needed.
    """
    if isinstance(process, InWeightsRegression):
        return _in_weights(process)
    base = process.process if isinstance(process, TaskPool) else process
    if not isinstance(base, LinearRegression):
        name = type(base).__name__
        raise TypeError(
            f"ExactMoments supports pools of LinearRegression, not of {name}; use MonteCarlo ('monte-carlo' in a SPEC)"
        )
    if not isinstance(base.law, Gaussian):
        raise TypeError(
            f"ExactMoments supports regression with Gaussian inputs only, not {base.law.describe()}; "
            "use MonteCarlo ('monte-carlo' in a SPEC)"
        )
    return _tasks(process)


@lru_cache(maxsize=16)
def _tasks(process: LinearRegression | TaskPool) -> Tasks:
    base = process.process if isinstance(process, TaskPool) else process
    assert isinstance(base, LinearRegression)
    covariances, shares = _covariances(base)
    moments = np.stack([process.weight_moments(one) for one in covariances])
    noises, levels = noise_rule(base.noise)
    noise = levels @ noises
    power = shares @ moments[:, 0, -1] + noise
    return Tasks(covariances, moments, moments, noises, np.outer(shares, levels), power, noise)


def _in_weights(process: InWeightsRegression) -> Tasks:
    """Labels of examples are noise, as those of w = 0; the query has the weights of the process."""
    sigma, w = process.inputs.input_covariance, process.vector
    moments, query = np.zeros((2, 1, process.dim + 2, process.dim + 2))
    power = w @ sigma @ w
    moments[0, 0, 0] = 1
    query[0, 0] = [1, *w, power]
    return Tasks(
        sigma[None],
        moments,
        query,
        np.array([float(process.label_scale) ** 2]),
        np.ones((1, 1)),
        np.asarray(power),
        np.asarray(power),
    )


def _covariances(process: LinearRegression) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(process.covariance, RandomDiagonal):
        return process.input_covariance[None], np.ones(1)
    scale = float(process.law.moment(2))
    values, weights = [], []
    for term in process.covariance.law.quadrature(process.dim):
        rules = [_squared(rule.nodes, rule.weights) for rule in term.rules]
        if np.prod([len(w) for _, w in rules]) > _MAX_NODES:
            raise ValueError(
                f"ExactMoments needs too many nodes for {process.describe()}; use MonteCarlo "
                "('monte-carlo' in a SPEC), or a smaller dim"
            )
        values += [scale * np.diag(chosen) for chosen in product(*(nodes for nodes, _ in rules))]
        weights += [float(term.probability) * np.prod(w) for w in product(*(w for _, w in rules))]
    return np.array(values), np.array(weights)


def _squared(nodes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rule of s² from that of s, with nodes ±s merged."""
    largest = (nodes**2).max() or 1.0
    squares, place = np.unique(np.round(nodes**2 / largest, 12), return_inverse=True)
    exact = np.zeros(len(squares))
    exact[place] = nodes**2
    return exact, np.bincount(place, weights)
