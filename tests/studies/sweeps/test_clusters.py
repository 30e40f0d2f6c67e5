"""The cluster that a sweep starts has the settings that it needs."""

import pytest

from mesascope.studies.sweeps._clusters import client_of


def settings_of(dask_scheduler):
    """What a scheduler has made of its configuration."""
    return dask_scheduler.WORKER_SATURATION, dask_scheduler.allowed_failures


@pytest.mark.slow
def test_the_scheduler_hands_out_no_more_than_is_asked_of_it():
    with client_of("local", 1) as (client, _):
        assert client.run_on_scheduler(settings_of) == (1.0, 0)
