"""Streams that are closed or full, a folder that is gone, and code that does not return: one line, and the right status."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from mesascope.cli import _interrupt

SPEC = """
dim = 1
horizon = 3
law = { kind = "gaussian", scale = 1.0 }
init = { kind = "diagonal", a = 0.5, b = 0.5 }
"""


def shell(command, folder, **more):
    """Run `mesascope` in a shell, as `m`."""
    script = f'm() {{ "{sys.executable}" -m mesascope "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=120, **more
    )


LOSS = '{"law": "gaussian", "dim": 1, "horizon": 3, "w_kq": [[0, 0], [0.5, 0]], "w_pv": [[0.3, 0]]}'
STUDY = (
    f'{{"name": "one", "kind": "loss", "base": {LOSS}, "axes": [{{"path": "horizon", "values": [3, 4]}}]}}'
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("JAX_PLATFORMS=cuda", "JAX_PLATFORMS=cuda: JAX cannot compute on this platform"),
        ("JAX_PLATFORMS=nonsense", "JAX_PLATFORMS=nonsense: JAX cannot compute on this platform"),
        ("JAX_ENABLE_X64=banana", "invalid truth value 'banana' for environment 'JAX_ENABLE_X64'"),
        ("JAX_NUM_CPU_DEVICES=x", 'Invalid value "x" for JAX flag jax_num_cpu_devices'),
    ],
)
def test_settings_of_jax_that_do_not_work_here_are_no_fault_of_the_file(tmp_path, given, said):
    (tmp_path / "spec.json").write_text(LOSS)
    ended = shell(f"export {given}; m loss spec.json", tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"mesascope loss: {said}") and len(ended.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("how", "status"), [("", 2), ("--scheduler local --workers 1", 1)])
def test_a_platform_that_does_not_work_here_fails_no_run(tmp_path, how, status):
    (tmp_path / "study.json").write_text(STUDY)
    sweep = f"m sweep study.json --store s {how}"
    ended = shell(f"JAX_PLATFORMS=cuda {sweep}", tmp_path)
    assert ended.returncode == status and "JAX_PLATFORMS=cuda: JAX cannot compute" in ended.stderr
    assert "Traceback" not in ended.stderr
    again = shell(f"{sweep} --json", tmp_path)
    assert again.returncode == 0 and json.loads(again.stdout)["done"] == 2, again.stderr


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("m cite zheng2024 --json >&-", 0, ""),
        ("m --help >&-", 0, ""),
        ("m cite zheng2024 2>&- >/dev/null", 0, ""),
        ("m loss - <&-", 2, "mesascope loss: standard input: "),
        ("m --version >/dev/full", 1, "mesascope: the result cannot be written: No space left on device"),
        (
            "mkdir gone; cd gone; rmdir ../gone; m runs list --store s",
            2,
            "mesascope runs: the current folder was deleted",
        ),
    ],
)
def test_streams_and_folders_that_are_gone(tmp_path, command, status, said):
    ended = shell(command, tmp_path)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert ended.stderr.startswith(said) and len(ended.stderr.splitlines()) == bool(said)


@pytest.mark.slow
def test_files_are_not_written_into_a_closed_stream(tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC)
    ended = shell("m flow spec.toml --json >&-; m flow spec.toml --json | cat", tmp_path)
    assert json.loads(ended.stdout)["result"] == "converged" and ended.stderr == ""


def test_names_that_are_not_utf8_are_refused_before_anything_is_written(run, tmp_path):
    name = os.fsdecode(b"st\xff")
    assert "is not valid UTF-8" in run("runs", "reindex", "--store", tmp_path / name).refusal
    assert not (tmp_path / name).exists()


class Ended(BaseException):
    pass


@pytest.mark.parametrize(
    ("received", "signals", "said"),
    [
        ([], [signal.SIGTERM], "mesascope: interrupted; compiled code did not return within 0.1 s"),
        ([signal.SIGTERM], [signal.SIGTERM], None),  # it is handled: what it keeps may take longer
    ],
)
def test_code_that_does_not_return_is_ended(monkeypatch, capsys, received, signals, said):
    def end(status):
        raise Ended(status)

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(_interrupt, "_PATIENCE", 0.1)
    monkeypatch.setattr(_interrupt, "_LONGEST", 0.2)
    monkeypatch.setattr(_interrupt, "_received", received)
    reader, writer = socket.socketpair()
    writer.send(bytes(signals))
    if said is None:
        writer.close()  # the command has ended
        _interrupt._end_in_time(reader)
        assert capsys.readouterr().err == ""
        return
    with writer, pytest.raises(Ended, match="143"):
        _interrupt._end_in_time(reader)
    assert capsys.readouterr().err.strip() == said


# Ctrl-C may be ignored where tests run in the background
BEGINS = """import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from mesascope.cli import _main
ended = _main._ended

def tell(given):
    print("begun", flush=True)
    return ended(given)

_main._ended = tell
_main.run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 0.03, 0.06, 0.1])
def test_many_interrupts_are_one(delay):
    command = [sys.executable, "-c", BEGINS, "claims"]  # which takes half a second
    begun = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert begun.stdout.readline() == "begun\n"
    time.sleep(delay)
    for _ in range(30):
        if begun.poll() is None:
            begun.send_signal(signal.SIGINT)
        time.sleep(0.01)
    _, said = begun.communicate(timeout=60)
    assert begun.returncode == 130 and len(said.splitlines()) == 1, said


WHOLE = """
from mesascope.cli._interrupt import interruptible
try:
    with interruptible():
        import jax
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_waits_until_jax_is_imported(tmp_path):
    """Its compiled parts crash where an exception passes them."""
    (tmp_path / "jax.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nprint('imported')\n")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-c", WHOLE], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("imported\ninterrupted\n", "")
