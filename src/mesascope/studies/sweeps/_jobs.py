"""Jobs of a queue: those that end, at their time limit or because somebody cancels them, are asked for again."""

import asyncio
import getpass
import re
import time
from typing import Any

from ._runners import SchedulerError, SweepError

QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "lsf": "LSFCluster"}
"""Batch systems, and what dask-jobqueue calls them."""

_LIVING = "PENDING,RUNNING,SUSPENDED,COMPLETING,CONFIGURING,REQUEUED,REQUEUE_HOLD,RESIZING,SIGNALING,STAGE_OUT,STOPPED"
_ASK_EVERY = 15.0  # seconds: a queue is asked by many
_MAX_IN_VAIN = 5  # times in a row that jobs have ended before a worker of theirs came
_ANSWER_WITHIN = 60  # seconds for the answer of a queue


class Jobs:
    """The jobs of a cluster of dask-jobqueue, kept at a number of workers.

    Raises:
        SchedulerError: the queue takes none.
    """

    def __init__(self, cluster: Any, queue: str, workers: int) -> None:
        self._cluster, self._queue, self._workers = cluster, queue, workers
        self._asked = time.monotonic()
        self._came: set[str] = set()
        self._vain = 0
        try:
            cluster.sync(self._submit)
        except SweepError as error:
            raise SchedulerError(str(error)) from error

    def keep(self) -> None:
        """Ask for jobs in the place of those that have ended, if the last time is long enough ago.

        Raises:
            SweepError: they end again and again before a worker comes.
        """
        if time.monotonic() - self._asked >= _ASK_EVERY:
            self._asked = time.monotonic()
            self._cluster.sync(self._replace)

    async def _replace(self) -> None:
        cluster = self._cluster
        names = {str(worker["name"]) for worker in cluster.scheduler_info["workers"].values()}
        self._came |= names
        living = await _living(self._queue)
        if living is None:  # no answer: they may all be there
            return
        gone = [name for name, job in cluster.workers.items() if job.job_id not in living]
        for name in gone:
            del cluster.workers[name]
        if gone:
            # the workers of a job that has several are called NAME-0, NAME-1, …
            came = {
                one for one in self._came for job in map(str, gone) if one == job or one.startswith(f"{job}-")
            }
            self._vain = 0 if came else self._vain + 1
            self._came -= came
        if self._vain >= _MAX_IN_VAIN and not names:
            raise SweepError(
                f"{self._queue} jobs end before a worker comes, {self._vain} times in a row; look at what they wrote "
                "(log-directory in ~/.config/dask/jobqueue.yaml): is mesascope installed on the nodes?"
            )
        try:
            await self._submit()
        except SweepError:  # the queue may answer again the next time
            if self._vain >= _MAX_IN_VAIN:
                raise

    async def _submit(self) -> None:
        """Bring the number of jobs up to what was asked for."""
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
        out, said = await asyncio.wait_for(process.communicate(), _ANSWER_WITHIN)
    except (OSError, TimeoutError):
        return None
    if process.returncode and b"No unfinished job" not in said:  # what bjobs says of none
        return None
    return set(re.findall(r"^\d+", out.decode(errors="replace"), re.MULTILINE))
