"""Runs that are cut and go on end as uninterrupted ones, bit for bit; other runs are refused."""

import os
import signal
import subprocess
import sys
import time
from itertools import count

import jax
import numpy as np
import optax
import pytest

from mesascope import DiagonalUnitary, Gaussian, LinearAttention, NextToken, train
from mesascope.dynamics import CheckpointError, Optimizer, Outcome, load_average, load_model
from mesascope.dynamics import _train as module
from mesascope.models import MultiHeadLinearAttention
from mesascope.records import RecordError, read_checkpoint

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(6)
START = LinearAttention.diagonal(2, 0.3, 0.3)
STEPS = 20
# no period divides another
SETTINGS = {
    "optimizer": Optimizer("adam", 0.01),
    "steps": STEPS,
    "batch": 8,
    "seed": 3,
    "average": 0.9,
    "held_out": 16,
    "record_every": 4,
    "evaluate_every": 5,
    "checkpoint_every": 3,
}


def _train(folder, **changed):
    settings = {**SETTINGS, **changed}
    model, process, task = (
        settings.pop(name, default)
        for name, default in (("model", START), ("process", PROCESS), ("task", TASK))
    )
    return train(model, process, task, checkpoint=folder, **settings)


def _content(checkpoint):
    """Log and arrays: weights, optimizer, average."""
    header, arrays = read_checkpoint(checkpoint)
    return header["step"], header["log"], arrays


def _assert_same(run, other):
    assert run.result is other.result is Outcome.FINISHED
    assert _content(run.checkpoint) == _content(other.checkpoint)
    for a, b in ((run.model, other.model), (run.average, other.average)):
        assert jax.tree.all(jax.tree.map(np.array_equal, a, b))
    for name in ("steps", "losses", "evaluated"):
        np.testing.assert_array_equal(getattr(run, name), getattr(other, name))
    np.testing.assert_array_equal(run.evaluations.value, other.evaluations.value)
    assert float(run.loss.value) == float(other.loss.value)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return _train(tmp_path_factory.mktemp("whole"))


def test_an_uninterrupted_run_records_where_it_says(whole):
    np.testing.assert_array_equal(whole.steps, [4, 8, 12, 16, 20])
    np.testing.assert_array_equal(whole.evaluated, [5, 10, 15, 20])
    files = sorted(path.name for path in whole.checkpoint.parent.iterdir())
    assert files == [f"step-{n:09}.checkpoint" for n in (3, 6, 9, 12, 15, 18, 20)]
    assert float(whole.loss.value) == float(whole.evaluations.value[-1])


@pytest.mark.parametrize("cut", [1, 3, 7, 8, 10, 19])
def test_more_steps_extend_a_run(whole, tmp_path, cut):
    short = _train(tmp_path, steps=cut)
    assert short.steps[-1] == cut and short.checkpoint.name == f"step-{cut:09}.checkpoint"
    _assert_same(_train(tmp_path), whole)


def test_a_run_without_stops_in_between_ends_the_same(whole, tmp_path):
    run = _train(tmp_path, evaluate_every=None, checkpoint_every=None)
    np.testing.assert_array_equal(run.losses, whole.losses)
    assert _content(run.checkpoint)[2] == _content(whole.checkpoint)[2]


@pytest.mark.parametrize("records", [1, 3])
def test_an_interruption_at_a_record_keeps_what_was_computed(whole, tmp_path, records):
    seen = []

    def stop(now):
        seen.append(now.done)
        if len(seen) == records:
            raise KeyboardInterrupt

    run = _train(tmp_path, progress=stop)
    assert run.result is Outcome.INTERRUPTED and "kept" in run.result.message
    np.testing.assert_array_equal(run.steps, whole.steps[:records])
    np.testing.assert_array_equal(run.losses, whole.losses[:records])
    assert run.checkpoint.name == f"step-{4 * records:09}.checkpoint"
    _assert_same(_train(tmp_path), whole)


@pytest.mark.parametrize("where", ["held_out_loss", "advance"])
def test_an_interruption_in_between_undoes_what_was_not_done(whole, tmp_path, monkeypatch, where):
    calls, undisturbed = [], getattr(module, where)

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:  # held-out loss: at step 10
            raise KeyboardInterrupt
        return undisturbed(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, where, interrupted)
        run = _train(tmp_path)
    assert run.result is Outcome.INTERRUPTED
    assert run.steps[-1] == (9 if where == "held_out_loss" else 3)  # the stop before
    _assert_same(_train(tmp_path), whole)


def test_an_interruption_after_the_last_step_is_none(whole, tmp_path):
    def stop(now):
        if now.done == STEPS:
            raise KeyboardInterrupt

    _assert_same(_train(tmp_path, progress=stop), whole)


