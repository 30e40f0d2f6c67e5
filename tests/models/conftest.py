"""Fixtures of the tests of models."""

import contextlib
import re

import jax
import pytest


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


@pytest.fixture
def refused_in_one_line():
    """A function that calls what has to raise an error of this type with one line, in which the message is found."""

    def check(build, error, message):
        with pytest.raises(error) as caught:
            build()
        assert re.search(message, str(caught.value)), str(caught.value)
        assert "\n" not in str(caught.value)
        assert type(caught.value) in (ValueError, TypeError)

    return check
