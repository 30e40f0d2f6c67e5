"""Which predictions from examples count: a weight for every number of examples."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from ..core import exact, integer_at_least
from ..specs import Examples, Number, kind
from ._task import Task
from ._weights import Pairs, checked_weights, given_weights, meaning_of, show_weights, written_weights


@kind("few-shot", examples=10)
class FewShot(Task):
    r"""Regression from examples: $L = \sum_{t=0}^{N} w_t \cdot \tfrac12 E(\hat y_{t+1} - y_{t+1})^2$.

    The example count $t$ is the number of pairs seen when the label of the query $x_{t+1}$ is predicted.

    Args:
        examples: the largest example count, $1 \le N \le 10^{15}$; prompts hold one more pair, the query of $t = N$.
        weights: `None` for $w_N = 1$ and all others 0: only the last query counts; or a mapping from example
            counts to weights, where missing counts have weight 0; or a sequence of the $N + 1$ weights for
            $t = 0, \dots, N$. Weights are finite and non-negative, at least one is positive.

    Attributes:
        weights: `None` when only $w_N = 1$ counts, else the pairs (t, w_t) with w_t ≠ 0, sorted by t.
    """

    examples: Examples
    weights: Annotated[Pairs | None, PlainValidator(given_weights), PlainSerializer(written_weights)] = None

    def __post_init__(self) -> None:
        checked = checked_weights("example count", range(self.examples + 1), self.weights)
        object.__setattr__(self, "weights", None if checked == ((self.examples, 1),) else checked)

    @classmethod
    def every(cls, examples: int) -> FewShot:
        """Return the task with weight 1 for every prediction, t = 0, …, N."""
        return cls(examples, [1] * (integer_at_least("examples", examples, 1) + 1))

    @property
    def _pairs(self) -> tuple[tuple[int, Number], ...]:
        return ((self.examples, 1),) if self.weights is None else self.weights

    @property
    def support(self) -> Sequence[int]:
        """The example counts with non-zero weight, ascending."""
        return tuple(t for t, _ in self._pairs)

    @property
    def total_weight(self) -> Fraction:
        """Σ_t w_t, exactly."""
        return sum((exact(w) for _, w in self._pairs), Fraction(0))

    @property
    def loss_meaning(self) -> str:
        """What the loss is, e.g. `sum over 21 example counts`; empty if one counts, with weight 1."""
        return meaning_of(self._pairs, len(self._pairs), "example count")

    def weights_array(self) -> np.ndarray:
        """Return w_0, …, w_N as float64, shape (N + 1,)."""
        array = np.zeros(self.examples + 1)
        for t, w in self._pairs:
            array[t] = float(w)
        return array

    def describe(self) -> str:
        """Return e.g. `FewShot(N=20)` or `FewShot(N=20, w_10=1, w_20=1)`."""
        weights = "" if self.weights is None else f", {show_weights(self.weights)}"
        return f"{type(self).__name__}(N={self.examples}{weights})"

    def __repr__(self) -> str:
        weights = None if self.weights is None else dict(self.weights)
        return f"FewShot(examples={self.examples}, weights={weights})"
