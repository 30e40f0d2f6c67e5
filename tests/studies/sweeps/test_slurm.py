"""A real Slurm of one node, on loopback, where Debian's slurm-wlm is installed."""

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import dask
import pytest

from mesascope.records import RunFolders
from mesascope.studies import StudySpec, SweepError, parse_spec, sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("slurmctld") is None, reason="needs Debian's slurm-wlm"),
]

RUNS = 120  # more than a job computes before it is cancelled

CONFIGURATION = """
ClusterName=mesascope
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={place}/status
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The environment in which the commands of Slurm find it."""
    place = tmp_path_factory.mktemp("slurm")
    for name in ("status", "spool"):
        (place / name).mkdir()
    settings = CONFIGURATION.format(ports=free_ports(2), user=getpass.getuser(), place=place)
    (place / "slurm.conf").write_text(settings)
    environment = {"SLURM_CONF": str(place / "slurm.conf")}
    with open(place / "log", "w") as log:
        servers = [
            subprocess.Popen([name, "-D", *options], stdout=log, stderr=log, env=os.environ | environment)
            for name, *options in (("slurmctld",), ("slurmd", "-N", "localhost"))
        ]
    try:
        until(lambda: "idle" in asked(environment, "sinfo", "--noheader"), why=place / "log")
        yield environment
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            stopped(server)


def stopped(server, seconds=20):
    """Wait for a server of Slurm; on a busy machine `slurmd` may wait for a job's last step far longer than the tests do."""
    try:
        server.wait(seconds)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def asked(environment, *command):
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True).stdout


def until(condition, seconds=60, why=None):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, why.read_text() if why else "nothing happened"
        time.sleep(0.1)


JOB = {"cores": 1, "memory": "2GB", "processes": 1, "walltime": "00:10:00", "python": sys.executable}


@pytest.fixture
def queue(tmp_path, slurm):
    """The environment in which a sweep finds the queue."""
    file = tmp_path / "dask" / "jobqueue.yaml"
    file.parent.mkdir()
    file.write_text(json.dumps({"jobqueue": {"slurm": {**JOB, "log-directory": str(tmp_path / "logs")}}}))
    return {**slurm, "DASK_CONFIG": str(file.parent)}


ONE = ("--scheduler", "slurm", "--workers", 1)
# The command, which asks the queue every second instead of every 15.
IMPATIENT = (
    "-c",
    "import mesascope.studies.sweeps._jobs as jobs; jobs._ASK_EVERY = 1.0; "
    "import mesascope.cli; raise SystemExit(mesascope.cli.main())",
)


@pytest.mark.slow
@pytest.mark.parametrize("end", [("scancel",), ("scontrol", "requeue")], ids=["cancelled", "preempted"])
def test_jobs_that_end_are_replaced(command, many_losses, tmp_path, begun, queue, end):
    """One job is cancelled during the sweep, as a job is that reaches its time limit, or goes back into the queue."""
    sweep = command(many_losses(RUNS), tmp_path / "s", *ONE, program=IMPATIENT, **queue)
    sweep.until(lambda: len(sweep.ended_runs()) > 3)
    assert set(sweep.listening(*(pids[-1] for pids in begun(sweep.store).values()))) == {"127.0.0.1"}
    (job,) = asked(queue, "squeue", "--noheader", "--format=%A").split()
    asked(queue, *end, job)
    status, result, err = sweep.end(300)
    assert (status, result["done"]) == (0, RUNS), err
    folders = RunFolders(sweep.store)
    assert {folders.status(run) for run in folders.ids()} == {"done"}
    processes = {pid for pids in begun(sweep.store).values() for pid in pids}
    assert len(processes) == 2 and sweep.process.pid not in processes
    assert asked(queue, "squeue", "--noheader", "--statuses=PENDING,RUNNING") == ""


@pytest.mark.slow
def test_the_command_of_the_page(shell_of_the_page, tmp_path, queue):
    (computed,) = shell_of_the_page("--scheduler slurm", {"/shared/runs": tmp_path / "shared"}, **queue)
    assert computed.startswith("products: 6 done, 0 failed, 0 reused, of 6 runs")
    until(lambda: asked(queue, "squeue", "--noheader", "--statuses=PENDING,RUNNING") == "")


@pytest.mark.slow
def test_ctrl_c_cancels_the_jobs(command, many_losses, tmp_path, queue):
    sweep = command(many_losses(RUNS), tmp_path / "s", *ONE, **queue)
    sweep.until(lambda: len(sweep.ended_runs()) > 1)
    sweep.process.send_signal(signal.SIGINT)
    assert sweep.end()[0] == 130
    until(lambda: asked(queue, "squeue", "--noheader", "--statuses=PENDING,RUNNING") == "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"python": "/bin/false"}, "slurm jobs end before a worker comes, 5 times in a row; read their logs"),
        ({"queue": "nowhere"}, "no slurm job can be submitted"),
    ],
)
@pytest.mark.usefixtures("jobqueue")  # imported first, for its defaults
def test_jobs_without_workers_end_the_sweep(many_losses, tmp_path, slurm, monkeypatch, settings, message):
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("mesascope.studies.sweeps._jobs._ASK_EVERY", 0.5)
    study = parse_spec(many_losses(2), StudySpec)
    settings = {**JOB, "log-directory": str(tmp_path / "logs"), **settings}
    with (
        dask.config.set({f"jobqueue.slurm.{name}": value for name, value in settings.items()}),
        pytest.raises(SweepError, match=message),
    ):
        sweep(study, tmp_path / "s", scheduler="slurm", workers=1)