def test_a_finished_run_is_not_repeated(whole, tmp_path):
    _train(tmp_path)
    before = _files(tmp_path)
    seen = []
    _assert_same(_train(tmp_path, progress=seen.append), whole)
    assert _files(tmp_path) == before and not seen


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
def test_other_precisions_go_on_exactly(tmp_path, precision):
    # complex weights, a state of several parts
    model = LinearAttention(START.w_kq * (1 + 1j), START.w_pv * (1 - 1j))
    changed = {"precision": precision, "model": model, "optimizer": Optimizer("adam", 0.01, clip=1.0)}
    whole = _train(tmp_path / "whole", **changed)
    assert whole.model.w_kq.dtype == (np.complex128 if precision == "float64" else np.complex64)
    _train(tmp_path / "cut", steps=7, **changed)
    _assert_same(_train(tmp_path / "cut", **changed), whole)


class Killed(BaseException):
    """What nothing catches: the run has no time to save."""


@pytest.fixture
def slow_clock(monkeypatch):
    """Every look at the clock is a minute after the one before, and few steps are taken at once."""
    now = count(step=60.0)
    with monkeypatch.context() as patch:
        patch.setattr(module, "monotonic", lambda: next(now))
        patch.setattr(module, "_FIRST_STEPS", 2)
        yield


@pytest.mark.slow
def test_checkpoints_by_time_are_replaced_and_change_no_bit(whole, tmp_path, slow_clock):
    run = _train(tmp_path)
    _assert_same(run, whole)
    assert sorted(_files(tmp_path)) == sorted(_files(whole.checkpoint.parent))
    often, seldom = ({"checkpoint_every": None, "checkpoint_minutes": n} for n in (1, 1e9))
    _assert_same(_train(tmp_path / "often", **often), whole)
    _assert_same(_train(tmp_path / "seldom", **seldom), whole)
    assert (
        len(list((tmp_path / "often").glob("step-*"))) == len(list((tmp_path / "seldom").glob("step-*"))) == 1
    )


@pytest.mark.parametrize("record_every", [4, STEPS])
def test_a_killed_run_goes_on_from_its_checkpoint_by_time(tmp_path, slow_clock, monkeypatch, record_every):
    changed = {"record_every": record_every, "evaluate_every": None, "checkpoint_every": None}
    whole, taken, undisturbed = _train(tmp_path / "whole", **changed), [], module.advance

    def killed(*arguments):
        if len(taken) == 7:
            raise Killed
        taken.append(int(arguments[-2]))
        return undisturbed(*arguments)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(module, "advance", killed)
        _train(tmp_path / "cut", **changed)
    (last,) = (tmp_path / "cut").glob("step-*")
    assert 0 < _content(last)[0] < STEPS  # between records too
    _assert_same(_train(tmp_path / "cut", **changed), whole)


