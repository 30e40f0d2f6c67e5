r"""Exact population loss of up to 48 steps of gradient descent in the metric of the inputs, A_ℓ = a_ℓ Σ⁻¹.

What they leave of the task depends on the eigenvalues $s$ of $\hat S = \frac1N \sum_i z_i z_i^\top$, $z_i \sim N(0, I_d)$ being
whitened inputs:

    p(s) = Π_ℓ (1 − a_ℓ s),    g(s) = (1 − p(s))/s,
    E(ŷ − y)² = (tr ΣW/d) E tr p(Ŝ)² + (σ²/N) E tr g(Ŝ)² Ŝ + u,

since $\hat S$ has the law of all its rotations. $W = E\, w w^\top$, and $u$ is what no example says of the label: σ². (Where
labels of examples are noise, $W = 0$ and $u$ is all of $E\, y^2$.)

Both means are of polynomials of degree at most $2L$, for which Gauss's rule with $L + 1$ nodes is exact. It is made of the
moments $E\, \mathrm{tr}\, \hat S^k$ in rational numbers. Its nodes and weights are positive, and so are all terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate, concrete, spectral_moments
from mesascope.models import StepSizeAttention
from mesascope.processes import FewShot, Jacobi, LineRule, golub_welsch, jacobi_coefficients

from ._regression_tasks import Tasks

_ROUNDING = 1e-13  # of |B| |Σ|: some hundred roundings, those of an inverse
_MAX_STEPS = 48  # whose moments and rule take some 4 s for one number of examples where d is 100, and grow by the fourth power
_UNSUPPORTED = (
    "model: ExactMoments supports more than three preconditioned steps, layers times loops, for step_size_transformer with "
    "a multiple of Σ⁻¹ as its metric, Σ the covariance of the inputs; use MonteCarlo ('monte-carlo' in a SPEC)"
)
_TOO_MANY = (
    f"model: ExactMoments supports at most {_MAX_STEPS} steps, layers times loops, not {{}}; use MonteCarlo ('monte-carlo' in "
    "a SPEC), or theory.ahn2023.multiples_loss"
)


def check_step_sizes(layers: Sequence[Any], order: tuple[int, ...], tasks: Tasks) -> None:
    """Refuse what `steps_loss` is not the loss of. Under a transformation of JAX numbers are not checked.

    Raises:
        ValueError: a layer is not a `StepSizeAttention`, its metric is no multiple of Σ⁻¹, or there are more than 48 steps.
    """
    if not all(isinstance(layer, StepSizeAttention) for layer in layers):
        raise ValueError(_UNSUPPORTED)
    if len(order) > _MAX_STEPS:
        raise ValueError(_TOO_MANY.format(len(order)))
    sigma = tasks.covariances[0]
    if concrete(sigma) and not _along_inverse(_metrics(layers), sigma).all():
        raise ValueError(_UNSUPPORTED)


def steps_loss(layers: Sequence[Any], order: tuple[int, ...], tasks: Tasks, task: FewShot) -> Estimate:
    """Return Σ_t w_t ½ E(ŷ_{t+1} − y_{t+1})², differentiable in the step sizes, with standard error 0.

    The rule of every number of examples t is prepared once. The loss is NaN for a metric that is no multiple of Σ⁻¹.
    """
    lengths, weights = zip(*(task.weights or ((task.examples, 1),)), strict=True)
    rules = [spectral_rule(len(order), tasks.covariances.shape[-1], length) for length in lengths]
    sizes = jnp.stack([one.step_size for one in layers])
    nodes, shares = (np.stack(column) for column in zip(*rules, strict=True))
    return _loss(
        sizes, _metrics(layers), order, nodes, shares, np.array(lengths), np.array(weights, float), tasks
    )


@lru_cache(maxsize=4096)
def spectral_rule(steps: int, dim: int, examples: int) -> LineRule:
    r"""Return nodes with $\frac1d E\, \mathrm{tr} f(\hat S) = \sum_k c_k f(s_k)$ for polynomials of degree $\le 2L + 1$.

    $L + 1$ of them are for the $\min(d, N)$ eigenvalues that are not 0, one is 0.
    """
    rank = min(dim, examples)
    zeros = 1 - rank / dim
    if rank == 0:
        return LineRule(np.zeros(steps + 2), np.append(np.zeros(steps + 1), zeros))
    moments = [one / rank for one in spectral_moments(2 * steps + 2, dim, examples)]
    alpha, beta = jacobi_coefficients([Fraction(1), *moments[1:]])
    rule = golub_welsch(Jacobi(alpha[:-1], beta[:-1]))  # the last α is not known from these moments
    return LineRule(np.append(rule.nodes, 0), np.append(rank / dim * rule.weights, zeros))


def _metrics(layers: Sequence[StepSizeAttention]) -> np.ndarray:
    return np.array([layer.metric for layer in layers])


def _along_inverse(metrics: np.ndarray, sigma: Any) -> Any:
    """Whether each metric is a multiple of Σ⁻¹, shape (layers,)."""
    products = metrics @ sigma
    multiples = (products.trace(axis1=1, axis2=2) / len(sigma))[:, None, None] * np.eye(len(sigma))
    largest = abs(metrics).max((1, 2)) * abs(sigma).max() * len(sigma)
    return abs(products - multiples).max((1, 2)) <= _ROUNDING * largest


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
    sigma, second = tasks.covariances[0], tasks.moments[0, 1:-1, 1:-1]
    dim = len(sigma)
    steps = sizes * jnp.einsum("lij,ji->l", metrics, sigma) / dim  # in units of Σ⁻¹
    left, learned = _polynomials(steps[np.array(order)], nodes)
    of_task = jnp.sum(sigma * second) * jnp.sum(shares * left**2, 1)
    noise = jnp.dot(tasks.weights[0], tasks.noises) * dim / jnp.maximum(lengths, 1)
    of_noise = noise * jnp.sum(shares * learned**2 * nodes, 1)
    value = jnp.dot(weights, of_task + of_noise + tasks.unexplained) / 2
    value = jnp.where(_along_inverse(metrics, sigma).all(), value, jnp.nan)
    return Estimate(value, jnp.zeros_like(value))


def _polynomials(steps: Array, nodes: np.ndarray) -> tuple[Array, Array]:
    """Return p and g at the nodes: every step a multiplies what is left by 1 − a s and learns a times it."""

    def step(now: tuple[Array, Array], a: Array) -> tuple[tuple[Array, Array], None]:
        left, learned = now
        return (left * (1 - a * nodes), learned * (1 - a * nodes) + a), None

    start = jnp.ones_like(nodes), jnp.zeros_like(nodes)
    return jax.lax.scan(step, start, steps)[0]
