"""Settings that every test shares: compiled programs kept and bounded, 64-bit arithmetic, Ctrl-C, one hypothesis profile."""

import atexit
import os
import shutil
import signal
import tempfile
from itertools import count

# Most of the time of the tests is compilation, much of it of programs that another test, another worker or a command
# under test compiled before. They share them through a folder that lives as long as the session. Programs that call
# back into Python cannot be shared, and equinox's checks at run time do, unless they are told to answer NaN.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _programs = tempfile.mkdtemp(prefix="mesascope-programs-")
    atexit.register(shutil.rmtree, _programs, ignore_errors=True)
    os.environ |= {
        "JAX_COMPILATION_CACHE_DIR": _programs,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
        "EQX_ON_ERROR": "nan",
    }

# Threads of OpenBLAS wait by spinning: where every core has its worker, small problems take a hundred times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# With little optimization programs are compiled in half of the time and run up to a third slower; the numbers are the same
# but for rounding. What `make docs` and `make release` run is optimized as for users.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)

import jax  # reads the environment
import pytest
from hypothesis import HealthCheck, settings

from browser import browser as browser  # for every test of a page
from mesascope.core import forget_programs
from mesascope.specs._registry import FAMILIES, is_ours

# The library never touches jax's configuration; whoever runs it does, here as in the command line.
jax.config.update("jax_enable_x64", True)

# A shell's background jobs ignore Ctrl-C, and so would the commands whose interruption is tested.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the first call of a jitted function compiles. print_blob: a failure shows how to repeat it.
settings.register_profile(
    "mesascope", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mesascope")

_TESTS_BETWEEN = 10
_finished = count(1)


def pytest_runtest_logfinish():
    if next(_finished) % _TESTS_BETWEEN == 0:
        forget_programs()  # a worker that runs thousands of tests compiles more than a process may keep


@pytest.fixture(autouse=True)
def kinds_of_others():
    """Kinds that a test declares, or a page that it runs, are forgotten after it."""
    before = {family: dict(known) for family, known in FAMILIES.items()}
    yield
    for family, known in FAMILIES.items():
        ours = {name: cls for name, cls in known.items() if is_ours(cls)}
        known.clear()
        known.update(before.get(family, {}) | ours)
