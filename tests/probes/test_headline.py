"""The line that says what a model is close to, and what a learner shares with its special cases."""

import pickle
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mesascope as ms
from mesascope import learners
from mesascope.learners import FAMILIES, predictions
from mesascope.probes import Ranked, identify
from mesascope.probes._candidates import judge
from mesascope.probes._equivalence import special_case
from mesascope.probes._evidence import Evidence
from mesascope.probes._fit import Fitted
from mesascope.probes._fitters import fitters, with_special_cases
from mesascope.probes._headline import headline, share
from mesascope.probes._least_squares import Data, End
from mesascope.specs import known_kinds

PROCESS, TASK = ms.LinearRegression(dim=2, noise=0.1), ms.FewShot(examples=8)


def _ranked(learner, distance, or_more=False, contains=()):
    numbers = {k: np.asarray(v).tolist() for k, v in learner.hyperparameters.items() if v is not None}
    measured = {"distance": distance, "interval": (distance, distance)}
    fit = {"hyperparameters": numbers, "contains": contains, "or_more": or_more}
    return Ranked(learner=learner.name, algorithm=learner, **fit, **measured)


STEPS = _ranked(learners.GradientDescent(0.25, 12), 0.011, or_more=True)
RIDGE = _ranked(learners.Ridge(0.5), 0.012)
AVERAGE = _ranked(learners.Average(), 0.9)
NOTHING = _ranked(learners.Zero(), 0.4)
ONLINE, SQUARES = _ranked(learners.OnlineGradientDescent(0.2), 0.03), _ranked(learners.LeastSquares(), 0.03)
MOMENTUM = _ranked(learners.Momentum(0.25, 0.5, 3), 0.02)


@pytest.mark.parametrize(
    ("verdict", "ranking", "near", "said"),
    [
        (
            "identified",
            (RIDGE, AVERAGE),
            ["ridge"],
            "ridge (penalty 0.5): 1.2 % of its mean square unexplained",
        ),
        (
            "none",
            (RIDGE, AVERAGE),
            ["ridge"],
            "closest to ridge (penalty 0.5): 1.2 % of its mean square unexplained",
        ),
        (
            "none",
            (AVERAGE,),
            ["average"],
            "like none of these learners: the nearest, average, leaves 90 % of its mean square unexplained",
        ),
        (
            "none",
            (RIDGE, NOTHING, AVERAGE),
            ["ridge", "zero"],
            "like none of these learners: the nearest, ridge, leaves 1.2 % of its mean square unexplained; zero and "
            "ridge (penalty 0.5) cannot be told apart here; the nearest of the others, average, leaves 90 %",
        ),
        (
            "ambiguous",
            (STEPS, RIDGE, AVERAGE),
            ["gradient-descent", "ridge"],
            "least-squares-like: 1.1 % of its mean square unexplained; gradient-descent (step_size 0.25, steps ≥ 12) and "
            "ridge (penalty 0.5) cannot be told apart here; the nearest of the others, average, leaves 90 %",
        ),
        (
            "none",
            (STEPS, MOMENTUM),
            ["gradient-descent", "momentum"],
            "gradient-descent-like: 1.1 % of its mean square unexplained; gradient-descent (step_size 0.25, steps ≥ 12) and "
            "momentum (step_size 0.25, momentum 0.5, steps 3) cannot be told apart here",
        ),
        (
            "ambiguous",
            (MOMENTUM, RIDGE, ONLINE, SQUARES, STEPS, AVERAGE),
            ["momentum", "ridge", "online-gradient-descent", "least-squares", "gradient-descent"],
            "least-squares-like: 1.1 % of its mean square unexplained; least-squares, gradient-descent (step_size 0.25, "
            "steps ≥ 12), ridge (penalty 0.5), online-gradient-descent (step_size 0.2) and 1 other cannot be told apart "
            "here; the nearest of the others, average, leaves 90 %",
        ),
    ],
)
def test_it_names_a_learner_or_a_family_and_what_is_left(verdict, ranking, near, said):
    assert headline(verdict, ranking, near) == said


def test_small_shares_are_powers_of_ten():
    assert [share(one) for one in (0.0, 0.011, 2.4e-31, 3.0)] == ["0 %", "1.1 %", "2.4e-31", "300 %"]


