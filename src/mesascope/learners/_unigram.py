"""The Bayesian prediction of independent symbols under a Dirichlet prior."""

from __future__ import annotations

from typing import Any, ClassVar

from jax import Array

from ._arithmetic import real_in_precision_of
from ._checks import positive_number
from ._counts import symbol_counts
from ._fitting import Scalar, learner
from ._learner import Features, Learner
from ._moments import NormalEquations


@learner(
    "unigram-posterior",
    Scalar("concentration", 1e-3, 1e2),
    symbols=True,
    family="bayes",
    flexibility=208,
    example={"concentration": 20.0},
)
class UnigramPosterior(Learner):
    r"""The posterior mean of the probabilities of independent symbols, given as one-hot vectors.

    The symbols of a sequence $s_1, s_2, \dots$ are independent with probabilities $p \sim \mathrm{Dirichlet}(\alpha, \dots,
    \alpha)$. After $t$ of them, among which symbol $b$ stands $N_b$ times,

    $$\hat y_b = \frac{N_b + \alpha}{t + m \alpha}.$$

    The first symbol counts, and so does the query, the last one. It is the best prediction for `Urns`; that for Markov chains
    is `DirichletPosterior`.

    Args:
        concentration: $\alpha > 0$.

    Raises:
        TypeError, ValueError: `concentration` is not a finite number > 0; inputs and outputs of different sizes.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    concentration: Array

    def __init__(self, concentration: Any):
        self.concentration = positive_number("concentration", concentration)

    @property
    def rotation_invariant(self) -> bool:
        """No: it counts symbols."""
        return False

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        counts = symbol_counts(features)
        counts = counts + real_in_precision_of(counts, self.concentration)
        return (counts / counts.sum(-1, keepdims=True)).astype(features.query.dtype)
