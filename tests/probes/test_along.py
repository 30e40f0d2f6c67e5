"""The algorithm of a model along its training: strategies, their weights, and when the nearest changes."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

import mesascope as ms
from mesascope.learners import (
    Average,
    LastToken,
    Ridge,
    UnigramPosterior,
    Zero,
    predictions,
    prompt_examples,
)
from mesascope.probes import identify_along
from mesascope.probes._candidates import Judgement
from mesascope.probes._changes import changes
from mesascope.probes._evidence import Evidence
from mesascope.probes._identify_along import _alike
from mesascope.probes._intervals import resampled_means
from mesascope.probes._weights import Products, nearest_weights, smallest_change, weigh
from mesascope.records import AlongRecord, RecordError, read_along, read_dataset, write_along

PROCESS, TASK = ms.LinearRegression(3, noise=0.5), ms.FewShot.every(6)
STEPS = [0, 1, 3, 10, 30, 100, 300, 1000]
NAMES = ["zero", "average", "ridge"]


def last(learner, x, y):
    padded = np.concatenate([y, np.zeros((len(y), 1))], 1)
    return np.asarray(predictions(learner, *prompt_examples(x, padded)))[:, -1, 0]


def shares(step):
    """From zero to averaging until step 30, from there to ridge until step 1000, evenly in the logarithm."""
    place = np.interp(np.log1p(step), np.log1p([0, 30, 1000]), [0, 1, 2])
    return np.array([max(1 - place, 0), 1 - abs(place - 1), max(place - 1, 0)])


def planted(step):
    """The mixture of these shares; a small function of the query that is none of them lets the first model answer at all."""

    def model(x, y):
        _, average, ridge = shares(step)
        odd = 1e-3 * np.tanh(x[:, -1, 0])
        return average * last(Average(), x, y) + ridge * last(Ridge(0.3), x, y) + odd

    return model


def asked(models=planted, **settings):
    settings = {"steps": STEPS, "tasks": 200, "learners": NAMES, "interface": "context"} | settings
    return identify_along(models, PROCESS, TASK, **settings)


@pytest.fixture(scope="module")
def found():
    return asked()


@pytest.mark.slow
def test_strategies_are_found_with_their_hyperparameters(found):
    assert [type(one.learner).name for one in found.strategies] == NAMES
    assert [one.step for one in found.strategies] == [0, 30, 1000]
    assert float(found.strategies[2].learner.penalty) == pytest.approx(0.3, rel=0.01)


@pytest.mark.slow
def test_weights_are_the_shares_of_the_planted_mixture(found):
    """The odd part is 1e-3 beside predictions of about 0.3 to 1: it moves weights by less than 1e-2."""
    for place, step in enumerate(STEPS[1:], start=1):
        np.testing.assert_allclose(found.followed.weights.value[place], shares(step), atol=1e-2)
    assert (found.followed.unexplained.value[2:] < 1e-3).all()
    assert found.followed.determined[1:].all()


def test_the_nearest_strategy_changes_half_way(found):
    """The distances of two strategies are equal where each has half of the weight: they are as far from each other."""
    assert [(one.before, one.after) for one in found.changes] == [
        ("zero", "average"),
        ("average", "ridge"),
    ]
    for one, (low, high) in zip(found.changes, [(3, 10), (100, 300)], strict=True):
        assert one.interval == (low, high)
        assert low < one.step < high
    middle = np.expm1(np.log1p([[0, 30], [30, 1000]]).mean(1))
    # interpolation of logarithms of distances between checkpoints a factor of 3 apart
    np.testing.assert_allclose([one.step for one in found.changes], middle, rtol=0.05)


def test_verdicts_are_those_of_identify(found):
    for step in (30, 100):
        alone = ms.identify(
            planted(step), PROCESS, TASK, tasks=200, learners=NAMES, search=False, interface="context"
        )
        one = found.found[step]
        assert (one.verdict, one.candidates, one.headline) == (
            alone.verdict,
            alone.candidates,
            alone.headline,
        )
        assert [(e.learner, e.distance, e.interval) for e in one.ranking] == [
            (e.learner, e.distance, e.interval) for e in alone.ranking
        ]
    assert found.found[30].verdict == "identified"
    assert found.found[100].verdict == "none"


@pytest.mark.slow
def test_mixtures_are_named_on_request():
    found = asked(steps=[30, 100], parts=2, learners=["average", "ridge"])
    (mixture,) = found.found[100].mixtures
    assert {one.learner: round(one.weight, 2) for one in mixture.parts} == {
        "average": round(shares(100)[1], 2),
        "ridge": round(shares(100)[2], 2),
    }


def test_given_strategies_are_not_fitted():
    given = [Average(), Ridge(0.3), Ridge(3.0)]
    found = asked(steps=[30, 1000], strategies=given)
    record = found.record()
    assert [one.name for one in record.strategies] == ["average", "ridge 1", "ridge 2"]
    assert [one.hyperparameters for one in record.strategies] == [{}, {"penalty": 0.3}, {"penalty": 3.0}]
    assert found.followed.weights.value[1] == pytest.approx([0, 1, 0], abs=1e-2)


def test_weights_of_strategies_that_predict_the_same_are_not_determined():
    found = asked(steps=[30, 1000], strategies=[Average(), Ridge(0.3), Ridge(0.3001)])
    assert not found.followed.determined.any()


@pytest.mark.slow
def test_checkpoints_may_be_a_mapping_a_list_or_a_function(found):
    steps = STEPS[-2:]
    models = [planted(step) for step in steps]
    several = [asked(models, steps=steps), asked(dict(zip(steps, models, strict=True)), steps=None)]
    for one in several:
        assert one.steps == tuple(steps)
        assert [e.distance for e in one.found[1000].ranking] == [
            e.distance for e in found.found[1000].ranking
        ]
    assert asked(models, steps=None).steps == (0, 1)


class TestRecord:
    def test_it_is_read_as_it_was_written(self, found, tmp_path):
        record = found.record({"run": "here"})
        write_along(tmp_path / "along.json", record)
        assert read_along(tmp_path / "along.json") == record
        data = read_dataset(tmp_path / "along.nc")
        assert dict(data.sizes) == {"step": 8, "strategy": 3, "end": 2, "learner": 3}
        np.testing.assert_array_equal(data.weight.T, found.followed.weights.value)
        np.testing.assert_array_equal(data.weight_interval.sel(end="low").T, found.followed.weights.low)
        np.testing.assert_array_equal(data.distance.T, found.followed.distances.value)
        assert list(data.verdict.values) == [one.verdict for one in found.found.values()]
        ridge = [one.entry("ridge").distance for one in found.found.values()]
        np.testing.assert_array_equal(data.learner_distance.sel(learner="ridge"), ridge)

    def test_curves_of_other_lengths_are_refused(self, found):
        content = found.record().model_dump()
        content["determined"] = content["determined"][1:]
        with pytest.raises(ValueError, match="determined: give one value for each of 8 checkpoints"):
            AlongRecord.model_validate(content)

    def test_another_file_is_refused(self, tmp_path):
        (tmp_path / "along.json").write_text("{}")
        with pytest.raises(RecordError, match="is not a file of mesascope"):
            read_along(tmp_path / "along.json")

    def test_text_names_every_checkpoint(self, found):
        lines = str(found).splitlines()
        assert len(lines) == 2 + len(STEPS)
        assert lines[0].startswith("nearest to zero, then average from step")
        assert "identified average" in lines[6]
        assert "8 checkpoints" in repr(found)
        assert "<td>1000</td>" in found._repr_html_()


class TestRefusals:
    @pytest.mark.parametrize(
        ("models", "given", "error"),
        [
            ("runs/one", {}, r"a path; read the checkpoints of a run by ms.Checkpoints\('runs/one'\)"),
            ([planted(1)], {"steps": None}, "at least two checkpoints, got 1; train with"),
            (planted, {"steps": None}, "give the numbers of steps"),
            ([planted(1), planted(2)], {"steps": [0]}, "one number for each of 2 models, got 1"),
            ({0: planted(0), 2: planted(2)}, {"steps": [0, 1]}, "no checkpoint after 1 steps"),
            (planted, {"steps": [3, 1]}, "must increase"),
            (planted, {"steps": [-1, 1]}, "steps"),
            (3, {}, "mapping from steps to models, a list, or a function of steps, got int"),
            (planted, {"strategies": []}, "give 1 to 4 learners, got 0"),
            (planted, {"strategies": ["ridge"]}, "must be a list of learners such as"),
            (planted, {"strategies": Ridge(0.1)}, "must be a list of learners such as"),
            (planted, {"strategies": [Ridge(0.1), Ridge(0.1)]}, "'ridge' is there twice with the same"),
            (planted, {"strategies": [UnigramPosterior(1.0)]}, "'unigram-posterior' reads symbols"),
            ({0.5: planted(0), 1.5: planted(1)}, {"steps": None}, "the number of steps"),
            ({"a": planted(0), "b": planted(1)}, {"steps": None}, "the number of steps"),
            ({-1: planted(0), 1: planted(1)}, {"steps": None}, "the number of steps"),
            (planted, {"steps": []}, "at least two checkpoints, got 0"),
            ([planted(1), lambda x, y: x], {"steps": [0, 7]}, "after 7 steps: model: must answer"),
            (planted, {"learners": ["rigde"]}, "did you mean 'ridge'"),
            (planted, {"tasks": 10}, "needs at least"),
        ],
    )
    def test_one_line_says_what_is_wrong(self, models, given, error):
        with pytest.raises((TypeError, ValueError), match=error) as caught:
            asked(models, **given)
        assert "\n" not in str(caught.value)

    def test_checkpoints_of_different_models_are_refused(self):
        models = [ms.prompt_linear_transformer(3, layers=layers, key=jax.random.key(0)) for layers in (1, 2)]
        with pytest.raises(ValueError, match="after 1 steps is of another model than that after 0"):
            asked(models, steps=None, interface=None)

    def test_modules_of_torch_with_other_shapes_are_refused(self):
        torch = pytest.importorskip("torch")
        models = [torch.nn.Linear(width, 1) for width in (4, 9)]
        with pytest.raises(ValueError, match="after 1 steps is of another model than that after 0"):
            list(_alike([0, 1], models.__getitem__))
        assert list(_alike([0, 1], [models[0], models[0]].__getitem__)) == [(0, models[0]), (1, models[0])]


# The weights and times themselves, with numbers


@pytest.mark.parametrize("count", [2, 3])
def test_the_smallest_change_is_that_of_a_search(count):
    """Over all directions of the plane in which weights keep their sum."""
    answers = np.random.default_rng(count).normal(size=(count, 5))
    found = smallest_change(answers @ answers.T, 2.0)
    angles = np.linspace(0, np.pi, 20_001)
    if count == 2:
        moves = np.array([[1.0, -1.0]])
    else:
        first, second = np.array([1, -1, 0]) / 2**0.5, np.array([1, 1, -2]) / 6**0.5
        moves = 2**0.5 * (np.cos(angles)[:, None] * first + np.sin(angles)[:, None] * second)
    assert found == pytest.approx(np.min(np.sum((moves @ answers) ** 2, -1)) / 2, rel=1e-7)


def test_predictions_on_a_line_can_be_exchanged():
    """Any two of the three are apart, but the one between is a mixture of the others."""
    ends = np.random.default_rng(0).normal(size=(2, 5))
    three = np.array([ends[0], ends.mean(0), ends[1]])
    assert smallest_change(three @ three.T, 1.0) == pytest.approx(0, abs=1e-12)
    assert smallest_change((three[:2] @ three[:2].T), 1.0) > 0.1


@pytest.mark.parametrize("seed", range(4))
def test_nearest_weights_are_those_of_a_general_solver(seed):
    """SLSQP of SciPy from the centre of the simplex, to its own accuracy of about 1e-6."""
    rng = np.random.default_rng(seed)
    answers, model = rng.normal(size=(4, 9)), rng.normal(size=9)
    found = Products(answers @ answers.T, answers @ model, model @ model)
    weights = nearest_weights(found)

    def distance(pi):
        return np.sum((model - pi @ answers) ** 2)

    sums_to_one = {"type": "eq", "fun": lambda pi: pi.sum() - 1}
    start = np.full(4, 0.25)
    best = minimize(distance, start, bounds=[(0, 1)] * 4, constraints=sums_to_one, options={"ftol": 1e-14})
    np.testing.assert_allclose(weights, best.x, atol=1e-5)
    assert found.unexplained(weights) == pytest.approx(distance(weights) / (model @ model))


def evidence(answers):
    """Predictions of a model for one number of examples, shape (tasks,)."""
    return Evidence(SimpleNamespace(weights=np.ones(1)), np.reshape(answers, (-1, 1, 1)))


def weighed(answers, model):
    return weigh([np.reshape(one, (-1, 1, 1)) for one in answers], evidence(model), 0.01, 0.95, 0)


@pytest.mark.slow
def test_intervals_of_weights_hold_the_truth_as_often_as_they_say():
    """300 times 200 tasks: 95 % but for three standard errors of the share, and for what 200 tasks miss, 1 %."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(300):
        one, other, noise = rng.normal(size=(3, 200))
        found = weighed([one, other], 0.3 * one + 0.7 * other + 0.5 * noise)
        low, high = found.weights.low[0], found.weights.high[0]
        hits += low <= 0.3 <= high
        assert found.determined
    assert 0.95 - 0.048 < hits / 300 < 0.95 + 0.038


