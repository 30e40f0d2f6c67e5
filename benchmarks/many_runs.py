"""Eight small runs that differ in their seed, in one of four ways: `many_runs.py WAY`; the whole program is timed."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import mesascope as ms
from mesascope.core import named_key
from mesascope.dynamics import TrainingSettings
from mesascope.dynamics._train import train_together

SEEDS, STEPS, BATCH = range(8), 1000, 64
PROCESS, TASK = ms.DiagonalUnitary(ms.Gaussian(0.5), dim=5), ms.NextToken(horizon=20)


def make(key):
    return ms.linear_transformer(dim=5, layers=2, key=key)


def one(seed):
    start = make(named_key(seed, "model"))
    return float(ms.train(start, PROCESS, TASK, seed=seed, steps=STEPS, batch=BATCH).loss.value)


def in_threads(workers=None):
    ms.train_many(make, PROCESS, TASK, list(SEEDS), workers=workers, steps=STEPS, batch=BATCH)


def in_one_vmap():
    starts = [make(named_key(seed, "model")) for seed in SEEDS]
    train_together(starts, PROCESS, TASK, list(SEEDS), TrainingSettings(steps=STEPS, batch=BATCH))


def in_processes():
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(one, SEEDS))


WAYS = {
    "one after another": lambda: in_threads(workers=1),
    "threads": in_threads,
    "vmap": in_one_vmap,
    "processes": in_processes,
}

if __name__ == "__main__":  # spawned processes import this file
    WAYS[sys.argv[1]]()
