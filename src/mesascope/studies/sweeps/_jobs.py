"""Jobs of a queue: those that end, at their time limit or because they are cancelled, are submitted again.

Dask's own `adapt` sees only jobs whose workers have come: it never replaces one that ends, or is cancelled, in the queue.
"""

import asyncio
import getpass
import re
import time
from typing import Any

from ._runners import SchedulerError, SweepError

QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "lsf": "LSFCluster"}
"""Batch systems, and what dask-jobqueue calls them."""

_LIVING = "PENDING,RUNNING,SUSPENDED,COMPLETING,CONFIGURING,REQUEUED,REQUEUE_HOLD,RESIZING,SIGNALING,STAGE_OUT,STOPPED"
_ASK_EVERY = 15.0  # seconds: many users ask the queue
_MAX_WORKERLESS = 5  # times in a row that jobs end before their workers have come
_ANSWER_WITHIN = 60  # seconds for the answer of a queue


class Jobs:
    """The jobs of a cluster of dask-jobqueue; jobs that end are replaced, so that there are always `workers` workers.

    Raises:
        SchedulerError: the queue refuses them.
    """

    def __init__(self, cluster: Any, queue: str, workers: int) -> None:
        self._cluster, self._queue, self._workers = cluster, queue, workers
        self._asked = time.monotonic()
        self._came: set[str] = set()
        self._workerless = 0
        try:
            cluster.sync(self._submit)
        except SweepError as error:
            raise SchedulerError(str(error)) from error

    def replace(self) -> None:
        """Replace jobs that have ended, if the last time is long enough ago.

        Raises:
            SweepError: they end again and again before a worker comes.
        """
        if time.monotonic() - self._asked >= _ASK_EVERY:
            self._asked = time.monotonic()
            self._cluster.sync(self._replace_ended)

    async def _replace_ended(self) -> None:
        cluster = self._cluster
        names = {str(worker["name"]) for worker in cluster.scheduler_info["workers"].values()}
        self._came |= names
        living = await _living(self._queue)
        if living is None:  # no answer: they may all be running
            return
        gone = [name for name, job in cluster.workers.items() if job.job_id not in living]
        for name in gone:
            del cluster.workers[name]
        if gone:
            # the workers of a job that has several are called NAME-0, NAME-1, …
            came = {
                one for one in self._came for job in map(str, gone) if one == job or one.startswith(f"{job}-")
            }
            self._workerless = 0 if came else self._workerless + 1
            self._came -= came
        if self._workerless >= _MAX_WORKERLESS and not names:
            raise SweepError(
                f"{self._queue} jobs end before a worker comes, {self._workerless} times in a row; read their logs "
                "(log-directory in ~/.config/dask/jobqueue.yaml): is mesascope installed on the nodes?"
            )
        try:
            await self._submit()
        except SweepError:  # the queue may answer again the next time
            if self._workerless >= _MAX_WORKERLESS:
                raise

    async def _submit(self) -> None:
        """Submit as many jobs as are missing."""
        try:
            self._cluster.scale(self._workers)
            await self._cluster
        except (OSError, RuntimeError, ValueError) as error:
            raise SweepError(
                f"no {self._queue} job can be submitted ({' '.join(str(error).split())}); "
                "check ~/.config/dask/jobqueue.yaml"
            ) from error


async def _living(queue: str) -> set[str] | None:
    """The ids of all jobs of this user that have not ended; None where the queue does not answer."""
    command = {
        "slurm": ["squeue", "--me", "--noheader", "--format=%A", f"--states={_LIVING}"],
        "pbs": ["qselect", "-u", getpass.getuser()],
        "lsf": ["bjobs", "-noheader", "-o", "jobid"],
    }[queue]
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        out, errors = await asyncio.wait_for(process.communicate(), _ANSWER_WITHIN)
    except (OSError, TimeoutError):
        return None
    if process.returncode and b"No unfinished job" not in errors:  # bjobs, if there is none
        return None
    return set(re.findall(r"^\d+", out.decode(errors="replace"), re.MULTILINE))
