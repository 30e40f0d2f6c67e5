"""What learners are fitted to: problems and the predictions of a model for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._metrics import squared
from ._problems import Problems

MAX_MEDIANS = 10.0  # the maximal size of a task, in medians


class Evidence(NamedTuple):
    """Problems and the predictions of the model for them, shape (batch, N + 1, m)."""

    problems: Problems
    answers: np.ndarray

    def part(self, start: int, stop: int) -> Evidence:
        """Return the tasks start … stop − 1."""
        return Evidence(self.problems.part(start, stop), self.answers[start:stop])

    @property
    def weights(self) -> np.ndarray:
        r"""$w_n \min(1, 10 m / \|f\|^2)$, shape (batch, N + 1): no task counts more than ten medians.

        $\|f\|^2$ is the weighted sum of squared predictions in a task, $m$ its median over tasks. Otherwise rare tasks on
        which an algorithm diverges would dominate the fit and the distance.
        """
        sizes = squared(self.answers) @ self.problems.weights
        limit = MAX_MEDIANS * np.median(sizes)
        share = np.divide(limit, sizes, out=np.ones_like(sizes), where=sizes > limit) if limit > 0 else 1.0
        return np.outer(share * np.ones_like(sizes), self.problems.weights)

    @property
    def size(self) -> float:
        """The weighted sum of |f|² over all tasks, or 1 if all predictions are 0."""
        total = float(np.sum(self.weights * squared(self.answers)))
        return total if total > 0 else 1.0
