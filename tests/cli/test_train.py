"""`mesascope train`."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from mesascope.records import atomic_path
from mesascope.studies import load_trained

SPEC = {
    "law": "gaussian",
    "dim": 2,
    "horizon": 5,
    "model": {"kind": "linear-attention", "init": {"kind": "gaussian", "scale": 0.1}},
    "steps": 4,
    "batch": 2,
    "held_out": 4,
    "record_every": 2,
}
FIELDS = {"loss", "loss_standard_error", "average_loss", "average_loss_standard_error", "steps", "checkpoint"}
FIELDS |= {"result", "message", "losses", "evaluations"}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def weights(checkpoint):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(load_trained(checkpoint))]


def assert_same(one, other):
    for a, b in zip(weights(one), weights(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_one_object(run, spec, tmp_path):
    ended = run("train", spec(SPEC, "mine.json"), "--json")
    assert (ended.status, ended.err) == (0, "")
    found = ended.json
    assert set(found) == FIELDS
    assert found["result"] == "finished" and found["steps"] == 4
    assert found["loss"] > 0 and found["loss_standard_error"] > 0
    assert [set(one) for one in found["losses"]] == [{"steps", "loss"}] * 2
    assert found["checkpoint"] == str(tmp_path / "runs" / "mine" / "step-000000004.checkpoint")
    assert len(weights(found["checkpoint"])) == 2


@pytest.mark.slow
def test_for_people(run, spec, tmp_path):
    folder = tmp_path / ("a folder with a long name " * 5)
    ended = run("train", spec(SPEC), "--out", folder)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("finished: ")
    assert ended.out.endswith(f"{folder / 'step-000000004.checkpoint'}\n")
    assert "\nloss          " in ended.out and " ± " in ended.out


def test_standard_input(run, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(SPEC).encode())))
    ended = run("train", "-", "--out", "here", "--json")
    assert ended.json["checkpoint"] == str(tmp_path / "here" / "step-000000004.checkpoint")


def test_the_same_command_resumes(run, spec):
    whole = run("train", spec(SPEC), "--out", "whole", "--json").json
    run("train", spec({**SPEC, "steps": 2}), "--out", "parts")
    parts = run("train", spec(SPEC), "--out", "parts", "--json").json
    assert {**parts, "checkpoint": ""} == {**whole, "checkpoint": ""}
    assert_same(whole["checkpoint"], parts["checkpoint"])


def test_export(run, spec):
    from safetensors.numpy import load_file

    ended = run("train", spec(SPEC), "--export", "weights.safetensors", "--json")
    tensors = load_file("weights.safetensors")
    for stored, trained in zip(
        (tensors["w_kq"], tensors["w_pv"]), weights(ended.json["checkpoint"]), strict=True
    ):
        np.testing.assert_array_equal(stored, trained)


@pytest.mark.slow
def test_the_average(run, spec):
    from safetensors.numpy import load_file

    path = spec({**SPEC, "average": 0.5})
    exports = ("--export", "last.safetensors", "--export-average", "average.safetensors")
    found = run("train", path, "--json", *exports).json
    assert found["average_loss"] != found["loss"] and found["average_loss_standard_error"] > 0
    last, average = load_file("last.safetensors"), load_file("average.safetensors")
    assert set(last) == set(average) == {"w_kq", "w_pv"}
    assert not np.array_equal(last["w_kq"], average["w_kq"])
    assert f"\naverage loss  {found['average_loss']:.6g} ± " in run("train", path).out
    message = run("train", spec(SPEC, "none.json"), *exports).refusal
    assert "--export-average needs a moving average of the weights; add average = 0.999" in message
    assert not Path("runs", "none").exists()


def test_several_seeds(run, spec, tmp_path):
    path = spec({**SPEC, "seeds": [0, 7]}, "mine.json")
    found = run("train", path, "--json").json
    assert set(found) == (FIELDS - {"steps", "checkpoint", "losses", "evaluations"}) | {"seeds", "runs"}
    assert [set(one) for one in found["runs"]] == [FIELDS] * 2
    assert found["loss"] == np.mean([one["loss"] for one in found["runs"]])
    folder = tmp_path / "runs" / "mine"
    ended = run("train", path)
    assert ended.status == 0 and "\nseeds         0, 7\nloss          " in ended.out
    assert ended.out.endswith(f"checkpoints   {folder}\n")
    message = run("train", path, "--export", "weights.safetensors").refusal
    assert "--export writes the weights of one run, but seeds asks for several" in message
    alone = folder / "seed-7"  # as the refusal says
    one = run("train", alone / "spec.json", "--out", alone, "--export", "weights.safetensors", "--json")
    assert one.json == found["runs"][1] and Path("weights.safetensors").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": None}, "horizon: missing; process 'diagonal-unitary' draws sequences and needs horizon"),
        ({"model": {"kind": "linear-attention"}}, "model.init: missing; add it"),
        ({"law": {"kind": "studentt", "df": 3}}, "law: E x^6 does not exist for StudentT(df=3, scale=1)"),
        ({"batch": 10**8, "horizon": 10**4}, "batch: 100000000 samples"),
        ({"optimizer": {"warmup": 9}}, "optimizer: warmup: 9 steps do not fit into a run of 4; take fewer"),
        ({"stps": 5}, "unknown field 'stps'; did you mean 'steps'?"),
    ],
)
def test_refused(run, spec, tmp_path, changes, message):
    path = spec({**SPEC, **changes})
    assert run("train", path, "--json").refusal.startswith(f"mesascope train: {path}: {message}")
    assert list(tmp_path.iterdir()) == [path]  # nothing was written


@pytest.mark.slow
def test_a_refused_run_changes_nothing(run, spec):
    data = {**SPEC, "optimizer": {"schedule": "cosine"}}
    run("train", spec(data), "--out", "one")
    before = Path("one", "spec.json").read_bytes()
    message = run("train", spec({**data, "steps": 8}), "--out", "one").refusal
    assert "schedule, which ends with the run" in message
    assert Path("one", "spec.json").read_bytes() == before


def test_folders_that_cannot_be_used(run, spec, tmp_path):
    run("train", spec(SPEC), "--out", "one")
    message = run("train", spec({**SPEC, "seed": 5}), "--out", "one").refusal
    assert message.startswith("mesascope train: one/spec.json: is of another run: seed is 0 there and 5 here")
    message = run("train", spec({**SPEC, "steps": 2}), "--out", "one").refusal
    assert "this run has taken 4 steps already, more than the 2 asked for" in message
    Path("file").write_text("x")
    message = run("train", spec(SPEC), "--out", "file").refusal
    assert "output folder 'file' cannot be written to" in message


def test_names_that_cannot_be_written_are_refused_before_training(run, spec, tmp_path):
    path, folder = spec(SPEC), tmp_path / "a-folder"
    folder.mkdir()
    assert "--out is empty; name a folder" in run("train", path, "--out", "").refusal
    for option in ("--export", "--export-average"):
        assert "is the specification itself" in run("train", path, option, path).refusal
        assert f"{option} is empty" in run("train", path, option, "").refusal
    assert f"{folder} is a folder; name a file in it" in run("train", path, "--export", folder).refusal
    both = run("train", path, "--export", "w.st", "--export-average", "./w.st").refusal
    assert "--export-average './w.st' is that of --export; name another file" in both
    kept = run("train", path, "--out", "kept", "--export", "kept/spec.json").refusal
    assert "is the specification in the folder of the checkpoints" in kept
    (tmp_path / "a.checkpoint").write_text('{"bytes": 2860, "format": "mesascope checkpoint')
    lost = run("train", path, "--export", tmp_path / "a.checkpoint").refusal
    assert "is a record or checkpoint of mesascope, which would be lost; name another file" in lost
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe, socket or device lies there" in run("train", path, "--export", tmp_path / "pipe").refusal
    assert "cannot" in run("train", path, "--export", path / "weights.safetensors").refusal
    assert not (tmp_path / "runs").exists()


def test_numbers_and_sizes_beyond_the_machine_are_refused_before_training(run, spec, tmp_path):
    path = spec({**SPEC, "optimizer": {"learning_rate": 1e300}})
    message = run("train", path).refusal
    assert (
        f"{path}: optimizer.learning_rate: 1e+300 is beyond the range of float32; take a smaller" in message
    )
    assert message.endswith("or precision = 'float64'")
    path = spec({**SPEC, "model": {"kind": "transformer", "width": 2**16, "layers": 4, "heads": 1}})
    message = run("train", path).refusal
    assert f"{path}: model: transformer: the weights take 768 GiB, more than 4" in message
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_loss_that_is_infinite_from_the_start(run, spec):
    ended = run("train", spec({**SPEC, "law": {"kind": "gaussian", "scale": 1e15}}), "--json")
    assert (ended.status, ended.json["result"], ended.json["steps"]) == (1, "not finite", 0)
    message = "mesascope train: not finite: the loss is infinite or not a number at the start"
    assert ended.err.startswith(message)


@pytest.mark.slow
def test_a_diverged_run_still_prints(run, spec):
    data = {**SPEC, "optimizer": {"method": "sgd", "learning_rate": 1e30}, "record_every": 1}
    ended = run("train", spec(data), "--json")
    assert (ended.status, ended.json["result"]) == (1, "diverged")
    assert ended.err.startswith("mesascope train: diverged: ") and len(ended.err.splitlines()) == 1
    assert ended.err.endswith(f"the last good checkpoint is {ended.json['checkpoint']}\n")
    assert not Path("weights").exists()
    assert all(np.isfinite(w).all() for w in weights(ended.json["checkpoint"]))


def started(path, checkpoints="*.checkpoint"):
    """The command, in a process of its own, once it has written its first new checkpoint."""
    before = set(Path("cut").glob(checkpoints))
    process = subprocess.Popen(
        [sys.executable, "-m", "mesascope", "train", str(path), "--out", "cut", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    while process.poll() is None and set(Path("cut").glob(checkpoints)) == before:
        time.sleep(0.01)
    return process


# 400 checkpoints: a second or more, from the first one on
LONG = {**SPEC, "steps": 4000, "record_every": 10, "checkpoint_every": 10}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_a_checkpoint(spec, number):
    process = started(spec(LONG))
    process.send_signal(number)
    process.send_signal(number)  # as `timeout` does: the same one
    out, err = process.communicate(timeout=60)
    found = json.loads(out)
    assert (process.returncode, found["result"]) == (128 + number, "interrupted")
    message = f"mesascope train: interrupted; {found['checkpoint']} is kept, and the same command resumes\n"
    assert err == message
    assert 0 < found["steps"] < 4000 and Path(found["checkpoint"]).exists()


@pytest.mark.slow
def test_killed_twice_and_resumed(run, spec):
    path, last = spec(LONG), ""
    for _ in range(2):
        process = started(path)
        process.kill()
        process.communicate(timeout=60)
        before, last = last, max(Path("cut").glob("*.checkpoint")).name
        assert before < last < "step-000004000.checkpoint"

    resumed = run("train", path, "--out", "cut", "--json")
    whole = run("train", path, "--out", "whole", "--json")
    assert (resumed.status, whole.status) == (0, 0)
    assert {**resumed.json, "checkpoint": ""} == {**whole.json, "checkpoint": ""}
    assert_same(resumed.json["checkpoint"], whole.json["checkpoint"])


@pytest.mark.slow
def test_a_second_signal_ends_a_run_whose_compiled_steps_do_not_return(run, spec):
    code = """
