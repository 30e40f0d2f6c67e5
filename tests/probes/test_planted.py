"""Planted learners behind opaque functions with noise: named right or left open, never named wrong."""

import pytest
from planted_models import PROCESS, TASK, as_model, marked, planted

from mesascope.probes import identify

# One of each of these kinds, compared with all of these kinds; `make bench` may compare all with all.
NUMBERS = (2, 3, 4, 9, 10, 12, 14, 15, 16, 17, 19, 20)
LEARNERS = tuple({planted(number).name for number in NUMBERS})


@pytest.mark.slow
def test_planted_learners_are_named(subtests):
    """Never a wrong name; at most one of twelve is only narrowed down to several."""
    ambiguous = []
    for number in NUMBERS:
        learner = planted(number)
        with subtests.test(number=number, learner=learner.name):
            answer = identify(as_model(learner), PROCESS, TASK, tasks=200, seed=number, learners=LEARNERS)
            mark = marked(learner, answer)
            assert mark.right, str(answer)
            if mark.named:
                assert mark.error < 1e-2, str(answer)
            else:
                ambiguous.append(learner.name)
    assert len(ambiguous) <= 1, ambiguous


@pytest.mark.slow
def test_rare_tasks_on_which_a_learner_diverges_do_not_decide():
    """Chebyshev's steps beyond their upper bound: one task in a hundred would outweigh all others together."""
    learner = planted(7)
    names = ("chebyshev", "momentum", "nesterov", "gradient-descent")
    answer = identify(as_model(learner), PROCESS, TASK, tasks=200, seed=7, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", (learner.name,)), str(answer)
    assert marked(learner, answer).error < 1e-2
