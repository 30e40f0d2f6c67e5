"""Learners that apply a function to the spectrum of the Gram matrix."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import eigh

from ._arithmetic import einsum
from ._learner import Features, Learner, Memory
from ._moments import Moments, NormalEquations


class Spectrum(Features):
    r"""The normal equations in the eigenvectors of $\bar S = S/n = U \mathrm{diag}(s) U^*$.

    The eigenvectors are constants in derivatives: the variation of $\bar S$ is in `variation`. Derivatives of
    eigenvectors, which do not exist for equal eigenvalues, are never needed.

    Attributes:
        n: the number of examples, shape (…, 1).
        values: $s_1 \le \dots \le s_p$, shape (…, p); for n < p the first p − n are exactly 0.
        variation: $U^* \bar S U$ minus its value: zeros that carry the derivatives of $\bar S$, shape (…, p, p).
        cross: $\bar C U$, shape (…, m, p).
        query: $U^* q$, shape (…, p).
    """

    memory: ClassVar[type[Memory]] = Moments

    n: Array
    values: Array
    variation: Array
    cross: Array
    query: Array

    @classmethod
    def of(cls, memory: Moments, query: Array) -> Self:
        """Return the spectrum of the Gram matrix of a memory."""
        return cls.of_equations(NormalEquations.of(memory, query))

    @classmethod
    def of_equations(cls, equations: NormalEquations) -> Self:
        """Return the spectrum of the Gram matrix of normal equations."""
        values, vectors = eigh(jax.lax.stop_gradient(equations.gram))
        p, n = values.shape[-1], equations.n[..., None]
        seen = (
            jnp.arange(p) >= p - n
        )  # n examples span at most n directions; other eigenvalues are rounding errors
        variation = _variation(einsum("...ik,...ij,...jl->...kl", vectors.conj(), equations.gram, vectors))
        values = jnp.where(seen, jnp.maximum(values, 0), 0) + jnp.diagonal(variation, axis1=-2, axis2=-1).real
        cross = einsum("...mi,...ik->...mk", equations.cross, vectors)
        cross = jnp.where(seen[..., None, :], cross, _variation(cross))
        query = einsum("...ik,...i->...k", vectors.conj(), equations.query)
        return cls(n, values, variation, cross, query)


class Ends(NamedTuple):
    """Eigenvalues of a Gram matrix.

    Attributes:
        smallest: the smallest that is not 0; infinity without examples.
        largest: the largest.
    """

    smallest: Array
    largest: Array

    @classmethod
    def of(cls, values: Array) -> Self:
        """Return those of ascending eigenvalues (…, p), shapes (…, 1)."""
        return cls(jnp.min(jnp.where(values > 0, values, jnp.inf), -1, keepdims=True), values[..., -1:])


class SpectralLearner(Learner):
    r"""A learner that predicts $\hat y = \bar C f(\bar S) q = \sum_k (\bar C U)_k f(s_k) (U^* q)_k$."""

    reads: ClassVar[type[Features]] = Spectrum

    @abc.abstractmethod
    def filter(self, values: Array, ends: Ends, n: Array) -> Array:
        """Return f(s), entry by entry.

        Args:
            values: s ≥ 0, any shape.
            ends: the smallest and the largest eigenvalue of the same Gram matrix, broadcast against `values`.
            n: the number of examples, broadcast against `values`.
        """

    def respond(self, features: Spectrum) -> Array:
        """Return the prediction, shape (…, m)."""
        return filtered(self, features)


@eqx.filter_custom_jvp
def filtered(learner: SpectralLearner, spectrum: Spectrum) -> Array:
    """Return Σ_k (C̄U)_k f(s_k) (U*q)_k, with the derivative of a matrix function."""
    return _filtered_entrywise(learner, spectrum)


@filtered.def_jvp
def _filtered_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """Return the derivative: that of all entries, plus Σ_{k≠l} (C̄U)_k f[s_k, s_l] (U* dS̄ U)_{kl} (U*q)_l.

    f[s, s'] = (f(s) − f(s')) / (s − s') is the divided difference (Daletskii and Krein).
    """
    (learner, spectrum), (learner_tangent, spectrum_tangent) = primals, tangents
    arrays, static = eqx.partition((learner, spectrum), eqx.is_inexact_array)
    tangents = jax.tree.map(_tangent, arrays, (learner_tangent, spectrum_tangent))
    value, tangent = jax.jvp(
        lambda given: _filtered_entrywise(*eqx.combine(given, static)), (arrays,), (tangents,)
    )
    if spectrum_tangent.variation is not None:
        differences = _divided_differences(learner, spectrum)
        weights = differences * spectrum_tangent.variation
        tangent = tangent + einsum("...mk,...kl,...l->...m", spectrum.cross, weights, spectrum.query)
    return value, tangent


def _filtered_entrywise(learner: SpectralLearner, spectrum: Spectrum) -> Array:
    values = spectrum.values
    response = learner.filter(values, Ends.of(values), spectrum.n)
    return einsum("...mk,...k->...m", spectrum.cross, response * spectrum.query)


def _divided_differences(learner: SpectralLearner, spectrum: Spectrum) -> Array:
    """Return f[s_k, s_l] for k ≠ l and 0 for k = l, shape (…, p, p); f'((s_k + s_l)/2) if the two are close."""
    values, n = spectrum.values[..., None], spectrum.n[..., None]
    others = values.swapaxes(-1, -2)
    ends = Ends(*(one[..., None] for one in Ends.of(spectrum.values)))
    gap = values - others
    # The error of the quotient is ε/gap, that of the slope at the midpoint gap²: at gap = ε^(1/3) both are ε^(2/3).
    close = jnp.abs(gap) <= jnp.finfo(values.dtype).eps ** (1 / 3) * (values + others)
    response = learner.filter(values, ends, n)
    quotient = (response - response.swapaxes(-1, -2)) / jnp.where(close, 1, gap)
    middle = (values + others) / 2
    slope = jax.jvp(lambda s: learner.filter(s, ends, n), (middle,), (jnp.ones_like(middle),))[1]
    return jnp.where(jnp.eye(values.shape[-2], dtype=bool), 0, jnp.where(close, slope, quotient))


def _tangent(array: Array, tangent: Array | None) -> Array:
    """Return the tangent, or zeros for an array that does not vary."""
    return jnp.zeros_like(array) if tangent is None else tangent


def _variation(array: Array) -> Array:
    """Return zeros that have the derivatives of the array."""
    return array - jax.lax.stop_gradient(array)
