"""One layer of linear attention, with merged or factored weights and one or several heads.

In the reduced coordinates e_i = (x_i; x_{i−1}) ∈ C^{2d}, which are equivalent (the first block of the paper's
3d-dimensional token is zero, and only the first d rows of its W^PV affect the prediction):

    ŷ_t = (1/ρ_t) Σ_h W^PV_h E_t E_t* W^KQ_h e_t,      E_t = (e_1 … e_t),   t = 2 … T,

the prediction of x_{t+1}. Source: zheng2024, equation (2) and section 3.
"""

from __future__ import annotations

import abc
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import embed, finite_number, integer_at_least, split_keys
from mesascope.specs import Number

from ._arrays import axes, finite_array, gaussian_array, positive_number, refuse_stacked
from ._heads import checked_factors, gaussian_factors
from ._kernels import batch_first, batch_last, causal_merged_attention
from ._normalizer import Normalizer, check_normalizer, normalizer_values


class LinearAttentionModel(eqx.Module):
    """Base class of the linear-attention models: predictions from merged weights per head."""

    normalizer: eqx.AbstractVar[Normalizer]

    @abc.abstractmethod
    def heads(self) -> tuple[Array, Array]:
        """Return the merged weights of every head: W^KQ, shape (…, heads, 2d, 2d), and W^PV, shape (…, heads, d, 2d)."""

    @property
    def dim(self) -> int:
        """Token dimension d."""
        return int(self.heads()[1].shape[-2])

    def predictions(self, tokens: Array) -> Array:
        """Return ŷ_t for every context length t = 2 … T, in time linear in T.

        Args:
            tokens: x_1 … x_T, shape (…, T, d), real or complex, T ≥ 2.

        Returns:
            Shape (…, T − 1, d); entry t − 2 along the second axis is ŷ_t, the prediction of x_{t+1}.
        """
        refuse_stacked(self)
        w_kq, w_pv = self.heads()
        tokens = _checked_tokens(tokens, w_pv.shape[-2])
        horizon = tokens.shape[-2]
        rho = normalizer_values(self.normalizer, np.arange(2, horizon + 1))
        summed = _causal(w_kq, w_pv, batch_last(embed(tokens)))
        scaled = summed / jnp.asarray(rho, _real(summed))[:, None, None]
        return batch_first(scaled, tokens.shape[:-2])

    def __call__(self, contexts: Array) -> Array:
        """Return ŷ_t for the whole context only: contexts (…, t, d) → predictions of x_{t+1} (…, d), t ≥ 2."""
        refuse_stacked(self)
        w_kq, w_pv = self.heads()
        tokens = _checked_tokens(contexts, w_pv.shape[-2])
        (rho,) = normalizer_values(self.normalizer, np.array([tokens.shape[-2]]))
        summed = _last(w_kq, w_pv, tokens)
        return summed / jnp.asarray(rho, _real(summed))


@jax.jit
def _causal(w_kq: Array, w_pv: Array, embedded: Array) -> Array:
    """Return Σ_h W^PV_h (Σ_{i≤t} e_i e_i*) W^KQ_h e_t for all t ≥ 2: embedded (T, 2d, batch) → (T − 1, d, batch)."""
    return causal_merged_attention(w_kq, w_pv, embedded)[1:]


@jax.jit
def _last(w_kq: Array, w_pv: Array, tokens: Array) -> Array:
    """Return Σ_h W^PV_h E_t E_t* W^KQ_h e_t for the whole context only: tokens (…, t, d) → (…, d)."""
    embedded = embed(tokens)
    queries = jnp.einsum("hij,...j->h...i", w_kq, embedded[..., -1, :])
    scores = jnp.einsum("...tj,h...j->h...t", embedded.conj(), queries)
    return jnp.einsum("hki,...ti,h...t->...k", w_pv, embedded, scores)


