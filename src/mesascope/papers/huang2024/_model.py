"""The paper's layer, its exact loss, and its gradient flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate
from mesascope.dynamics import gradient_flow
from mesascope.objectives import Engine, Objective
from mesascope.processes import FewShot, OrthonormalFeatures
from mesascope.theory import huang2024 as theory

from .._claim import Settings
from .._runs import require_finished

PAPER = "huang2024"


class FeatureAttention(eqx.Module):
    """ŷ = Σ_i softmax_i(x_iᵀ Q x_q) y_i over the examples.

    Attributes:
        scores: Q, shape (d, d).
    """

    scores: Array

    def predictions(self, x: Array, y: Array) -> Array:
        """The prediction after 0 … N examples, shape (…, N + 1); 0 without examples."""
        found = [self(x[..., : t + 1, :], y[..., :t]) for t in range(1, x.shape[-2])]
        return jnp.stack([jnp.zeros_like(found[0]), *found], -1)

    def __call__(self, x: Array, y: Array) -> Array:
        """X (…, N + 1, d), the query last, and y (…, N) → (…,)."""
        return jnp.sum(self.attention(x) * y, -1)

    def attention(self, x: Array) -> Array:
        """The attention of the query to every example, shape (…, N)."""
        return jax.nn.softmax(jnp.einsum("...ia,ab,...b->...i", x[..., :-1, :], self.scores, x[..., -1, :]))


class CountedPrompts(Engine):
    """The exact loss of `FeatureAttention`: a sum over all vectors of counts."""

    def objective(self, process: Any, task: Any, normalizer: Any = None) -> Objective:
        """The objective after N examples."""
        probabilities = tuple(float(p) for p in process.probabilities)
        counts, chances = theory.feature_counts(probabilities, task.examples)
        return _CountedLoss(jnp.asarray(counts, float), jnp.asarray(chances), jnp.asarray(probabilities))


class _CountedLoss(Objective):
    counts: Array
    chances: Array
    probabilities: Array

    def __call__(self, model: Any) -> Estimate:
        value = self.probabilities @ self.by_feature(model.scores)
        return Estimate(value, jnp.zeros_like(value))

    def by_feature(self, scores: Array) -> Array:
        """L_k for every feature of the query, shape (K,)."""
        missed = self.to_features(scores) - jnp.eye(len(scores))
        return self.chances @ jnp.sum(missed**2, 1) / 2  # the sum is over the features l of examples

    def to_features(self, scores: Array) -> Array:
        """A_l for every vector of counts, feature l of examples and k of the query, shape (M, K, K)."""
        powers = self.counts[:, :, None] * jnp.exp(scores - scores.max(0))
        return powers / powers.sum(1, keepdims=True)

    def on_matching(self, scores: Array) -> Array:
        """E A_k over prompts in which the query's feature k occurs, shape (K,)."""
        matching = jnp.diagonal(self.to_features(scores), axis1=1, axis2=2)
        occurs = self.chances[:, None] * (self.counts > 0)
        return jnp.sum(occurs * matching, 0) / jnp.sum(occurs, 0)


@dataclass(frozen=True)
class FeatureFlow:
    """A solved flow from Q = 0.

    Attributes:
        times: shape (n,).
        excess: L_k minus that for an infinite gap at every time, relative to that at time 0, shape (n, K).
        matching: expected attention to examples of the query's feature where there are any, shape (n, K).
        loss: L, shape (n,).
        scores: Q at the end, shape (K, K).
    """

    times: np.ndarray
    excess: np.ndarray
    matching: np.ndarray
    loss: np.ndarray
    scores: np.ndarray


class Features(Settings):
    """The numbers of features, and of examples in a prompt."""

    features: int = 4
    examples: int = 30


class Imbalanced(Features):
    """Features that are not equally probable."""

    probabilities: tuple[float, ...] = (0.7, 0.12, 0.1, 0.08)


class Flow(Features):
    """The length of the flow."""

    time: float = 1000.0


def process_of(settings: Features) -> OrthonormalFeatures:
    """Balanced features, or those with the probabilities of the settings."""
    probabilities = settings.probabilities if isinstance(settings, Imbalanced) else None
    return OrthonormalFeatures(settings.features, probabilities=probabilities)


def flow_of(settings: Flow) -> FeatureFlow:
    """The flow Q' = −∇L of the exact loss from Q = 0."""
    process, task = process_of(settings), FewShot(settings.examples)
    start = FeatureAttention(jnp.zeros((settings.features,) * 2))
    flow = require_finished(
        gradient_flow(
            start, process, task, engine=CountedPrompts(), until=settings.time, rtol=1e-8, atol=1e-10
        )
    )
    objective, path = flow.objective, flow.trajectory.scores
    assert isinstance(objective, _CountedLoss)
    by_feature = np.asarray(jax.lax.map(objective.by_feature, path))
    least = theory.least_losses([float(p) for p in process.probabilities], settings.examples)
    return FeatureFlow(
        flow.times,
        (by_feature - least) / (by_feature[0] - least),
        np.asarray(jax.lax.map(objective.on_matching, path)),
        by_feature @ np.asarray(objective.probabilities),
        np.asarray(flow.model.scores),
    )


def first_below(times: np.ndarray, values: np.ndarray, level: float) -> float:
    """The time at which values first fall to a level, interpolated linearly; infinite if they never do."""
    after = int(np.argmax(values <= level))
    if values[after] > level:
        return float("inf")
    if after == 0:
        return float(times[0])
    return float(np.interp(level, values[[after, after - 1]], times[[after, after - 1]]))
