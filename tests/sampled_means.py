"""Samples of processes, and means of them, which must agree with what is expected within five standard errors."""

import jax
import numpy as np

draw = jax.jit(lambda process, key, size, batch: process.sample(key, size, batch), static_argnums=(0, 2, 3))


def judge(values, expected):
    """Compare means over the first axis, entry by entry, within five standard errors."""
    values = np.asarray(values)
    error = values.std(axis=0) / len(values) ** 0.5
    assert (abs(values.mean(axis=0) - expected) <= 5 * error).all()