def test_every_learner_has_a_family_and_special_cases_that_exist():
    known = known_kinds("learner")
    for kind in known.values():
        assert kind.fitting.family in set(FAMILIES) - {"other"}
        if kind.fitting.extends is not None:
            special, values = kind.fitting.extends
            assert known[special].fitting.flexibility < kind.fitting.flexibility
            assert {name for name, _ in values} <= {scalar.name for scalar in kind.fitting.scalars}


@pytest.mark.parametrize(
    ("learner", "special"),
    [
        (learners.DiscountedRidge(0.5, 1.0), "ridge"),
        (learners.DiscountedRidge(0.5, 0.9), None),
        (learners.Ridge(0.0), "least-squares"),
        # its sizes are other numbers than the one of gradient descent, even if all are equal
        (learners.LayeredGradientDescent([0.2, 0.2]), None),
        (learners.LeastSquares(), None),
    ],
)
def test_a_learner_is_a_special_case_where_what_that_fixes_has_its_values(learner, special):
    assert special_case(learner) == special


POOL = ms.TaskPool(PROCESS, tasks=4)


@pytest.fixture(scope="module")
def evidence():
    from mesascope.core import named_key
    from mesascope.probes import draw_problems

    problems = draw_problems(PROCESS, TASK, 60, named_key(0, "special cases"))
    exact = np.asarray(
        predictions(learners.GradientDescent(0.3, 3), problems.x, problems.y, problems.queries)
    )
    return Evidence(problems, exact + 0.1 * np.cos(1e5 * exact))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, kind in known_kinds("learner").items()
        if kind.fitting.extends and not kind.fitting.symbols
    ],
)
def test_a_learner_is_its_special_case_and_never_loses_to_it(name, evidence):
    fitter = fitters(POOL)[name]
    special, _ = fitter.kind.fitting.extends
    fitted = fitters(POOL)[special].fit([evidence])
    same = fitter.like(fitted.learner)
    assert same is not None
    data = evidence.problems.x, evidence.problems.y, evidence.problems.queries
    np.testing.assert_allclose(predictions(same, *data), predictions(fitted.learner, *data), atol=1e-9)
    stuck = Fitted(fitter.kind.example(), np.inf)
    better = with_special_cases({special: fitted, name: stuck}, fitters(POOL), [evidence])[name]
    assert better.cost <= fitted.cost * (1 + 1e-9) + 1e-15
    assert isinstance(better.learner, fitter.kind)


@pytest.mark.slow
def test_of_numbers_of_steps_that_fit_equally_well_the_smallest_is_taken(evidence):
    """Least squares is the limit of many steps: all large numbers of steps fit it."""
    problems = evidence.problems
    answers = np.asarray(predictions(learners.LeastSquares(), problems.x, problems.y, problems.queries))
    fitted = fitters(None)["newton"].fit([Evidence(problems, answers + 0.1 * np.cos(1e5 * answers))])
    assert fitted.or_more and fitted.learner.steps < 12


@pytest.mark.slow
def test_more_steps_than_an_exact_number_are_told(evidence):
    problems = evidence.problems
    dim = problems.x.shape[-1]
    solved = learners.ConjugateGradients(dim)  # and so after any more steps
    answers = np.asarray(predictions(solved, problems.x, problems.y, problems.queries))
    fitted = fitters(None)["conjugate-gradients"].fit([Evidence(problems, answers)])
    assert fitted.or_more and fitted.learner.steps == dim


@pytest.mark.slow
def test_fits_read_the_numbers_of_examples_that_count(evidence):
    problems = evidence.problems
    some = replace(problems, weights=np.eye(len(problems.weights))[3])
    for name in ("ridge", "kernel-smoother", "recursive-least-squares"):
        fitter = fitters(None)[name]
        ((features, answers, _),) = Data.of(fitter, [Evidence(some, evidence.answers)], 10).arrays
        learner = fitter.kind.example()
        full = predictions(learner, problems.x[:10], problems.y[:10], problems.queries[:10])
        assert answers.shape[1] == 1
        np.testing.assert_allclose(learner.respond(features), full[:, [3]], rtol=1e-12, atol=1e-14)


def test_what_problems_keep_is_of_their_own_weights(evidence):
    problems = evidence.problems
    assert problems.part(0, 5) is problems.part(0, 5) and problems.part(0, problems.tasks) is problems
    other = replace(problems, weights=np.eye(len(problems.weights))[3])
    assert other.part(0, 5).weights[3] == 1
    last = problems.part(problems.tasks - 1, problems.tasks + 1)
    np.testing.assert_array_equal(last.x[0], last.x[1])


