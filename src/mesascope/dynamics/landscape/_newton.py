"""Newton's method on ∇L = 0, damped where needed (Levenberg–Marquardt), from one or many guesses.

With H = V Λ V*, a step is −V Λ/(Λ² + μ²) V*∇L. Every step tries a row of dampings μ and takes the one that makes ‖∇L‖ smallest;
μ = 0, Newton's own step, is among them, so that the end is quadratic. Directions in which H vanishes get no step: the point
does not move along symmetries, and arrives at the nearest one of its orbit to first order.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ._landscape import Landscape

NULL = 1e-9
"""Newton steps leave out curvatures below this fraction of the largest one; rounding in an exact Hessian is about 1e-14."""
FLAT = 1e-7
"""Curvatures below this fraction of the largest one count as 0.

Where a curvature vanishes, rounding (1e-15 in the gradient) leaves the place of the point uncertain by its square root, and
curvatures change by as much over that distance: so small a curvature cannot be distinguished from 0.
"""
_DAMPINGS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
_LEAST_DECREASE, _ROUNDING, _TINY = 1e-3, 1e-16, 1e-300


class Polished(NamedTuple):
    """Where Newton's method ended.

    Attributes:
        vector: the point, shape (n,).
        loss: L.
        gradient_norm: ‖∇L‖₂.
        residuals: see `residual`; of the guess and after every step, NaN after the last one, shape (max_steps + 1,).
        steps: number of steps taken.
        stuck: ‖H∇L‖/(λ_max ‖∇L‖) at the end: near 0 where ‖∇L‖ has a minimum that is not zero.
    """

    vector: Array
    loss: Array
    gradient_norm: Array
    residuals: Array
    steps: Array
    stuck: Array


class Spectrum(NamedTuple):
    """The Hessian as V Λ Vᵀ.

    Attributes:
        curvatures: Λ, rising, shape (n,).
        basis: V, eigenvectors in columns, shape (n, n).
    """

    curvatures: Array
    basis: Array


@eqx.filter_jit
def newton(landscape: Landscape, guesses: Array, unit: Array, max_steps: int) -> Polished:
    """Solve ∇L = 0 from every guess until ‖∇L‖ falls no further, (k, n) → fields with k on the first axis."""
    return jax.lax.map(lambda guess: _solve(landscape, guess, unit, max_steps)[0], guesses)


@eqx.filter_jit
def newton_from(landscape: Landscape, guess: Array, unit: Array, max_steps: int) -> tuple[Polished, Spectrum]:
    """As `newton` from one guess, shape (n,), with the Hessian at the end."""
    return _solve(landscape, guess, unit, max_steps)


def residual(slopes: Array, curvatures: Array, unit: Array) -> Array:
    """√(Σ_i (v_i·∇L)²/|λ_i| / unit): the fall of the loss that a Newton step still promises, as a fraction of `unit`.

    It does not depend on the scale of weights or data. Where λ_i vanishes, the largest curvature is used instead.

    Args:
        slopes: ∇L in the basis of eigenvectors, shape (n,).
        curvatures: eigenvalues λ, shape (n,).
        unit: a loss, such as that of the model that predicts 0.
    """
    size = jnp.abs(curvatures)
    largest = jnp.max(size)
    steep = jnp.where(size > NULL * largest, size, jnp.where(largest > 0, largest, 1.0))
    return jnp.sqrt(jnp.sum(slopes**2 / steep) / unit)


class _State(NamedTuple):
    """A point; the other fields, but `steps` and `going`, are of the point before the step.

    The last step does not move, so that in the end all are of one point.
    """

    vector: Array
    loss: Array
    norm: Array
    residuals: Array
    steps: Array
    stuck: Array
    spectrum: Spectrum
    going: Array


def _solve(landscape: Landscape, guess: Array, unit: Array, max_steps: int) -> tuple[Polished, Spectrum]:
    dampings = jnp.asarray(_DAMPINGS)

    def step(state: _State) -> _State:
        loss, gradient, hessian = landscape.expansion(state.vector)
        curvatures, basis = jnp.linalg.eigh(hessian)
        slopes, norm = basis.T @ gradient, jnp.linalg.norm(gradient)
        largest = jnp.maximum(jnp.max(jnp.abs(curvatures)), _TINY)
        relative = curvatures / largest
        damped = jnp.maximum(relative**2 + dampings[:, None] ** 2, NULL**2)
        gains = jnp.where(jnp.abs(relative) > NULL, relative / damped, 0.0)
        trials = state.vector - landscape.allowed * ((gains * slopes / largest) @ basis.T)
        norms = jnp.linalg.norm(jax.lax.map(landscape.gradient, trials), axis=1)
        best = jnp.argmin(jnp.where(jnp.isfinite(norms), norms, jnp.inf))
        left = residual(slopes, curvatures, unit)
        better = (norms[best] < (1 - _LEAST_DECREASE) * norm) & (state.steps < max_steps) & (left > _ROUNDING)
        return _State(
            jnp.where(better, trials[best], state.vector),
            loss,
            norm,
            state.residuals.at[state.steps].set(left),
            state.steps + better,
            jnp.linalg.norm(relative * slopes) / jnp.maximum(norm, _TINY),
            Spectrum(curvatures, basis),
            better,
        )

    nothing = jnp.zeros(())
    start = _State(
        guess,
        nothing,
        nothing,
        jnp.full(max_steps + 1, jnp.nan),
        jnp.asarray(0),
        jnp.asarray(1.0),
        Spectrum(guess, jnp.outer(guess, guess)),  # replaced in the first step
        jnp.asarray(True),
    )
    end = jax.lax.while_loop(lambda state: state.going, step, start)
    polished = Polished(end.vector, end.loss, end.norm, end.residuals, end.steps, end.stuck)
    return polished, end.spectrum
