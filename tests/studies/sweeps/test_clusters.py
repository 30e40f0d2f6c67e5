"""The cluster that a sweep starts has the settings that it needs."""

import subprocess
import sys

import pytest

from mesascope.studies.sweeps._clusters import client_of


def settings_of(dask_scheduler):
    """What a scheduler has made of its configuration."""
    return dask_scheduler.WORKER_SATURATION, dask_scheduler.allowed_failures


@pytest.mark.slow
def test_the_scheduler_hands_out_no_more_than_is_asked_of_it():
    with client_of("local", 1) as (client, _):
        assert client.run_on_scheduler(settings_of) == (1.0, 0)


def test_defaults_of_dask_stay_when_a_cluster_has_ended():
    """In a process that had not imported its scheduler before: xarray asks for them wherever it writes."""
    program = (
        "import dask; from mesascope.studies.sweeps._clusters import _settings\n"
        "with _settings():\n    import distributed\n"
        "assert dask.config.get('distributed.comm')\n"
        "assert dask.config.get('distributed.scheduler.worker-saturation') != 1.0"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
