"""The objective of a mixture of processes: the mean of the objectives of its parts."""

from __future__ import annotations

from functools import reduce

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mesascope.core import Estimate

from ._engine import Objective


class MixedObjective(Objective):
    r"""$L = \sum_k p_k L_k$, the $L_k$ being exact.

    Attributes:
        objectives: those of the parts.
        shares: the probabilities $p_k$, shape (K,).
    """

    objectives: tuple[Objective, ...]
    shares: np.ndarray

    def __call__(self, model: eqx.Module) -> Estimate:
        """Return the loss, differentiable, with standard error 0. Errors are those of the parts."""
        values = [p * one(model).value for p, one in zip(self.shares, self.objectives, strict=True)]
        total = reduce(jnp.add, values)
        return Estimate(total, jnp.zeros_like(total))

    def check(self, model: eqx.Module) -> None:
        """Refuse what a part refuses."""
        for one in self.objectives:
            one.check(model)
