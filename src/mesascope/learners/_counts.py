"""How often symbols and pairs of symbols stand in the context, from the normal equations of symbols as one-hot vectors."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from ._moments import NormalEquations


def pair_counts(features: NormalEquations) -> Array:
    """Return the number of times that b followed a as entry (b, a), shape (…, m, p)."""
    return _number(features)[..., None, None] * features.cross.real


def symbol_counts(features: NormalEquations) -> Array:
    """Return the number of times that every symbol stands in the sequence up to its last symbol, the query, shape (…, p).

    Raises:
        ValueError: inputs and outputs have different sizes: they are no symbols of one sequence.
    """
    inputs, outputs = features.query.shape[-1], features.cross.shape[-2]
    if inputs != outputs:
        raise ValueError(
            f"symbols of a sequence need inputs and outputs of one size, got {inputs} and {outputs} entries"
        )
    seen = jnp.diagonal(features.gram, axis1=-2, axis2=-1).real
    return _number(features)[..., None] * seen + features.query.real


def _number(features: NormalEquations) -> Array:
    return features.n.astype(features.cross.real.dtype)
