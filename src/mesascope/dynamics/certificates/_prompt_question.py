"""Certificates of linear attention on regression prompts: its loss, the least value of it, and rational critical points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from mesascope.objectives import LossPolynomial, PromptLayer, prompt_polynomial
from mesascope.processes import FewShot, LinearRegression

from ._balls import as_fraction
from ._krawczyk import Slice
from ._question import Question

_NEAR = Fraction(1, 10**6)  # flows stop much nearer to where they end
_LONG = 200  # characters of matrices that are written out


@dataclass(frozen=True)
class PromptQuestion(Question):
    """The loss of one layer of linear attention on regression prompts.

    Attributes:
        process: Gaussian inputs and weights whose moments are rational.
        task: number of examples, and weights.
        layer: the shapes of its weights: merged or factored heads.
    """

    process: LinearRegression
    task: FewShot
    layer: PromptLayer

    @property
    def polynomial(self) -> LossPolynomial:
        """L with rational coefficients."""
        return prompt_polynomial(self.process, self.task, self.layer)

    def describe(self) -> str:
        """A sentence that says what L is."""
        covariance, prior = (
            f", {name} = {_written(rows)}" if isinstance(rows, tuple) else ""
            for name, rows in (("Σ", self.process.covariance), ("P", self.process.prior))
        )
        return (
            f"L is the population loss of one layer of linear attention ({self.layer.describe()}) on "
            f"{self.process.describe()}{covariance}{prior} with {self.task.describe()}. It is nowhere below {self.least}."
        )

    def places(self) -> dict[str, np.ndarray]:
        """The places in θ of the entries of every array of weights, by its name."""
        return self.layer.places()

    @property
    def least(self) -> Fraction:
        """The least loss of any number of heads: that of the quadratic form of features that L is."""
        return self._best[0]

    @cached_property
    def _best(self) -> tuple[Fraction, dict[int, Fraction]]:
        """The least loss, and features that have it, by their places among the variables; 0 if they are not there."""
        loss = self.polynomial
        places = sorted({n for term in loss.terms for n in term.factors})
        row = {place: n for n, place in enumerate(places)}
        system = [[fmpq(0)] * (len(places) + 1) for _ in places]  # (∇², −∇ at 0)
        for factors, c in loss.terms:
            if len(factors) == 1:
                system[row[factors[0]]][-1] -= c
            else:
                n, m = (row[place] for place in factors)
                system[n][m] += c
                system[m][n] += c
        reduced, _ = fmpq_mat(system).rref() if places else (None, 0)
        best = dict.fromkeys(places, Fraction(0))
        for line in reduced.tolist() if reduced is not None else []:
            leading = next((n for n, entry in enumerate(line[:-1]) if entry != 0), None)
            if leading is not None:
                best[places[leading]] = as_fraction(line[-1])
        slope = sum((system[row[n]][-1] * fmpq(x.numerator, x.denominator) for n, x in best.items()), fmpq(0))
        return as_fraction(loss.constant - slope / 2), best

    def exact_point(self, near: Sequence[Fraction], where: Slice) -> tuple[Fraction, ...] | None:
        """Heads that read the label of one direction of the inputs each, where the guess learns some directions wholly.

        The features of the guess must be, up to rounding, those of the least loss or 0, row by row.
        """
        dim, loss, (_, best) = self.process.dim, self.polynomial, self._best
        known = [fmpq(one.numerator, one.denominator) for one in near]
        found = dict(enumerate(loss.variables(known)))
        size = max((abs(x) for x in best.values()), default=Fraction(0))
        place = {feature: at for feature, at in self.layer.features(dim)[1].items() if at in best}
        rows = np.full((dim, dim), Fraction(0), object)
        for a in range(dim):
            row = {j: place.get((a, dim, j)) for j in range(dim)}
            wanted = {j: best[at] for j, at in row.items() if at is not None}
            off = [abs(as_fraction(found[at]) - best[at]) for at in row.values() if at is not None]
            if max(off, default=Fraction(0)) <= _NEAR * size:
                for j, value in wanted.items():
                    rows[a, j] = value
        expected = {at: Fraction(0) for at in best}
        expected |= {
            place[a, dim, j]: rows[a, j] for a in range(dim) for j in range(dim) if (a, dim, j) in place
        }
        if any(abs(as_fraction(found[at]) - value) > _NEAR * size for at, value in expected.items()):
            return None
        return self._heads(rows)

    def _heads(self, rows: np.ndarray) -> tuple[Fraction, ...] | None:
        """Weights whose heads read labels, and map the input to these rows; None if there are too few heads."""
        at, dim, value = self.layer.places(), len(rows), Fraction(self.layer.sign)
        theta = [Fraction(0)] * self.layer.size
        learned = [a for a in range(dim) if rows[a].any()]
        if "w_kq" in at:
            heads = {0: learned}
        else:
            count, rank = at["w_k"].shape[:2]
            heads = {h: learned[h * rank : (h + 1) * rank] for h in range(count)}
        if sum(map(len, heads.values())) < len(learned):
            return None
        for h, own in heads.items():
            if not own:
                continue
            if "w_pv" in at:
                theta[at["w_pv"][h, -1, dim]] = value
            else:
                theta[at["w_p"][h, -1, 0]], theta[at["w_v"][h, 0, dim]] = value, Fraction(1)
            for r, a in enumerate(own):
                if "w_kq" not in at:
                    theta[at["w_k"][h, r, a]] = Fraction(1)
                for j in range(dim):
                    theta[at["w_kq"][h, a, j] if "w_kq" in at else at["w_q"][h, r, j]] = value * rows[a, j]
        return tuple(theta)


def _written(rows: Any) -> str:
    text = "; ".join(" ".join(str(entry) for entry in row) for row in rows)
    return f"[{text}]" if len(text) <= _LONG else "given"