import sys, time, mesascope.cli._train as train
from mesascope.cli import main
def stuck(*_):
    while True:
        try:
            print("stuck", file=sys.stderr, flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
train._train = stuck
main(sys.argv[1:])
"""
    command = [sys.executable, "-c", code, "train", str(spec(SPEC)), "--out", "cut"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr.readline() == b"stuck\n"
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 143


@pytest.mark.slow
def test_several_seeds_interrupted_and_resumed(run, spec):
    path = spec({**SPEC, "seeds": [3, 8], "steps": 6000, "record_every": 50, "checkpoint_every": 50})
    process = started(path, "seed-*/*.checkpoint")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    found = json.loads(out)
    assert (process.returncode, found["result"]) == (130, "interrupted")
    assert err == "mesascope train: interrupted; cut is kept, and the same command resumes\n"
    assert all(one["steps"] < 6000 for one in found["runs"])

    resumed = run("train", path, "--out", "cut", "--json").json
    whole = run("train", path, "--out", "whole", "--json").json
    assert resumed["result"] == "finished" and resumed["loss"] == whole["loss"]
    for one, other in zip(resumed["runs"], whole["runs"], strict=True):
        assert {**one, "checkpoint": ""} == {**other, "checkpoint": ""}
        assert_same(one["checkpoint"], other["checkpoint"])


@pytest.mark.slow
def test_a_folder_in_use(run, spec):
    path = spec({**SPEC, "steps": 100_000, "record_every": 10, "checkpoint_every": 10})
    other = spec({**SPEC, "record_every": 10, "seed": 1}, "other.json")
    process = started(path)
    message = run("train", other, "--out", "cut").refusal
    assert message.startswith(f"mesascope train: cut: is in use by process {process.pid} on ")
    assert message.endswith("; wait until it ends, or choose another folder")
    process.kill()  # its lock is free, whatever file it leaves
    process.communicate(timeout=60)
    assert "is of another run: seed is 0 there and 1 here" in run("train", other, "--out", "cut").refusal


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
from mesascope.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_full_disk_during_a_run(run, spec):
    # a record takes 30 bytes of every checkpoint: the first ones fit, later ones do not
    path = spec({**SPEC, "steps": 400, "record_every": 1, "checkpoint_every": 20})
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, "train", str(path), "--out", "cut"],
        capture_output=True,
        text=True,
        check=False,
        # else jax would report that its cache of compiled programs is full
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "0"},
    )
    assert (ended.returncode, ended.stdout, len(ended.stderr.splitlines())) == (1, "", 1)
    checkpoints = sorted(Path("cut").glob("*.checkpoint"))
    failed = Path("cut", f"step-{20 * (len(checkpoints) + 1):09}.checkpoint")
    assert len(checkpoints) > 1 and ended.stderr.startswith(
        f"mesascope train: cannot write {failed}: File too large; free space or choose another output folder; "
    )
    assert ended.stderr.endswith("; checkpoints are kept, and the same command resumes\n")
    assert set(Path("cut").iterdir()) == {*checkpoints, Path("cut", "spec.json")}
    for checkpoint in checkpoints:
        weights(checkpoint)
    resumed = run("train", path, "--out", "cut", "--json").json
    whole = run("train", path, "--out", "whole", "--json").json
    assert {**resumed, "checkpoint": ""} == {**whole, "checkpoint": ""}
    assert_same(resumed["checkpoint"], whole["checkpoint"])


def test_a_full_disk_before_the_first_checkpoint_keeps_nothing(run, spec, monkeypatch):
    from mesascope.studies import TrainingRun

    def full(*_):
        with atomic_path(Path("runs", "spec", "step-000000002.checkpoint")):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TrainingRun, "train", full)
    ended = run("train", spec(SPEC))
    assert ended.status == 1
    assert ended.err.endswith("; there is no checkpoint yet, and the same command starts again\n")
    monkeypatch.setattr("mesascope.records.prepare_output", full)
    assert run("train", spec(SPEC)).status == 1  # as later in the run


def test_a_full_disk_at_the_export(run, spec, monkeypatch):
    from mesascope import dynamics
    from mesascope.records import RecordError

    def full(path, model):
        raise RecordError(f"cannot write {path}: No space left on device; free space")

    monkeypatch.setattr(dynamics, "export_safetensors", full)
    ended = run("train", spec(SPEC), "--export", "weights.safetensors", "--json")
    assert ended.status == 1 and ended.json["result"] == "finished"
    assert ended.err.startswith("mesascope train: cannot write weights.safetensors: No space left")
