"""Models of pools of symbols: memorizing and generalizing are named, and told to be alike where the pool is too large."""

import numpy as np
import pytest

import mesascope as ms
from mesascope.learners import (
    BayesMixtureSymbols,
    DirichletPosterior,
    MemorizingSymbols,
    UnigramPosterior,
    predictions,
    sequence_examples,
)
from mesascope.probes import identify
from mesascope.probes._fitters import learners_for

TASK = ms.NextToken(8)
URNS, CHAINS = ms.Urns(2), ms.MarkovChains(2)
SMALL = {process: ms.SymbolPool(process, tasks=4, seed=1) for process in (URNS, CHAINS)}
NAMES = ["unigram-posterior", "dirichlet-posterior", "memorizing-symbols"]


def asked(learner, process, steps=None, learners=NAMES):
    """The answer for a model that is this learner; with `steps` its probabilities are multiples of 1/steps."""

    def model(contexts):
        tokens = np.eye(process.symbols)[contexts]
        answers = np.asarray(predictions(learner, *sequence_examples(tokens)))[:, -1]
        return answers if steps is None else np.round(steps * answers) / steps

    return identify(model, process, TASK, tasks=200, learners=learners)


@pytest.mark.slow
@pytest.mark.parametrize("process", [URNS, CHAINS])
def test_a_model_that_memorizes_a_small_pool_is_named(process):
    pool = SMALL[process]
    answer = asked(MemorizingSymbols(pool.table), pool)
    assert (answer.verdict, answer.candidates) == ("identified", ("memorizing-symbols",))
    assert answer.ranking[0].hyperparameters == {}  # the process has the tasks
    assert answer.ranking[0].distance < 1e-25 and answer.ranking[1].distance > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "generalizing"), [(URNS, UnigramPosterior), (CHAINS, DirichletPosterior)]
)
def test_a_model_that_generalizes_is_named_on_its_pool_and_on_new_tasks(process, generalizing):
    for data in (SMALL[process], process):
        answer = asked(generalizing(0.5), data, learners=NAMES if data is not process else NAMES[:2])
        assert (answer.verdict, answer.candidates) == ("identified", (generalizing.name,))
        found = answer.ranking[0].hyperparameters["concentration"]
        assert found == pytest.approx(0.5, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("process", [URNS, CHAINS])
def test_a_model_that_mixes_both_is_named_and_nothing_simpler_is_taken_for_it(process):
    pool, names = SMALL[process], [*NAMES, "bayes-mixture-symbols"]
    answer = asked(BayesMixtureSymbols(pool.table, 0.7, 0.4), pool, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", ("bayes-mixture-symbols",))
    found = answer.ranking[0].hyperparameters
    assert found["pool_share"] == pytest.approx(0.4, rel=1e-4)
    assert found["concentration"] == pytest.approx(0.7, rel=1e-4)
    memory = asked(MemorizingSymbols(pool.table), pool, learners=names)
    assert (memory.verdict, memory.candidates) == ("identified", ("memorizing-symbols",))


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [4, 4096])
@pytest.mark.parametrize("memorizes", [True, False])
def test_a_pool_that_is_too_large_does_not_tell(tasks, memorizes):
    """The models answer in steps of 1/16: they are at a relative distance 1e-3 from what they do, more than 4096 tasks are
    from all tasks."""
    pool = ms.SymbolPool(URNS, tasks=tasks, seed=1)
    answer = asked(MemorizingSymbols(pool.table) if memorizes else UnigramPosterior(1.0), pool, steps=16)
    both = {"unigram-posterior", "memorizing-symbols"}
    if tasks == 4:
        named = "memorizing-symbols" if memorizes else "unigram-posterior"
        assert (answer.verdict, answer.candidates) == ("identified", (named,))
    else:
        assert answer.verdict == "ambiguous" and set(answer.candidates) == both
        assert "cannot be told apart" in answer.headline


@pytest.mark.slow
def test_a_pool_of_too_many_tasks_says_what_was_not_compared():
    pool = ms.SymbolPool(URNS, tasks=4097, seed=1)
    answer = asked(MemorizingSymbols(pool.table), pool, learners=NAMES[:2])
    assert any("memorizing was not compared: the pool has 4097 tasks" in one for one in answer.reasons)


@pytest.mark.slow
def test_learners_of_pools_of_symbols_need_one():
    of_pool = {"memorizing-symbols", "bayes-mixture-symbols"}
    assert set(learners_for(SMALL[URNS])) - set(learners_for(URNS)) == of_pool
    assert set(learners_for(SMALL[CHAINS])) - set(learners_for(CHAINS)) == of_pool
    large = ms.SymbolPool(URNS, tasks=ms.SymbolPool.max_compared + 1)
    with pytest.raises(ValueError, match="this pool of 4097 tasks is too large: at most 4096 are compared"):
        asked(UnigramPosterior(1.0), large)
    for process in (URNS, ms.MarkovTree("chain", 2, 1)):
        lacks = f"needs the probabilities of tasks, and {type(process).__name__} has none"
        fix = "use SymbolPool, of at most 4096 tasks"
        with pytest.raises(ValueError, match=f"'memorizing-symbols' {lacks}: {fix}; remove it"):
            asked(UnigramPosterior(1.0), process)
    with pytest.raises(ValueError, match="'memorizing-symbols' reads symbols, and LinearAR draws none"):
        process = ms.LinearAR.contracting(ms.Gaussian(1.0), 3, 0.3, 0.9)
        identify(lambda c: c[:, -1], process, TASK, learners=["memorizing-symbols"])
    with pytest.raises(ValueError, match="'memorizing' needs the weights of tasks, and SymbolPool has none"):
        asked(UnigramPosterior(1.0), SMALL[URNS], learners=["memorizing"])
