"""Bayesian predictions for tasks of a finite pool: by the pool alone, or by the pool and a Gaussian prior."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array
from jax.nn import softmax

from mesascope.core import concrete, finite_array

from ._arithmetic import einsum, log_or_minus_infinity, real_in_precision_of
from ._checks import nonnegative_number, positive_noise, share
from ._fitting import Scalar, learner
from ._learner import Features, Learner
from ._moments import NormalEquations
from ._posterior_mean import checked_prior, in_prior_units

_NOISE = Scalar("noise_variance", 1e-3, 1e3, power=1)
_POOL = (("tasks", "weights_of_tasks"),)
_EXAMPLE_POOL = [
    [[1.0, 0.5, -0.4], [0.3, 0.2, 0.8]],
    [[-0.2, 1.1, 0.3], [-0.7, 0.4, 0.1]],
    [[0.6, -0.8, 0.9], [0.2, -1.0, 0.5]],
]


class _PoolLearner(Learner):
    reads: ClassVar[type[Features]] = NormalEquations

    tasks: Array

    @property
    def rotation_invariant(self) -> bool:
        """No: the tasks of the pool are fixed."""
        return False

    def _evidence(self, features: NormalEquations) -> tuple[Array, Array]:
        """Return σ² log p(y | W_k), but for a part without k, and the size of its terms; shapes (…, K)."""
        shape = (features.cross.shape[-2], features.query.shape[-1])
        if self.tasks.shape[1:] != shape:
            raise ValueError(
                f"tasks of shape {self.tasks.shape} do not fit {shape[0]} outputs of {shape[1]} inputs"
            )
        tasks = real_in_precision_of(features.query, self.tasks)
        fitted = einsum("kmi,...mi->...k", tasks, features.cross).real
        power = einsum("kmi,...ij,kmj->...k", tasks, features.gram, tasks).real
        scale = _weight(features) * features.n[..., None]
        return scale * (2 * fitted - power), scale * (2 * jnp.abs(fitted) + power)

    def _answers(self, query: Array) -> Array:
        """Return W_k q, shape (…, K, m)."""
        return einsum("kmi,...i->...km", real_in_precision_of(query, self.tasks), query)


def _weight(features: NormalEquations) -> float:
    """Return the factor of |y − W x|²/σ² in the log likelihood: complex noise has E|ξ|² = σ², half of it in either part."""
    return 1.0 if jnp.iscomplexobj(features.cross) else 0.5


@learner(
    "memorizing",
    _NOISE,
    of_process=_POOL,
    family="bayes",
    tasks=100,
    flexibility=105,
    example={"tasks": _EXAMPLE_POOL, "noise_variance": 0.3},
)
class Memorizing(_PoolLearner):
    r"""The posterior mean under a uniform prior on the tasks of a pool (dMMSE of raventos2023).

    $$\hat y = \sum_k p_k W_k q, \qquad p_k \propto \exp\Bigl(-\frac1{2 \sigma^2} \sum_i |y_i - W_k x_i|^2\Bigr).$$

    It is the best prediction on prompts of the pool. Without noise the posterior is not defined for examples of another
    task: then the tasks of the smallest squared error share the weight, which is the limit of small noise. Before the first
    example it is the mean of the pool.

    Args:
        tasks: $W_1 \dots W_K$, shape (K, m, p), or (K, p) for one output.
        noise_variance: $\sigma^2 \ge 0$.

    Raises:
        TypeError, ValueError: `tasks` is no such real array or does not fit the data; `noise_variance` is not a finite
            number ≥ 0.
    """

    tasks: Array
    noise_variance: Array

    def __init__(self, tasks: Any, noise_variance: Any):
        self.tasks = _checked_tasks(tasks)
        self.noise_variance = nonnegative_number("noise_variance", noise_variance)

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        evidence, sizes = self._evidence(features)
        variance = real_in_precision_of(evidence, self.noise_variance)
        best = jnp.argmax(evidence, -1, keepdims=True)
        # exactly 0 at the best task, whatever is fused: little noise makes any rounding there infinite
        below = jnp.minimum(evidence - jnp.take_along_axis(evidence, best, -1), 0)
        below = jnp.where(jnp.arange(len(self.tasks)) == best, 0, below)
        noisy = jnp.exp(below / jnp.where(variance > 0, variance, 1))
        noisy = noisy / noisy.sum(-1, keepdims=True)
        # equal but for the rounding of the sums of the two
        rounding = (
            64 * jnp.finfo(evidence.dtype).eps * jnp.maximum(sizes, jnp.take_along_axis(sizes, best, -1))
        )
        nearest = (evidence >= jnp.take_along_axis(evidence, best, -1) - rounding).astype(evidence.dtype)
        shares = jnp.where(variance > 0, noisy, nearest / nearest.sum(-1, keepdims=True))
        return einsum("...k,...km->...m", shares, self._answers(features.query))


@learner(
    "bayes-mixture",
    _NOISE,
    Scalar("pool_share", 0.05, 0.95, bounded=True),
    of_process=_POOL,
    extends=("memorizing", (("pool_share", 1.0),)),
    of_process_if_any=(("prior", "task_covariance"),),
    family="bayes",
    tasks=100,
    flexibility=205,
    example={"tasks": _EXAMPLE_POOL, "noise_variance": 0.3, "pool_share": 0.6},
)
class BayesMixture(_PoolLearner):
    r"""The posterior mean if the task is one of a pool with probability $\pi$, and else drawn from $N(0, \Sigma)$.

    $$\hat y = \rho\, \hat y_{\text{pool}} + (1 - \rho)\, \hat y_{\text{ridge}}, \qquad
    \frac{\rho}{1 - \rho} = \frac{\pi}{1 - \pi} \cdot \frac{\frac1K \sum_k p(y \mid w_k)}{p(y \mid N(0, \Sigma))},$$

    with $\hat y_{\text{pool}}$ of `Memorizing` and $\hat y_{\text{ridge}}$ of `PosteriorMean`. For $\pi = 1$ it memorizes,
    for $\pi = 0$ it generalizes. Log likelihoods are differences of numbers of size $|y|^2/\sigma^2$, and have their rounding:
    in single precision $\rho$ is certain only for $\sigma^2$ above some $10^{-5} |y|^2$. `identify` takes $\Sigma$ from the
    process; on the sphere and for sparse weights $\Sigma = I$ stands in.

    Args:
        tasks: $W_1 \dots W_K$, shape (K, m, p), or (K, p) for one output.
        noise_variance: $\sigma^2 > 0$.
        pool_share: $\pi$, from 0 to 1.
        prior: $\Sigma$, as for `PosteriorMean`.

    Raises:
        TypeError, ValueError: `tasks` is no such real array or does not fit the data; `noise_variance` is not a finite
            number > 0, `pool_share` none from 0 to 1, `prior` no such matrix.
    """

    tasks: Array
    noise_variance: Array
    pool_share: Array
    prior: Array

    def __init__(self, tasks: Any, noise_variance: Any, pool_share: Any, prior: Any = 1.0):
        self.tasks = _checked_tasks(tasks)
        self.noise_variance = positive_noise(noise_variance)
        self.pool_share = share("pool_share", pool_share)
        self.prior = checked_prior(prior)

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        evidence, _ = self._evidence(features)
        variance, pool = (
            real_in_precision_of(evidence, one) for one in (self.noise_variance, self.pool_share)
        )
        standard = in_prior_units(features, self.prior)
        total = features.n[..., None, None] * standard.gram / variance
        linear = features.n[..., None, None] * standard.cross / variance  # (…, m, p)
        precision = total + jnp.eye(total.shape[-1], dtype=total.dtype)
        mean = jnp.linalg.solve(jnp.swapaxes(precision, -1, -2), jnp.swapaxes(linear, -1, -2))  # Wᵀ
        explained = jnp.sum(linear.conj() * jnp.swapaxes(mean, -1, -2), (-2, -1)).real
        spread = linear.shape[-2] * jnp.linalg.slogdet(precision)[1]
        gaussian = _weight(features) * (explained - spread) + log_or_minus_infinity(1 - pool)
        scores = evidence / variance + log_or_minus_infinity(pool) - jnp.log(len(self.tasks))
        shares = softmax(jnp.concatenate([scores, gaussian[..., None]], -1), -1)
        ridge = einsum("...im,...i->...m", mean, standard.query)
        answers = jnp.concatenate([self._answers(features.query), ridge[..., None, :]], -2)
        return einsum("...k,...km->...m", shares, answers)


def _checked_tasks(value: Any) -> Array:
    tasks = finite_array("tasks", value)
    tasks = tasks[:, None] if tasks.ndim == 2 else tasks
    if tasks.ndim != 3 or not len(tasks) or jnp.iscomplexobj(tasks):
        raise ValueError(f"tasks must be real, of shape (K, m, p) or (K, p), got shape {tasks.shape}")
    return jnp.asarray(tasks, float) if concrete(tasks) else tasks
