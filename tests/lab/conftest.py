import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote, unquote

import pytest

import stored_records as stored
from lab_page import FAST_CLAIM, SMALL, open_at


@dataclass
class Running:
    """A lab that runs: its address without the token, the token, and its process."""

    address: str
    token: str
    process: subprocess.Popen

    def at(self, query, page="expert"):
        """The address of a setting on a page, with the token; the story's page has no name."""
        return f"{self.address}{page}?token={quote(self.token)}&{query.removeprefix('?')}"

    @property
    def cookie(self):
        """What a browser sends after it has opened the address with the token."""
        return {"Cookie": f"mesascope-lab-{self.port}={sha256(self.token.encode()).hexdigest()}"}

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
        address, _, token = re.search(r"http://\S+", line)[0].partition("?token=")
        yield Running(address, unquote(token), process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    if process.returncode >= 0:
        assert (process.returncode, errors) == (0, ""), errors


@pytest.fixture(scope="session")
def start_lab():
    return running_lab


PLUGIN = '''
"""A law of one's own."""

from fractions import Fraction

import mesascope as ms
from mesascope.processes import IdenticalLaw
from mesascope.specs import Scale


@ms.kind("triangular")
class Triangular(IdenticalLaw):
    """Independent coordinates with density $(1 - |x|/h)/h$ on $[-h, h]$: $E x^n = 2 h^n/((n+1)(n+2))$ for even $n$.

    Args:
        scale: the half-width $h > 0$ of the density.
        centred: whether odd moments vanish; no other choice is known.
    """

    scale: Scale = 1
    centred: bool = True

    def line_moment(self, order):
        share = Fraction(2, (order + 1) * (order + 2))
        return share * Fraction(self.scale) ** order if order % 2 == 0 else Fraction(0)

    def sample(self, key, dim, shape=()):
        import jax

        first, second = jax.random.uniform(key, (2, *shape, dim))
        return float(self.scale) * (first - second)
'''


@pytest.fixture(scope="session")
def lab(start_lab, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    (folder / "triangular.py").write_text(PLUGIN)
    checked = stored.claim(
        "zheng2024/theorem-4.2",
        statement="As T, t → ∞ the risk tends to <b>something</b>.",
        measured={"error": 1e-9},
        criterion="rounding",
        details={"meaning": "distance to the limit"},
    )
    bare = stored.claim(FAST_CLAIM)  # as the repository keeps them: a record, and no figures
    stored.run_directory(
        folder / "records" / "small", checked, bare, figures={"zheng2024/risk": stored.curves_figure()}
    )
    stored.store(folder / "runs")
    with start_lab(
        folder, "--port", "0", "--records", "records", "runs", "--plugin", "triangular.py"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def window(browser):
    # as people may ask of their system: nothing fades, so that no test waits for what does
    with browser.page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as found:
        yield found


@pytest.fixture
def opened(window, lab):
    """A small setting, its facts on the page; whatever it says on the console or asks of others is an error."""
    page, seen = window
    seen.errors.clear(), seen.requests.clear()
    open_at(page, lab, SMALL)
    yield page
    assert seen.errors == []
    assert seen.outside() == []
    assert any("socket.io" in url for url in seen.requests)
