"""What an engine is: a way to compute the expectation in a population objective."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import Estimate
from mesascope.models import Normalizer
from mesascope.processes import DiagonalUnitary, NextToken


class Objective(eqx.Module):
    """L(model) for one process, one task and one way to compute the expectation.

    A pytree of arrays: pass it through `jax.jit`, `jax.grad` or `jax.vmap` like any other. Objectives of
    equal structure (say, two horizons, or two scales of one law) share their compiled code.
    """

    @abc.abstractmethod
    def __call__(self, model: eqx.Module) -> Estimate:
        """L = Σ_t w_t ½ E‖ŷ_t − x_{t+1}‖² with its standard error; differentiable in the model's weights."""

    @abc.abstractmethod
    def unit(self, model: eqx.Module) -> Array:
        """½ Σ_t w_t E‖x_{t+1}‖², the loss of predicting zero: the natural unit of the loss of such models."""


class Engine(eqx.Module):
    """A way to compute expectations over the process; `objective` prepares it for one process and task."""

    @abc.abstractmethod
    def objective(
        self, process: DiagonalUnitary, task: NextToken, normalizer: Normalizer = "t-1"
    ) -> Objective:
        """The objective of this process and task, prepared once and cached.

        Raises:
            TypeError: for a process that this engine cannot treat; the message names an engine that can.
            ValueError: for a law without the moments that the loss needs.
        """


def with_zero_weights(model: eqx.Module) -> eqx.Module:
    """The same model with every weight 0: it predicts zero."""
    return jax.tree.map(lambda leaf: jnp.zeros_like(leaf) if eqx.is_inexact_array(leaf) else leaf, model)
