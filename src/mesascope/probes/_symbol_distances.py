"""Distances of probabilities of symbols: the excess cross-entropy, and the total variation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mesascope.learners import Learner
from mesascope.records import SymbolDistances

from ._candidates import answers_of
from ._evidence import Evidence
from ._intervals import Measured, bootstrapped


def symbol_distances(
    learners: Sequence[Learner], evidence: Evidence, level: float, seed: int
) -> list[SymbolDistances]:
    r"""Return how far the probabilities of learners are from those of a model, averaged over tasks and numbers of examples.

    The excess cross-entropy $E \sum_s f_s \log(f_s/g_s)$ is by how much the cross-entropy of the learner's $g$ against the
    model's $f$ exceeds the entropy of $f$: their relative entropy, in nats. It is infinite where a learner excludes a symbol
    that the model does not. The total variation is $E \frac12 \sum_s |f_s - g_s|$, between 0 and 1 for probabilities.

    Args:
        learners: the learners, with their hyperparameters.
        evidence: problems of symbols, and the probabilities of the model for them.
        level: confidence level of the intervals over tasks.
        seed: seed of the bootstrap.
    """
    return [_distances(evidence, answers, level, seed) for answers in answers_of(learners, evidence.problems)]


def _distances(evidence: Evidence, answers: np.ndarray, level: float, seed: int) -> SymbolDistances:
    model, weights = np.asarray(evidence.answers, float), evidence.problems.weights
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(model > 0, model * np.log(model / np.where(answers > 0, answers, 0)), 0).sum(-1)
    half = np.abs(model - answers).sum(-1) / 2
    tables = [
        np.einsum("n,bn->b", weights[seen], one[:, seen]) for one in (excess, half) for seen in [weights > 0]
    ]
    entropy, variation = (_mean(table[:, None], level, seed) for table in tables)
    return SymbolDistances(
        excess_cross_entropy=entropy.value.item(),
        excess_interval=(entropy.low.item(), entropy.high.item()),
        total_variation=variation.value.item(),
        variation_interval=(variation.low.item(), variation.high.item()),
    )


def _mean(table: np.ndarray, level: float, seed: int) -> Measured:
    if np.isfinite(table).all():
        return bootstrapped(table, lambda means: means, level=level, seed=seed)
    return Measured(*(np.array([np.inf]) for _ in range(3)))  # a sum with an infinite term has no other mean
