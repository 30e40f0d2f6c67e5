"""The reference: the loss as defined, averaged over a finite grid of roots of unity and quadrature nodes."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate, require_x64
from mesascope.processes import Law, LineRule, NextToken

from ._engine import Objective, check_model
from ._sample_losses import sequence_losses

MAX_GRID = 20_000_000
_CHUNK = 4096


class _Coordinate(eqx.Module):
    """All pairs (node of the initial token, root of unity) of one coordinate."""

    initial: Array
    spectrum: Array
    weight: Array


_Grid = tuple[Array, tuple[_Coordinate, ...]]
"""Probability of one product of coordinates, and the points of each coordinate."""


class EnumeratedObjective(Objective):
    """The loss as a weighted sum over a grid of sequences.

    Attributes:
        grids: for every product of independent coordinates in the law: its probability and the d coordinate
            grids.
        weights: w_2 … w_{T−1}.
    """

    grids: tuple[_Grid, ...]
    weights: Array
    dim: int = eqx.field(static=True)

    def __call__(self, model: eqx.Module) -> Estimate:
        """Return the loss, differentiable, with standard error 0.

        Raises:
            TypeError: for a model that is not linear attention (the sum would not be exact).
        """
        require_x64("Enumeration")
        check_model(model, self.dim, "Enumeration")
        value = _loss(model, self.grids, self.weights)
        return Estimate(value, jnp.zeros_like(value))


@lru_cache(maxsize=16)
def enumerated_objective(law: Law, dim: int, task: NextToken) -> EnumeratedObjective:
    """Return the objective of `DiagonalUnitary(law, dim)`."""
    with jax.ensure_compile_time_eval():
        grids = []
        for term in law.quadrature(dim):
            points = prod(3 * task.horizon * len(rule.nodes) for rule in term.rules)
            if points > MAX_GRID:
                raise ValueError(
                    f"Enumeration: dim {dim} and horizon {task.horizon} need {float(points):.1e} sequences; "
                    "use ExactMoments, or a smaller dim or horizon"
                )
            coordinates = tuple(_coordinate(rule, 3 * task.horizon) for rule in term.rules)
            grids.append((jnp.asarray(float(term.probability)), coordinates))
        return EnumeratedObjective(tuple(grids), jnp.asarray(task.weights_array(), float), dim)


def _coordinate(rule: LineRule, roots: int) -> _Coordinate:
    nodes, weights = rule
    circle = np.exp(2j * np.pi * np.arange(roots) / roots)
    return _Coordinate(
        jnp.asarray(np.repeat(nodes, roots)),
        jnp.asarray(np.tile(circle, len(nodes))),
        jnp.asarray(np.repeat(weights / roots, roots)),
    )


@eqx.filter_jit
def _loss(model: Any, grids: tuple[_Grid, ...], weights: Array) -> Array:
    return jnp.asarray(sum(p * _grid_loss(model, grid, weights) for p, grid in grids))


def _grid_loss(model: Any, grid: tuple[_Coordinate, ...], weights: Array) -> Array:
    """Return the sum over the product grid, in chunks to limit memory."""
    sizes = tuple(len(c.weight) for c in grid)
    points = int(np.prod(sizes))
    chunk = min(_CHUNK, points)
    horizon = weights.shape[0] + 2
    powers = jnp.arange(horizon)

    def add(total: Array, start: Array) -> tuple[Array, None]:
        index = start + jnp.arange(chunk)
        places = jnp.unravel_index(jnp.minimum(index, points - 1), sizes)
        chosen = [(c.initial[i], c.spectrum[i], c.weight[i]) for c, i in zip(grid, places, strict=True)]
        initial, spectrum, weight = (jnp.stack(part, -1) for part in zip(*chosen, strict=True))
        tokens = initial[:, None] * spectrum[:, None] ** powers[None, :, None]
        probability = jnp.where(index < points, jnp.prod(weight, -1), 0.0)
        return total + probability @ sequence_losses(model, tokens, weights), None

    starts = jnp.arange(0, points, chunk)
    return jax.lax.scan(jax.checkpoint(add), jnp.zeros(()), starts)[0]
