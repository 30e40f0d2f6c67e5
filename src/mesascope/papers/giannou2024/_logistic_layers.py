"""Layers that carry out Newton's steps of regularized logistic regression on the tokens of a prompt."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.models import Layer, Looped, Stack
from mesascope.theory import Construction

from .._prompts import construction_stack


class Places(NamedTuple):
    """Where a token of width 5d + 6 holds what.

    Examples: x, σ'(s) x / n in `weighted`, the label 0 or 1, a 1, the score s = w·x, and (σ(s) − label)/n in `residual`.
    Token j of d of workspace: row j of the Hessian, column j of its inverse, e_j, and entry j of w and of the gradient.
    """

    x: slice
    weighted: slice
    row: slice
    column: slice
    unit: slice
    label: int
    one: int
    score: int
    residual: int
    weight: int
    gradient: int

    @classmethod
    def of(cls, dim: int) -> Places:
        """Those for inputs of this dimension."""
        x, weighted, row, column, unit = (slice(k * dim, (k + 1) * dim) for k in range(5))
        return cls(x, weighted, row, column, unit, *range(5 * dim, 5 * dim + 6))


class GatedLinear(Layer):
    """A gated linear unit with a residual connection, z ↦ z + W z + W_o (σ(W_g z) ⊙ W_u z), on every token.

    Attributes:
        linear: W, shape (width, width).
        gate: W_g, shape (hidden, width).
        up: W_u, shape (hidden, width).
        out: W_o, shape (width, hidden).
    """

    linear: Array
    gate: Array
    up: Array
    out: Array

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return int(self.linear.shape[0])

    @property
    def output_width(self) -> int:
        """Entries of an output token: the same."""
        return self.width

    @property
    def causal(self) -> bool:
        """True: every token is mapped independently."""
        return True

    def __call__(self, stream: Any) -> Array:
        """Return the new stream, of the same shape."""
        stream = jnp.asarray(stream)
        gated = jax.nn.sigmoid(stream @ self.gate.T) * (stream @ self.up.T)
        return stream + stream @ self.linear.T + gated @ self.out.T


def logistic_tokens(x: Any, labels: Any) -> np.ndarray:
    """Examples, d tokens of workspace with w = 0, and the query, shape (batch, n + d + 1, 5d + 6).

    Args:
        x: inputs of the n examples and of the query, shape (batch, n + 1, d).
        labels: 0 or 1, shape (batch, n).
    """
    batch, pairs, dim = x.shape
    at, examples = Places.of(dim), pairs - 1
    tokens = np.zeros((batch, pairs + dim, 5 * dim + 6))
    tokens[:, :examples, at.x], tokens[:, -1, at.x] = x[:, :-1], x[:, -1]
    tokens[:, :examples, at.label], tokens[:, :examples, at.one] = labels, 1.0
    tokens[:, examples:-1, at.unit] = np.eye(dim)
    return tokens


def weights_of(tokens: Any, dim: int) -> np.ndarray:
    """The weights w that the workspace holds, shape (batch, d)."""
    return np.asarray(tokens)[:, -1 - dim : -1, Places.of(dim).weight]


def scores(dim: int) -> Layer:
    """Attention that adds w·x to the score of every example and of the query: Σ_j w_j (e_j·x)."""
    at = Places.of(dim)
    return _attention(dim, at.unit, at.x, [(at.score, at.weight, 1.0)])


def newton_step(dim: int, examples: int, regularization: float, start: float, inner: int) -> Layer:
    """One step w ← w − H⁻¹ g; H⁻¹ by so many steps of Newton's iteration from `start` times I.

    g = (1/n) Σ (σ(w·x_i) − label_i) x_i + μ w and H = (1/n) Σ σ'(w·x_i) x_i x_iᵀ + μ I, for μ = `regularization`.
    """
    at = Places.of(dim)
    gather = _attention(dim, at.x, at.unit, [(at.row, at.weighted, 1.0), (at.gradient, at.residual, 1.0)])
    update = _attention(dim, at.column, at.unit, [(at.weight, at.gradient, -1.0)])
    gates = (_first_gate(dim, examples), _second_gate(dim, examples, regularization, start))
    return Stack([scores(dim), *gates, gather, Looped(_inverse_step(dim), inner), update])


def _attention(
    dim: int, key: slice, query: slice, values: list[tuple[slice | int, slice | int, float]]
) -> Layer:
    """Linear attention over all tokens but the query, with keys, queries and values (to, from, size) that are blocks."""
    w_kq, w_pv = np.zeros((2, 1, 5 * dim + 6, 5 * dim + 6))
    w_kq[0, key, query] = np.eye(dim)
    for to, source, size in values:
        w_pv[0, to, source] = size * (np.eye(dim) if isinstance(to, slice) else 1.0)
    return construction_stack(Construction(w_kq, w_pv), "1")


def _inverse_step(dim: int) -> Layer:
    """One step X ← X(2I − HX) on the workspace, as `theory.giannou2024.newton_step`."""
    at = Places.of(dim)
    w_kq, w_pv = np.zeros((2, 1, 5 * dim + 6, 5 * dim + 6))
    w_kq[0, at.unit, at.unit] = w_pv[0, at.column, at.column] = np.eye(dim)
    w_kq[0, at.row, at.column] = -np.eye(dim)
    return construction_stack(Construction(w_kq, w_pv), "1")


def _first_gate(dim: int, examples: int) -> GatedLinear:
    """Set `weighted` to σ(s) x and `residual` to (σ(s) − label)/n."""
    at, width = Places.of(dim), 5 * dim + 6
    linear, gate, up, out = _zeros(width, dim + 1)
    gate[:, at.score] = 1.0
    up[:dim, at.x] = out[at.weighted, :dim] = np.eye(dim)
    up[dim, at.one], out[at.residual, dim] = 1.0, 1 / examples
    linear[at.weighted, at.weighted] = -np.eye(dim)
    linear[at.residual, at.residual], linear[at.residual, at.label] = -1.0, -1 / examples
    return GatedLinear(*map(jnp.asarray, (linear, gate, up, out)))


def _second_gate(dim: int, examples: int, regularization: float, start: float) -> GatedLinear:
    """Multiply `weighted` by σ(−s)/n, and set the score to 0, H to μI, its inverse to the start and g to μw."""
    at, width = Places.of(dim), 5 * dim + 6
    linear, gate, up, out = _zeros(width, dim)
    gate[:, at.score] = -1.0
    up[:, at.weighted], out[at.weighted] = np.eye(dim), np.eye(dim) / examples
    for place, source, size in (
        (at.row, at.unit, regularization),
        (at.column, at.unit, start),
        (at.gradient, at.weight, regularization),
    ):
        linear[place, place] = -np.eye(dim) if isinstance(place, slice) else -1.0
        linear[place, source] = size * (np.eye(dim) if isinstance(place, slice) else 1.0)
    linear[at.weighted, at.weighted], linear[at.score, at.score] = -np.eye(dim), -1.0
    return GatedLinear(*map(jnp.asarray, (linear, gate, up, out)))


def _zeros(width: int, hidden: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.zeros((width, width)),
        np.zeros((hidden, width)),
        np.zeros((hidden, width)),
        np.zeros((width, hidden)),
    )