KILLED = """
import sys
from mesascope import DiagonalUnitary, Gaussian, LinearAttention, NextToken, train
from mesascope.dynamics import Optimizer
train(
    LinearAttention.diagonal(2, 0.3, 0.3), DiagonalUnitary(Gaussian(1.0), 2), NextToken(6), checkpoint=sys.argv[1],
    optimizer=Optimizer("adam", 0.01), steps=10**8, batch=8, seed=3, average=0.9, held_out=16, record_every=4,
    evaluate_every=5, checkpoint_every=3,
)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path):
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)])
    try:
        deadline = time.monotonic() + 120
        while len(list(folder.glob("step-*.checkpoint"))) < 4:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    (folder / f".step-000000003.checkpoint.{os.uname().nodename}-{process.pid}-0123abcd.tmp").touch()
    last = int(max(folder.glob("step-*.checkpoint")).stem.removeprefix("step-"))
    steps = last + 5
    whole = _train(tmp_path / "whole", steps=steps, checkpoint_every=None)
    resumed = _train(folder, steps=steps)
    assert last >= 12
    _assert_same(resumed, whole)
    assert not list(folder.glob(".*.tmp"))  # what the killed writer left


def _files(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    _train(folder, steps=6)
    return folder


OTHERS = {
    "model.w_kq": {"model": LinearAttention(START.w_kq + 0j, START.w_pv)},
    "model": {"model": MultiHeadLinearAttention.gaussian(2, 1, 0.1, key=jax.random.key(0))},
    "model.normalizer": {"model": LinearAttention.diagonal(2, 0.3, 0.3, "t")},
    "process": {"process": DiagonalUnitary(Gaussian(2.0), 2)},
    "task": {"task": NextToken.last(6)},
    "batch": {"batch": 9},
    "seed": {"seed": 4},
    "average": {"average": 0.8},
    "record_every": {"record_every": 5},
    "optimizer": {"optimizer": Optimizer("adam", 0.02)},
}


@pytest.mark.parametrize("field", OTHERS)
def test_another_run_is_refused_by_the_field_that_differs(kept, field):
    before = _files(kept)
    with pytest.raises(
        CheckpointError, match=rf"000006\.checkpoint: .* something else: {field} is .* there and .* here"
    ):
        _train(kept, **OTHERS[field])
    assert _files(kept) == before


def test_another_precision_is_refused(kept):
    with pytest.raises(CheckpointError, match=r"float32.* there and float64.* here"):
        _train(kept, precision="float64")


def test_less_steps_than_were_taken_are_refused(kept):
    before = _files(kept)
    with pytest.raises(
        CheckpointError, match="has taken 6 steps already, more than the 5 asked for; ask for more"
    ):
        _train(kept, steps=5)
    assert _files(kept) == before


@pytest.mark.slow
def test_another_end_of_a_schedule_is_refused(tmp_path):
    _train(tmp_path, steps=6, optimizer=Optimizer("adam", 0.01, "cosine"))
    with pytest.raises(CheckpointError, match=r"schedule, which ends with the run, is 6 steps"):
        _train(tmp_path, steps=8, optimizer=Optimizer("adam", 0.01, "cosine"))


def test_the_state_of_another_optax_optimizer_is_refused(tmp_path):
    """Transformations themselves cannot be compared; their states can."""
    _train(tmp_path, steps=6, optimizer=optax.adam(0.01))
    with pytest.raises(
        CheckpointError, match=r"state.* is ScaleByAdamState of 3 there and EmptyState of 0 here"
    ):
        _train(tmp_path, optimizer=optax.sgd(0.01))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 0.9])
def test_a_truncated_last_checkpoint_is_refused_and_can_be_removed(whole, tmp_path, share):
    _train(tmp_path, steps=9)
    last = max(tmp_path.iterdir())
    content = last.read_bytes()
    last.write_bytes(content[: int(share * len(content))])
    before = _files(tmp_path)
    with pytest.raises(CheckpointError, match=r"step-000000009\.checkpoint: is (not a checkpoint|truncated)"):
        _train(tmp_path)
    assert _files(tmp_path) == before
    last.unlink()
    _assert_same(_train(tmp_path), whole)


def test_places_that_are_no_folders_speak_before_the_training(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    seen = []
    with pytest.raises(CheckpointError, match="file: is not a folder; name one for the checkpoints"):
        _train(file, progress=seen.append)
    with pytest.raises(RecordError, match="cannot be written to"):
        _train(file / "below", progress=seen.append)
    assert not seen and file.read_text() == "mine"


def test_other_files_in_the_folder_are_left_alone(whole, tmp_path):
    for name in ("notes.txt", "step-1.checkpoint", "step-000000099.checkpoint.bak"):
        (tmp_path / name).write_text("mine")
    _assert_same(_train(tmp_path), whole)
    assert (tmp_path / "step-1.checkpoint").read_text() == "mine"


def test_a_checkpoint_is_a_model(whole):
    loaded = load_model(whole.checkpoint, START)
    assert jax.tree.all(jax.tree.map(np.array_equal, loaded, whole.model))


def test_another_start_does_not_continue_a_run(tmp_path):
    first = _train(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CheckpointError, match="from another start"):
        _train(tmp_path, model=LinearAttention.diagonal(2, 0.31, 0.3))
    assert first.checkpoint in files
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


@pytest.mark.slow
def test_the_average_comes_back_from_a_checkpoint(tmp_path):
    run = _train(tmp_path / "with")
    np.testing.assert_array_equal(load_average(run.checkpoint, START).w_kq, run.average.w_kq)
    assert not np.array_equal(run.average.w_kq, run.model.w_kq)
    plain = _train(tmp_path / "without", average=None)
    with pytest.raises(CheckpointError, match="keeps no average"):
        load_average(plain.checkpoint, START)


PER_DECADE = {"checkpoint_every": None, "checkpoints_per_decade": 4, "checkpoint_minutes": 1e9}
KEPT = [0, 1, 2, 3, 6, 10, 18, 20]


class TestCheckpointsPerDecade:
    """After 0 and round(10^(k/n)) steps; the run itself is the same as without them."""

    @staticmethod
    def kept(folder):
        return sorted(int(path.stem.removeprefix("step-")) for path in folder.iterdir())

    def test_they_are_kept(self, whole, tmp_path):
        run = _train(tmp_path, **PER_DECADE)
        assert self.kept(tmp_path) == KEPT
        assert jax.tree.all(jax.tree.map(np.array_equal, run.model, whole.model))
        np.testing.assert_array_equal(run.losses, whole.losses)
        start = load_model(tmp_path / "step-000000000.checkpoint", START)
        assert jax.tree.all(jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-6), start, START))

    def test_a_run_that_is_cut_keeps_the_same(self, tmp_path):
        whole = _train(tmp_path / "whole", **PER_DECADE)
        cut = tmp_path / "cut"
        _train(cut, **PER_DECADE, steps=6)
        assert self.kept(cut) == KEPT[:5]
        _assert_same(_train(cut, **PER_DECADE), whole)
        assert self.kept(cut) == KEPT

    @pytest.mark.parametrize("number", [0, 101, 1.5, True])
    def test_other_numbers_are_refused(self, number, tmp_path):
        with pytest.raises(ValueError, match="checkpoints_per_decade"):
            _train(tmp_path, checkpoints_per_decade=number)