def test_a_mixture_is_not_farther_than_its_parts():
    """Also where the predictions of one part are a hundred times too large on some tasks."""
    rng = np.random.default_rng(0)
    model = rng.normal(size=200)
    near, wild = model + 0.5 * rng.normal(size=200), model.copy()
    wild[:3] *= 100
    found = weighed([near, wild], model)
    assert found.unexplained.value <= found.judgement.distance.min()


def test_weights_where_the_model_answers_0():
    rng = np.random.default_rng(0)
    found = weighed(rng.normal(size=(2, 50)) * [[1.0], [2.0]], np.zeros(50))
    assert found.weights.value.sum() == pytest.approx(1)
    assert found.weights.value[0] > found.weights.value[1]
    assert found.unexplained.value == np.inf
    with_zero = weighed([rng.normal(size=50), np.zeros(50)], np.zeros(50))
    assert with_zero.weights.value == pytest.approx([0, 1])
    assert with_zero.unexplained.value == 0


@pytest.mark.parametrize("tasks", [1, 25, 50])
@pytest.mark.parametrize("beyond", [np.inf, np.nan, 1e61])
def test_a_strategy_that_diverges_on_some_tasks_has_no_weight_and_changes_nothing_else(tasks, beyond):
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 50))
    model, wild = 0.3 * one + 0.7 * other, one.copy()
    wild[:tasks] = beyond
    alone, found = weighed([one, other], model), weighed([one, other, wild], model)
    assert found.weights.value == pytest.approx([0.3, 0.7, 0], abs=1e-9)
    np.testing.assert_array_equal(found.judgement.distance[:2], alone.judgement.distance)
    assert found.judgement.distance[2] > 1e100
    assert found.unexplained.value == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("with_zero", [True, False])
