"""Fixtures of the tests of objectives."""

import contextlib
import json
from pathlib import Path

import jax
import pytest

from mesascope.processes import DiagonalUnitary, NextToken
from mesascope.specs import known_kinds

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "population_loss.json").read_text())


@pytest.fixture(params=REFERENCE, ids=lambda case: case["name"])
def reference(request):
    """Process, task and a case computed by full quadrature in another program: weights, loss and gradients."""
    case = request.param
    law = {**case["law"]}
    process = DiagonalUnitary(known_kinds("law")[law.pop("kind")](**law), case["dim"])
    weights = case["weights"] and {int(t): w for t, w in case["weights"].items()}
    return process, NextToken(case["horizon"], weights), case


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """Let XLA optimize less, since nearly every test compiles; results do not change."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def compilations():
    """A context manager that yields the list of compilations made inside it, by jax's own account."""

    @contextlib.contextmanager
    def record():
        seen = []

        def listen(event, duration, **details):
            if event == "/jax/core/compile/backend_compile_duration":
                seen.append(event)

        jax.monitoring.register_event_duration_secs_listener(listen)
        try:
            jax.jit(lambda x: x + 1)(0.0)  # a new function, compiled for certain
            assert seen, "jax no longer reports compilations under this name"
            seen.clear()
            yield seen
        finally:
            jax.monitoring.unregister_event_duration_listener(listen)

    return record
