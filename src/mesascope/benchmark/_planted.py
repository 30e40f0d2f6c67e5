"""Learners with random hyperparameters, and convex mixtures of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product
from typing import Any

import numpy as np

from mesascope.learners import Learner
from mesascope.probes import learners_for, plain_hyperparameters
from mesascope.specs import is_ours, known_kinds

from ._cases import Case, Group, truth_of
from ._data import USUAL, Setting, outputs
from ._models import LearnerModel, MixtureModel, not_fitted

_NOISE = 1e-3
_NOISE_OF_MIXTURES = 0.02  # so that weights have intervals worth the name
_STEPS = {
    "conjugate-gradients": (1, 2),  # d = 3 steps are least squares
    "ridge-conjugate-gradients": (2, 2),  # and ridge regression
    "tracking-conjugate-gradients": (1, 2),  # more are ridge regression, too
    "gradient-descent++": (2, 3),  # more diverge on some contexts: the degree grows as 3 to the steps
    "newton": (2, 6),
    "nearest-neighbours": (2, 6),
}
_FEW = (3, 6)  # two steps with a momentum are also two steps with sizes of their own

_OF_VECTORS = product(
    ("average", "nearest-neighbours", "kernel-smoother"), ("gradient-descent", "ridge", "least-squares")
)
_MIXED: dict[str, tuple[tuple[str, ...], ...]] = {
    "prompts": (*_OF_VECTORS, ("average", "nearest-neighbours", "ridge")),
    "tokens": (("last-token", "ridge"), ("average", "least-squares"), ("last-token", "average", "ridge")),
    "chains": tuple(combinations(("retrieval", "unigram-posterior", "dirichlet-posterior"), 2)),
    "pool-of-chains": (
        ("memorizing-symbols", "dirichlet-posterior"),
        ("memorizing-symbols", "unigram-posterior"),
    ),
}
_SMALLEST_WEIGHT = 0.2


def planted(
    data: Mapping[str, Mapping[str, Setting]], draws: int, rng: np.random.Generator
) -> Iterator[Case]:
    """Yield every learner of this package on all data that it reads, `draws` times if it has hyperparameters."""
    for name, settings in data.items():
        process = settings[USUAL].process
        for id in _readable(process, name.startswith("pool")):
            several = bool(known_kinds("learner")[id].fitting.scalars)
            for _ in range(draws if several else 1):
                model = _drawn(id, process, rng)
                yield Case("planted", name, settings, model, truth_of(model), _NOISE)


def mixtures(
    data: Mapping[str, Mapping[str, Setting]], draws: int, rng: np.random.Generator
) -> Iterator[Case]:
    """Yield convex mixtures of two and three learners, each `draws` times."""
    group: Group = "mixture"
    for name, kinds in _MIXED.items():
        for ids in kinds:
            for _ in range(draws):
                parts = tuple(_drawn(id, data[name][USUAL].process, rng) for id in ids)
                free = rng.dirichlet(np.ones(len(ids)))
                weights = _SMALLEST_WEIGHT + (1 - _SMALLEST_WEIGHT * len(ids)) * free
                model = MixtureModel(parts=parts, weights=tuple(map(float, weights)))
                # few symbols make few contexts: what is added to their predictions does not average out over tasks
                noise = 0.0 if name.endswith("chains") else _NOISE_OF_MIXTURES
                yield Case(group, name, data[name], model, truth_of(model), noise)


def _readable(process: Any, pool: bool) -> list[str]:
    """Return the learners to plant: on symbols those that answer with probabilities, on a pool those that have it."""
    kinds = known_kinds("learner")
    ours = [id for id in learners_for(process) if is_ours(kinds[id])]
    found = [id for id in ours if kinds[id].fitting.symbols or process.data != "symbols"]
    return [id for id in found if kinds[id].fitting.of_process] if pool else found


def _drawn(id: str, process: Any, rng: np.random.Generator) -> LearnerModel:
    """Return a learner whose numbers are from the middle third of the range in which fits start, on its scale.

    There they matter: much smaller or larger ones make many learners the answer 0, or least squares.
    """
    kind = known_kinds("learner")[id]
    how = kind.fitting
    given: dict[str, Any] = dict(_arrays(id, *outputs(process), rng))
    for scalar in how.scalars:
        _, low, high, _ = scalar.starts(4, 1.0)
        given[scalar.name] = float(scalar.value(rng.uniform(low, high)))
    if how.integer:
        low, high = _STEPS.get(id, _FEW)
        given[how.integer] = int(rng.integers(low, high + 1))
    learner: Learner = (how.make or kind)(**{**not_fitted(kind, process), **given})
    return LearnerModel(learner=id, hyperparameters=plain_hyperparameters(learner))


def _arrays(id: str, inputs: int, outputs: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the hyperparameters that are arrays."""
    if id == "constant":
        return {"value": rng.normal(size=outputs)}
    if id == "layered-gradient-descent":
        return {"step_sizes": np.sort(10 ** rng.uniform(-1, 0, 3))}
    if id == "layered-gradient-descent++":
        return {"step_sizes": 10 ** rng.uniform(-1, -0.3, 2), "curvatures": rng.uniform(0.1, 0.4, 1)}
    if id == "preconditioned-gradient-descent":
        return {"preconditioner": 0.2 * (np.eye(inputs) + 0.3 * rng.normal(size=(inputs, inputs)))}
    return {}
