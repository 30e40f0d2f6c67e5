"""What a worker process of ours does first."""

import signal


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the driver: a terminal sends it to every process at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
