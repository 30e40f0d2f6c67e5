"""Predictions of learners for all numbers of examples at once, with sequences and prompts as examples."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from ._learner import Features, Learner


class InContext(NamedTuple):
    """Examples and the queries after 0 … N of them.

    Attributes:
        x: inputs, shape (…, N, p).
        y: outputs, shape (…, N, m).
        queries: shape (…, N + 1, p); query n follows after n examples.
    """

    x: Array
    y: Array
    queries: Array


def sequence_examples(tokens: Any) -> InContext:
    """Return tokens x_1 … x_T, shape (…, T, d), as examples (x_i, x_{i+1}) with the queries x_1 … x_T.

    Prediction n, after n examples, is that of token n + 2 from the tokens 1 … n + 1. Symbols are given as one-hot vectors.
    """
    tokens = jnp.asarray(tokens)
    return InContext(tokens[..., :-1, :], tokens[..., 1:, :], tokens)


def prompt_examples(x: Any, y: Any) -> InContext:
    """Return prompts as examples: inputs (…, N + 1, d), the last being the query, and labels (…, N) or (…, N + 1).

    Every input is the query of the examples before it. The label of the last query is not used.
    """
    x, y = jnp.asarray(x), jnp.asarray(y)
    return InContext(x[..., :-1, :], y[..., : x.shape[-2] - 1, None], x)


def predictions(learner: Learner, x: Any, y: Any, queries: Any) -> Array:
    """Return the predictions after 0 … N examples, shape (…, N + 1, m).

    Args:
        learner: any learner.
        x: inputs, shape (…, N, p), real or complex.
        y: outputs, shape (…, N, m).
        queries: shape (…, N + 1, p): query n is answered from the first n examples.

    Raises:
        ValueError: shapes that do not fit.
    """
    return _predictions(learner, *_checked(x, y, queries))


def features_of(kind: type[Learner], x: Any, y: Any, queries: Any) -> Any:
    """Return the features after 0 … N examples: `learner.respond` of them is `predictions` for every learner of the kind.

    They are the same for all kinds with the same `reads`, and for all hyperparameters.

    Args:
        kind: a class of learners.
        x: inputs, shape (…, N, p), real or complex.
        y: outputs, shape (…, N, m).
        queries: shape (…, N + 1, p).

    Raises:
        ValueError: shapes that do not fit.
    """
    return _features(kind.reads, *_checked(x, y, queries))


@eqx.filter_jit
def _features(reads: type[Features], x: Array, y: Array, queries: Array) -> Any:
    return reads.of(reads.memory.after_each(x, y), queries)


@eqx.filter_jit
def _predictions(learner: Learner, x: Array, y: Array, queries: Array) -> Array:
    return learner.respond(_features(learner.reads, x, y, queries))


def _checked(x: Any, y: Any, queries: Any) -> tuple[Array, Array, Array]:
    """Return the three as arrays of one floating-point or complex type."""
    arrays = jnp.asarray(x), jnp.asarray(y), jnp.asarray(queries)
    shapes = [array.shape for array in arrays]
    if min(map(len, shapes)) < 2:
        raise ValueError(f"x, y and queries need at least 2 axes, (…, N, entries); got {shapes}")
    (*lead, n, p), (*_, m), _ = shapes
    if shapes != [(*lead, n, p), (*lead, n, m), (*lead, n + 1, p)]:
        raise ValueError(
            f"expected x (…, N, p), y (…, N, m) and queries (…, N + 1, p) with equal leading axes, got {shapes}"
        )
    dtype = jnp.result_type(*arrays)
    dtype = dtype if jnp.issubdtype(dtype, jnp.inexact) else jnp.result_type(float)
    x, y, queries = (array.astype(dtype) for array in arrays)
    return x, y, queries
