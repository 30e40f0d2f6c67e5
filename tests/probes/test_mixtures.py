"""Convex mixtures of learners: found, with their hyperparameters and weights, where no single learner explains a model."""

import numpy as np
import pytest

import mesascope as ms
from mesascope.core import named_key
from mesascope.learners import (
    Average,
    DirichletPosterior,
    GradientDescent,
    LeastSquares,
    MemorizingSymbols,
    Ridge,
    predictions,
    prompt_examples,
    sequence_examples,
)
from mesascope.probes import identify
from mesascope.probes._candidates import answers_of
from mesascope.probes._evidence import Evidence
from mesascope.probes._fitters import fitters
from mesascope.probes._mixture_fit import MixtureFitter
from mesascope.probes._problems import draw_problems
from mesascope.records import read_identification, write_identification

PROCESS, TASK = ms.LinearRegression(3, noise=0.3), ms.FewShot.every(6)
NAMES = ["average", "least-squares", "gradient-descent", "ridge"]


def last(learner, x, y):
    padded = np.concatenate([y, np.zeros((len(y), 1))], 1)
    return np.asarray(predictions(learner, *prompt_examples(x, padded)))[:, -1, 0]


def planted(parts, weights, noise=0.0):
    """Their mixture, and a function of the context that none of them has; `weights` of the number of examples."""

    def model(x, y):
        shares = weights(y.shape[1]) if callable(weights) else weights
        disturbance = noise * np.sin(1e3 * (x.sum((1, 2)) + y.sum(1)))
        return sum(share * last(part, x, y) for share, part in zip(shares, parts, strict=True)) + disturbance

    return model


def asked(model, process=PROCESS, task=TASK, **settings):
    settings = {
        "tasks": 300,
        "learners": NAMES,
        "parts": 3,
        "search": False,
        "interface": "context",
    } | settings
    return identify(model, process, task, **settings)


@pytest.fixture(scope="module")
def pair():
    return asked(planted([Ridge(0.3), GradientDescent(0.2, 1)], [0.6, 0.4], 0.01))


def test_a_mixture_is_named_with_its_hyperparameters_and_weights(pair):
    assert (pair.verdict, set(pair.candidates)) == ("mixture", {"ridge", "gradient-descent"})
    (found,) = pair.mixtures
    parts = {part.learner: part for part in found.parts}
    assert parts["ridge"].hyperparameters == pytest.approx({"penalty": 0.3}, rel=0.02)
    assert parts["gradient-descent"].hyperparameters == pytest.approx(
        {"step_size": 0.2, "steps": 1}, rel=0.01
    )
    for name, weight in (("ridge", 0.6), ("gradient-descent", 0.4)):
        low, high = parts[name].interval
        assert low - 0.005 < weight < high + 0.005 and high - low < 0.05
    assert found.determined and not found.lengths and found.condition < 100
    assert pair.headline.startswith("a mixture of 0.4 gradient-descent (step_size 0.2")


def test_it_is_kept_in_the_record(pair, tmp_path):
    write_identification(tmp_path / "a.json", pair.record())
    again = read_identification(tmp_path / "a.json")
    assert (again.verdict, again.mixtures) == (pair.verdict, pair.mixtures)
    assert ms.plot(pair) is not None


def test_one_learner_is_preferred_where_it_explains(monkeypatch):
    monkeypatch.setattr("mesascope.probes._inquiry.explaining_mixtures", lambda *_: pytest.fail("not needed"))
    answer = asked(planted([Ridge(0.3)], [1.0], 0.02), learners=["average", "ridge"])
    assert (answer.verdict, answer.candidates[0], answer.mixtures) == ("identified", "ridge", ())


def test_without_parts_the_reasons_say_that_none_was_tried():
    model = planted([LeastSquares(), Average()], [0.5, 0.5])
    answer = asked(model, parts=1)
    assert answer.verdict == "none" and "parts=3 tries" in answer.reasons[-1]


def test_what_no_mixture_explains_has_none():
    answer = asked(lambda x, y: np.sin(9 * x.sum((1, 2))), parts=2, learners=["average", "ridge"])
    assert answer.verdict == "none" and "no mixture of up to 2 learners" in answer.reasons[-1]


