"""Augmented tokens of Haar orthogonal matrices, which do not commute: data, training and loss of one layer."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from mesascope.models import LinearAttentionModel, SequenceModel
from mesascope.objectives import sample_losses
from mesascope.processes import Law, NextToken, OrthogonalAR

from .._recorded import Trainings, recorded_trainings


class OrthogonalTrainings(Trainings):
    """Sizes of the data, and how layers are trained."""

    dim: int = 4
    horizon: int = 10
    scale: float = 0.1  # of the weights of linear attention
    rate: float = 0.02
    steps: int = 600
    batch: int = 256


def train(
    make: Callable[[Array], SequenceModel], law: Law, settings: OrthogonalTrainings
) -> list[SequenceModel]:
    """One trained model a seed, for first tokens of a law."""
    process, task, steps = OrthogonalAR(law, settings.dim), NextToken(settings.horizon), settings.steps
    return recorded_trainings(make, process, task, [steps], settings, warmup=20, clip=1.0)[steps]


def mean_loss(model: SequenceModel | LinearAttentionModel, tokens: Array, task: NextToken) -> float:
    """The mean over sequences."""
    return float(jnp.mean(sample_losses(model, tokens, task)))