def test_a_model_that_first_answers_0(with_zero):
    learners = [Zero(), Average()] if with_zero else [LastToken(), Average()]
    models = [lambda x, y: np.zeros(len(x)), planted(1), planted(30)]
    found = asked(models, steps=[0, 1, 30], strategies=learners)
    assert found.followed.weights.value.sum(1) == pytest.approx(1)
    assert found.changes[-1].after == "average"
    assert np.isfinite(found.record().changes[-1].step)


def test_a_single_strategy_has_no_changes():
    found = asked(steps=[0, 1000], strategies=[Ridge(0.3)])
    assert found.changes == () and "no other strategy is surely nearer" in found.headline
    assert found.followed.weights.value == pytest.approx(1)
    assert found.followed.determined.all()


def test_what_halves_nothing_is_no_strategy():
    """A model on the way from the answer 0 to ridge is nothing else on its way."""
    assert [type(one.learner).name for one in asked(steps=[0, 1000]).strategies] == ["zero", "ridge"]


def judged(*distances):
    """Distances of strategies at every checkpoint: for each resample alike, or a list for each of three resamples."""
    moments = [np.broadcast_to(one, (3, np.shape(one)[-1])) for one in distances]
    return [Judgement(one[0], one) for one in moments]


def test_intervals_of_changes_hold_the_change():
    """Distances 1 and e^{−(x − x*)} over x = log(1 + step), errors of 14 % that differ by checkpoint: 90 of 100 at least."""
    rng, steps, held = np.random.default_rng(0), np.geomspace(1, 1000, 25).round().astype(int), 0
    steps = np.unique(steps)
    times = np.log1p(steps)
    for _ in range(100):
        change = rng.uniform(times[6], times[-6])
        true = np.stack([np.ones(len(times)), np.exp(change - times)], 1)
        table = (rng.gamma(0.25, 4, size=(200, *true.shape)) * true).reshape(200, -1)
        means, drawn = table.mean(0).reshape(true.shape), resampled_means(table, 0).reshape(1000, *true.shape)
        judgements = [Judgement(means[k], drawn[:, k]) for k in range(len(steps))]
        (*_, found) = changes(["a", "b"], steps.tolist(), judgements, 0.95)
        held += found.interval[0] <= np.expm1(change) <= found.interval[1]
    assert held >= 90


