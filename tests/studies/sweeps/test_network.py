"""A worker loses the network between two heartbeats: no run is lost, and none is computed twice by workers that have one."""

import socket
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest

import stored_records as stored
from mesascope.records import RunFolders, open_store
from mesascope.studies.sweeps._execute import Request
from mesascope.studies.sweeps._runners import OnDask, SweepError

RUNS = 30


class Network:
    """Passes connections on to an address, until it is lost."""

    def __init__(self, address):
        self._to = address.removeprefix("tcp://").rsplit(":", 1)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self._open, self._lost = [], False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                one = self._server.accept()[0]
                if self._lost:
                    one.close()
                    continue
                other = socket.create_connection(self._to)
                self._open += [one, other]
                for pair in ((one, other), (other, one)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    @staticmethod
    def _pass(one, other):
        with suppress(OSError):
            while content := one.recv(65536):
                other.sendall(content)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def lose(self, comes_back):
        """Cut every connection, and refuse new ones unless it comes back at once."""
        self._lost = not comes_back
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.slow
@pytest.mark.parametrize("comes_back", [True, False])
def test_a_worker_that_loses_the_network_costs_no_run(
    command, many_losses, tmp_path, begun, servers, comes_back
):
    """Dask ends a worker whose connection breaks, whether or not the network comes back; the sweep waits for another one."""
    scheduler = servers.scheduler()
    network = Network(scheduler)
    servers.worker(network.address)
    sweep = command(many_losses(RUNS), tmp_path / "s", "--scheduler", scheduler)
    sweep.until(lambda: len(sweep.ended_runs()) > 5)
    network.lose(comes_back)
    servers.worker(network.address if comes_back else scheduler)
    status, result, err = sweep.end()
    assert status == 0, err
    assert (result["done"] + result["reused"], result["failed"]) == (RUNS, 0), err
    processes = list(begun(sweep.store).values())
    assert sum(map(len, processes)) <= RUNS + 1 and len({pid for pids in processes for pid in pids}) == 2
    assert {RunFolders(sweep.store).status(run) for run in RunFolders(sweep.store).ids()} == {"done"}
    with open_store(sweep.store) as store:
        assert store.verify() == []


class _Future:
    """A task of Dask that ends at once."""

    def __init__(self, status):
        self.status = status

    def add_done_callback(self, call):
        call(self)


def reported(folder, status):
    """What is reported of a run with a record, whose task has this status when it is read."""
    if not folder.joinpath("store.json").exists():
        stored.store(folder)
    client = SimpleNamespace(dashboard_link=None, submit=lambda *_, **__: _Future(status))
    runner = OnDask(client, lambda: None, folder, "flow", Request(driver="another"))
    run = stored.run_id((0, 0))
    runner.submit((run,))
    (report,) = runner.reports(1.0)
    return report.runs == (run,), report.ends


def test_a_task_whose_worker_goes_after_it_has_ended_is_not_lost(tmp_path):
    """Dask says "lost" of its result until another worker has computed it again; the run has its record."""
    assert reported(tmp_path, "lost") == reported(tmp_path, "finished") == (True, ("cached",))


def test_tasks_that_the_scheduler_has_dropped_end_the_sweep(tmp_path):
    with pytest.raises(SweepError, match="the scheduler is gone"):
        reported(tmp_path, "cancelled")
