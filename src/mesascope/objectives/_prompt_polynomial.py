r"""The population loss of one layer of linear attention on regression prompts as a polynomial with rational coefficients.

Entry by entry: with the last row $u_h$ of $W^{PV}_h$ and the entries $M_h[i, j]$ of $W^{KQ}_h$ that multiply the query,

    ŷ = (1/ρ) Σ_{a,i,j} φ[a,i,j] (G_ai + q_a q_i) x_j,    φ[a,i,j] = Σ_h u_h[a] M_h[i,j],

where $G = \sum_i e_i e_i^T$ of the examples, q = (x, 0) is the query, and the second term is there only if it attends to
itself. G is symmetric, so that φ matters through ψ[a,i,j] = φ[a,i,j] + φ[i,a,j], a < i, and ψ[a,a,j] = φ[a,a,j], of which
the loss is a quadratic form. Its coefficients are moments of G, of the query and of the task:

    E G_ai = t S_ai,    E G_ai G_bk = t² S_ai S_bk + t (S_ab S_ik + S_ak S_ib),

with the covariance S of an example given the task, whose entries Σ, Σw and wᵀΣw + σ² are combinations of
v = (1, w, wᵀΣw): a product of two needs $E\,v v^T$ only. Everything is rational where Σ, the law of w and σ are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from flint import fmpq

from mesascope.core import exact
from mesascope.models import (
    FactoredLinearSelfAttention,
    LinearSelfAttention,
    LowRankLinearSelfAttention,
    Normalizer,
)
from mesascope.processes import FewShot, LinearRegression

from ._polynomial import LossPolynomial, Products, Term
from ._prompt_moments import PromptMoments, prompt_moments
from ._regression import checked_layer, reads_query

_FIELDS: dict[type, tuple[str, ...]] = {
    LinearSelfAttention: ("w_kq", "w_pv"),
    LowRankLinearSelfAttention: ("w_k", "w_q", "w_pv"),
    FactoredLinearSelfAttention: ("w_k", "w_q", "w_p", "w_v"),
}


Feature = tuple[int, int, int]
"""The a ≤ i and j of ψ[a,i,j]."""


@dataclass(frozen=True)
class PromptLayer:
    """One layer of linear attention that reads prompts, without its weights.

    Attributes:
        arrays: names and shapes of the arrays of weights, in the order in which θ has their entries, row by row.
        normalizer: "t-1", "t" or "1".
        with_query: whether the query attends to itself, its label being 0.
        sign: of the read-out, 1 or −1.
    """

    arrays: tuple[tuple[str, tuple[int, ...]], ...]
    normalizer: Normalizer
    with_query: bool
    sign: int

    @classmethod
    def of(cls, model: Any, dim: int) -> PromptLayer:
        """Return the layer of a model.

        Raises:
            TypeError: for a model that is not one layer of linear attention on stacked prompts.
            ValueError: for another dimension.
        """
        try:
            layer, sign = checked_layer(model, dim)
        except TypeError:
            raise TypeError(
                "model: rational losses of prompts are those of one layer of real linear attention, which "
                f"prompt_linear_transformer builds, not of this {type(model).__name__}; ExactMoments computes steps of "
                "preconditioned_linear_transformer and step_size_transformer in floating point, MonteCarlo all else"
            ) from None
        arrays = tuple((name, tuple(getattr(layer, name).shape)) for name in _FIELDS[type(layer)])
        return cls(arrays, layer.normalizer, reads_query(layer), int(sign))

    @property
    def size(self) -> int:
        """The number of weights."""
        return sum(prod(shape) for _, shape in self.arrays)

    def places(self) -> dict[str, np.ndarray]:
        """The places in θ of the entries of every array."""
        found, at = {}, 0
        for name, shape in self.arrays:
            found[name] = np.arange(at, at + prod(shape)).reshape(shape)
            at += prod(shape)
        return found

    def features(self, dim: int) -> tuple[tuple[Products, ...], dict[Feature, int]]:
        """Return the intermediate variables, and the places of the ψ[a,i,j] among all variables."""
        products: list[Products] = []

        def made(pairs: Iterator[tuple[Any, Any]]) -> int:
            products.append(tuple((int(a), int(b)) for a, b in pairs))
            return self.size + len(products) - 1

        def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
            """Return the places of Σ_k left[h,k,a] right[h,k,b], shape (h, a, b)."""
            heads = zip(left, right, strict=True)
            return np.array([[[made(zip(x, y, strict=True)) for y in b.T] for x in a.T] for a, b in heads])

        at = self.places()
        m = at["w_kq"][:, :, :dim] if "w_kq" in at else product(at["w_k"], at["w_q"][:, :, :dim])
        values = at["w_pv"] if "w_pv" in at else product(np.swapaxes(at["w_p"][:, -1:], 1, 2), at["w_v"])
        u = values[:, -1]
        heads = range(len(u))
        features = {}
        for a in range(dim + 1):
            for i in range(a, dim + 1):
                both = [(a, i)] if a == i else [(a, i), (i, a)]
                for j in range(dim):
                    features[a, i, j] = made((u[h, x], m[h, y, j]) for h in heads for x, y in both)
        return tuple(products), features

    def describe(self) -> str:
        """Return e.g. `w_k 4×1×5, w_q 4×1×5, w_pv 4×5×5; ρ = t-1`."""
        shapes = ", ".join(f"{name} {'×'.join(map(str, shape))}" for name, shape in self.arrays)
        return f"{shapes}; ρ = {self.normalizer}"


@lru_cache(maxsize=16)
def prompt_polynomial(process: LinearRegression, task: FewShot, layer: PromptLayer) -> LossPolynomial:
    """Return the population loss of a layer on regression prompts, with rational coefficients.

    Args:
        process: floats are the rational numbers that they represent.
        task: number of examples, and weights.
        layer: its shapes.

    Raises:
        TypeError: for another process, or tasks whose moments are not known exactly.
        ValueError: for a normalizer that is a function.
    """
    moments = prompt_moments(process)
    sums = _sums(task, layer.normalizer)
    products, features = layer.features(process.dim)
    terms: dict[tuple[int, ...], fmpq] = {}
    for one, place in features.items():
        terms[place,] = -layer.sign * _linear(moments, sums, layer.with_query, one)
        for other, its in features.items():
            if its >= place:
                square = _quadratic(moments, sums, layer.with_query, one, other)
                terms[place, its] = square / 2 if its == place else square
    power = moments.power * sums["1"] / 2
    kept = tuple(Term(factors, c) for factors, c in terms.items() if c != 0)
    return LossPolynomial(layer.size, products, kept, power)


def _sums(task: FewShot, normalizer: Normalizer) -> dict[str, fmpq]:
    """Return the sums of w_t over all numbers t of examples times what the names say."""
    if not isinstance(normalizer, str):
        raise ValueError("rho: exact sums need one of 't-1', 't', '1'; a function gives rounded numbers")
    sums: dict[str, fmpq] = defaultdict(lambda: fmpq(0))
    for t, weight in task.weights or ((task.examples, 1),):
        rho = {"t-1": t, "t": t + 1, "1": 1}[normalizer]
        inverse = fmpq(1, rho) if rho else fmpq(0)  # attention without examples gives 0
        fraction = exact(weight)
        w = fmpq(fraction.numerator, fraction.denominator)
        terms: dict[str, fmpq] = {
            "1": fmpq(1),
            "t/ρ": t * inverse,
            "t²/ρ²": (t * inverse) ** 2,
            "t/ρ²": t * inverse**2,
            "1/ρ": inverse,
            "1/ρ²": inverse**2,
        }
        for name, value in terms.items():
            sums[name] += w * value
    return sums


def _linear(moments: PromptMoments, sums: dict[str, fmpq], with_query: bool, one: Feature) -> fmpq:
    """Return Σ_t w_t E[y (G_ai + q_a q_i) x_j]/ρ; y enters through its mean given the query, wᵀx."""
    a, i, j = one
    found = sums["t/ρ"] * moments.label(a, i, j)
    return found + sums["1/ρ"] * moments.own_label(a, i, j) if with_query else found


def _quadratic(
    moments: PromptMoments, sums: dict[str, fmpq], with_query: bool, one: Feature, other: Feature
) -> fmpq:
    """Return Σ_t w_t E[(G_ai + q_a q_i) x_j (G_bk + q_b q_k) x_l]/ρ²."""
    (a, i, j), (b, k, l) = one, other  # noqa: E741
    s = moments.examples
    found = moments.inputs[j][l] * (
        sums["t²/ρ²"] * s(a, i, b, k) + sums["t/ρ²"] * (s(a, b, i, k) + s(a, k, i, b))
    )
    if with_query:
        crossed = moments.example(a, i) * moments.query(j, b, k, l)
        crossed += moments.example(b, k) * moments.query(j, a, i, l)
        found += sums["t/ρ²"] * crossed + sums["1/ρ²"] * moments.query(a, i, j, b, k, l)
    return found