def test_a_change_that_no_resample_doubts_lies_between_two_checkpoints():
    """log d_a − log d_b goes from −log 4 to log 4: half way in log(1 + step), at √(2 · 10) − 1."""
    (one,) = changes(["a", "b"], [0, 1, 9, 99], judged([1, 4], [1, 4], [4, 1], [4, 1]), 0.95)
    assert one.step == pytest.approx(20**0.5 - 1)
    assert (one.before, one.after, one.interval) == ("a", "b", (1, 9))


def test_a_change_that_resamples_doubt_counts_from_where_it_is_sure():
    """At the third checkpoint one resample is still nearer to a: the change is seen at the fourth, after the last crossing."""
    moments = judged([1, 4], [1, 4], [[4, 1], [4, 1], [1, 2]], [4, 1])
    (one,) = changes(["a", "b"], [0, 1, 9, 99], moments, 0.95)
    assert one.step == pytest.approx(20**0.5 - 1)
    assert one.interval == (1, 99)


def test_a_change_that_is_never_sure_is_none():
    doubtful = [[4, 1], [4, 1], [1, 2]]
    assert list(changes(["a", "b"], [0, 1, 9], judged([1, 4], doubtful, doubtful), 0.95)) == []


@pytest.mark.parametrize("other", [[1.9, 1], [1e-29, 1e-31]])
def test_less_than_twice_as_far_is_no_change_and_rounding_is_none(other):
    assert list(changes(["a", "b"], [0, 1, 9], judged([other[1], other[0]], other, other), 0.95)) == []


def test_a_resample_that_is_nearer_from_the_start_counts_as_the_first_checkpoint():
    moments = judged([[1, 4], [1, 4], [4, 1]], [[1, 4], [1, 4], [4, 1]], [4, 1], [4, 1])
    (one,) = changes(["a", "b"], [0, 1, 9, 99], moments, 0.95)
    assert one.interval == (0, 9)


def test_changes_among_three_strategies_are_in_order():
    """At the third checkpoint c is nearest, but not surely: the change goes to it where it is, and not before that."""
    doubtful = [[3, 1.2, 1.1], [1, 1.2, 1.1], [3, 1.2, 1.1]]
    moments = judged([1, 1.4, 1.5], [1, 1.5, 1.2], doubtful, [3, 1.2, 0.2])
    (one,) = changes(["a", "b", "c"], [0, 1, 100, 1000], moments, 0.95)
    assert (one.before, one.after) == ("a", "c")
    found = list(
        changes(["a", "b", "c"], [0, 9, 99, 999], judged([1, 9, 9], [9, 1, 9], [9, 1, 9], [9, 9, 1]), 0.95)
    )
    assert [(one.before, one.after) for one in found] == [("a", "b"), ("b", "c")]
    assert found[0].step < found[1].step