@given(st.integers(0, 1000), st.floats(0.5, 2.0))
def test_costs_are_compared_task_by_task(seed, scale):
    costs = scale * np.random.default_rng(seed).exponential(size=50)
    end = End(np.zeros(1), costs)
    assert not end.is_worse_than(end)
    assert End(np.zeros(1), 1.1 * costs).is_worse_than(end)  # every task is worse
    heavy = costs.copy()
    heavy[0] += 100 * scale  # one task decides nothing
    assert not End(np.zeros(1), heavy).is_worse_than(end)
    assert End(np.zeros(1), np.full(50, np.inf)).is_worse_than(end)


@pytest.mark.slow
def test_it_prints_in_one_line_and_shows_a_table_in_notebooks():
    answer = identify(
        lambda x, y: np.full(len(x), 0.7),
        PROCESS,
        TASK,
        tasks=100,
        learners=("zero", "constant"),
        search=False,
    )
    assert "\n" not in repr(answer) and answer.headline in repr(answer)
    table = ElementTree.fromstring(f"<div>{answer._repr_html_()}</div>").find("table")
    assert [row[0].text for row in table] == ["learner", "constant", "zero"]


@pytest.mark.slow
def test_a_constant_is_named():
    answer = identify(
        lambda x, y: np.full(len(x), 0.7), PROCESS, TASK, tasks=100, learners=("zero", "constant", "average")
    )
    assert (answer.verdict, answer.candidates) == ("identified", ("constant",))
    assert answer.ranking[0].hyperparameters["value"] == pytest.approx([0.7])


@pytest.mark.slow
def test_a_divergence_is_said_and_bounded(evidence):
    wild = learners.GradientDescent(30.0, 20)
    (distance,) = judge([wild], [evidence], 0.95, 0).distance
    assert 4 < distance < 4 * 10 * 10  # four times the largest task, which is at most ten medians
    few = ms.LinearRegression(
        dim=8, noise=1.0
    )  # with as many examples as inputs least squares fits the noise
    answer = identify(
        lambda x, y: 0.1 * y.mean(1),
        few,
        ms.FewShot(examples=8),
        tasks=100,
        learners=("zero", "least-squares"),
        search=False,
    )
    by_id = {entry.learner: entry for entry in answer.ranking}
    assert by_id["least-squares"].diverges and not by_id["zero"].diverges
    assert re.search("^least-squares +> 4 ", str(answer), re.M)


@pytest.mark.slow
def test_out_of_distribution_is_asked_whatever_the_verdict():
    def model(x, y):
        if x.shape[1] > 9:
            raise ValueError("no more than 8 examples")
        return np.cos(x.sum((1, 2))) + y.mean(1)

    answer = identify(model, PROCESS, TASK, tasks=100, learners=("average", "least-squares"))
    assert answer.verdict == "none" and "unexplained" in answer.headline
    scaled, stretched, longer = answer.beyond
    assert scaled.distance > 0.1 and stretched.interval[0] < stretched.distance < stretched.interval[1]
    assert np.isnan(longer.distance) and longer.examples == 16
    assert any("16 examples) the model does not answer" in reason for reason in answer.reasons)
    alone = identify(model, PROCESS, TASK, tasks=100, learners=("average", "least-squares"), search=False)
    assert alone.beyond == ()


@pytest.mark.slow
def test_curves_are_those_of_the_model_that_was_identified():
    scale = [1.0]
    few = {"tasks": 100, "learners": ("zero", "constant"), "search": False}
    answer = identify(lambda x, y: np.full(len(x), 0.7 * scale[0]), PROCESS, TASK, **few)
    copy = pickle.loads(pickle.dumps(answer))
    assert str(copy) == str(answer)
    with pytest.raises(ValueError, match="this copy has no model"):
        copy.curves  # noqa: B018
    scale[0] = 0.9
    with pytest.raises(ValueError, match="its predictions have changed since it was identified"):
        answer.curves  # noqa: B018
    scale[0] = 1.0
    assert answer.curves.lengths.tolist() == list(range(1, 9))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(answer)).curves.differences, answer.curves.differences
    )
