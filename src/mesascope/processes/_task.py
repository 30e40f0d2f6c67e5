"""Which predictions count: a weight for every context length."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from ..core import exact, integer_at_least
from ..specs import Component, Horizon, Number, kind
from ._weights import Pairs, checked_weights, given_weights, meaning_of, show_weights, written_weights


class Task(Component, family="task"):
    """Which predictions count."""

    @property
    @abc.abstractmethod
    def loss_meaning(self) -> str:
        """What the loss L = Σ_t w_t L_t is, e.g. `sum over 98 context lengths`; empty if it is a single L_t."""

    def loss_text(self, loss: str) -> str:
        """Return a loss with its meaning, e.g. `0.125 (sum over 98 context lengths)`."""
        return f"{loss} ({self.loss_meaning})" if self.loss_meaning else loss


@kind("next-token", horizon=10)
class NextToken(Task):
    r"""Next-token prediction: $L = \sum_{t=2}^{T-1} w_t \cdot \tfrac12 E\|\hat y_t - x_{t+1}\|^2$.

    The context length $t$ is the number of tokens seen when $x_{t+1}$ is predicted. With all $w_t = 1$ this
    is the paper's autoregressive loss (zheng2024, Section 3).

    Args:
        horizon: tokens per sequence, $3 \le T \le 10^{15}$.
        weights: `None` for $w_t = 1$; or a mapping from context lengths to weights, where missing lengths
            have weight 0; or a sequence of the $T - 2$ weights for $t = 2, \dots, T-1$. Weights are finite
            and non-negative, at least one is positive. An array of size $T$ is stored only if it is given.

    Attributes:
        weights: `None` when every weight is 1, else the pairs (t, w_t) with w_t ≠ 0, sorted by t.
    """

    horizon: Horizon
    weights: Annotated[Pairs | None, PlainValidator(given_weights), PlainSerializer(written_weights)] = None

    def __post_init__(self) -> None:
        checked = checked_weights("context length", range(2, self.horizon), self.weights)
        every = checked is not None and len(checked) == self.horizon - 2 and all(w == 1 for _, w in checked)
        object.__setattr__(self, "weights", None if every else checked)

    @classmethod
    def last(cls, horizon: int) -> NextToken:
        """Return the task with weight 1 for the prediction from the longest context, t = T − 1, and 0 for all others."""
        horizon = integer_at_least("horizon", horizon, 3)
        return cls(horizon, {horizon - 1: 1})

    @property
    def context_lengths(self) -> range:
        """All context lengths t = 2, …, T − 1, for any weights."""
        return range(2, self.horizon)

    @property
    def support(self) -> Sequence[int]:
        """The context lengths with non-zero weight, ascending."""
        return self.context_lengths if self.weights is None else tuple(t for t, _ in self.weights)

    @property
    def total_weight(self) -> Fraction:
        """Σ_t w_t, exactly."""
        if self.weights is None:
            return Fraction(self.horizon - 2)
        return sum((exact(w) for _, w in self.weights), Fraction(0))

    @property
    def loss_meaning(self) -> str:
        """What the loss is, e.g. `sum over 98 context lengths`; empty if one counts, with weight 1."""
        return meaning_of(self.weights, len(self.support), "context length")

    def weight(self, context_length: int) -> Number:
        """Return w_t.

        Raises:
            ValueError: `context_length` is not between 2 and T − 1.
        """
        t = _context_length(self.horizon, context_length)
        return 1 if self.weights is None else dict(self.weights).get(t, 0)

    def weights_array(self) -> np.ndarray:
        """Return w_2, …, w_{T−1} as float64, shape (T − 2,)."""
        if self.weights is None:
            return np.ones(self.horizon - 2)
        array = np.zeros(self.horizon - 2)
        for t, w in self.weights:
            array[t - 2] = float(w)
        return array

    def describe(self) -> str:
        """Return e.g. `NextToken(T=100)` or `NextToken(T=100, w_99=1)`."""
        if self.weights is None:
            return f"{type(self).__name__}(T={self.horizon})"
        return f"{type(self).__name__}(T={self.horizon}, {show_weights(self.weights)})"

    def __repr__(self) -> str:
        weights = None if self.weights is None else dict(self.weights)
        return f"NextToken(horizon={self.horizon}, weights={weights})"


def _context_length(horizon: int, value: object) -> int:
    t = integer_at_least("context length", value, 2)
    if t >= horizon:
        raise ValueError(f"context length must be at most T − 1 = {horizon - 1}, got {t}")
    return t
