"""How the claims of raventos2023 are tested: with small trainings, and with planted algorithms in place of what was trained."""

from typing import Any

import equinox as eqx

from mesascope.learners import Memorizing, Ridge, predictions, prompt_examples
from mesascope.papers.raventos2023 import _data, _learning, _named, _pools

from . import Case

TRAINED = {"sizes": [2, 8, 32], "steps": 3200, "seeds": 2, "prompts": 600}


class Planted(eqx.Module):
    """A learner in the place of a trained model."""

    learner: Any

    def predictions(self, x, y):
        return predictions(self.learner, *prompt_examples(x, y))[..., 0]


def planted(learner_of):
    """Every model is a learner at every number of steps: `learner_of(settings, tasks)`."""

    def world(patch):
        _instead(patch, lambda settings, tasks: _everywhere(settings, learner_of(settings, tasks)))

    return world


def _everywhere(settings, learner):
    models = [Planted(learner)] * settings.seeds
    return {step: models for step in _data.recorded(settings)}


def _instead(patch, trained):
    """Claims judge these models, not cached measurements of others."""
    measured = _data.measured.__wrapped__
    for module in (_data, _pools, _learning, _named):
        for name, value in (("trained", trained), ("measured", measured)):
            if hasattr(module, name):
                patch.setattr(module, name, value)


def _memorizing(settings, tasks):
    return Memorizing(_data.pool(settings, tasks).table, settings.noise**2)


def _of_another_pool(settings, tasks):
    other = _data.Training.of(settings, pool_seed=settings.pool_seed + 7)
    return _memorizing(other, tasks)


def _generalizing(settings, tasks):
    return Ridge(settings.noise**2)


generalizing, memorizing = planted(_generalizing), planted(_memorizing)
another_pool = planted(_of_another_pool)


def reversed_in_training(patch):
    """On few tasks models begin as ridge and end memorizing, on many the other way round."""

    def trained(settings, tasks):
        steps = _data.recorded(settings)
        memory, learned = _memorizing(settings, tasks), _generalizing(settings, tasks)
        first, last = (learned, memory) if tasks == 2 else (memory, learned)
        half = len(steps) // 2
        return {
            step: [Planted(first if place < half else last)] * settings.seeds
            for place, step in enumerate(steps)
        }

    _instead(patch, trained)


CASES = {
    "raventos2023/few-tasks": Case(TRAINED, generalizing, (another_pool,), traced=False),
    "raventos2023/many-tasks": Case(TRAINED, memorizing, (another_pool,), traced=False),
    "raventos2023/crossing": Case(TRAINED, memorizing, (generalizing,), traced=False),
    "raventos2023/learning-curves": Case(
        TRAINED, reversed_in_training, decision="not met", turned="met", traced=False
    ),
    "raventos2023/named": Case({**TRAINED, "tasks": 160}, generalizing, (memorizing,), traced=False),
}
