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
from mesascope.probes._headline import headline_of_mixtures
from mesascope.probes._mixture import verdict_of_mixtures
from mesascope.probes._mixture_fit import MixtureFitter
from mesascope.probes._problems import draw_problems
from mesascope.probes._reasons import mixtures_in_words
from mesascope.records import MixturePart, MixtureRecord, read_identification, write_identification

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_it_is_kept_in_the_record(pair, tmp_path):
    write_identification(tmp_path / "a.json", pair.record())
    again = read_identification(tmp_path / "a.json")
    assert (again.verdict, again.mixtures) == (pair.verdict, pair.mixtures)
    assert ms.plot(pair) is not None


@pytest.mark.slow
def test_one_learner_is_preferred_where_it_explains(monkeypatch):
    monkeypatch.setattr("mesascope.probes._inquiry.explaining_mixtures", lambda *_: pytest.fail("not needed"))
    answer = asked(planted([Ridge(0.3)], [1.0], 0.02), learners=["average", "ridge"])
    assert (answer.verdict, answer.candidates[0], answer.mixtures) == ("identified", "ridge", ())


@pytest.mark.slow
def test_without_parts_the_reasons_say_that_none_was_tried():
    model = planted([LeastSquares(), Average()], [0.5, 0.5])
    answer = asked(model, parts=1)
    assert answer.verdict == "none" and "parts=3 tries" in answer.reasons[-1]


@pytest.mark.slow
def test_what_no_mixture_explains_has_none():
    answer = asked(lambda x, y: np.sin(9 * x.sum((1, 2))), parts=2, learners=["average", "ridge"])
    assert answer.verdict == "none" and "of mixtures of up to 2 different learners none" in answer.reasons[-1]


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "weight"),
    [
        ([GradientDescent(0.3, 1), Ridge(0.3)], lambda n: 1 / (n + 1)),
        ([GradientDescent(0.3, 1), Ridge(0.3)], lambda n: 0.9 if n < 4 else 0.1),
        ([LeastSquares(), Ridge(5.0)], lambda n: 0.9 if n < 4 else 0.1),
    ],
)
def test_weights_that_change_with_the_number_of_examples_are_found_where_constant_ones_are_far(parts, weight):
    names = [type(part).name for part in parts]
    model = planted(parts, lambda n: (weight(n), 1 - weight(n)))
    answer = asked(model, parts=2, learners=names, tolerance=1e-3)
    (found,) = answer.mixtures
    assert found.distance < 1e-6 and {part.learner for part in found.parts} == set(names)


@pytest.mark.slow
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


@pytest.mark.slow
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
    """Of 400 disturbed mixtures 95 % intervals hold the weight, to three standard errors of that share (3.3 %)."""
    problems = draw_problems(PROCESS, TASK, 100, named_key(0, "cover"))
    one, other = answers_of([Ridge(0.3), Average()], problems)
    known = fitters(PROCESS)
    fitter = MixtureFitter((known["ridge"], known["average"]))
    rng, inside, start = np.random.default_rng(0), 0, np.array([np.log(0.3), 0.5])
    for _ in range(400):
        noise = rng.normal(size=one.shape) * rng.gamma(
            1.0, size=(len(one), 1, 1)
        )  # tasks are disturbed unequally
        evidence = Evidence(problems, 0.6 * one + 0.4 * other + 0.3 * noise)
        found = fitter.fit(evidence, (1, 1), start).weights(evidence, 0.95).mean
        inside += found.low[0] <= 0.6 <= found.high[0]
    assert 0.95 - 0.033 <= inside / 400 <= 0.95 + 0.033


@pytest.mark.slow
def test_the_learner_that_predicts_0_takes_part():
    answer = asked(planted([Ridge(0.3)], [0.5]), learners=["zero", "ridge"], parts=2)
    (found,) = answer.mixtures
    assert answer.verdict == "mixture" and {part.learner for part in found.parts} == {"zero", "ridge"}
    assert [part.weight for part in found.parts] == pytest.approx([0.5, 0.5], abs=1e-4)
    assert found.condition == 1


