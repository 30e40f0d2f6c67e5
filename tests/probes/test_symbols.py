"""Models of symbols: they predict probabilities, and are identified like others."""

from itertools import pairwise

import jax
import numpy as np
import pytest

import mesascope as ms
from mesascope.core import named_key
from mesascope.learners import DirichletPosterior, Retrieval, predictions
from mesascope.probes import answers, draw_problems, identify, implicit_weights, sensitivities
from mesascope.probes._evidence import Evidence
from mesascope.probes._fitters import learners_for
from mesascope.probes._settings import SymbolSetting
from mesascope.probes._symbol_distances import symbol_distances
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


@pytest.mark.slow
def test_the_bayes_predictor_of_a_chain_is_identified():
    names = ("dirichlet-posterior", "average", "last-token", "least-squares", "ridge", "kernel-smoother")
    answer = identify(bayes(0.3), PROCESS, TASK, tasks=200, learners=names)
    assert (answer.verdict, answer.candidates) == ("identified", ("dirichlet-posterior",))
    assert answer.ranking[0].hyperparameters["concentration"] == pytest.approx(0.3, rel=1e-6)


CHAINS, CHAINS_TASK = ms.MarkovChains(STATES), ms.NextToken(14)


def one_at_a_time(rule):
    """A function of contexts that applies a rule to each of them, a list of symbols."""
    return lambda contexts: np.array([rule(context) for context in np.asarray(contexts).tolist()])


def retrieved(context):
    """What followed the last symbol the last time, with one symbol in five at random."""
    for place in reversed(range(len(context) - 1)):
        if context[place] == context[-1]:
            return 0.8 * np.eye(STATES)[context[place + 1]] + 0.2 / STATES
    return np.full(STATES, 1 / STATES)


def counted_after_two(context):
    """What followed the last two symbols before, and half a symbol of each kind."""
    found = np.full(STATES, 0.5)
    for place in range(len(context) - 2):
        if context[place : place + 2] == context[-2:]:
            found[context[place + 2]] += 1
    return found / found.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [
        (lambda context: np.full(STATES, 1 / STATES), "uniform", {}),
        (retrieved, "retrieval", {"smoothing": 0.2}),
        (counted_after_two, "trigram-posterior", {"concentration": 0.5}),
    ],
    ids=["uniform", "retrieval", "trigram-posterior"],
)
def test_a_planted_learner_of_symbols_is_named_among_all(rule, name, expected):
    answer = identify(one_at_a_time(rule), CHAINS, CHAINS_TASK, tasks=300)
    assert (answer.verdict, answer.candidates) == ("identified", (name,))
    assert answer.ranking[0].hyperparameters == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_what_every_learner_can_be_has_the_name_of_the_simplest():
    """A uniform prediction is that of a constant, of full smoothing, and of counts under very many symbols of the prior."""
    names = ("zero", "uniform", "constant", "retrieval", "unigram-posterior", "trigram-posterior")
    answer = identify(
        one_at_a_time(lambda context: np.full(STATES, 1 / STATES)),
        CHAINS,
        CHAINS_TASK,
        tasks=200,
        learners=names,
    )
    assert (answer.verdict, answer.candidates) == ("identified", ("uniform",))
    assert set(answer.ranking[0].contains) == set(names) - {"zero", "uniform"}
    assert answer.entry("retrieval").hyperparameters == {"smoothing": 1.0}


@pytest.mark.slow
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


@pytest.mark.slow
def test_logits_are_refused():
    with pytest.raises(ValueError, match=r"probabilities of the next one.* apply softmax to logits"):
        identify(lambda contexts: np.log(bayes(1.0)(contexts)), PROCESS, TASK, tasks=200)


def test_probabilities_of_another_sum_are_refused():
    with pytest.raises(
        ValueError, match=r"probabilities of the next one, gave some of sum 1\.5; divide by the sum"
    ):
        identify(lambda contexts: np.full((len(contexts), STATES), 1.5 / STATES), PROCESS, TASK, tasks=200)


def test_symbols_beyond_the_vocabulary_of_a_model_are_named():
    table = np.zeros((STATES - 1, STATES))
    told = rf"given symbols 0 to {STATES - 1} and looked up one that it does not have .* at least {STATES}"
    with pytest.raises(ValueError, match=told):
        identify(lambda contexts: table[contexts], PROCESS, TASK, tasks=200, interface="tokens")


@pytest.mark.slow
def test_learners_of_symbols_are_for_symbols():
    process = ms.LinearAR.contracting(ms.Gaussian(1.0), 3, 0.3, 0.9)
    assert set(learners_for(PROCESS)) - set(learners_for(process)) == {
        "uniform",
        "retrieval",
        "unigram-posterior",
        "dirichlet-posterior",
        "trigram-posterior",
    }
    pools = ms.TaskPool(ms.LinearRegression(2), tasks=3), ms.SymbolPool(ms.Urns(), tasks=3)
    assert set().union(*map(learners_for, pools)) == set(known_kinds("learner"))
    with pytest.raises(ValueError, match="'dirichlet-posterior' reads symbols, and LinearAR draws none"):
        identify(lambda c: c[:, -1], process, ms.NextToken(10), learners=["dirichlet-posterior"])


@pytest.mark.slow
def test_symbols_have_no_derivatives():
    problems = draw_problems(PROCESS, TASK, 40, named_key(0, "symbols"))
    for measure in (sensitivities, implicit_weights):
        with pytest.raises(TypeError, match="predictions cannot be differentiated in symbols"):
            measure(bayes(1.0), problems, 3)


@pytest.mark.slow
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


@pytest.mark.slow
def test_distances_of_probabilities_are_those_of_their_definitions():
    """Excess cross-entropy and total variation, summed over tasks, numbers of examples and symbols in loops."""
    problems = draw_problems(ms.MarkovChains(symbols=3), ms.NextToken(6), 40, named_key(0, "distances"))
    learners = [DirichletPosterior(0.5), Retrieval(0.1), Retrieval(0.0)]
    model, one, other = (
        np.asarray(predictions(learner, problems.x, problems.y, problems.queries))
        for learner in (DirichletPosterior(1.0), *learners[:2])
    )
    found = symbol_distances(learners, Evidence(problems, model), 0.95, 0)
    for given, distances in zip((one, other), found, strict=False):
        nats = half = 0.0
        for task in range(40):
            for n, weight in enumerate(problems.weights):
                for f, g in zip(model[task, n], given[task, n], strict=True):
                    if weight > 0:
                        nats += weight * f * np.log(f / g) / 40
                        half += weight * abs(f - g) / 80
        assert distances.excess_cross_entropy == pytest.approx(nats, rel=1e-10)
        assert distances.total_variation == pytest.approx(half, rel=1e-10)
        assert distances.excess_interval[0] < nats < distances.excess_interval[1]
        assert distances.variation_interval[0] < half < distances.variation_interval[1]
    assert found[2].excess_cross_entropy == np.inf and found[2].total_variation < 1
