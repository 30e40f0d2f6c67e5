"""The algebraic interpretation of the weights of linear attention as a step of gradient descent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mesascope.learners import Learner, PreconditionedGradientDescent
from mesascope.models import LinearAttentionModel

from ._candidates import answers_of
from ._evidence import Evidence
from ._intervals import ratio
from ._metrics import squared
from ._preconditioner_shape import preconditioner_shape

_ALGORITHMS = {"plain": "gradient-descent", "signed": "signed-gradient-descent"}


class Reading(NamedTuple):
    r"""The interpretation of merged weights of one head: $\hat y = L \bar C R q$ with $L$ in W^PV and $R$ in W^KQ.

    Attributes:
        algorithm: "gradient-descent" if L and R are multiples of the identity; "signed-gradient-descent" if they are up to
            signs of the coordinates; else "preconditioned-gradient-descent".
        step_size: the mean of |a_j b_j| over the diagonals of R and L, with the sign of their sum.
        signs: the signs of b_j, shape (d,), the first being positive.
        preconditioner: R, the (x_{i−1}, x_t) block of W^KQ, shape (d, d).
        output_map: L, the x_i block of W^PV, shape (d, d).
        remainder: norm of all other blocks, relative to all weights.
        disagreement: relative distance of the learner's predictions from those of the model.
        learner: the learner with these R and L.
    """

    algorithm: str
    step_size: float
    signs: np.ndarray
    preconditioner: np.ndarray
    output_map: np.ndarray
    remainder: float
    disagreement: float
    learner: Learner

    def describe(self) -> str:
        """Return the interpretation in one line."""
        signs = "".join("+" if sign > 0 else "−" for sign in self.signs)
        shown = f", signs {signs}" if self.algorithm.startswith("signed") else ""
        return (
            f"{self.algorithm}, step size {self.step_size:.6g}{shown}; other blocks {self.remainder:.2g} of the weights; "
            f"distance from the behaviour {self.disagreement:.2g}"
        )


def read_weights(model: Any, evidence: Evidence) -> Reading | None:
    """Return the interpretation of one head of linear attention, with its error; None for other models."""
    if not isinstance(model, LinearAttentionModel):
        return None
    w_kq, w_pv = (np.asarray(w) for w in model.heads())
    if len(w_kq) != 1:
        return None
    w_kq, w_pv, d = w_kq[0], w_pv[0], w_pv.shape[1]
    right, left = w_kq[d:, :d], w_pv[:, :d]
    learner = PreconditionedGradientDescent(right, left)
    products = np.real(np.diag(right) * np.diag(left))
    signs = np.where(np.real(np.diag(left)) * np.real(left[0, 0]) < 0, -1, 1)
    total = np.linalg.norm(w_kq) ** 2 * np.linalg.norm(left) ** 2
    total += np.linalg.norm(right) ** 2 * np.linalg.norm(w_pv[:, d:]) ** 2
    interpreted = np.linalg.norm(right) ** 2 * np.linalg.norm(left) ** 2
    return Reading(
        _ALGORITHMS.get(preconditioner_shape(right, left).name, learner.name),
        float(np.abs(products).mean() * (-1 if products.sum() < 0 else 1)),
        signs,
        right,
        left,
        float(np.sqrt(max(float(total - interpreted), 0.0) / float(total))) if total else 0.0,
        _disagreement(learner, evidence),
        learner,
    )


def _disagreement(learner: Learner, evidence: Evidence) -> float:
    (predicted,) = answers_of([learner], evidence.problems)
    off = squared(evidence.answers - predicted)
    return float(ratio(np.sum(off * evidence.weights), np.sum(squared(evidence.answers) * evidence.weights)))