class LinearAttention(LinearAttentionModel):
    """One head with merged weights: ŷ_t = W^PV (E_t E_t*/ρ_t) W^KQ e_t.

    Attributes:
        w_kq: W^KQ = W_K* W_Q in reduced coordinates, shape (2d, 2d); real or complex.
        w_pv: W^PV = W_P W_V, the d rows that affect the prediction, shape (d, 2d).
        normalizer: ρ_t: "t-1" (zheng2024), "t", "1" or a hashable function of an array of context lengths.

    Raises:
        ValueError, TypeError: for shapes that do not fit, non-finite weights, an unknown normalizer.
    """

    w_kq: Array = eqx.field(metadata=axes(2))
    w_pv: Array = eqx.field(metadata=axes(2))
    normalizer: Normalizer = eqx.field(static=True)

    def __init__(self, w_kq: Any, w_pv: Any, normalizer: Normalizer = "t-1"):
        self.w_kq, self.w_pv = _merged_weights(w_kq, w_pv, ndim=2)
        self.normalizer = check_normalizer(normalizer)

    @classmethod
    def diagonal(cls, dim: int, a: float, b: float, normalizer: Normalizer = "t-1") -> Self:
        """Return the paper's diagonal initialization: W^KQ maps x_t to a x_{i−1}, W^PV reads b x_i, all else is 0.

        Then ŷ_t = ab/ρ_t Σ_{i<t} x_{i+1} x_i* x_t: one gradient step with step size ab/ρ_t from zero on
        in-context least squares (zheng2024, Assumption 3.1 and section 4.1).
        """
        dim = integer_at_least("dim", dim, 1)
        traced = any(isinstance(value, jax.core.Tracer) for value in (a, b))
        xp = jnp if traced else np  # outside of a trace every jax operation would be compiled separately
        identity, zero = xp.eye(dim), xp.zeros((dim, dim))
        a, b = _finite("a", a), _finite("b", b)
        w_kq = xp.block([[zero, zero], [a * identity, zero]])
        return cls(w_kq, xp.hstack([b * identity, zero]), normalizer)

    @classmethod
    def gaussian(cls, dim: int, scale: Number, *, key: Array, normalizer: Normalizer = "t-1") -> Self:
        """Return the standard initialization: independent N(0, scale²) entries, scale > 0."""
        dim, scale = integer_at_least("dim", dim, 1), positive_number("scale", scale)
        key_kq, key_pv = split_keys(key)
        w_kq = gaussian_array(key_kq, (2 * dim, 2 * dim), scale)
        return cls(w_kq, gaussian_array(key_pv, (dim, 2 * dim), scale), normalizer)

    @classmethod
    def from_full(cls, w_kq: Any, w_pv: Any, normalizer: Normalizer = "t-1") -> Self:
        """Return the model with the paper's 3d × 3d matrices, without entries that do not affect the prediction."""
        w_kq, w_pv = jnp.asarray(w_kq), jnp.asarray(w_pv)
        if w_kq.ndim != 2 or w_kq.shape != w_pv.shape or w_kq.shape[0] != w_kq.shape[1] or w_kq.shape[0] % 3:
            raise ValueError(f"full weights must both be (3d, 3d), got {w_kq.shape} and {w_pv.shape}")
        dim = w_kq.shape[0] // 3
        return cls(w_kq[dim:, dim:], w_pv[:dim, dim:], normalizer)

    def to_full(self) -> tuple[Array, Array]:
        """Return the paper's W^KQ and W^PV, both (…, 3d, 3d), with zeros where entries do not affect the prediction."""
        d = self.dim
        shape = (*self.w_kq.shape[:-2], 3 * d, 3 * d)
        w_kq = jnp.zeros(shape, self.w_kq.dtype).at[..., d:, d:].set(self.w_kq)
        return w_kq, jnp.zeros(shape, self.w_pv.dtype).at[..., :d, d:].set(self.w_pv)

    def heads(self) -> tuple[Array, Array]:
        """Return the weights of the one head: shapes (…, 1, 2d, 2d) and (…, 1, d, 2d)."""
        return self.w_kq[..., None, :, :], self.w_pv[..., None, :, :]

    @eqx.filter_jit
    def products(self) -> Array:
        """Return a_j b_j, shape (d,): diagonals of the (x_{i−1}, x_t) block of W^KQ times those of the x_i block of W^PV.

        The shape is (n, d) for a stack of n models, such as the trajectory of a flow.
        """
        d = self.dim
        a, b = self.w_kq[..., d:, :d], self.w_pv[..., :d]
        return jnp.diagonal(a, axis1=-2, axis2=-1) * jnp.diagonal(b, axis1=-2, axis2=-1)


class MultiHeadLinearAttention(LinearAttentionModel):
    """Several heads with merged weights: ŷ_t = (1/ρ_t) Σ_h W^PV_h E_t E_t* W^KQ_h e_t.

    Attributes:
        w_kq: shape (heads, 2d, 2d).
        w_pv: shape (heads, d, 2d).
        normalizer: as in `LinearAttention`.
    """

    w_kq: Array = eqx.field(metadata=axes(3))
    w_pv: Array = eqx.field(metadata=axes(3))
    normalizer: Normalizer = eqx.field(static=True)

    def __init__(self, w_kq: Any, w_pv: Any, normalizer: Normalizer = "t-1"):
        self.w_kq, self.w_pv = _merged_weights(w_kq, w_pv, ndim=3)
        self.normalizer = check_normalizer(normalizer)

    @classmethod
    def gaussian(
        cls, dim: int, heads: int, scale: Number, *, key: Array, normalizer: Normalizer = "t-1"
    ) -> Self:
        """Return a model with independent N(0, scale²) entries, scale > 0."""
        heads = integer_at_least("heads", heads, 1)
        drawn = [LinearAttention.gaussian(dim, scale, key=k) for k in split_keys(key, heads)]
        return cls(jnp.stack([h.w_kq for h in drawn]), jnp.stack([h.w_pv for h in drawn]), normalizer)

    def heads(self) -> tuple[Array, Array]:
        """Return the weights."""
        return self.w_kq, self.w_pv


