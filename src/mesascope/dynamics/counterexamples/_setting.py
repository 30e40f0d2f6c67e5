"""The exact loss of one setting, and the point that Theorem 4.1 of zheng2024 names, for any law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import fmpq

from mesascope.core import exact
from mesascope.models import Normalizer
from mesascope.objectives import LossPolynomial, loss_polynomial
from mesascope.processes import DiagonalUnitary, Law, NextToken
from mesascope.theory import zheng2024

from ..certificates._balls import as_fmpq, as_fraction
from ..certificates._sequence_question import diagonal_places, diagonal_point

Witness = tuple[Fraction, ...]
LARGEST_DIM = 6
"""The number of monomials of the loss grows as d^3, and of the permutations of a token as d!."""
FLAT = 1e-9
"""Curvatures of this size relative to the largest count as 0: rounding leaves about 1e-15."""


@dataclass(frozen=True)
class Setting:
    r"""A law, a dimension, a horizon and a normalizer.

    The limit is $a I$, $b I$ with $ab = c_* = \beta/\alpha$, the minimum among multiples of the identity. For laws that let the
    flow leave the diagonal the number $c_*$ exists, too, and the properties say what becomes of it.

    Attributes:
        law: the law of the initial token.
        dim: the token dimension $d$.
        horizon: $T$; all $w_t$ are 1.
        normalizer: $\rho_t$, `"t-1"`, `"t"` or `"1"`.
    """

    law: Law
    dim: int
    horizon: int
    normalizer: Normalizer

    @cached_property
    def process(self) -> DiagonalUnitary:
        """The sequences."""
        return DiagonalUnitary(self.law, self.dim)

    @property
    def task(self) -> NextToken:
        """The predictions."""
        return NextToken(self.horizon)

    @cached_property
    def product(self) -> Fraction:
        r"""$c_*$.

        Raises:
            MomentError: a moment of order ≤ 6 does not exist.
        """
        alpha, beta = zheng2024.flow_coefficients(self.process, self.task, normalizer=str(self.normalizer))
        return exact(beta) / exact(alpha)

    @cached_property
    def loss(self) -> LossPolynomial:
        """L with rational coefficients."""
        return loss_polynomial(self.process, self.task, self.normalizer)

    @cached_property
    def point(self) -> Witness:
        """The weights of the limit with a = c_*, b = 1; scaling W^KQ up and W^PV down changes nothing that is asked here."""
        return diagonal_point(self.product, [1] * self.dim)

    @cached_property
    def limit_loss(self) -> Fraction:
        """L at the limit."""
        return self.loss_at(self.point)

    def loss_at(self, theta: Sequence[Fraction]) -> Fraction:
        """L at rational weights."""
        return as_fraction(self.loss.value([as_fmpq(one) for one in theta]))

    @cached_property
    def gradient(self) -> Witness:
        """∇L at the limit."""
        return tuple(map(as_fraction, self.loss.gradient([as_fmpq(one) for one in self.point])))

    @cached_property
    def hessian(self) -> list[list[fmpq]]:
        """∇²L at the limit."""
        return self.loss.hessian([as_fmpq(one) for one in self.point])

    @cached_property
    def descent(self) -> tuple[np.ndarray, float]:
        """A direction in which the loss falls most at the limit, in floating point, and a number that is negative if it does.

        Weights are measured in units of the diagonal ones, a and b. If the gradient is not 0, it is the direction, and the
        number its size; else the number is the least curvature but for those that are 0, as along scalings. Both are relative
        to the largest curvature.
        """
        units = np.ones(self.loss.size)
        units[: 4 * self.dim**2] = float(self.product)
        curvature = np.array([[as_float(one) for one in row] for row in self.hessian]) * np.outer(
            units, units
        )
        values, vectors = np.linalg.eigh(curvature)
        slope = np.array([float(one) for one in self.gradient]) * units
        if any(self.gradient):
            return -units * slope / np.linalg.norm(slope), -float(np.linalg.norm(slope) / values[-1])
        curved = np.flatnonzero(np.abs(values) > FLAT * values[-1])
        return units * vectors[:, curved[0]], float(values[curved[0]] / values[-1])

    def diagonal(self, entries: Sequence[Fraction]) -> Witness:
        """The weights with a_1 … a_d and b_1 … b_d on the diagonals, and 0 elsewhere."""
        theta = [Fraction(0)] * self.loss.size
        for place, entry in zip(np.ravel(diagonal_places(self.dim)).tolist(), entries, strict=True):
            theta[place] = entry
        return tuple(theta)


def as_float(value: fmpq) -> float:
    """A rational number of flint, rounded."""
    return int(value.p) / int(value.q)


def is_zero(setting: Setting) -> bool:
    """Whether all tokens are 0."""
    return setting.law.zero_probability(setting.dim) == 1
