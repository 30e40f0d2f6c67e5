"""Benchmarks run on one core, except whole commands, which get the machine; a table against the bars closes the run."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ALL_CORES = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(ALL_CORES)})  # before jax starts its threads

import jax  # noqa: E402  (the affinity must come first)
import pytest  # noqa: E402

jax.config.update("jax_enable_x64", True)


class Finished(NamedTuple):
    """A process that ended: wall time, peak memory in bytes, standard output, exit status."""

    seconds: float
    memory: int
    output: str
    status: int


@pytest.fixture
def run_python():
    """Run a fresh interpreter with these arguments on all cores, to its end."""

    def run(*arguments):
        with tempfile.TemporaryFile("w+") as out:
            start = time.perf_counter()
            own = os.sched_getaffinity(0)
            os.sched_setaffinity(
                0, ALL_CORES
            )  # children inherit it; a preexec_fn would fork a threaded process
            process = subprocess.Popen(
                [sys.executable, *map(str, arguments)], stdout=out, stderr=subprocess.DEVNULL
            )
            os.sched_setaffinity(0, own)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            return Finished(seconds, usage.ru_maxrss * 1024, out.read(), process.returncode)

    return run


@pytest.fixture
def run_command(run_python):
    """Run the installed `mesascope` command."""
    return lambda *arguments: run_python(Path(sys.executable).parent / "mesascope", *arguments)


@pytest.fixture
def bar(benchmark):
    """Set the bar: `bar(seconds=…)`, `bar(memory=…)` in bytes; measured memory goes to `bar.memory_used`."""

    def set_bar(**limits):
        benchmark.extra_info.update({f"bar_{name}": value for name, value in limits.items()})

    return set_bar


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    if session is None or not session.benchmarks:
        return
    terminalreporter.section("measured against the bars")
    head = f"{'benchmark':52} {'median':>12} {'bar':>12} {'memory':>10} {'bar':>10}  met"
    terminalreporter.write_line(head)
    for bench in session.benchmarks:
        info = bench.extra_info
        measured = info.get("seconds", bench.stats.median)
        seconds, memory, used = info.get("bar_seconds"), info.get("bar_memory"), info.get("memory")
        met = all(
            value <= limit for value, limit in ((measured, seconds), (used, memory)) if limit is not None
        )
        row = (
            f"{bench.name[:52]:52} {_time(measured):>12} {_time(seconds):>12} {_size(used):>10} {_size(memory):>10}"
            f"  {'yes' if met else 'NO'}"
        )
        terminalreporter.write_line(row)


def _time(seconds):
    if seconds is None:
        return "-"
    return f"{1e3 * seconds:.4g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(size):
    return "-" if size is None else f"{size / 1e9:.2f} GB"
