"""Which accelerators a machine has, asked without starting JAX, and which worker gets which."""

import os
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec

_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
_NONE = ("", "-1", "none", "void", "nodevfiles")


def visible_gpus(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The devices that JAX would compute on here, as CUDA_VISIBLE_DEVICES names them; none where JAX has no CUDA."""
    platforms = environ.get("JAX_PLATFORMS", "").lower()
    wanted = not platforms or "cuda" in platforms or "gpu" in platforms
    if not wanted or not any(map(find_spec, _PLUGINS)):
        return []
    return named_gpus(environ.get("CUDA_VISIBLE_DEVICES"))


def named_gpus(variable: str | None) -> list[str]:
    """The devices that the variable names, or all where it is not set."""
    if variable is None:
        return _listed()
    names = [name.strip() for name in variable.split(",")]
    # CUDA stops at the first name that is none
    stop = next((i for i, name in enumerate(names) if name.lower() in _NONE), len(names))
    return names[:stop]


def _listed() -> list[str]:
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in found.stdout.splitlines() if line.strip()]


def environments(workers: int, gpus: list[str]) -> list[dict[str, str]]:
    """The environment of every worker: one device for each of the first, none for the others."""
    if not gpus:
        return [{} for _ in range(workers)]
    with_device = [{"CUDA_VISIBLE_DEVICES": name} for name in gpus[:workers]]
    without = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    return with_device + [dict(without) for _ in range(workers - len(with_device))]
