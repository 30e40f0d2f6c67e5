"""The cluster that a sweep starts: its settings, and which worker gets which GPU."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from mesascope.studies.sweeps import _clusters
from mesascope.studies.sweeps._clusters import client_of, environments, named_gpus, visible_gpus


def settings_of(dask_scheduler):
    """The settings that a scheduler uses."""
    return dask_scheduler.WORKER_SATURATION, dask_scheduler.allowed_failures


@pytest.mark.slow
def test_the_scheduler_has_our_settings():
    with client_of("local", 1) as (client, _):
        assert client.run_on_scheduler(settings_of) == (1.0, 0)


@pytest.mark.slow
def test_defaults_of_dask_are_restored_after_a_cluster():
    """In a process that had not imported its scheduler before: xarray needs the defaults wherever it writes."""
    program = (
        "import dask; from mesascope.studies.sweeps._clusters import _settings\n"
        "with _settings():\n    import distributed\n"
        "assert dask.config.get('distributed.comm')\n"
        "assert dask.config.get('distributed.scheduler.worker-saturation') != 1.0"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def three_gpus(monkeypatch):
    monkeypatch.setattr(_clusters, "find_spec", lambda name: name)
    answer = SimpleNamespace(stdout="GPU-a\nGPU-b\nGPU-c\n")
    monkeypatch.setattr(_clusters.subprocess, "run", lambda *_, **__: answer)


def test_all_devices_unless_some_are_named(three_gpus):
    assert visible_gpus({}) == ["GPU-a", "GPU-b", "GPU-c"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "2,0"}) == ["2", "0"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "1,-1,2"}) == ["1"]
    assert visible_gpus({"JAX_PLATFORMS": "cpu"}) == []
    assert visible_gpus({"JAX_PLATFORMS": "cuda,cpu"}) == ["GPU-a", "GPU-b", "GPU-c"]


def test_none_without_the_plugin_or_the_driver(monkeypatch):
    monkeypatch.setattr(_clusters, "find_spec", lambda name: None)
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "0"}) == []

    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(_clusters.subprocess, "run", missing)
    assert named_gpus(None) == []

    def hangs(*_, **__):
        raise subprocess.TimeoutExpired("nvidia-smi", 20)

    monkeypatch.setattr(_clusters.subprocess, "run", hangs)
    assert named_gpus(None) == []


def test_one_process_per_device_and_the_others_without():
    assert environments(2, ["a", "b", "c"]) == [{"CUDA_VISIBLE_DEVICES": "a"}, {"CUDA_VISIBLE_DEVICES": "b"}]
    more = environments(3, ["a"])
    assert more[0] == {"CUDA_VISIBLE_DEVICES": "a"}
    assert more[1] == more[2] == {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    assert environments(2, []) == [{}, {}]
