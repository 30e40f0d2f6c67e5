"""Labelled arrays written and read by several threads at once, as the rows of a phase diagram are."""

from concurrent.futures import ThreadPoolExecutor

import netCDF4
import numpy as np
import pytest

from mesascope.records import RecordError, read_dataset, write_dataset
from mesascope.records._dataset import _SEAL, _digest, is_as_written

THREADS, FILES = 4, 50  # HDF5 without a lock ends the process in most of such runs


@pytest.mark.slow
def test_threads_write_and_read_at_the_same_time(tmp_path):
    def run(thread):
        for number in range(FILES):
            path, values = tmp_path / f"{thread}-{number}.nc", np.full((3, 4), thread + number / FILES)
            write_dataset(path, {"x": (("a", "b"), values), "y": ("a", np.arange(3))}, {"thread": thread})
            assert (read_dataset(path).x == values).all()

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(run, range(THREADS)))


@pytest.mark.parametrize("mark", ["mesascope.data/1", "mesascope.data/3", None])
def test_a_sealed_file_of_another_format_is_not_as_written(tmp_path, mark):
    path = tmp_path / "a.nc"
    write_dataset(path, {"x": ("a", np.array([1 + 2j, 3.0]))})
    assert is_as_written(path)
    with netCDF4.Dataset(path, "a") as opened:  # which removes the seal
        opened.setncattr("mesascope_format", mark) if mark else opened.delncattr("mesascope_format")
    path.write_bytes(path.read_bytes() + _SEAL + _digest(path, path.stat().st_size))
    assert not is_as_written(path)
    with pytest.raises(RecordError, match="is not a data set of mesascope"):
        read_dataset(path)
