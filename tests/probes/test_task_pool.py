"""Models of pools: memorizing, generalizing and a mixture of both are named, where there is a pool."""

import numpy as np
import pytest

import mesascope as ms
from mesascope.learners import (
    BayesMixture,
    LeastSquares,
    Memorizing,
    MemorizingSymbols,
    PosteriorMean,
    Ridge,
    UnigramPosterior,
    predictions,
    prompt_examples,
)
from mesascope.probes import identify, learners_for
from mesascope.probes._equivalence import may_be_same

PROCESS, TASK = ms.LinearRegression(dim=2, noise=0.5), ms.FewShot(examples=6)
POOL = ms.TaskPool(PROCESS, tasks=6, seed=1)
NAMES = ["least-squares", "ridge", "memorizing", "bayes-mixture"]


def asked(learner, process=POOL, **settings):
    def model(x, y):
        padded = np.concatenate([y, np.zeros((len(y), 1))], 1)
        return np.asarray(predictions(learner, *prompt_examples(x, padded)))[:, -1, 0]

    settings = {"learners": NAMES, "tasks": 200} | settings
    return identify(model, process, TASK, interface="context", **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (Memorizing(POOL.table, 0.25), "memorizing"),
        (Ridge(0.25), "ridge"),
        (BayesMixture(POOL.table, 0.25, 0.4), "bayes-mixture"),
    ],
)
def test_learners_of_pools_are_named(learner, name):
    answer = asked(learner)
    assert (answer.verdict, answer.ranking[0].learner) == ("identified", name)
    found = answer.ranking[0].algorithm.hyperparameters
    for key, value in learner.hyperparameters.items():
        if key == "tasks":
            assert key not in answer.ranking[0].hyperparameters  # the process has them
        np.testing.assert_allclose(found[key], value, rtol=1e-3)  # as accurate as fits are


@pytest.mark.slow
def test_new_tasks_are_asked_too():
    """Where the pool leaves little doubt, a mixture memorizes on it, and learns new tasks."""
    answer = asked(BayesMixture(POOL.table, 0.25, 0.999), tasks=100, learners=["memorizing"], tolerance=0.05)
    new, *others = answer.beyond
    assert answer.ranking[0].distance < 0.02
    assert new.setting == "new tasks, which are not of the pool" and new.distance > 0.05
    assert not any("new tasks" in one.setting for one in others)
    assert "new tasks" not in str(
        asked(Ridge(0.25), PROCESS, tasks=100, learners=["ridge"], search=True).beyond
    )


@pytest.mark.slow
def test_learners_that_generalize_have_the_prior_of_the_process():
    prior = [[4.0, 0.0], [0.0, 0.1]]
    pool = ms.TaskPool(ms.LinearRegression(dim=2, prior=prior, noise=0.5), tasks=6, seed=1)
    answer = asked(PosteriorMean(prior, 0.25), pool, learners=[*NAMES, "posterior-mean"])
    assert (answer.verdict, answer.ranking[0].learner) == ("identified", "posterior-mean")
    assert answer.ranking[0].hyperparameters == pytest.approx({"noise_variance": 0.25}, rel=1e-3)
    mixture = asked(BayesMixture(pool.table, 0.25, 0.4, prior), pool)
    assert mixture.ranking[0].hyperparameters == pytest.approx(
        {"noise_variance": 0.25, "pool_share": 0.4}, rel=1e-3
    )


@pytest.mark.slow
def test_without_noise_the_variance_of_memorizing_says_nothing():
    pool = ms.TaskPool(ms.LinearRegression(dim=2), tasks=3)
    answer = asked(Ridge(0.5), pool, learners=["ridge", "memorizing"], search=False)
    assert "the labels have no noise" in answer.reasons[-1]
    assert "no noise" not in str(asked(Ridge(0.5), learners=["ridge", "memorizing"], search=False))


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        (Memorizing, Ridge, False),  # they agree on large pools, by accident
        (MemorizingSymbols, UnigramPosterior, False),
        (BayesMixture, Ridge, True),  # a mixture may be fitted to be either
        (BayesMixture, Memorizing, True),
        (Ridge, LeastSquares, True),
    ],
)
def test_memorizing_is_no_learner_without_a_pool(one, other, may):
    assert may_be_same(one.fitting, other.fitting) == may_be_same(other.fitting, one.fitting) == may


def test_learners_are_given_by_their_ids():
    with pytest.raises(ValueError, match="learners: must list ids such as 'ridge', got Memorizing"):
        asked(Ridge(0.25), learners=[Memorizing(POOL.table, 0.25)])


def test_they_need_a_pool():
    assert not {"memorizing", "bayes-mixture"} & set(learners_for(PROCESS))
    with pytest.raises(
        ValueError,
        match="'memorizing' needs the weights of tasks, and LinearRegression has none: use TaskPool, of at most 4096",
    ):
        identify(lambda x, y: 0 * y[:, 0], PROCESS, TASK, tasks=100, learners=["memorizing"])


@pytest.mark.parametrize(
    ("pool", "learner", "message"),
    [
        (
            ms.TaskPool(PROCESS, tasks=5000),
            "memorizing",
            "this pool of 5000 tasks is too large: at most 4096",
        ),
        (
            ms.TaskPool(ms.NonlinearRegression(PROCESS.dim, ms.TwoLayerReLU(2)), tasks=3),
            "memorizing",
            "a pool of NonlinearRegression has none: take a pool of another process",
        ),
        (
            ms.TaskPool(PROCESS, tasks=3),
            "generalizing",
            "is what several learners do; name ridge or posterior-mean",
        ),
    ],
)
def test_what_cannot_be_compared_says_why(pool, learner, message):
    with pytest.raises(ValueError, match=message):
        identify(lambda x, y: 0 * y[:, 0], pool, TASK, tasks=100, learners=[learner])


@pytest.mark.slow
def test_a_model_on_a_large_pool_of_few_dimensions_may_do_either():
    """4096 tasks on a line: the posterior over them is nearer to that of their prior than answers of one decimal tell."""
    pool = ms.TaskPool(ms.LinearRegression(1, noise=0.5), tasks=4096)

    def rounded(x, y):
        padded = np.concatenate([y, np.zeros((len(y), 1))], 1)
        return np.round(np.asarray(predictions(Ridge(0.25), *prompt_examples(x, padded)))[:, -1, 0], 1)

    answer = identify(rounded, pool, TASK, tasks=100, interface="context", learners=["ridge", "memorizing"])
    assert (answer.verdict, set(answer.candidates)) == ("ambiguous", {"ridge", "memorizing"})
