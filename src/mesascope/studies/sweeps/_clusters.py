"""Dask clusters: processes of this machine, a scheduler that is running, jobs of a queue."""

import asyncio
import logging
import os
import signal
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mesascope.core import cores, one_thread
from mesascope.specs import extra

from ._jobs import QUEUES, Jobs
from ._runners import SchedulerError

if TYPE_CHECKING:
    from distributed import Client

_LOOPBACK = "127.0.0.1"
_WORKER_MEMORY = 2 * 10**9
"""Bytes that a worker needs: its compiled programs take up to half of it before they are forgotten."""
_GPU_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
_NO_GPU = ("", "-1", "none", "void", "nodevfiles")

_SETTINGS = {
    "distributed.scheduler.worker-saturation": 1.0,
    # Dask cannot tell a run that killed its worker from one that waited there; the folders of the runs can
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": None,  # compiling may keep a worker silent for minutes
    # workers keep no results: one that pauses for lack of memory would pause forever
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # Dask's monitoring of itself takes a share of every core
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.gil.enabled": False,
}
_PATIENCE = 15.0  # seconds for the answer of a scheduler


@contextmanager
def client_of(scheduler: str, workers: int | None) -> "Iterator[tuple[Client, Callable[[], None]]]":
    """Connect to a scheduler, and start it if needed; everything that was started ends with the block.

    Args:
        scheduler: "local", an address such as "tcp://HOST:PORT", "slurm", "pbs" or "lsf".
        workers: how many processes to start; None for a scheduler that is running.

    Yields:
        The client, and a function to call now and then, which replaces jobs that have ended.

    Raises:
        SchedulerError: it cannot be reached or started.
        ValueError: workers are missing for a queue.
        MissingExtraError: a package is not installed.
    """
    with extra("cluster"):
        import distributed  # noqa: F401
    if "://" in scheduler:
        with _connected(scheduler) as client:
            yield client, _nothing
        return
    with _settings(), _cluster(scheduler, workers) as (cluster, replace_jobs):
        from distributed import Client

        with Client(cluster, set_as_default=False) as client:
            yield client, replace_jobs


def _nothing() -> None:
    """Dask restarts workers of this machine; workers of another scheduler are not ours."""


@contextmanager
def _settings() -> Iterator[None]:
    import dask
    import distributed  # noqa: F401  # its defaults first: set inside the block, they would be removed with it

    with dask.config.set(_SETTINGS):
        yield


@contextmanager
def _connected(address: str) -> "Iterator[Client]":
    from distributed import Client

    try:
        # in a thread of its own: a notebook runs an event loop in this one
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _require_answer(address)).result()
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise SchedulerError(
            f"no scheduler answers at {address}; start one (dask scheduler), or check the address"
        ) from error
    with client:
        yield client


async def _require_answer(address: str) -> None:
    """Connect once with a time limit: Dask's client waits forever if another program listens there and does not answer.

    Raises:
        OSError: no scheduler answers.
        ValueError: this is not an address.
    """
    from distributed.comm.core import connect
    from distributed.security import Security

    arguments = Security().get_connection_args("client")
    comm = await asyncio.wait_for(connect(address, timeout=_PATIENCE, **arguments), _PATIENCE)
    await comm.close()


@contextmanager
def _cluster(scheduler: str, workers: int | None) -> Iterator[tuple[Any, Callable[[], None]]]:
    if scheduler == "local":
        with _local(workers) as cluster:
            yield cluster, _nothing
        return
    if workers is None:
        raise ValueError(f"--scheduler {scheduler} needs --workers: how many processes to ask the queue for")
    with _queue(scheduler) as cluster:
        yield cluster, Jobs(cluster, scheduler, workers).replace


