"""Planted learners as opaque functions with noise: identified correctly or left open, never wrongly."""

import pytest
from planted_models import KINDS, PROCESS, TASK, as_model, marked, planted

from mesascope.learners import MiniBatchGradientDescent, predictions
from mesascope.probes import identify
from mesascope.processes import Gaussian, NextToken, OrthogonalAR


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


@pytest.mark.slow
@pytest.mark.parametrize(("step_size", "batch"), [(0.2, 6), (0.5, 6), (0.3, 12)])
def test_mini_batches_are_identified_where_smaller_ones_fit_worse_than_none(step_size, batch):
    """The distance does not fall towards the right number: with steps this large batches of 2 to 5 are farther than 1."""
    learner = MiniBatchGradientDescent(step_size, batch)
    names = ("mini-batch-gradient-descent", "gradient-descent")
    process = OrthogonalAR(Gaussian(), dim=2, noise=0.1)
    answer = identify(
        lambda x: predictions(learner, x[:, :-1], x[:, 1:], x)[:, -1],
        process,
        NextToken(14),
        tasks=200,
        search=False,
        learners=names,
    )
    assert (answer.verdict, answer.candidates) == ("identified", (learner.name,)), str(answer)
    assert int(answer.ranking[0].hyperparameters["batch"]) == batch
