"""How runs end that do not finish, and what is refused before they begin."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mesascope import DiagonalUnitary, Gaussian, LinearAttention, NextToken, StudentT, train
from mesascope.dynamics import Optimizer, Outcome, TrainingSettings, load_model, refuse_large_networks
from mesascope.models import prompt_linear_transformer, token_transformer
from mesascope.processes import (
    FewShot,
    LinearRegression,
    MarkovTree,
    MomentError,
    OrthogonalAR,
    SequenceProcess,
)
from mesascope.specs import component

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(6)
START = LinearAttention.diagonal(2, 0.5, 0.5)
SMALL = {"steps": 50, "batch": 8, "held_out": 16, "record_every": 1}
TOO_FAST = Optimizer("sgd", 0.3)  # a few steps go well


def _values(model):
    return np.concatenate([np.ravel(model.w_kq), np.ravel(model.w_pv)])


@pytest.mark.slow
def test_a_diverging_run_keeps_the_last_finite_weights(tmp_path):
    run = train(START, PROCESS, TASK, optimizer=TOO_FAST, checkpoint=tmp_path, checkpoint_every=1, **SMALL)
    assert run.result is Outcome.DIVERGED and "learning rate" in run.result.message
    last = run.steps[-1]
    assert 1 < last < 50 and np.isfinite(run.losses).all()
    np.testing.assert_array_equal(run.steps, np.arange(1, last + 1))
    assert np.isfinite(_values(run.model)).all()
    assert run.checkpoint == max(tmp_path.iterdir()) and run.checkpoint.stem == f"step-{last:09}"
    np.testing.assert_array_equal(_values(load_model(run.checkpoint, START)), _values(run.model))
    again = train(START, PROCESS, TASK, optimizer=TOO_FAST, checkpoint=tmp_path, checkpoint_every=1, **SMALL)
    assert again.result is Outcome.DIVERGED
    np.testing.assert_array_equal(again.losses, run.losses)


@component
class OfAnotherShape(SequenceProcess):
    """Draws tokens with other axes than it should."""

    axes: str
    dim: int = 2

    def sample(self, key, horizon, batch):
        sizes = {"batch": batch, "horizon": horizon, "dim": 2, "longer": horizon + 1, "more": 3}
        return jax.random.normal(key, tuple(sizes[axis] for axis in self.axes.split()))

    def describe(self):
        return self.axes


class Exploding(LinearAttention):
    """Answers of any size, with weights that stay small: the square of an answer overflows before its weights do."""

    def predictions(self, tokens):
        return super().predictions(tokens) * jnp.exp(60 * jnp.abs(self.w_pv).sum())


def _explodes(optimizer, **settings):
    start = Exploding(jnp.full((4, 4), 2.0**-6), jnp.zeros((2, 4)))
    return start, train(start, PROCESS, TASK, optimizer=optimizer, **{**SMALL, **settings})


@pytest.mark.slow
@pytest.mark.parametrize("evaluate_every", [None, 1])
def test_a_run_does_not_finish_with_an_infinite_loss(evaluate_every):
    """The first step leaves finite weights at which nothing finite can be said of the held-out samples."""
    start, run = _explodes(Optimizer("sgd", 1e3), steps=1, evaluate_every=evaluate_every)
    assert run.result is Outcome.DIVERGED
    np.testing.assert_array_equal(_values(run.model), _values(start))
    assert np.isfinite(float(run.loss.value)) and np.isfinite(run.evaluations.value).all()


@pytest.mark.slow
@pytest.mark.parametrize("record_every", [1, 50])
def test_a_loss_that_is_not_finite_from_the_start_ends_the_run_there(tmp_path, record_every):
    start, slow = jax.tree.map(lambda w: w * 1e18, START), Optimizer("sgd", 1e-9)
    settings = {**SMALL, "record_every": record_every}
    run = train(start, PROCESS, TASK, optimizer=slow, checkpoint=tmp_path, **settings)
    assert run.result is Outcome.NOT_FINITE
    assert "at the start, before any step; no learning rate fixes that" in run.result.message
    assert len(run.steps) == len(run.losses) == 0 and run.evaluations.value.shape == (0,)
    assert run.checkpoint.name == "step-000000000.checkpoint" and not np.isfinite(float(run.loss.value))
    wide = train(start, PROCESS, TASK, optimizer=Optimizer("adam", 1e10), precision="float64", **settings)
    assert wide.result is Outcome.FINISHED  # as the message says


def test_weights_that_are_not_finite_are_refused(tmp_path):
    start = eqx.tree_at(lambda m: m.w_pv, START, START.w_pv * jnp.nan)
    with pytest.raises(ValueError, match=r"model\.w_pv: must be finite at the start"):
        train(start, PROCESS, TASK, checkpoint=tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": (1e300, 0.5)}, r"model\.w_kq: 1e\+300 is beyond the range of float32; take a smaller number, or"),
        ({"start": (0.5, 1e-60)}, r"model\.w_pv: 1e-60 would be 0 in float32; take a larger number, or precision"),
        ({"law": Gaussian(1e39)}, r"process\.law\.scale: 1e\+39 is beyond the range of float32"),
        ({"optimizer": Optimizer("sgd", 1e300)}, r"optimizer\.learning_rate: 1e\+300 is beyond"),
        ({"optimizer": Optimizer("adam", 1e-60)}, r"optimizer\.learning_rate: 1e-60 would be 0"),
        ({"task": NextToken(6, {2: 1.0, 3: 1e45})}, r"task\.weights: 1e\+45 is beyond"),
        ({"precision": "bfloat16", "law": Gaussian(1e-40)}, r"process\.law\.scale: 1e-40 would be 0 in float32"),
    ],
)  # fmt: skip
def test_numbers_that_the_precision_cannot_hold_are_refused(tmp_path, changes, message):
    given = {"start": (0.5, 0.5), "law": Gaussian(1.0), "task": TASK, **changes}
    start, process, task = (
        LinearAttention.diagonal(2, *given.pop("start")),
        DiagonalUnitary(given.pop("law"), 2),
        given.pop("task"),
    )
    with pytest.raises(ValueError, match=message):
        train(start, process, task, checkpoint=tmp_path / "run", **SMALL, **given)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_numbers_that_vanish_beside_others_are_taken():
    start = LinearAttention(START.w_kq.at[0, 0].set(1e-60), START.w_pv)
    task = NextToken(6, {2: 1.0, 3: 1e-48})
    assert train(start, PROCESS, task, **{**SMALL, "steps": 1}).result is Outcome.FINISHED


def test_networks_that_are_too_large_are_refused():
    # 3 · 2²⁹ · 4 bytes: weights, gradient and one more for the average; nothing is drawn
    shapes, settings = jax.ShapeDtypeStruct((2**29,), "float32"), {"optimizer": Optimizer("sgd", 0.1)}
    refuse_large_networks(shapes, TrainingSettings(**settings))
    for more, told in (
        ({"average": 0.9}, "536,870,912 weights take 6 GiB with their gradient and the state"),
        ({"optimizer": Optimizer("adam")}, "take 8 GiB .* more than 4; take a smaller width, fewer layers"),
        ({"precision": "float64"}, "take 8 GiB"),
    ):
        with pytest.raises(ValueError, match=told):
            refuse_large_networks(shapes, TrainingSettings(**{**settings, **more}))
    with pytest.raises(
        ValueError, match=r"536,870,912 weights of 2 runs at once take 8 GiB.* or fewer seeds"
    ):
        refuse_large_networks(shapes, TrainingSettings(**settings), runs=2)
    large = jax.ShapeDtypeStruct((2**29,), "complex64")
    with pytest.raises(ValueError, match="1,073,741,824 weights take 8 GiB"):
        refuse_large_networks(large, TrainingSettings(**settings))


def test_samples_that_are_too_large_on_the_way_are_refused():
    # tokens of 51 MB, from transitions of 4 · 8192 · 512² bytes
    process = OrthogonalAR(Gaussian(1.0), 512)
    with pytest.raises(
        ValueError, match=r"8192 samples of OrthogonalAR take an array of .* GiB while they are"
    ):
        train(START, process, NextToken(3), batch=8192)


@pytest.mark.slow
def test_the_smallest_run():
    run = train(START, PROCESS, NextToken(3), steps=1, batch=1, held_out=2)
    assert run.result is Outcome.FINISHED and run.checkpoint is None and run.average is None
    np.testing.assert_array_equal(run.steps, [1])
    assert not np.array_equal(_values(run.model), _values(START).astype(np.float32))


@pytest.mark.slow
def test_numpy_numbers_are_numbers(tmp_path):
    settings = {name: np.int64(value) for name, value in {**SMALL, "steps": 2, "seed": 1}.items()}
    run = train(START, PROCESS, TASK, average=np.float64(0.5), checkpoint=tmp_path, **settings)
    plain = train(START, PROCESS, TASK, average=0.5, checkpoint=tmp_path, **{**SMALL, "steps": 3, "seed": 1})
    assert run.checkpoint.parent == plain.checkpoint.parent and plain.steps[-1] == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps: must be at least 1"),
        ({"batch": 0}, "batch: must be at least 1"),
        ({"held_out": 1}, "held_out: must be at least 2"),
        ({"record_every": 0}, "record_every: must be at least 1"),
        ({"evaluate_every": 0}, "evaluate_every: must be at least 1"),
        ({"checkpoint_every": 0}, "checkpoint_every: must be at least 1"),
        ({"steps": 1.5}, r"steps: must be an integer, got 1\.5"),
        ({"average": 1}, "average: must be greater than 0 and less than 1, got 1"),
        ({"average": 0.0}, "average: must be greater than 0 and less than 1"),
        ({"precision": "float16"}, "precision: unknown value 'float16'; did you mean 'bfloat16'"),
        ({"optimizer": "adam"}, r"optimizer: must be Optimizer\(…\) or an optax optimizer .* got 'adam'"),
        ({"optimizer": Optimizer(warmup=50)}, "warmup: 50 steps do not fit into a run of 50"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": 2**32}, r"seed must be below 2\*\*32"),
        ({"seed": 0.5}, "seed must be an integer"),
        ({"batch": 10**8}, "samples for NextToken.* GiB at once; take a smaller batch"),
    ],
)
def test_bad_settings_speak_and_leave_nothing(tmp_path, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        train(START, PROCESS, TASK, checkpoint=tmp_path / "run", **{**SMALL, **settings})
    assert not (tmp_path / "run").exists()


PROMPTS, SYMBOLS = LinearRegression(2), MarkovTree.chain(5, 4, 1.0)
SHAPE = r"sample of the process OfAnotherShape .* must return real numbers of shape .*, got float32 of shape"
OTHER_AXES = "horizon dim", "batch horizon", "batch dim horizon", "batch longer dim", "batch horizon more"


@pytest.mark.parametrize(
    ("model", "process", "task", "error", "message"),
    [
        (START, PROMPTS, NextToken(6), TypeError, r"draws prompts, not sequences; use FewShot\("),
        (START, PROCESS, FewShot(6), TypeError, r"draws sequences, not prompts; use NextToken\("),
        (START, DiagonalUnitary(Gaussian(1.0), 3), TASK, ValueError, r"expected shape \(…, t, 2\)"),
        (START, DiagonalUnitary(StudentT(3), 2), TASK, MomentError, r"E x\^3 does not exist"),
        *((START, OfAnotherShape(axes), TASK, ValueError, SHAPE) for axes in OTHER_AXES),
        (lambda tokens: tokens, PROCESS, TASK, TypeError, "must be a model with floating-point weights"),
        ("logits", SYMBOLS, TASK, ValueError, "gives 3 logits, but MarkovTree draws 4 symbols; make them"),
        ("prompts", LinearRegression(3), FewShot(4), ValueError, "expected x of shape"),
    ],
)
def test_parts_that_do_not_fit_speak(model, process, task, error, message):
    if model == "logits":
        model = token_transformer(3, 4, 1, 1, 6, key=jax.random.key(0))
    if model == "prompts":
        model = prompt_linear_transformer(2, 1, key=jax.random.key(0))
    with pytest.raises(error, match=message):
        train(model, process, task, **SMALL)


@pytest.mark.slow
def test_any_optax_transformation_trains():
    run = train(START, PROCESS, TASK, optimizer=optax.rmsprop(1e-3), **{**SMALL, "steps": 3})
    assert run.result is Outcome.FINISHED
