"""Labelled arrays written and read by several threads at once, as the rows of a phase diagram are."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mesascope.records import read_dataset, write_dataset

THREADS, FILES = 4, 50  # HDF5 without a lock ends the process in most of such runs


def test_threads_write_and_read_at_the_same_time(tmp_path):
    def run(thread):
        for number in range(FILES):
            path, values = tmp_path / f"{thread}-{number}.nc", np.full((3, 4), thread + number / FILES)
            write_dataset(path, {"x": (("a", "b"), values), "y": ("a", np.arange(3))}, {"thread": thread})
            assert (read_dataset(path).x == values).all()

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(run, range(THREADS)))
