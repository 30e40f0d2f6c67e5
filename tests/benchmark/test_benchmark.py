"""The benchmark: what is written is what the models are, and scores count right and wrong answers."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import load_file

import mesascope.benchmark._write as writing
from mesascope.benchmark import (
    METHODS,
    Answer,
    Answers,
    Benchmark,
    _methods,
    read_json,
    score,
    write_benchmark,
)
from mesascope.benchmark._cases import Truth, predictor
from mesascope.benchmark._data import USUAL
from mesascope.benchmark._score import mark
from mesascope.cli import main
from mesascope.core import named_key
from mesascope.probes import answers, draw_problems, identify
from mesascope.records import folder_lock
from mesascope.records._files import host_name

ONE = Truth(learners=("ridge",), hyperparameters={"ridge": {"penalty": 0.5}}, weights={})
TWO = Truth(learners=("average", "ridge"), hyperparameters={}, weights={"average": 0.4, "ridge": 0.6})
NONE = Truth(learners=(), hyperparameters={}, weights={})
OF_SYMBOLS = ["zero", "retrieval", "unigram-posterior", "dirichlet-posterior"]


def arrays(benchmark, name):
    """Contexts and predictions of a model as others read them: JSON, safetensors, NumPy."""
    manifest = json.loads((benchmark.folder / "manifest.json").read_text())
    model = manifest["models"][name]
    data = manifest["data"][model["data"]]
    return load_file(benchmark.folder / data["file"]), load_file(benchmark.folder / model["file"])


def perfect(benchmark):
    """The answers of a method that has the key."""
    answers = {}
    for name, entry in benchmark.key.models.items():
        names = entry.truth.learners
        verdict = ("none", "identified")[len(names)] if len(names) < 2 else "mixture"
        weights = {one: (weight, weight - 0.1, weight + 0.1) for one, weight in entry.truth.weights.items()}
        answers[name] = Answer(
            verdict=verdict, learners=names, hyperparameters=entry.truth.hyperparameters, weights=weights
        )
    return Answers(method="perfect", benchmark=benchmark.id, answers=answers)


@pytest.mark.slow
def test_predictions_of_gradient_descent_are_those_of_its_formula(benchmark_of_few, entries):
    """From the files alone: every step adds η times the mean gradient of the examples so far."""
    (name,) = entries(benchmark_of_few, group="planted", learner="gradient-descent")
    known = benchmark_of_few.key.models[name].truth.hyperparameters["gradient-descent"]
    data, given = arrays(benchmark_of_few, name)
    for setting in ("usual", "inputs × ½", "contexts 2 × as long"):
        x, y = data[f"{setting}/x"], data[f"{setting}/y"]
        found = given[f"{setting}/predictions"]
        assert found.shape == x.shape[:2]
        for task in range(3):
            for n in range(1, x.shape[1]):
                weights = np.zeros(3)
                for _ in range(known["steps"]):
                    weights += known["step_size"] / n * x[task, :n].T @ (y[task, :n] - x[task, :n] @ weights)
                exact = weights @ x[task, n]
                assert abs(found[task, n] - exact) < 1.5e-3 * abs(exact)  # the noise is at most √2 · 1e-3


def test_predictions_of_a_mixture_are_the_mean_of_its_parts(benchmark_of_few):
    """Nearest neighbours and ridge regression, as loops."""
    ((name, entry),) = (
        (name, entry)
        for name, entry in benchmark_of_few.key.models.items()
        if benchmark_of_few.manifest.models[name].data == "prompts" and entry.group == "mixture"
    )
    weights, known = entry.truth.weights, entry.truth.hyperparameters
    assert set(weights) == {"nearest-neighbours", "ridge"} and sum(weights.values()) == pytest.approx(1)
    data, given = arrays(benchmark_of_few, name)
    x, y, found = data["usual/x"], data["usual/y"], given["usual/predictions"]
    for task in range(5):
        for n in range(1, x.shape[1]):
            inputs, labels, query = x[task, :n], y[task, :n], x[task, n]
            order = np.argsort(((inputs - query) ** 2).sum(-1))[: known["nearest-neighbours"]["neighbours"]]
            gram = inputs.T @ inputs + known["ridge"]["penalty"] * np.eye(3)
            ridge = query @ np.linalg.solve(gram, inputs.T @ labels)
            exact = weights["nearest-neighbours"] * labels[order].mean() + weights["ridge"] * ridge
            assert abs(found[task, n] - exact) < 0.0284 * abs(exact)  # the noise is at most √2 · 0.02


def test_bigram_counts_of_symbols_are_probabilities(benchmark_of_few, entries):
    ((name, entry),) = {
        name: entry
        for name, entry in entries(benchmark_of_few, learner="dirichlet-posterior").items()
        if benchmark_of_few.manifest.models[name].data == "chains"
    }.items()
    concentration = entry.truth.hyperparameters["dirichlet-posterior"]["concentration"]
    data, given = arrays(benchmark_of_few, name)
    symbols, found = data["usual/symbols"], given["usual/predictions"]
    np.testing.assert_allclose(found[:, 1:].sum(-1), 1, rtol=1e-12)
    for task in range(5):
        for t in range(1, symbols.shape[1]):
            counts = np.full(3, concentration)
            for before, after in zip(symbols[task, :t], symbols[task, 1 : t + 1], strict=True):
                counts[after] += before == symbols[task, t]
            ratio = found[task, t] / (counts / counts.sum())
            assert np.abs(ratio - 1).max() < 4e-3  # e^(√2 · 1e-3) over the sum of such terms


@pytest.mark.slow
def test_a_model_of_the_folder_gives_the_recorded_predictions(benchmark_of_few):
    for name in benchmark_of_few.names:
        data, given = arrays(benchmark_of_few, name)
        model = benchmark_of_few.model(name)
        kinds = [kind for kind in ("x", "y", "tokens", "symbols") if f"usual/{kind}" in data]
        contexts = [data[f"usual/{kind}"][:6] for kind in kinds]
        if len(contexts) == 2:
            contexts[1] = contexts[1][:, :-1]
        expected = given["usual/predictions"][:6, -1]
        np.testing.assert_allclose(np.asarray(model(*contexts)), expected, rtol=1e-9, atol=1e-12)


def test_files_do_not_show_the_answers(folder):
    shown = (folder / "manifest.json").read_text()
    assert not any(word in shown for word in ("planted", "ridge", "decoy", "learner"))


@pytest.mark.slow
def test_constructed_and_trained_networks_are_their_learners(monkeypatch):
    """The key of a network of every kind, against the predictions of the learner that it names."""
    from mesascope.benchmark import _networks
    from mesascope.benchmark._models import LearnerModel

    monkeypatch.setattr(_networks, "_LAWS", _networks._LAWS[-1:])
    monkeypatch.setattr(_networks, "_EIGENVALUES", ((1.0, 1.0), (1.5, 0.5)))
    found = list(writing.constructions(writing.standard_data(), np.random.default_rng(0)))[1::2]
    found += list(writing.trained(np.random.default_rng(0)))
    assert len(found) == 4 + 3
    for case in found:
        (name,) = case.truth.learners
        usual = case.settings["usual"]
        problems = usual.problems(0, "test")
        learner = LearnerModel(learner=name, hyperparameters=case.truth.hyperparameters[name])
        model = writing.answers(writing.predictor(case.model, usual, 0.0, case.weights), problems)
        exact = writing.answers(writing.predictor(learner, usual, 0.0, {}), problems)
        distance = np.mean(np.abs(model - exact) ** 2) / np.mean(np.abs(exact) ** 2)
        # flows end where the gradient is below a tolerance
        assert distance < (1e-20 if case.group == "construction" else 1e-7), (case.data, distance)


@pytest.mark.parametrize(
    ("answer", "truth", "expected"),
    [
        (Answer(verdict="identified", learners=("ridge",)), ONE, "right"),
        (Answer(verdict="identified", learners=("posterior-mean",)), ONE, "right"),  # the same function
        (Answer(verdict="identified", learners=("lasso",)), ONE, "wrong"),
        (Answer(verdict="mixture", learners=("ridge", "average")), ONE, "wrong"),
        (
            Answer(verdict="mixture", learners=("ridge", "posterior-mean")),
            ONE,
            "wrong",
        ),  # one function is no mixture
        (Answer(verdict="ambiguous", learners=("lasso", "ridge")), ONE, "open"),
        (Answer(verdict="ambiguous", learners=("lasso", "average")), ONE, "missed"),
        (Answer(verdict="none"), ONE, "missed"),
        (Answer(verdict="mixture", learners=("ridge", "average")), TWO, "right"),
        (Answer(verdict="identified", learners=("ridge",)), TWO, "wrong"),
        (Answer(verdict="mixture", learners=("ridge", "lasso")), TWO, "wrong"),
        (Answer(verdict="ambiguous", learners=("ridge", "average", "lasso")), TWO, "open"),
        (Answer(verdict="none"), NONE, "right"),
        (Answer(verdict="identified", learners=("ridge",)), NONE, "wrong"),
        (Answer(verdict="ambiguous", learners=("ridge", "lasso")), NONE, "missed"),
    ],
)
def test_marks(answer, truth, expected):
    assert mark(answer, truth) == expected


@pytest.mark.slow
def test_planted_steps_on_the_curvature_do_not_diverge_on_the_data_on_which_they_are_identified():
    """Of more steps some predictions are 1e99, which `identify` refuses."""
    planted = [
        case for case in writing.cases(0, 4, ("planted",)) if case.model.learner == "gradient-descent++"
    ]
    for case in planted:
        usual = case.settings[USUAL]
        problems = draw_problems(usual.process, usual.task, 400, named_key(3, "tasks"))
        found = answers(predictor(case.model, usual, case.noise, {}), problems)
        assert np.abs(found).max() < 1e20 * np.abs(problems.targets).max()


def test_the_key_scores_full_marks(benchmark_of_few):
    found = score(benchmark_of_few, perfect(benchmark_of_few))
    assert found.accuracy == 1 and found.wrong == {}
    assert (found.within, found.largest_error, found.covered) == (1, 0, 1)
    assert found.counts["mixture"]["right"] == 3
    assert found.intervals == 1  # of prompts, with noise: two learners, one free weight


def test_errors_of_numbers_and_of_weights_are_counted(benchmark_of_few, entries):
    answers = dict(perfect(benchmark_of_few).answers)
    ((name, _),) = entries(benchmark_of_few, group="planted", learner="ridge").items()
    penalty = answers[name].hyperparameters["ridge"]["penalty"]
    answers[name] = answers[name].model_copy(
        update={"hyperparameters": {"ridge": {"penalty": 1.1 * penalty}}}
    )
    mixed = next(name for name, entry in entries(benchmark_of_few, group="mixture").items() if entry.noise)
    weights = {
        one: (value + 0.02, value + 0.01, value + 0.1) for one, (value, *_) in answers[mixed].weights.items()
    }
    answers[mixed] = answers[mixed].model_copy(update={"weights": weights})
    found = score(benchmark_of_few, Answers(method="rough", benchmark=benchmark_of_few.id, answers=answers))
    assert found.largest_error == pytest.approx(0.1)
    assert found.within == pytest.approx(1 - 1 / found.hyperparameters)
    assert found.covered == 0 and found.coverage == (0, pytest.approx(0.975))  # of one interval
    absurd = answers[name].model_copy(update={"hyperparameters": {"ridge": {"penalty": 1.7e308}}})
    rough = Answers(method="rough", benchmark=benchmark_of_few.id, answers=answers | {name: absurd})
    assert score(benchmark_of_few, rough).largest_error > 1e300  # inf where the ratio is no double


def test_its_id_is_that_of_what_was_written_and_not_of_when(benchmark_of_few):
    manifest = benchmark_of_few.manifest
    other = manifest.provenance.model_copy(update={"mesascope": "0.0.0"})
    assert manifest.model_copy(update={"provenance": other}).digest() == benchmark_of_few.id
    assert manifest.model_copy(update={"seed": manifest.seed + 1}).digest() != benchmark_of_few.id


def test_a_learner_that_nobody_knows_is_refused_by_name(benchmark_of_few, entries):
    answers = dict(perfect(benchmark_of_few).answers)
    (name,) = entries(benchmark_of_few, group="planted", learner="ridge")
    answers[name] = answers[name].model_copy(update={"learners": ("rigde",)})
    odd = Answers(method="odd", benchmark=benchmark_of_few.id, answers=answers)
    with pytest.raises(
        ValueError, match=rf"answers.{name}.learners.*unknown learner 'rigde'; did you mean 'ridge'"
    ):
        score(benchmark_of_few, odd)


@pytest.mark.parametrize("given", [None, "nan", True, [1.0, None], [[1.0], [1.0, 2.0]], 10**400])
def test_hyperparameters_that_are_no_numbers_are_refused_by_name(benchmark_of_few, entries, given):
    answers = dict(perfect(benchmark_of_few).answers)
    (name,) = entries(benchmark_of_few, group="planted", learner="ridge")
    answers[name] = answers[name].model_copy(update={"hyperparameters": {"ridge": {"penalty": given}}})
    odd = Answers(method="odd", benchmark=benchmark_of_few.id, answers=answers)
    with pytest.raises(
        ValueError, match=rf"answers.{name}.hyperparameters.ridge.penalty.*must be a finite number"
    ):
        score(benchmark_of_few, odd)


@pytest.mark.slow
def test_identify_names_a_planted_learner_and_no_decoy(benchmark_of_few, monkeypatch, entries):
    """The nearest of the same fits is always one: the page has the record of both methods for all models and learners."""
    monkeypatch.setattr(_methods, "identify", partial(identify, learners=OF_SYMBOLS))
    planted = entries(benchmark_of_few, group="planted", learner="dirichlet-posterior")
    decoys = entries(benchmark_of_few, name="shifted-bigrams")
    for method, marks in (("identify", ["right", "right"]), ("nearest", ["right", "wrong"])):
        found = [
            mark(METHODS[method](benchmark_of_few.model(name), benchmark_of_few.setting(name)), entry.truth)
            for name, entry in (planted | decoys).items()
        ]
        assert found == marks, method


def test_answers_that_are_written_are_kept(benchmark_of_few, tmp_path):
    """A method that fails at the third model loses the first two of no second call."""
    asked = []

    def failing(model, setting):
        asked.append(setting)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return Answer(verdict="none")

    out = tmp_path / f"{'a' * 250}.json"  # as long as names may be
    with pytest.raises(KeyboardInterrupt):
        benchmark_of_few.answer(failing, "mine", out)
    assert len(read_json(out, Answers).answers) == 2
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    leftover = tmp_path / f".{'a' * 40}.{host_name()}-{ended.pid}-0123abcd.tmp"
    leftover.write_text("half")  # of a writer that was killed
    done = benchmark_of_few.answer(failing, "mine", out)
    assert not leftover.exists()
    assert len(done.answers) == len(benchmark_of_few.names) == len(asked) - 1
    with pytest.raises(ValueError, match="not of 'yours'"):
        benchmark_of_few.answer(failing, "yours", out)


@pytest.mark.parametrize("given", [None, "ridge", {"verdict": "none"}])
def test_what_is_no_answer_is_refused_and_answers_before_it_are_kept(benchmark_of_few, tmp_path, given):
    out, asked = tmp_path / "answers.json", []

    def method(model, setting):
        asked.append(setting)
        return Answer(verdict="none") if len(asked) < 3 else given

    with pytest.raises(TypeError, match="model 0002: the method must return an Answer, got"):
        benchmark_of_few.answer(method, "mine", out)
    assert len(read_json(out, Answers).answers) == 2


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"verdict": "identified", "learners": ("ridge", "average")}, "'identified' needs one learner, got"),
        ({"verdict": "mixture", "learners": ("ridge",)}, "'mixture' needs two or three different learners"),
        ({"verdict": "mixture", "learners": ("ridge", "ridge")}, "'mixture' needs two or three different learners"),
        ({"verdict": "none", "learners": ("ridge",)}, "'none' needs no learner"),
        ({"verdict": "none", "seconds": float("nan")}, "finite"),
        ({"verdict": "none", "seconds": -1.0}, "greater than or equal to 0"),
        ({"verdict": "none", "weights": {"ridge": (float("nan"),) * 3}}, "finite"),
        ({"verdict": "none", "weights": {"ridge": (0.5, 0.9, 0.1)}}, "the weight 0.5 of ridge is not in its interval"),
    ],
)  # fmt: skip
def test_answers_that_contradict_themselves_are_refused(values, said):
    with pytest.raises(ValueError, match=said):
        Answer(**values)


def test_scores_are_printed_and_given_as_json(folder, tmp_path, capsys):
    benchmark, file = Benchmark(folder), tmp_path / "answers.json"
    file.write_text(perfect(benchmark).model_dump_json())
    assert main(["benchmark", "score", str(folder), str(file)]) == 0
    shown = capsys.readouterr().out
    assert "perfect" in shown and "100.0 %" in shown and f"{len(benchmark.names)} all" in shown
    assert main(["benchmark", "score", str(folder), str(file), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["scores"]
    assert found["counts"]["all"]["right"] == len(benchmark.names)


def test_groups_do_not_depend_on_each_other():
    both = [case.model for case in writing.cases(0, 1, ("construction", "mixture"))]
    alone = [case.model for case in writing.cases(0, 1, ("mixture",))]
    assert both[-len(alone) :] == alone and len(both) == len(alone) + 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"groups": ("planted", "plant")}, "did you mean 'planted'"),
        ({"groups": ()}, "at least one"),
        ({"draws": 0}, "draws"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        write_benchmark(tmp_path / "new", **settings)
    assert not (tmp_path / "new").exists()


def test_an_interrupted_write_is_no_benchmark(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "cases", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_benchmark(tmp_path / "new")
    with pytest.raises(ValueError, match="cannot read"):
        Benchmark(tmp_path / "new")
    (tmp_path / "new" / "models").mkdir()
    with pytest.raises(ValueError, match="holds a benchmark that was not finished; remove it"):
        Benchmark(tmp_path / "new")
    with pytest.raises(ValueError, match="holds a benchmark that was not finished; remove it"):
        write_benchmark(tmp_path / "new")


def test_one_process_answers_into_a_file(benchmark_of_few, tmp_path):
    out = tmp_path / "answers.json"
    with folder_lock(tmp_path, out.name), pytest.raises(ValueError, match="is in use by process"):
        benchmark_of_few.answer(METHODS["nearest"], "nearest", out)
    assert not out.exists()


def test_one_process_writes_a_benchmark(tmp_path):
    with folder_lock(tmp_path, "benchmark"), pytest.raises(ValueError, match="is in use by process"):
        write_benchmark(tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_a_model_is_identified_by_the_python_interface(benchmark_of_few, entries):
    """As the page shows it: a method of one's own gets a function and a process."""
    (name,) = entries(benchmark_of_few, group="planted", learner="average")
    setting = benchmark_of_few.setting(name)
    names = ["zero", "average", "last-token"]
    found = identify(benchmark_of_few.model(name), setting.process, setting.task, tasks=100, learners=names)
    assert (found.verdict, found.candidates) == ("identified", ("average",))
