"""Many seeds: each run is the one that it would be alone."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mesascope import DiagonalUnitary, Gaussian, LinearAttention, NextToken, train
from mesascope.core import named_key
from mesascope.dynamics import Optimizer, Outcome, TrainingSettings, train_many
from mesascope.dynamics import _train_many as module
from mesascope.dynamics._train import train_together
from mesascope.dynamics._training_settings import TrainingKeywords

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(6)
SEEDS = [5, 3, 11]
SETTINGS = {
    "optimizer": Optimizer("adam", 0.01),
    "steps": 20,
    "batch": 8,
    "average": 0.9,
    "held_out": 16,
    "record_every": 4,
    "evaluate_every": 5,
}


def _make(key):
    return LinearAttention.gaussian(2, 0.3, key=key)


def _bad_start(key):
    """Weights of seed 3 that are beyond single precision after a step."""
    model = _make(key)
    scale = jnp.where(
        jnp.all(jax.random.key_data(key) == jax.random.key_data(named_key(3, "model"))), 1e18, 1.0
    )
    return LinearAttention(model.w_kq * scale, model.w_pv * scale)


def _alone(seed, make=_make, **changed):
    return train(make(named_key(seed, "model")), PROCESS, TASK, seed=seed, **{**SETTINGS, **changed})


def _together(make=_make, seeds=SEEDS, progress=None, **changed):
    models = [make(named_key(seed, "model")) for seed in seeds]
    return train_together(models, PROCESS, TASK, seeds, TrainingSettings(**{**SETTINGS, **changed}), progress)


def _assert_close(run, alone):
    assert run.result is alone.result
    for a, b in ((run.model, alone.model), (run.average, alone.average)):
        # single precision, and Adam divides by the root of its second moment
        np.testing.assert_allclose(a.w_kq, b.w_kq, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(a.w_pv, b.w_pv, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(run.steps, alone.steps)
    np.testing.assert_allclose(run.losses, alone.losses, rtol=1e-5)
    np.testing.assert_array_equal(run.evaluated, alone.evaluated)
    np.testing.assert_allclose(run.evaluations.value, alone.evaluations.value, rtol=1e-4)
    np.testing.assert_allclose(run.loss.value, alone.loss.value, rtol=1e-4)


def _in_threads(make=_make, progress=None):
    return train_many(make, PROCESS, TASK, SEEDS, progress=progress, **SETTINGS)


both_ways = pytest.mark.parametrize("run_all", [_in_threads, _together])


@pytest.mark.slow
@both_ways
def test_every_run_is_the_one_alone_in_the_order_of_the_seeds(run_all):
    for seed, run in zip(SEEDS, run_all(), strict=True):
        _assert_close(run, _alone(seed))


@pytest.mark.slow
@both_ways
def test_a_run_that_diverges_leaves_the_others_alone(run_all):
    good, bad, other = run_all(_bad_start)
    assert bad.result is Outcome.NOT_FINITE and len(bad.losses) == 0
    np.testing.assert_array_equal(
        bad.model.w_kq, np.asarray(_bad_start(named_key(3, "model")).w_kq, np.float32)
    )
    _assert_close(good, _alone(5))
    _assert_close(other, _alone(11))


@both_ways
def test_progress_names_the_seed(run_all):
    seen = {seed: [] for seed in SEEDS}
    runs = run_all(progress=lambda seed, now: seen[seed].append(now))
    for seed, run in zip(SEEDS, runs, strict=True):
        assert [now.done for now in seen[seed]] == run.steps.tolist()
        np.testing.assert_array_equal([now.values["loss"] for now in seen[seed]], run.losses)


def test_runs_go_on_in_a_folder_of_each_seed(tmp_path):
    settings = {**SETTINGS, "steps": 7, "workers": 1}
    train_many(_make, PROCESS, TASK, SEEDS, checkpoint=tmp_path, **settings)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-11", "seed-3", "seed-5"]
    runs = train_many(_make, PROCESS, TASK, SEEDS, checkpoint=tmp_path, **SETTINGS)
    for seed, run in zip(SEEDS, runs, strict=True):
        alone = _alone(seed, checkpoint=tmp_path / "alone" / str(seed))
        assert run.checkpoint.parent.name == f"seed-{seed}"
        np.testing.assert_array_equal(run.model.w_kq, alone.model.w_kq)
        np.testing.assert_array_equal(run.losses, alone.losses)


def test_a_run_that_raises_ends_the_others_before_they_begin():
    begun = []

    def make(key):
        begun.append(key)
        return _make(key)

    def report(seed, now):
        raise RuntimeError("stop it")

    with pytest.raises(RuntimeError, match="stop it"):
        train_many(make, PROCESS, TASK, range(50), workers=1, progress=report, **SETTINGS)
    assert len(begun) <= 3  # a few may begin before the first is noticed


def test_an_interruption_keeps_every_run(monkeypatch):
    """Ctrl-C reaches the waiting main thread: the first result it asks for raises."""
    stopped = []

    class Future(module.ThreadPoolExecutor):
        def submit(self, run, seed):
            future = super().submit(run, seed)
            result = future.result

            def interrupted():
                if not stopped:
                    stopped.append(seed)
                    raise KeyboardInterrupt
                return result()

            future.result = interrupted
            return future

    monkeypatch.setattr(module, "ThreadPoolExecutor", Future)
    long = {**SETTINGS, "steps": 10**8, "workers": 1}
    runs = train_many(_make, PROCESS, TASK, SEEDS, **long)
    assert [run.result for run in runs] == [Outcome.INTERRUPTED] * 3
    assert len(runs[1].steps) == len(runs[2].steps) == 0  # had not begun


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([], "seeds: must be distinct, at least one"),
        ([1, 2, 1], r"seeds: must be distinct, at least one, got \[1, 2, 1\]"),
        ([0.5], "seeds must be an integer, got 0.5"),
        (3, r"seeds: must be a list of them, such as \[0, 1, 2\] or range\(3\), got 3"),
        ("12", "seeds: must be a list of them, .* got '12'"),
        ([-1], "seeds must be at least 0"),
        ([2**32], r"seed must be below 2\*\*32"),
    ],
)
def test_bad_seeds_speak(seeds, message):
    with pytest.raises((ValueError, TypeError), match=message):
        train_many(_make, PROCESS, TASK, seeds, **SETTINGS)


def test_a_model_is_not_a_way_to_make_models():
    for make in (3, _make(jax.random.key(0))):
        with pytest.raises(
            TypeError, match="make: must be a function from a random key to a model, such as lambda"
        ):
            train_many(make, PROCESS, TASK, SEEDS, **SETTINGS)


def test_type_checkers_see_every_setting():
    assert list(TrainingKeywords.__annotations__) == list(TrainingSettings.model_fields)


@pytest.mark.parametrize("function", [train, train_many])
def test_settings_are_in_signature_and_docstring(function):
    parameters = inspect.signature(function).parameters
    for name, field in TrainingSettings.model_fields.items():
        assert parameters[name].default == field.default
        assert f"\n    {name}: " in inspect.getdoc(function)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": 0.1}, "unknown field 'learning_rate'; use one of optimizer, steps"),
        ({"steps": 0}, "steps: must be at least 1"),
        ({"workers": 0}, "workers must be at least 1"),
    ],
)
def test_bad_settings_speak(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        train_many(_make, PROCESS, TASK, SEEDS, **settings)
