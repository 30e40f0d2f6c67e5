"""Models of symbols: they predict probabilities, and are identified like others."""

from itertools import pairwise

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.core import named_key
from mesascope.probes import answers, draw_problems, identify, implicit_weights, sensitivities
from mesascope.probes._fitters import learners_for
from mesascope.probes._settings import SymbolSetting
from mesascope.specs import known_kinds

STATES, LENGTH = 3, 10
PROCESS, TASK = ms.MarkovTree.chain(LENGTH, STATES, 0.5), ms.NextToken(LENGTH + 1)


def bayes(concentration):
    """The posterior mean of the next symbol by counting, for single contexts."""

    def predict(contexts):
        found = np.full((len(contexts), STATES), float(concentration))
        for row, context in enumerate(contexts):
            for before, after in pairwise(context):
                if before == context[-1]:
                    found[row, after] += 1
        return found / found.sum(1, keepdims=True)

    return predict


def test_the_bayes_predictor_of_a_chain_is_identified():
    names = ("dirichlet-posterior", "average", "last-token", "least-squares", "ridge", "kernel-smoother")
    answer = identify(bayes(0.3), PROCESS, TASK, tasks=200, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", ("dirichlet-posterior",))
    assert answer.ranking[0].hyperparameters["concentration"] == pytest.approx(0.3, rel=1e-6)


def test_the_frequencies_of_symbols_are_an_average():
    def frequencies(contexts):
        return np.stack([(contexts[:, 1:] == state).mean(1) for state in range(STATES)], -1)

    names = ("average", "last-token", "dirichlet-posterior", "gradient-descent")
    answer = identify(frequencies, PROCESS, TASK, tasks=200, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", ("average",))


@pytest.mark.slow
def test_a_transformer_of_symbols_answers_with_its_probabilities():
    problems = draw_problems(PROCESS, TASK, 40, named_key(0, "symbols"))
    model = ms.token_transformer(STATES, 4, 1, 2, LENGTH, key=jax.random.key(0))
    found = answers(model, problems)
    one_by_one = answers(lambda contexts: jax.nn.softmax(model(contexts)), problems)
    np.testing.assert_allclose(found, one_by_one, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(found[:, 1:].sum(-1), 1, rtol=1e-12)


def test_logits_are_refused():
    with pytest.raises(ValueError, match=r"probabilities of the next one.* apply softmax to logits"):
        identify(lambda contexts: np.log(bayes(1.0)(contexts)), PROCESS, TASK, tasks=200)


def test_learners_of_symbols_are_for_symbols():
    process = ms.LinearAR.contracting(ms.Gaussian(1.0), 3, 0.3, 0.9)
    assert set(learners_for(PROCESS)) - set(learners_for(process)) == {
        "dirichlet-posterior",
        "unigram-posterior",
    }
    pools = ms.TaskPool(ms.LinearRegression(2), tasks=3), ms.SymbolPool(ms.Urns(), tasks=3)
    assert set().union(*map(learners_for, pools)) == set(known_kinds("learner"))
    with pytest.raises(ValueError, match="'dirichlet-posterior' reads symbols, and LinearAR draws none"):
        identify(lambda c: c[:, -1], process, ms.NextToken(10), learners=["dirichlet-posterior"])


def test_symbols_have_no_derivatives():
    problems = draw_problems(PROCESS, TASK, 40, named_key(0, "symbols"))
    for measure in (sensitivities, implicit_weights):
        with pytest.raises(TypeError, match="predictions cannot be differentiated in symbols"):
            measure(bayes(1.0), problems, 3)


def test_symbols_are_replaced_with_the_given_probability():
    sample = PROCESS.sample(jax.random.key(0), LENGTH + 1, 2000)
    key = jax.random.key(1)
    assert (SymbolSetting(0.0).changed(sample, key) == sample).all()
    replaced = np.asarray(SymbolSetting(0.3).changed(sample, key) != sample)
    marginal = np.bincount(np.asarray(sample).ravel(), minlength=STATES) / sample.size
    # one that is replaced may be by its like
    assert replaced.mean() == pytest.approx(0.3 * (1 - (marginal**2).sum()), abs=5 / np.sqrt(sample.size))
    independent = np.asarray(SymbolSetting(1.0).changed(sample, key))
    together = np.mean(independent[:, 1:] == independent[:, :-1])
    assert together == pytest.approx((marginal**2).sum(), abs=5 / np.sqrt(sample.size))
