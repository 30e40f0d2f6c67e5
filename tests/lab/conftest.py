import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass
class Running:
    """A lab that runs: its address and its process."""

    address: str
    process: subprocess.Popen

    @property
    def port(self):
        return int(re.search(r":(\d+)/", self.address)[1])

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextmanager
def running_lab(folder, *arguments):
    """`mesascope lab` in a folder; ended by Ctrl-C, as people do."""
    command = [sys.executable, "-m", "mesascope", "lab", "--no-warm", *arguments]
    # NiceGUI serves its own tests where pytest's variables are set
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=folder, env=own, text=True, **pipes)
    try:
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, line + process.stderr.read()
        yield Running(re.search(r"http://\S+", line)[0], process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    if process.returncode >= 0:
        assert (process.returncode, errors) == (0, ""), errors


@pytest.fixture(scope="session")
def start_lab():
    return running_lab
