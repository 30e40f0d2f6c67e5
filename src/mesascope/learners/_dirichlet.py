"""The Bayesian prediction of symbols under a Dirichlet prior."""

from __future__ import annotations

from typing import Any, ClassVar

from jax import Array

from ._arithmetic import einsum, real_in_precision_of
from ._checks import positive_number
from ._fitting import Scalar, learner
from ._learner import Features, Learner
from ._moments import NormalEquations


@learner(
    "dirichlet-posterior",
    Scalar("concentration", 1e-3, 1e2),
    symbols=True,
    family="bayes",
    flexibility=210,
    example={"concentration": 20.0},
)
class DirichletPosterior(Learner):
    r"""The posterior mean of the probabilities of the next symbol, for symbols as one-hot vectors.

    After input symbol $a$ the output is symbol $b$ with probability $\pi_{ab}$; the rows of $\pi$ are independent
    $\mathrm{Dirichlet}(\alpha, \dots, \alpha)$. If the query is symbol $a$,

    $$\hat y_b = \frac{N_{ab} + \alpha}{\sum_{b'} N_{ab'} + m \alpha}, \qquad N_{ab} = (C q)_b,$$

    with $N_{ab}$ the number of times that $b$ followed $a$. Before the first example it is $1/m$, the mean of the prior.

    Args:
        concentration: $\alpha > 0$.

    Raises:
        TypeError, ValueError: `concentration` is not a finite number > 0.

    Source: nichani2024, the Bayes predictor of a chain; it is the best prediction of every symbol of `MarkovChains`.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    concentration: Array

    def __init__(self, concentration: Any):
        self.concentration = positive_number("concentration", concentration)

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        # not `pair_counts`: inputs that were rotated by unitary matrices may be complex
        n = features.n[..., None].astype(features.cross.real.dtype)
        counts = n * einsum("...mp,...p->...m", features.cross, features.query)
        counts = counts + real_in_precision_of(counts, self.concentration)
        return counts / counts.sum(-1, keepdims=True)