@pytest.mark.slow
def test_weights_beyond_0_and_1_make_no_mixture():
    def weights(n):
        return (1.5, -0.5) if n > 3 else (0.2, 0.8)

    model = planted([Ridge(0.3), Average()], weights)
    answer = asked(model, learners=["ridge", "average"], parts=2)
    assert (answer.verdict, answer.mixtures) == ("none", ())


@pytest.mark.slow
def test_a_learner_out_of_scale_is_no_part():
    """A step of size 30 with the weight 0.02 only amplifies what ridge regression answers."""
    model = planted([Ridge(0.3), GradientDescent(30.0, 1)], [0.98, 0.02])
    answer = asked(model, learners=["ridge", "gradient-descent"], parts=2)
    assert (answer.verdict, answer.mixtures) == ("none", ())


@pytest.mark.slow
def test_learners_that_predict_the_same_have_no_weights_of_their_own():
    """Ridge regression and the posterior mean are one function, so that any weights fit."""
    known, problems = fitters(PROCESS), draw_problems(PROCESS, TASK, 60, named_key(0, "flat"))
    (ridge,) = answers_of([Ridge(0.3)], problems)
    fitter = MixtureFitter((known["ridge"], known["posterior-mean"]))
    evidence = Evidence(problems, ridge)
    found = fitter.fit(evidence, (1, 1), np.array([np.log(0.3), np.log(0.3), 0.5])).weights(evidence, 0.95)
    assert (found.rows.low == 0).all() and (found.rows.high == 1).all()


def record(*names, interval=(0.58, 0.62), different=True):
    parts = [
        MixturePart(learner=name, hyperparameters={}, weight=weight, interval=interval)
        for name, weight in zip(names, (0.6, 0.4), strict=True)
    ]
    told = {"different": different, "determined": different and interval[1] < 0.9}
    return MixtureRecord(parts=tuple(parts), distance=1e-4, interval=(9e-5, 2e-4), condition=1.5, **told)


@pytest.mark.parametrize(
    ("found", "verdict", "line", "reason"),
    [
        ([record("ridge", "average")], "mixture", "unexplained", "its weights are ridge 0.6"),
        (
            [record("ridge", "average"), record("least-squares", "average")],
            "ambiguous",
            "and 0.4 average or of 0.6 least-squares and 0.4 average: 0.01 % of its mean square unexplained; these data do not "
            "tell which",
            "its weights are least-squares 0.6",
        ),
        (
            [record("ridge", "average", interval=(0.0, 1.0))],
            "ambiguous",
            "do not tell the weights",
            "nearly all of 0 … 1: take more tasks",
        ),
        (
            [record("ridge", "average", different=False)],
            "ambiguous",
            "do not tell the weights",
            "leaves the predictions nearly the same (condition number 1.5)",
        ),
    ],
)
def test_what_is_said_of_mixtures(found, verdict, line, reason):
    assert verdict_of_mixtures(found) == verdict
    assert headline_of_mixtures(found).endswith(line)
    assert reason in "; ".join(mixtures_in_words(found, 2, 2))


@pytest.mark.slow
def test_a_learner_that_may_explain_is_kept_unless_the_mixture_is_nearer():
    model = planted([LeastSquares(), Average()], [0.9, 0.1])
    alone = asked(model, parts=1, learners=["least-squares", "average"])
    low, high = alone.ranking[0].interval
    settings = {"tolerance": (low + high) / 2, "learners": ["least-squares", "average"]}
    assert asked(model, parts=1, **settings).verdict == "ambiguous"
    answer = asked(model, parts=2, **settings)
    assert answer.verdict == "mixture" and "and may be within the tolerance" in answer.reasons[0]
    disturbed = asked(planted([LeastSquares()], [1.0], 0.1), parts=2, **settings)
    assert disturbed.mixtures == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parts": 0}, "parts must be at least 1, got 0"),
        ({"parts": 4}, "parts must be at most 3, got 4"),
        ({"parts": 2, "learners": ["ridge"]}, "at least two that take part in mixtures, got ridge; add one"),
        ({"parts": 2, "learners": ["ridge", "ridge"]}, "at least two .* got ridge; add one"),
        ({"parts": 2, "learners": ["constant", "zero"]}, "at least two .* got zero; add one"),
    ],
)
def test_bad_numbers_of_parts_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        asked(planted([Ridge(0.3)], [1.0]), **settings)