class FactoredLinearAttention(LinearAttentionModel):
    """Unmerged weights W^KQ_h = W_K,h* W_Q,h and W^PV_h = W_P,h W_V,h.

    Attributes:
        w_k, w_q: shape (heads, key size, 2d).
        w_p: shape (heads, d, value size).
        w_v: shape (heads, value size, 2d).
        normalizer: as in `LinearAttention`.
    """

    w_k: Array = eqx.field(metadata=axes(3))
    w_q: Array = eqx.field(metadata=axes(3))
    w_p: Array = eqx.field(metadata=axes(3))
    w_v: Array = eqx.field(metadata=axes(3))
    normalizer: Normalizer = eqx.field(static=True)

    def __init__(self, w_k: Any, w_q: Any, w_p: Any, w_v: Any, normalizer: Normalizer = "t-1"):
        self.w_k, self.w_q, self.w_p, self.w_v = checked_factors(w_k, w_q, w_p, w_v)
        width, dim = self.w_k.shape[2], self.w_p.shape[1]
        if width != 2 * dim:
            raise ValueError(
                f"factored weights do not fit: w_k reads tokens of width {width}, but w_p gives {dim} entries, the d of 2d"
            )
        self.normalizer = check_normalizer(normalizer)

    @classmethod
    def gaussian(
        cls,
        dim: int,
        heads: int,
        scale: Number,
        *,
        key: Array,
        key_size: int | None = None,
        value_size: int | None = None,
        normalizer: Normalizer = "t-1",
    ) -> Self:
        """Return a model with independent N(0, scale²) entries; key and value sizes are by default 2d and d."""
        dim, heads = integer_at_least("dim", dim, 1), integer_at_least("heads", heads, 1)
        k = integer_at_least("key_size", 2 * dim if key_size is None else key_size, 1)
        v = integer_at_least("value_size", dim if value_size is None else value_size, 1)
        shapes = ((heads, k, 2 * dim), (heads, k, 2 * dim), (heads, dim, v), (heads, v, 2 * dim))
        factors = gaussian_factors(key, shapes, [positive_number("scale", scale)] * 4)
        return cls(*factors, normalizer)

    def heads(self) -> tuple[Array, Array]:
        """Return W_K* W_Q and W_P W_V of every head."""
        return jnp.einsum("...hki,...hkj->...hij", self.w_k.conj(), self.w_q), self.w_p @ self.w_v


def _real(tokens: Array) -> Any:
    return jnp.finfo(tokens.dtype).dtype


def _checked_tokens(tokens: Any, dim: int) -> Array:
    array = jnp.asarray(tokens)
    if array.ndim < 2 or array.shape[-1] != dim:
        raise ValueError(f"tokens: expected shape (…, t, {dim}) for this model, got {array.shape}")
    if array.shape[-2] < 2:
        raise ValueError(f"tokens: a context needs at least 2 tokens, got {array.shape[-2]}")
    if array.size == 0:
        raise ValueError(f"tokens: the batch is empty, got shape {array.shape}")
    return array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(float)


def _finite(name: str, value: Any) -> Any:
    """Return a finite number as a float; a traced value is returned unchanged."""
    if isinstance(value, jax.core.Tracer):
        return value
    return float(finite_number(name, np.asarray(value) if isinstance(value, Array) else value))


def _merged_weights(w_kq: Any, w_pv: Any, ndim: int) -> tuple[Array, Array]:
    kq, pv = finite_array("w_kq", w_kq, ndim), finite_array("w_pv", w_pv, ndim)
    dim, lead = pv.shape[-2], pv.shape[:-2]
    if pv.shape[-1] != 2 * dim or kq.shape != (*lead, 2 * dim, 2 * dim):
        heads = "heads, " if ndim == 3 else ""
        wanted = f"w_kq ({heads}2d, 2d) and w_pv ({heads}d, 2d)"
        raise ValueError(f"weights do not fit: expected {wanted}, got {kq.shape} and {pv.shape}")
    return kq, pv
