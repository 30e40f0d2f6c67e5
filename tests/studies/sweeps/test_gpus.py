"""Which worker gets which accelerator, on machines that this is not."""

import subprocess
from types import SimpleNamespace

import pytest

from mesascope.studies.sweeps import _gpus
from mesascope.studies.sweeps._gpus import environments, named_gpus, visible_gpus


@pytest.fixture
def three_gpus(monkeypatch):
    monkeypatch.setattr(_gpus, "find_spec", lambda name: name)
    answer = SimpleNamespace(stdout="GPU-a\nGPU-b\nGPU-c\n")
    monkeypatch.setattr(_gpus.subprocess, "run", lambda *_, **__: answer)


def test_all_devices_unless_some_are_named(three_gpus):
    assert visible_gpus({}) == ["GPU-a", "GPU-b", "GPU-c"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "2,0"}) == ["2", "0"]
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": ""}) == []
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "1,-1,2"}) == ["1"]
    assert visible_gpus({"JAX_PLATFORMS": "cpu"}) == []
    assert visible_gpus({"JAX_PLATFORMS": "cuda,cpu"}) == ["GPU-a", "GPU-b", "GPU-c"]


def test_none_without_the_plugin_or_the_driver(monkeypatch):
    monkeypatch.setattr(_gpus, "find_spec", lambda name: None)
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "0"}) == []

    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(_gpus.subprocess, "run", missing)
    assert named_gpus(None) == []

    def hangs(*_, **__):
        raise subprocess.TimeoutExpired("nvidia-smi", 20)

    monkeypatch.setattr(_gpus.subprocess, "run", hangs)
    assert named_gpus(None) == []


def test_one_process_per_device_and_the_others_without():
    assert environments(2, ["a", "b", "c"]) == [{"CUDA_VISIBLE_DEVICES": "a"}, {"CUDA_VISIBLE_DEVICES": "b"}]
    more = environments(3, ["a"])
    assert more[0] == {"CUDA_VISIBLE_DEVICES": "a"}
    assert more[1] == more[2] == {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    assert environments(2, []) == [{}, {}]
