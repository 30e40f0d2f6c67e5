"""How two programs are timed against each other, and what a benchmark says about itself."""

import gc
import os
import statistics
import time

ALL_CORES = os.sched_getaffinity(0)  # conftest.py imports this before it takes to one core


def seconds_of(function):
    """The wall time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(functions, rounds, warm_up=2):
    """Time functions in turns, so that whatever else the machine does meets all of them alike.

    Args:
        functions: name → a function that returns when its work is done.
        rounds: turns that count.
        warm_up: turns before, for compilation and allocation.

    Returns:
        Name → wall times of the rounds.
    """
    times = {name: [] for name in functions}
    gc.collect()
    for turn in range(warm_up + rounds):
        for name, function in functions.items():
            seconds = seconds_of(function)
            if turn >= warm_up:
                times[name].append(seconds)
    return times


def smaller_ratio(found, name, one="mesascope"):
    """How many times as long a program takes as another: by the medians or the minima that were found, whichever is less."""
    return min(found[by][name] / found[by][one] for by in ("medians", "minima"))


def ratio(times, other, one):
    """How many times as long `other` takes as `one`: by medians and by minima, the smaller of the two."""
    by_median = statistics.median(times[other]) / statistics.median(times[one])
    by_minimum = min(times[other]) / min(times[one])
    return min(by_median, by_minimum), by_median, by_minimum
