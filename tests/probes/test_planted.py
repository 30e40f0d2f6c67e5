"""Planted learners as opaque functions with noise: identified correctly or left open, never wrongly."""

import pytest
from planted_models import KINDS, PROCESS, TASK, as_model, marked, planted

from mesascope.probes import identify


@pytest.mark.slow
@pytest.mark.parametrize("number", range(KINDS), ids=lambda number: f"{number}-{planted(number).name}")
def test_planted_learners_are_identified(number):
    """One of every kind, compared with all kinds; `make bench` tests a hundred, of which some may be left open."""
    learner = planted(number)
    answer = identify(as_model(learner), PROCESS, TASK, tasks=200, seed=number)
    mark = marked(learner, answer)
    assert mark.right and mark.named, str(answer)
    assert mark.error < 1e-2, str(answer)


@pytest.mark.slow
def test_rare_tasks_on_which_a_learner_diverges_do_not_decide():
    """Chebyshev's steps beyond their upper bound: without limits one task in a hundred would dominate."""
    learner = planted(7)
    names = ("chebyshev", "momentum", "nesterov", "gradient-descent")
    answer = identify(as_model(learner), PROCESS, TASK, tasks=200, seed=7, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", (learner.name,)), str(answer)
    assert marked(learner, answer).error < 1e-2
