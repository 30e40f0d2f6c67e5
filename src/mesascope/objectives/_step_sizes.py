r"""Exact population loss of any number of steps of gradient descent in the metric of the inputs, A_ℓ = a_ℓ Σ⁻¹.

All that is left after them depends on the eigenvalues $s$ of $\hat S = \frac1N \sum_i z_i z_i^\top$, $z_i \sim N(0, I_d)$:

    p(s) = Π_ℓ (1 − a_ℓ s),    g(s) = (1 − p(s))/s,
    E(ŷ − y)² = (tr P/d) E tr p(Ŝ)² + (σ²/N) E tr g(Ŝ)² Ŝ + σ²,

$P$ the covariance of the whitened task, since $\hat S$ has the law of all its rotations. Both are means of polynomials of
degree at most $2L$, for which Gauss's rule with $L + 1$ nodes is exact. It is made of the moments $E\, \mathrm{tr}\, \hat S^k$
in rational numbers, and adds squares with positive weights, so that nothing cancels at any depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate, wishart_moment
from mesascope.models import StepSizeAttention
from mesascope.processes import FewShot, LineRule, golub_welsch, jacobi_coefficients

from ._regression_tasks import Tasks

_ROUNDING = 1e-10  # of B Σ beside a multiple of the identity; an inverse in double precision has less
_MAX_STEPS = 48  # whose moments and rule take some seconds where d is 100, and which grow by the fourth power
_UNSUPPORTED = (
    "model: ExactMoments supports more than three preconditioned steps, layers times loops, for step_size_transformer with "
    "a multiple of Σ⁻¹ as its metric, Σ the covariance of the inputs; use MonteCarlo ('monte-carlo' in a SPEC)"
)
_TOO_MANY = (
    f"model: ExactMoments supports at most {_MAX_STEPS} steps, layers times loops, not {{}}; use MonteCarlo ('monte-carlo' in "
    "a SPEC), or theory.ahn2023.multiples_loss"
)


def require_metric_of_inputs(layers: Sequence[Any], tasks: Tasks) -> None:
    """Refuse layers that are not steps in multiples of Σ⁻¹.

    Raises:
        ValueError: a layer is not a `StepSizeAttention`, or its metric is another one.
    """
    if not _are_step_sizes(layers):
        raise ValueError(_UNSUPPORTED)
    for product in _metrics(layers) @ np.asarray(tasks.covariances[0]):
        multiple = np.trace(product) / len(product) * np.eye(len(product))
        if abs(product - multiple).max() > _ROUNDING * abs(product).max():
            raise ValueError(_UNSUPPORTED)


def steps_loss(layers: Sequence[Any], order: tuple[int, ...], tasks: Tasks, task: FewShot) -> Estimate:
    """Return Σ_t w_t ½ E(ŷ_{t+1} − y_{t+1})², differentiable in the step sizes, with standard error 0.

    Raises:
        ValueError: a layer is not a `StepSizeAttention`, or there are more than 48 steps.
    """
    if not _are_step_sizes(layers):
        raise ValueError(_UNSUPPORTED)
    if len(order) > _MAX_STEPS:
        raise ValueError(_TOO_MANY.format(len(order)))
    lengths, weights = zip(*(task.weights or ((task.examples, 1),)), strict=True)
    rules = [spectral_rule(len(order), tasks.covariances.shape[-1], length) for length in lengths]
    sizes = jnp.stack([one.step_size for one in layers])
    nodes, shares = (np.stack(column) for column in zip(*rules, strict=True))
    return _loss(
        sizes, _metrics(layers), order, nodes, shares, np.array(lengths), np.array(weights, float), tasks
    )


@lru_cache(maxsize=256)
def spectral_rule(steps: int, dim: int, examples: int) -> LineRule:
    r"""Return the rule with $\frac1d E\, \mathrm{tr} f(\hat S) = \sum_k c_k f(s_k)$ for polynomials of degree at most $2L$."""
    if examples == 0:  # all eigenvalues are 0
        return LineRule(np.zeros(steps + 1), np.full(steps + 1, 1 / (steps + 1)))
    moments = [Fraction(wishart_moment(k, dim, examples), dim * examples**k) for k in range(2 * steps + 1)]
    return golub_welsch(jacobi_coefficients(moments))


def _are_step_sizes(layers: Sequence[Any]) -> TypeGuard[Sequence[StepSizeAttention]]:
    return all(isinstance(layer, StepSizeAttention) for layer in layers)


def _metrics(layers: Sequence[StepSizeAttention]) -> np.ndarray:
    return np.array([layer.metric for layer in layers])


@eqx.filter_jit
def _loss(
    sizes: Array,
    metrics: np.ndarray,
    order: tuple[int, ...],
    nodes: np.ndarray,
    shares: np.ndarray,
    lengths: np.ndarray,
    weights: np.ndarray,
    tasks: Tasks,
) -> Estimate:
    """Half the sum over numbers of examples, the first axis of nodes and shares."""
    sigma, prior = tasks.covariances[0], tasks.moments[0, 1:-1, 1:-1]
    dim = len(sigma)
    steps = sizes * jnp.einsum("lij,ji->l", metrics, sigma) / dim  # in units of Σ⁻¹
    left, learned = _polynomials(steps[np.array(order)], nodes)
    power, noise = jnp.sum(sigma * prior), jnp.dot(tasks.weights[0], tasks.noises)
    of_task = power * jnp.sum(shares * left**2, 1)
    of_noise = noise * dim / jnp.maximum(lengths, 1) * jnp.sum(shares * learned**2 * nodes, 1)
    value = jnp.dot(weights, of_task + of_noise + (tasks.power - power)) / 2
    return Estimate(value, jnp.zeros_like(value))


def _polynomials(steps: Array, nodes: np.ndarray) -> tuple[Array, Array]:
    """Return p and g at the nodes: every step a multiplies what is left by 1 − a s and learns a times it."""

    def step(now: tuple[Array, Array], a: Array) -> tuple[tuple[Array, Array], None]:
        left, learned = now
        return (left * (1 - a * nodes), learned * (1 - a * nodes) + a), None

    start = jnp.ones_like(nodes), jnp.zeros_like(nodes)
    return jax.lax.scan(step, start, steps)[0]
