"""How fast a flow came to rest."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._flow import Flow
from .._parameters import Mask, mask_vector, real_vector
from ._landscape import Landscape, gradients

_LAST, _FEWEST = 1e2, 3


def observed_rate(flow: Flow[Any], mask: Mask | None = None) -> float:
    """The rate r of ‖∇L‖ ~ e^{−rt} at the end of a flow, fitted to its saved points.

    Fitted is log‖∇L‖ over the time in which it falls by its last factor of 100: faster parts of the approach have died
    away by then as far as they can. `Stability.convergence_rate` is what it tends to along a generic flow; a flow on an
    invariant manifold sees only the curvatures along it.

    Args:
        flow: one that came to rest.
        mask: of the flow.

    Raises:
        ValueError: for a flow that is not at rest, or with fewer than 3 saved points in that time.
    """
    if not flow.converged:
        raise ValueError("flow: not at rest, so that it has no final rate; let it run until='steady-state'")
    landscape = Landscape(flow.objective, flow.model, mask_vector(flow.model, mask))
    slopes = gradients(landscape, jnp.asarray(real_vectors(flow.trajectory)))
    norms = np.linalg.norm(np.asarray(slopes), axis=1)
    before = np.flatnonzero(norms > _LAST * norms[-1])
    last = slice(before[-1] + 1 if len(before) else 0, None)
    times = flow.times[last]
    if len(times) < _FEWEST or norms[-1] == 0:
        raise ValueError(
            f"flow: {len(times)} saved points in the last factor of 100 of the gradient, at least {_FEWEST} are needed; "
            "start farther away, or raise saves"
        )
    line = np.polynomial.Polynomial.fit(times, np.log(norms[last]), 1).convert()
    return -float(line.coef[1])


def real_vectors(models: Any) -> np.ndarray:
    """Weights stacked along their first axis as real vectors, shape (k, n)."""
    return np.asarray(jax.vmap(lambda one: real_vector(one)[0])(eqx.filter(models, eqx.is_inexact_array)))
