"""Objectives, which engines prepare, and checks that engines share."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx

from mesascope.core import Estimate
from mesascope.models import LinearAttentionModel, refuse_stacked
from mesascope.processes import MAX_ORDER, Law, require_possible_moments


class Objective(eqx.Module):
    """L(model) for one process, one task and one method to compute the expectation.

    A pytree of arrays, which can be passed through `jax.jit`, `jax.grad` or `jax.vmap`. Objectives of
    equal structure (e.g. two horizons, or two scales of one law) share compiled code.
    """

    @abc.abstractmethod
    def __call__(self, model: eqx.Module) -> Estimate:
        """Return L = Σ_t w_t ½ E‖ŷ_t − x_{t+1}‖² with its standard error; differentiable in the model's weights."""

    def check(self, model: eqx.Module) -> None:  # most objectives check a model when they are called
        """Refuse a model of which this is not the loss, by its numbers: not where it is compiled."""


def check_model(model: Any, dim: int, engine: str) -> LinearAttentionModel:
    """Return the model after checking that it is linear attention of this dimension.

    Raises:
        TypeError: for another kind of model; the message gives the engine that supports it.
        ValueError: for another dimension.
    """
    if not isinstance(model, LinearAttentionModel):
        raise TypeError(
            f"{engine} supports linear attention only, not {type(model).__name__}; use MonteCarlo ('monte-carlo' in a SPEC)"
        )
    refuse_stacked(model)
    if model.dim != dim:
        raise ValueError(f"model has dim {model.dim}, the process has dim {dim}; make them equal")
    return model


def require_moments(law: Law, dim: int) -> None:
    """Refuse a law for which the loss of linear attention, of degree 6 in the initial token, is infinite.

    Raises:
        MomentError: a moment of order ≤ 6 does not exist; the message gives the lowest.
        ValueError: no distribution has the moments of the law.
    """
    if law.exchangeable:
        for order in range(2, MAX_ORDER + 1):
            law.joint_moment((order,), dim)
    else:
        law.product_terms(dim)
    require_possible_moments(law, dim)
