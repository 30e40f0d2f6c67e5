"""How the claims of raventos2023 are tested: with small trainings, and with planted algorithms in place of what was trained."""

from typing import Any

import equinox as eqx

from mesascope.learners import Memorizing, Ridge, predictions, prompt_examples
from mesascope.papers.raventos2023 import _data, _pictures, _pools

from . import Case

# Trainings of seconds and two seeds decide little: that the claims are met where they should be, with planted algorithms, is
# in `test_raventos2023.py`.
QUICK = {"width": 16, "heads": 2, "batch": 64, "rate": 0.01, "steps": 3000, "examples": 6, "seeds": 2}
TESTED = {"prompts": 600, "sizes": [2, 8, 32]}
SHORT = {"steps": 400}  # where a longer training decides nothing either


class Planted(eqx.Module):
    """A learner in the place of a trained model."""

    learner: Any

    def predictions(self, x, y):
        return predictions(self.learner, *prompt_examples(x, y))[..., 0]

    def __call__(self, x, y):
        return self.predictions(x, y)[..., -1]


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
    for module in (_data, _pictures, _pools):
        for name, value in (("trained", trained), ("measured", measured)):
            if hasattr(module, name):
                patch.setattr(module, name, value)


def _memorizing(settings, tasks):
    return Memorizing(_data.pool(settings, tasks).table, 1.2 * settings.noise**2)


def _of_another_pool(settings, tasks):
    other = _data.Training.of(settings, pool_seed=settings.pool_seed + 7)
    return _memorizing(other, tasks)


def _generalizing(settings, tasks):
    return Ridge(1.2 * settings.noise**2)  # not quite ridge: the logarithm of its distance is finite


def _small_pools_only(settings, tasks):
    return (_memorizing if tasks <= 8 else _generalizing)(settings, tasks)


generalizing, memorizing = planted(_generalizing), planted(_memorizing)
passing = planted(_small_pools_only)
another_pool = planted(_of_another_pool)


def _in_training(few):
    """Models of two tasks begin as ridge and end memorizing if `few`, and those of more the other way round; else exchanged."""

    def world(patch):
        def trained(settings, tasks):
            steps = _data.recorded(settings)
            memory, learned = _memorizing(settings, tasks), _generalizing(settings, tasks)
            first, last = (learned, memory) if (tasks == 2) == few else (memory, learned)
            half = len(steps) // 2
            return {
                step: [Planted(first if place < half else last)] * settings.seeds
                for place, step in enumerate(steps)
            }

        _instead(patch, trained)

    return world


as_in_the_paper, against_the_paper = _in_training(few=True), _in_training(few=False)


CASES = {
    "raventos2023/few-tasks": Case(
        {**QUICK, **TESTED, **SHORT}, generalizing, (another_pool,), decision="undecided", traced=False
    ),
    "raventos2023/many-tasks": Case(
        {**QUICK, **TESTED}, memorizing, (another_pool,), decision="undecided", traced=False
    ),
    "raventos2023/crossing": Case(
        {**QUICK, **TESTED}, memorizing, (generalizing,), decision="undecided", traced=False
    ),
    "raventos2023/learning-curves": Case(
        {**QUICK, **TESTED, **SHORT}, as_in_the_paper, decision="undecided", turned="met", traced=False
    ),
    "raventos2023/named": Case({**QUICK, "sizes": [2, 8, 32]}, generalizing, (memorizing,), traced=False),
}
