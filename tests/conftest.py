"""Settings that every test shares: 64-bit arithmetic, Ctrl-C, one hypothesis profile, a bound on compiled programs."""

import signal
from itertools import count
from pathlib import Path

import jax
from hypothesis import HealthCheck, settings

# The library never touches jax's configuration; whoever runs it does, here as in the command line.
jax.config.update("jax_enable_x64", True)

# A shell's background jobs ignore Ctrl-C, and so would the commands whose interruption is tested.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the first call of a jitted function compiles. print_blob: a failure shows how to repeat it.
settings.register_profile(
    "mesascope", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mesascope")

# Linux grants a process 65 530 memory mappings, a compiled program takes several, and jax keeps every program: a worker that
# runs thousands of tests would crash. So what is compiled is forgotten long before.
_MAPPINGS, _MOST_MAPPINGS, _TESTS_BETWEEN = Path("/proc/self/maps"), 20_000, 10
_finished = count(1)


def pytest_runtest_logfinish():
    if next(_finished) % _TESTS_BETWEEN == 0 and _MAPPINGS.exists():
        with _MAPPINGS.open("rb") as mappings:
            many = sum(1 for _ in mappings) > _MOST_MAPPINGS
        if many:
            jax.clear_caches()
