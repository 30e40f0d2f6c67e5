"""Dask clusters: processes of this machine, a scheduler that is there, jobs of a queue."""

import asyncio
import logging
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._gpus import environments, visible_gpus
from ._jobs import QUEUES, Jobs
from ._runners import SchedulerError
from ._worker import alone

if TYPE_CHECKING:
    from distributed import Client

LOOPBACK = "127.0.0.1"
WORKER_MEMORY = 2 * 10**9
"""Bytes that a worker needs: the programs that it has compiled take up to half of it before they are forgotten."""

_SETTINGS = {
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.allowed-failures": 0,  # which run killed its worker is told by its folder, not by Dask
    "distributed.scheduler.worker-ttl": None,  # compiling may keep a worker silent for minutes
    # results are not kept here: a worker that paused for want of memory would pause for ever
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # what Dask watches itself with takes a share of every core
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.gil.enabled": False,
}
_PATIENCE = 15.0  # seconds for the answer of a scheduler


@contextmanager
def client_of(scheduler: str, workers: int | None) -> "Iterator[tuple[Client, Callable[[], None]]]":
    """Connect to a scheduler, and start what is needed for it; all that was started ends with the block.

    Args:
        scheduler: "local", an address such as "tcp://HOST:PORT", "slurm", "pbs" or "lsf".
        workers: how many processes to start; of a scheduler that is there, none.

    Yields:
        The client, and what to call now and then: it replaces jobs that have ended.

    Raises:
        SchedulerError: it cannot be reached or started.
        ValueError: workers of a foreign scheduler; a package is missing.
    """
    if "://" in scheduler:
        with _there(scheduler) as client:
            yield client, _nothing
        return
    with _settings(), _cluster(scheduler, workers) as (cluster, keep):
        from distributed import Client

        with Client(cluster, set_as_default=False) as client:
            yield client, keep


def _nothing() -> None:
    """Workers of this machine are started anew by Dask, those of others by others."""


@contextmanager
def _settings() -> Iterator[None]:
    import dask
    import distributed  # noqa: F401  # its defaults first: read inside, they would be taken back with what is set here

    with dask.config.set(_SETTINGS):
        yield


@contextmanager
def _there(address: str) -> "Iterator[Client]":
    from distributed import Client

    try:
        # in a thread of its own: a notebook has a loop running here
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _greet(address)).result()
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise SchedulerError(
            f"no scheduler answers at {address}; start one (dask scheduler), or check the address"
        ) from error
    with client:
        yield client


async def _greet(address: str) -> None:
    """Connect as a client does, which for itself would wait for ever where something else listens that says nothing.

    Raises:
        OSError: nobody answers.
        ValueError: this is no address.
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
        yield cluster, Jobs(cluster, scheduler, workers).keep


def _local(workers: int | None) -> Any:
    """Processes of this machine: one per accelerator, or else one per core that has the memory, each with one thread."""
    from distributed import Nanny, Scheduler, SpecCluster
    from distributed.system import MEMORY_LIMIT

    gpus = visible_gpus()
    count = workers or len(gpus) or max(1, min(_cores(), MEMORY_LIMIT // WORKER_MEMORY))
    share = MEMORY_LIMIT // count
    if share < WORKER_MEMORY:
        warnings.warn(
            f"{count} worker{'s' * (count > 1)} on {MEMORY_LIMIT / 1e9:.1f} GB: one that takes more than {share / 1e9:.1f} GB "
            f"is killed, and its run fails; compiled programs alone take up to 1 GB: give each {WORKER_MEMORY / 1e9:.0f} GB",
            stacklevel=2,
        )
    options = {
        "host": LOOPBACK,
        "nthreads": 1,
        "memory_limit": share,
        "preload": ["mesascope.studies.sweeps._preload"],
        "silence_logs": logging.CRITICAL,
    }
    processes = {
        i: {"cls": Nanny, "options": {**options, "env": {**alone(), **environment}}}
        for i, environment in enumerate(environments(count, gpus))
    }
    head = {"host": LOOPBACK, "port": 0, "dashboard_address": f"{LOOPBACK}:0"}
    return SpecCluster(
        workers=processes,
        scheduler={"cls": Scheduler, "options": head},
        silence_logs=logging.CRITICAL,
        name="mesascope",
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _same_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C: dask-jobqueue, when it is imported, has it end the process as if all were done."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


def _queue(scheduler: str) -> Any:
    """Jobs of a batch system, as ~/.config/dask/jobqueue.yaml describes them; none is submitted yet."""
    import dask

    try:
        with _same_interrupts():
            import dask_jobqueue
    except ImportError:
        raise ValueError(
            f"--scheduler {scheduler} needs dask-jobqueue; install it: pip install 'mesascope[cluster]'"
        ) from None
    told = dask.config.get(f"jobqueue.{scheduler}", {})
    options = dict(told.get("scheduler-options") or {})
    # else every worker has a page of its own, for all to see
    quiet = ["--no-dashboard", "--dashboard-address", f"{LOOPBACK}:0"]
    arguments = [*quiet, *(told.get("worker-extra-args") or [])]
    if not told.get("interface") and not {"host", "interface"} & set(options):
        # nodes reach a scheduler, and are reached, only where the configuration says so
        options["host"] = LOOPBACK
        arguments += ["--host", LOOPBACK]
    options.setdefault("dashboard_address", f"{LOOPBACK}:0")
    # settings travel to workers of our own by themselves, into jobs by the environment
    settings = {
        f"DASK_{name.upper().replace('.', '__').replace('-', '_')}": value
        for name, value in _SETTINGS.items()
    }
    prologue = [f"export {name}='{value}'" for name, value in {**alone(), **settings}.items()]
    try:
        return getattr(dask_jobqueue, QUEUES[scheduler])(
            scheduler_options=options,
            worker_extra_args=arguments,
            job_script_prologue=[*(told.get("job-script-prologue") or []), *prologue],
            silence_logs=logging.CRITICAL,
        )
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise SchedulerError(
            f"no {scheduler} cluster can be started ({error}); check ~/.config/dask/jobqueue.yaml"
        ) from error