@pytest.mark.slow
def test_a_flexible_learner_gives_way_to_its_special_case():
    """A Kalman filter without drift is ridge regression, and takes part in better fits of a coarse grid."""
    model = planted([Ridge(0.3), Average()], [0.6, 0.4])
    answer = asked(model, learners=["average", "ridge", "kalman-filter"], parts=2)
    assert answer.verdict == "mixture" and set(answer.candidates) == {"average", "ridge"}


@pytest.mark.slow
def test_three_learners_are_found():
    parts, weights = [LeastSquares(), Average(), GradientDescent(0.3, 3)], [0.5, 0.3, 0.2]
    answer = asked(planted(parts, weights, 0.02))
    assert answer.verdict == "mixture" and len(answer.mixtures[0].parts) == 3
    found = {part.learner: part.weight for part in answer.mixtures[0].parts}
    assert found == pytest.approx({"least-squares": 0.5, "average": 0.3, "gradient-descent": 0.2}, abs=0.01)


def test_weights_may_depend_on_the_number_of_examples():
    answer = asked(planted([Ridge(0.3), Average()], lambda n: (n / 6, 1 - n / 6)), parts=2, learners=NAMES)
    (found,) = answer.mixtures
    assert answer.verdict == "mixture" and found.lengths == (
        1,
        2,
        3,
        4,
        5,
        6,
    )  # before the first both answer 0
    curves = {curve.name: curve.value for curve in found.weights}
    np.testing.assert_allclose(curves["ridge"], np.arange(1, 7) / 6, atol=1e-6)
    assert "weights depend on the number of examples" in str(answer)


def test_symbols_are_mixed_in_their_probabilities():
    pool = ms.SymbolPool(ms.MarkovChains(symbols=2), tasks=3)
    parts = MemorizingSymbols(pool.table), DirichletPosterior(1.0)

    def model(symbols):
        data = sequence_examples(np.eye(2)[symbols])
        return sum(
            w * np.asarray(predictions(part, *data))[:, -1] for w, part in zip((0.7, 0.3), parts, strict=True)
        )

    names = ["memorizing-symbols", "dirichlet-posterior", "unigram-posterior"]
    answer = asked(model, pool, ms.NextToken(7), learners=names, tasks=200, tolerance=1e-4)
    assert answer.verdict == "mixture"
    found = {part.learner: part.weight for part in answer.mixtures[0].parts}
    assert found == pytest.approx({"memorizing-symbols": 0.7, "dirichlet-posterior": 0.3}, abs=1e-4)


@pytest.mark.slow
def test_intervals_of_weights_cover():
    """Of 400 disturbed mixtures 95 % intervals hold the weight in 93 to 97 % (three standard errors are 3.3 %)."""
    problems = draw_problems(PROCESS, TASK, 100, named_key(0, "cover"))
    one, other = answers_of([LeastSquares(), Average()], problems)
    known = fitters(PROCESS)
    fitter = MixtureFitter((known["least-squares"], known["average"]))
    rng, inside = np.random.default_rng(0), 0
    for seed in range(400):
        noise = rng.normal(size=one.shape) * rng.gamma(
            1.0, size=(len(one), 1, 1)
        )  # tasks are disturbed unequally
        evidence = Evidence(problems, 0.6 * one + 0.4 * other + noise)
        found = fitter.fit(evidence, (1, 1), np.array([0.5])).weights(evidence, 0.95, seed)
        inside += found.low[0] <= 0.6 <= found.high[0]
    assert 0.95 - 0.033 <= inside / 400 <= 0.95 + 0.033


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parts": 0}, "parts must be at least 1, got 0"),
        ({"parts": 4}, "parts must be at most 3, got 4"),
        ({"parts": 2, "learners": ["ridge"]}, "learners: a mixture needs at least two, got ridge; add one"),
        (
            {"parts": 2, "learners": ["ridge", "ridge"]},
            "learners: a mixture needs at least two, got ridge; add one",
        ),
    ],
)
def test_bad_numbers_of_parts_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        asked(planted([Ridge(0.3)], [1.0]), **settings)
