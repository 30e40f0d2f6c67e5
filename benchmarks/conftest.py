"""Benchmarks run on one core, except whole commands, which get the machine; a table against the bars closes the run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from measuring import ALL_CORES

os.sched_setaffinity(0, {min(ALL_CORES)})  # before jax starts its threads

import jax  # noqa: E402  (the affinity must come first)
import pytest  # noqa: E402
from write_tables import row  # noqa: E402

jax.config.update("jax_enable_x64", True)


class Finished(NamedTuple):
    """A process that ended: wall time, peak memory in bytes, standard output, exit status."""

    seconds: float
    memory: int
    output: str
    status: int


# A process begins with the memory of the one that started it, and its peak never forgets that: a small one has to start it.
_STARTER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen([sys.executable, *sys.argv[1:]], stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - start
print(json.dumps([seconds, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)]), file=sys.stderr)
"""


@pytest.fixture
def run_python():
    """Run a fresh interpreter with these arguments on all cores, to its end."""

    def run(*arguments):
        own = os.sched_getaffinity(0)
        os.sched_setaffinity(0, ALL_CORES)  # children inherit it; a preexec_fn would fork a threaded process
        try:
            command = [sys.executable, "-c", _STARTER, *map(str, arguments)]
            starter = subprocess.run(command, capture_output=True, text=True, check=True)
        finally:
            os.sched_setaffinity(0, own)
        seconds, memory, status = json.loads(starter.stderr)
        return Finished(seconds, memory, starter.stdout, status)

    return run


@pytest.fixture
def run_command(run_python):
    """Run the installed `mesascope` command."""
    return lambda *arguments: run_python(Path(sys.executable).parent / "mesascope", *arguments)


@pytest.fixture
def bar(benchmark):
    """Say what is measured and set the bar: `bar(what=…, seconds=…, memory=…, faster=…, slower=…)`.

    At most so many seconds and bytes; at least so many times as fast as something else, or at most so many times as
    slow. What is measured goes into `benchmark.extra_info` under the same names, seconds only where the median of the
    rounds is not what counts.
    """

    def set_bar(what, **limits):
        benchmark.extra_info["what"] = what
        benchmark.extra_info.update({f"bar_{name}": value for name, value in limits.items()})

    return set_bar


def pytest_benchmark_update_machine_info(config, machine_info):
    machine_info["cores"] = len(ALL_CORES)
    machine_info["jax"] = jax.__version__
    machine_info["device"] = jax.devices()[0].device_kind


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    if session is None or not session.benchmarks:
        return
    terminalreporter.section("measured against the bars")
    for bench in session.benchmarks:
        what, measured, limit, met = row(bench.extra_info, bench.stats.median, bench.name)
        terminalreporter.write_line(f"{'met ' if met else 'NOT MET'} {what}: {measured} (bar: {limit})")
