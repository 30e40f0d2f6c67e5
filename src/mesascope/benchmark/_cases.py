"""One model of the benchmark: what it is, the data that it reads, and the right answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel

from mesascope.probes import Predictor
from mesascope.records import PlainMapping

from ._data import Setting
from ._models import AnyModel, Architecture, LearnerModel, MixtureModel, NetworkModel, disturbed

Group = Literal["planted", "construction", "trained", "mixture", "decoy"]
"""Where a model comes from."""
GROUPS: tuple[Group, ...] = ("planted", "construction", "trained", "mixture", "decoy")
"""All groups, in the order of tables."""
SAME = {"posterior-mean": "ridge"}
"""Learners that are another one on all data of the benchmark: its tasks have the covariance I."""


class Truth(BaseModel, frozen=True, extra="forbid"):
    """The right answer for one model.

    Attributes:
        learners: the ids of its learners: one, those of a mixture, or none for a decoy.
        hyperparameters: by id, those that are known.
        weights: of a mixture, by id.
    """

    learners: tuple[str, ...]
    hyperparameters: dict[str, PlainMapping]
    weights: dict[str, float]


class Case(NamedTuple):
    """A model of the benchmark.

    Attributes:
        group: where it comes from.
        data: the name of its data.
        settings: its data, by setting.
        model: its description.
        truth: the right answer.
        noise: relative size of what is added to its predictions.
        weights: arrays of a network.
    """

    group: Group
    data: str
    settings: Mapping[str, Setting]
    model: AnyModel
    truth: Truth
    noise: float = 0.0
    weights: Mapping[str, np.ndarray] = {}


def predictor(model: AnyModel, usual: Setting, noise: float, weights: Mapping[str, np.ndarray]) -> Predictor:
    """Return the model of a description, as it is on its usual data."""
    made = model.predictor(usual.process, weights)
    return disturbed(made, noise, usual.process) if noise else made


def truth_of(model: LearnerModel | MixtureModel) -> Truth:
    """Return the right answer for a learner or a mixture of learners."""
    parts, weights = (model.parts, model.weights) if isinstance(model, MixtureModel) else ((model,), ())
    names = [part.learner for part in parts]
    known = {part.learner: part.hyperparameters for part in parts if part.learner not in SAME}
    learners = tuple(SAME.get(name, name) for name in names)
    return Truth(learners=learners, hyperparameters=known, weights=dict(zip(learners, weights, strict=False)))


def network(
    group: Group,
    name: str,
    settings: Mapping[str, Setting],
    architecture: Architecture,
    weights: Mapping[str, np.ndarray],
    learner: str,
    **hyperparameters: object,
) -> Case:
    """Return the case of a network that is known to be a learner."""
    truth = Truth(learners=(learner,), hyperparameters={learner: hyperparameters}, weights={})
    model = NetworkModel(architecture=architecture)
    return Case(group, name, settings, model, truth, weights=weights)
