"""The Bayesian prediction of symbols for tasks of a finite pool."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import softmax
from jax.scipy.special import gammaln

from mesascope.core import concrete, finite_array

from ._arithmetic import einsum, log_or_minus_infinity, real_in_precision_of
from ._checks import positive_number, share
from ._counts import pair_counts, symbol_counts
from ._fitting import Scalar, learner
from ._learner import Features, Learner
from ._moments import NormalEquations

_SUM_TOLERANCE = 1e-5  # rows that were made in single precision have sums that are 1 up to some of its roundings, 6e-8 each
_POOL = (("tasks", "probabilities_of_tasks"),)
_EXAMPLE_POOL = [
    [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.25, 0.5, 0.25]],
    [[0.2, 0.7, 0.1], [0.6, 0.2, 0.2], [0.1, 0.3, 0.6]],
]


class _SymbolPoolLearner(Learner):
    """The posterior over the tasks of a pool, from counts of symbols or of pairs."""

    reads: ClassVar[type[Features]] = NormalEquations

    tasks: Array

    @property
    def rotation_invariant(self) -> bool:
        """No: the tasks of the pool are fixed."""
        return False

    def _evidence(self, counts: Array) -> tuple[Array, Array]:
        """Return log p(context | task), shape (…, K), and the fewest symbols of probability 0 under any task, shape (…, 1).

        Symbols of probability 0 are left out; tasks with more than the fewest of them have −∞.
        """
        possible = self.tasks > 0
        logs = jnp.where(possible, jnp.log(jnp.where(possible, self.tasks, 1)), 0)
        likelihood = _sums(counts, real_in_precision_of(counts, logs))
        excluded = _sums(counts, (~possible).astype(counts.dtype))
        fewest = excluded.min(-1, keepdims=True)
        inside = excluded <= fewest + 0.5  # integers but for rounding
        return jnp.where(inside, likelihood, -jnp.inf), fewest

    def _answers(self, shares: Array, query: Array) -> Array:
        """Return the probabilities of the next symbol of all tasks in the given shares, shape (…, m)."""
        tasks = real_in_precision_of(shares, self.tasks)
        if tasks.ndim == 2:
            return einsum("...k,km->...m", shares, tasks).astype(query.dtype)
        return einsum("...k,kpm,...p->...m", shares, tasks, query)

    def _counts(self, features: NormalEquations) -> Array:
        """Return what is counted for tasks of this shape: symbols, shape (…, m), or pairs, shape (…, p, m)."""
        inputs, outputs = features.query.shape[-1], features.cross.shape[-2]
        if self.tasks.shape[1:] not in ((outputs,), (inputs, outputs)):
            raise ValueError(
                f"tasks of shape {self.tasks.shape} do not fit {outputs} outputs of {inputs} inputs"
            )
        return (
            symbol_counts(features) if self.tasks.ndim == 2 else jnp.swapaxes(pair_counts(features), -1, -2)
        )


@learner(
    "memorizing-symbols",
    symbols=True,
    of_process=_POOL,
    family="bayes",
    tasks=100,
    flexibility=215,
    example={"tasks": _EXAMPLE_POOL},
)
class MemorizingSymbols(_SymbolPoolLearner):
    r"""The posterior mean of the probabilities of the next symbol under a uniform prior on the tasks of a pool.

    For Markov chains with transition matrices $\pi_1 \dots \pi_K$ and uniform first symbols, and for urns with probabilities
    $p_1 \dots p_K$,

    $$\hat y_b = \sum_k q_k \pi_k(a, b), \quad q_k \propto \prod_{a'b'} \pi_k(a', b')^{N_{a'b'}}, \qquad
    \hat y_b = \sum_k q_k p_k(b), \quad q_k \propto \prod_{b'} p_k(b')^{N_{b'}},$$

    with $a$ the query, the last symbol of the context, $N_{a'b'}$ the number of times that $b'$ followed $a'$ in it, and
    $N_{b'}$ the number of times that $b'$ stands in it, the query included. It is the best prediction of every symbol of
    sequences of the pool (the memorizing predictor of wurgaft2025).

    Where a context has probability 0 under every task, as contexts of other tasks may, the posterior is not defined. Then the
    tasks with the fewest symbols of probability 0 share the weight, in proportion to the probability of the other symbols: the
    limit of tasks that draw a uniform symbol with a small probability, which is the posterior where that is defined.

    Args:
        tasks: $\pi_1 \dots \pi_K$, shape (K, p, m), rows of the symbol before, or $p_1 \dots p_K$, shape (K, m).

    Raises:
        TypeError, ValueError: `tasks` is no such real array of probabilities, or does not fit the data.
    """

    tasks: Array

    def __init__(self, tasks: Any):
        self.tasks = _checked_tasks(tasks)

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        evidence, _ = self._evidence(self._counts(features))
        return self._answers(softmax(evidence, -1), features.query)


@learner(
    "bayes-mixture-symbols",
    Scalar("concentration", 1e-3, 1e2),
    Scalar("pool_share", 0.05, 0.95, bounded=True),
    symbols=True,
    of_process=_POOL,
    extends=("memorizing-symbols", (("concentration", 1.0), ("pool_share", 1.0))),
    family="bayes",
    tasks=100,
    flexibility=220,
    example={"tasks": _EXAMPLE_POOL, "concentration": 2.0, "pool_share": 0.6},
)
class BayesMixtureSymbols(_SymbolPoolLearner):
    r"""The posterior mean if the task is one of a pool with probability $\varpi$, and else drawn from the Dirichlet prior.

    $$\hat y = \rho\, \hat y_{\text{pool}} + (1 - \rho)\, \hat y_{\text{prior}}, \qquad
    \frac{\rho}{1 - \rho} = \frac{\varpi}{1 - \varpi} \cdot
    \frac{\frac1K \sum_k p(s_1 \dots s_t \mid k)}{p(s_1 \dots s_t \mid \alpha)},$$

    with $\hat y_{\text{pool}}$ of `MemorizingSymbols`, $\hat y_{\text{prior}}$ of `UnigramPosterior` for urns and of
    `DirichletPosterior` for Markov chains, and the probability of the context under the prior

    $$p(s_1 \dots s_t \mid \alpha) = \prod_a \frac{\Gamma(m\alpha)}{\Gamma(m\alpha + N_a)} \prod_b
    \frac{\Gamma(\alpha + N_{ab})}{\Gamma(\alpha)}, \qquad N_a = \sum_b N_{ab},$$

    of counts as in `MemorizingSymbols`; urns have one row $a$. A uniform first symbol of chains has the same probability under
    both. For $\varpi = 1$ it memorizes, for $\varpi = 0$ it generalizes.

    Args:
        tasks: as for `MemorizingSymbols`.
        concentration: $\alpha > 0$.
        pool_share: $\varpi$, from 0 to 1.

    Raises:
        TypeError, ValueError: `tasks` is no such real array of probabilities, or does not fit the data; `concentration` is
            not a finite number > 0, `pool_share` none from 0 to 1.
    """

    tasks: Array
    concentration: Array
    pool_share: Array

    def __init__(self, tasks: Any, concentration: Any, pool_share: Any):
        self.tasks = _checked_tasks(tasks)
        self.concentration = positive_number("concentration", concentration)
        self.pool_share = share("pool_share", pool_share)

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        counts = self._counts(features)
        evidence, impossible = self._evidence(counts)
        pool, alpha = (real_in_precision_of(counts, one) for one in (self.pool_share, self.concentration))
        scores = evidence + log_or_minus_infinity(pool) - jnp.log(len(self.tasks))
        # a context that no task of the pool can have made is the prior's, unless that has no share
        scores = jnp.where((impossible > 0.5) & (pool < 1), -jnp.inf, scores)
        rows = _log_marginals(counts, alpha)
        prior = (rows if self.tasks.ndim == 2 else rows.sum(-1)) + log_or_minus_infinity(1 - pool)
        shares = softmax(jnp.concatenate([scores, prior[..., None]], -1), -1)
        own = counts if self.tasks.ndim == 2 else einsum("...pm,...p->...m", counts, features.query)
        own = own + alpha
        expected = (own / own.sum(-1, keepdims=True)).astype(features.query.dtype)
        return self._answers(shares[..., :-1], features.query) + shares[..., -1:] * expected


def _log_marginals(counts: Array, alpha: Array) -> Array:
    """Return the logarithm of the Dirichlet-multinomial probability of each row of counts, shape (…, m) → (…)."""
    total = counts.shape[-1] * alpha
    entries = jnp.sum(gammaln(alpha + counts) - gammaln(alpha), -1)
    return entries + gammaln(total) - gammaln(total + counts.sum(-1))


def _sums(counts: Array, of_tasks: Array) -> Array:
    """Return the sums over all symbols or pairs of their counts times a number of every task, shape (…, K)."""
    axes = "m" if of_tasks.ndim == 2 else "pm"
    return einsum(f"...{axes},k{axes}->...k", counts, of_tasks)


def _checked_tasks(value: Any) -> Array:
    tasks = finite_array("tasks", value)
    if tasks.ndim not in (2, 3) or not tasks.size or jnp.iscomplexobj(tasks):
        raise ValueError(f"tasks must be real, of shape (K, p, m) or (K, m), got shape {tasks.shape}")
    if not concrete(tasks):
        return tasks
    numbers = np.asarray(tasks, float)
    if numbers.min() < 0 or abs(numbers.sum(-1) - 1).max() > _SUM_TOLERANCE:
        raise ValueError(
            "tasks must have rows of probabilities, at least 0 and of sum 1; divide rows by their sums"
        )
    return jnp.asarray(tasks, float)
