"""Copy heads: whether the first layer copies the previous token to the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.models import Layer, Looped, PreNorm, Residual, SoftmaxSelfAttention, Stack

from ._answers import context_arrays
from ._intervals import Measured, bootstrapped, ratio
from ._layers import Layered, check_reads, unrolled
from ._problems import Problems
from ._sensitivity import sensitivities
from ._table import Tabled, with_interval


@dataclass(frozen=True, repr=False)
class CopyAttention(Tabled):
    r"""Attention of the first layer to the previous token.

    Attributes:
        score: score of the head with the highest one, shapes (); 1 if it attends to nothing else.
        heads: score of every head, shapes (heads,).
        positions: the tokens t, counted from 1, shape (k,).
        each: score of every head at each of them, shapes (heads, k).
        baseline: the score of uniform attention to all visible tokens.
    """

    score: Measured
    heads: Measured
    positions: np.ndarray
    each: Measured
    baseline: float

    def __str__(self) -> str:
        title = (
            f"attention to the previous token, by head (1: copying, {self.baseline:.3g}: uniform attention)"
        )
        shown = [f"  head {h + 1}: {with_interval(self.heads, h)}" for h in range(len(self.heads.value))]
        return "\n".join([title, *shown])


@dataclass(frozen=True, repr=False)
class CopySensitivity(Tabled):
    r"""The dependence of the stream after the first layer on tokens: shares of the squared norm of its Jacobian.

    Attributes:
        before: the share of the previous token.
        own: the share of the token at the same position.
        rest: the share of all others; the sum of the three is 1.
        baseline: 1/t, the share of each token if all t tokens have the same influence.
    """

    before: Measured
    own: Measured
    rest: Measured
    baseline: float

    def __str__(self) -> str:
        shares = {"previous token": self.before, "same token": self.own, "all others": self.rest}
        title = f"sensitivity after the first layer (uniform: {self.baseline:.3g} each)"
        return "\n".join([title, *(f"  {name}: {with_interval(one, ())}" for name, one in shares.items())])


def copy_attention(model: Any, problems: Problems, *, level: float = 0.95, seed: int = 0) -> CopyAttention:
    r"""Return the mean weight $\alpha_{t, t-1}$ of the previous token in softmax attention of the first layer.

    For sequences the mean runs over the tokens $t = 2, \dots$ of the longest context with positive weight; for interleaved
    prompts over the labels, whose previous token is their input. The baseline is the mean of 1/(number of visible tokens),
    for causal attention 1/t.

    Args:
        model: a `SequenceModel`, or a `PromptModel` of interleaved prompts, that begins with softmax attention.
        problems: the contexts.
        level: confidence level of the intervals.
        seed: seed of the resampling of tasks.

    Raises:
        TypeError: a model that begins with another layer (`copy_sensitivity` accepts any), or with one token per example.
        ValueError: no example, or too few tasks for the level.

    Source: vonoswald2024 (the first layer combines tokens).
    """
    _check_bindable(model)
    check_reads(model, problems)
    stream = model.embedding(*context_arrays(problems, int(problems.lengths[-1])))
    attention, stream = _first_attention(model.network, stream)
    positions = _binding_positions(model, stream.shape[-2])
    weights = np.asarray(_weights_before(attention, stream))[..., positions - 2]  # (tasks, heads, k)
    heads, count = weights.shape[1:]

    def statistic(means: np.ndarray) -> np.ndarray:
        by_head = means.reshape(*means.shape[:-1], heads, count).mean(-1)
        return np.concatenate([by_head.max(-1, keepdims=True), by_head, means], -1)

    found = bootstrapped(weights.reshape(len(weights), -1), statistic, level=level, seed=seed)
    score, by_head, each = found.split([1, 1 + heads])
    baseline = float(np.mean(1 / _visible(attention, positions, stream.shape[-2])))
    return CopyAttention(score.at(0), by_head, positions, each.shaped(heads, count), baseline)


def copy_sensitivity(
    model: Any, problems: Problems, n: int, *, level: float = 0.95, seed: int = 0
) -> CopySensitivity:
    r"""Return the shares of tokens in the squared norm of the Jacobian of the stream $z_t$ after the first layer.

    The share of token i is $E\|J_i\|_F^2 / \sum_j E\|J_j\|_F^2$ with $J_i = \partial z_t / \partial x_i$ and means over tasks.
    The first layer may be any: linear and softmax attention, mesa layers, MLPs.

    For sequences $t = n + 1$ is the last token; for interleaved prompts the last label, whose previous token is its input.

    Args:
        model: a `SequenceModel`, or a `PromptModel` of interleaved prompts; or, for sequences, a function of contexts that
            gives the list of its streams.
        problems: the contexts.
        n: the number of examples, ≥ 1.
        level: confidence level of the intervals.
        seed: seed of the resampling of tasks.

    Raises:
        TypeError: a model without layers, or one that holds an example in one token; sequences of symbols.
        ValueError: no example, more examples than there are, or too few tasks for the level.

    Source: vonoswald2024 (the first layer combines tokens).
    """
    found = sensitivities(_after_first_layer(model, problems), problems, n) ** 2
    by_entry = found.sum(1)  # (tasks, tokens, entries)
    if problems.prompts:
        own, before = by_entry[:, n - 1, -1], by_entry[:, n - 1, :-1].sum(-1)
        tokens = 2 * n
    else:
        own, before = by_entry[:, n].sum(-1), by_entry[:, n - 1].sum(-1)
        tokens = n + 1
    rest = np.maximum(by_entry.sum((1, 2)) - before - own, 0)  # not negative by rounding
    parts = np.stack([before, own, rest], -1)
    shares = bootstrapped(
        parts, lambda means: ratio(means, means.sum(-1, keepdims=True)), level=level, seed=seed
    )
    return CopySensitivity(shares.at(0), shares.at(1), shares.at(2), 1 / tokens)


def _check_bindable(model: Any) -> None:
    if not isinstance(model, Layered):
        raise TypeError(f"model: must be a SequenceModel or a PromptModel, got {type(model).__name__}")
    if model.embedding.layout == "stacked":
        raise TypeError(
            "model: stacked prompts have an input and its label in one token: there is nothing to copy"
        )


def _after_first_layer(model: Any, problems: Problems) -> Any:
    """Return a function of contexts that gives the stream after the first layer at the token that copies."""
    if isinstance(model, Layered):
        _check_bindable(model)
        check_reads(model, problems)
        first, at = unrolled(model.network).layers[0], -2 if problems.prompts else -1
        return lambda *context: first(model.embedding(*context))[..., at, :]
    if not callable(model) or problems.prompts:
        raise TypeError(
            "model: must be a SequenceModel or PromptModel, or for sequences a function of contexts that gives the list of "
            "its streams"
        )
    return lambda context: model(context)[1]


def _binding_positions(model: Layered, tokens: int) -> np.ndarray:
    """Return the tokens, counted from 1, whose attention to the previous token is measured."""
    step = 2 if model.embedding.layout == "interleaved" else 1
    positions = np.arange(2, tokens + 1, step)
    if not len(positions):
        raise ValueError("problems: no context has an example, so that no token has a previous one")
    return positions


def _first_attention(layer: Layer, stream: Array) -> tuple[SoftmaxSelfAttention, Array]:
    """Return the attention layer that a network begins with, and its input."""
    if isinstance(layer, SoftmaxSelfAttention):
        return layer, stream
    if isinstance(layer, Stack):
        return _first_attention(layer.layers[0], stream)
    if isinstance(layer, PreNorm):
        return _first_attention(layer.layer, layer.norm(stream))
    if isinstance(layer, Residual | Looped):
        return _first_attention(layer.layer, stream)
    raise TypeError(
        f"model: begins with {type(layer).__name__}, which has no attention weights; use copy_sensitivity"
    )


@jax.jit
def _weights_before(attention: SoftmaxSelfAttention, stream: Array) -> Array:
    """Return α_{t, t−1} for t = 2 … n of every head: (tasks, n, width) → (tasks, heads, n − 1)."""
    queries, keys = (jnp.einsum("hkw,bnw->bhnk", w, stream) for w in (attention.w_q, attention.w_k))
    scores = jnp.einsum("bhtk,bhik->bhti", queries, keys) / np.sqrt(queries.shape[-1])
    tokens = stream.shape[-2]
    seen = np.ones((tokens, tokens), bool)
    if attention.context == "causal":
        seen = np.tri(tokens, dtype=bool)
    elif attention.context == "examples":
        seen[:, -1] = False
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf))
    return jnp.diagonal(weights, offset=-1, axis1=-2, axis2=-1)


def _visible(attention: SoftmaxSelfAttention, positions: np.ndarray, tokens: int) -> np.ndarray:
    """Return the number of tokens that each of these attends to."""
    if attention.context == "causal":
        return positions
    return np.full(len(positions), tokens - (attention.context == "examples"))