def _local(workers: int | None) -> Any:
    """Processes of this machine: one per accelerator, or else one per core that has the memory, each with one thread."""
    from distributed import Nanny, Scheduler, SpecCluster
    from distributed.system import MEMORY_LIMIT

    gpus = visible_gpus()
    count = workers or len(gpus) or max(1, min(cores(), MEMORY_LIMIT // _WORKER_MEMORY))
    share = MEMORY_LIMIT // count
    if share < _WORKER_MEMORY:
        warnings.warn(
            f"{count} worker{'s' * (count > 1)} on {MEMORY_LIMIT / 1e9:.1f} GB: one that takes more than {share / 1e9:.1f} GB "
            f"is killed, and its run fails; compiled programs alone take up to 1 GB: give each {_WORKER_MEMORY / 1e9:.0f} GB",
            stacklevel=2,
        )
    options = {
        "host": _LOOPBACK,
        "nthreads": 1,
        "memory_limit": share,
        "preload": ["mesascope.studies.sweeps._worker"],
        "silence_logs": logging.CRITICAL,
    }
    processes = {
        i: {"cls": Nanny, "options": {**options, "env": {**one_thread(), **environment}}}
        for i, environment in enumerate(environments(count, gpus))
    }
    head = {"host": _LOOPBACK, "port": 0, "dashboard_address": f"{_LOOPBACK}:0"}
    return SpecCluster(
        workers=processes,
        scheduler={"cls": Scheduler, "options": head},
        silence_logs=logging.CRITICAL,
        name="mesascope",
    )


@contextmanager
def _same_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C: importing dask-jobqueue sets one that ends the process with status 0."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


def _queue(scheduler: str) -> Any:
    """Jobs of a batch system, as ~/.config/dask/jobqueue.yaml describes them; none is submitted yet."""
    import dask

    with extra("cluster"), _same_interrupts():
        import dask_jobqueue
    queue = dask.config.get(f"jobqueue.{scheduler}", {})
    options = dict(queue.get("scheduler-options") or {})
    # else every worker has a page of its own that other machines can open
    quiet = ["--no-dashboard", "--dashboard-address", f"{_LOOPBACK}:0"]
    arguments = [*quiet, *(queue.get("worker-extra-args") or [])]
    if not queue.get("interface") and not {"host", "interface"} & set(options):
        # other machines can connect only if the configuration names an interface
        options["host"] = _LOOPBACK
        arguments += ["--host", _LOOPBACK]
    options.setdefault("dashboard_address", f"{_LOOPBACK}:0")
    # Dask passes settings on to workers of this machine; jobs get them by the environment
    settings = {
        f"DASK_{name.upper().replace('.', '__').replace('-', '_')}": value
        for name, value in _SETTINGS.items()
    }
    prologue = [f"export {name}='{value}'" for name, value in {**one_thread(), **settings}.items()]
    try:
        return getattr(dask_jobqueue, QUEUES[scheduler])(
            scheduler_options=options,
            worker_extra_args=arguments,
            job_script_prologue=[*(queue.get("job-script-prologue") or []), *prologue],
            silence_logs=logging.CRITICAL,
        )
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise SchedulerError(
            f"no {scheduler} cluster can be started ({error}); check ~/.config/dask/jobqueue.yaml"
        ) from error


def visible_gpus(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The GPUs that JAX would compute on, as CUDA_VISIBLE_DEVICES names them, found without starting JAX."""
    platforms = environ.get("JAX_PLATFORMS", "").lower()
    wanted = not platforms or "cuda" in platforms or "gpu" in platforms
    if not wanted or not any(map(find_spec, _GPU_PLUGINS)):
        return []
    return named_gpus(environ.get("CUDA_VISIBLE_DEVICES"))


def named_gpus(variable: str | None) -> list[str]:
    """The devices that the variable names, or all if it is not set."""
    if variable is None:
        return _listed()
    names = [name.strip() for name in variable.split(",")]
    # CUDA stops at the first name that is not a device
    stop = next((i for i, name in enumerate(names) if name.lower() in _NO_GPU), len(names))
    return names[:stop]


def _listed() -> list[str]:
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in found.stdout.splitlines() if line.strip()]


def environments(workers: int, gpus: list[str]) -> list[dict[str, str]]:
    """The environment of every worker: the first ones get one device each, the others none."""
    if not gpus:
        return [{} for _ in range(workers)]
    with_device = [{"CUDA_VISIBLE_DEVICES": name} for name in gpus[:workers]]
    without = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    return with_device + [dict(without) for _ in range(workers - len(with_device))]
