"""The Bayesian prediction of symbols of a chain of second order under a Dirichlet prior."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from ._arithmetic import einsum, real_in_precision_of
from ._checks import positive_number
from ._examples import Context
from ._fitting import Scalar, learner
from ._learner import Features, Learner


@learner(
    "trigram-posterior",
    Scalar("concentration", 1e-3, 1e2),
    symbols=True,
    family="bayes",
    flexibility=212,
    example={"concentration": 20.0},
)
class TrigramPosterior(Learner):
    r"""The posterior mean of the probabilities of the next symbol given the last two, for symbols as one-hot vectors.

    After the symbols $a, b$ the next one is $c$ with probability $\pi_{abc}$; the rows of $\pi$ are independent
    $\mathrm{Dirichlet}(\alpha, \dots, \alpha)$. If the last two symbols of the sequence are $a = x_n$ and $b = q$,

    $$\hat y_c = \frac{N_{abc} + \alpha}{\sum_{c'} N_{abc'} + m \alpha}, \qquad
    N_{abc} = \sum_{i=2}^n (x_{i-1}^* x_n) (x_i^* q) \, y_{ic},$$

    with $N_{abc}$ the number of times that $c$ followed the pair $a, b$. Where the pair has not occurred before, as before the
    first example, it is $1/m$, the mean of the prior. It is `DirichletPosterior` with one more symbol of memory.

    Args:
        concentration: $\alpha > 0$.

    Raises:
        TypeError, ValueError: `concentration` is not a finite number > 0.

    Source: edelman2024, Markov chains of order $n - 1$ and their $n$-grams, for $n = 3$.
    """

    reads: ClassVar[type[Features]] = Context

    concentration: Array

    def __init__(self, concentration: Any):
        self.concentration = positive_number("concentration", concentration)

    def respond(self, features: Context) -> Array:
        """Return the prediction, shape (…, m)."""
        counts = _triple_counts(features)
        counts = counts + real_in_precision_of(counts, self.concentration)
        return counts / counts.sum(-1, keepdims=True)


def _triple_counts(features: Context) -> Array:
    """Return the number of times that each symbol followed the last two, shape (…, m)."""
    x, seen = features.x, features.seen
    is_last = jnp.arange(x.shape[-2]) == features.n[..., None] - 1
    last = jnp.where(is_last[..., None], x, 0).sum(-2)  # 0 without examples
    before = einsum("...np,...p->...n", x.conj(), last)
    # x_{i-1} = x_n and x_i = q, for i = 2 … n; not by booleans, so that unitary changes of the inputs change nothing
    pairs = before[..., :-1] * features.overlaps[..., 1:]
    pairs = jnp.where(seen[..., 1:], pairs, 0)
    return einsum("...n,...nm->...m", pairs, features.y[..., 1:, :])
