"""Progress of long computations, and the bar that shows it."""

import io
import math
import re

import pytest
from rich.console import Console

from mesascope import (
    DiagonalUnitary,
    Gaussian,
    LinearAttention,
    NextToken,
    PhasePoint,
    descend,
    gradient_flow,
    phase_diagram,
    train,
)
from mesascope.core import Progress, ProgressBar

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(6)
START = LinearAttention.diagonal(2, 0.3, 0.3)
SETTINGS = {"steps": 18, "batch": 8, "held_out": 16, "record_every": 4}


@pytest.mark.slow
def test_progress_is_reported_at_every_record():
    seen = []
    run = train(START, PROCESS, TASK, progress=seen.append, evaluate_every=3, **SETTINGS)
    assert [now.done for now in seen] == run.steps.tolist() == [4, 8, 12, 16, 18]
    assert [now.values["loss"] for now in seen] == run.losses.tolist()
    assert all(now.total == 18 for now in seen)
    first, *others = seen
    assert math.isnan(first.rate) and math.isnan(first.remaining)  # compilation would count
    for now in others:
        assert math.isfinite(now.rate) and now.rate > 0
        assert now.remaining == (18 - now.done) / now.rate


def _shown(*progress):
    screen = io.StringIO()
    with ProgressBar(Console(file=screen, width=100, force_terminal=True)) as bar:
        for now in progress:
            bar(now)
    return screen.getvalue()


def test_the_bar_shows_steps_rate_time_left_and_loss():
    first = _shown(Progress(50, 4000, values={"loss": 0.123456}))
    assert "50/4000" in first and "loss 0.1235" in first and "steps/s" not in first and "nan" not in first
    shown = _shown(Progress(1000, 20_000, rate=1234.5, values={"loss": 2.5e-7}))
    assert (
        "1000/20000" in shown
        and "1,234 steps/s" in shown
        and "0:15 left" in shown
        and "loss 2.5e-07" in shown
    )
    slow = _shown(Progress(1, 4000, rate=0.25, values={"loss": 1.0}))
    assert "0.25 steps/s" in slow and "4:26:36 left" in slow


@pytest.mark.slow
def test_the_bar_follows_a_run_and_then_another():
    screen = io.StringIO()
    with ProgressBar(Console(file=screen, width=100, force_terminal=True)) as bar:
        train(START, PROCESS, TASK, progress=bar, **SETTINGS)
        train(START, PROCESS, TASK, progress=bar, **{**SETTINGS, "steps": 8})
    last = screen.getvalue().split("\r")[-1]
    assert "8/8" in last and "/18" not in last


def test_the_bar_does_without_a_terminal():
    screen = io.StringIO()
    with ProgressBar(Console(file=screen, width=100)) as bar:
        bar(Progress(18, 18, rate=10.0))
    assert "18/18" in screen.getvalue()


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress(3), "3 steps"),
        (
            Progress(7, 30, "runs", 0.5, "run", {"failed": 2}),
            "7 of 30 runs, run, 0.5 runs/s, 0:46 left, failed 2",
        ),
        (
            Progress(40, values={"flow time": 1234.5678, "page": "here"}),
            "40 steps, flow time 1235, page here",
        ),
        (Progress(0, 5, rate=0.0), "0 of 5 steps, 0 steps/s"),
    ],
)
def test_progress_is_described_in_one_line(progress, line):
    assert progress.describe() == line


def diagonal_start(a, horizon, key):
    return PhasePoint(LinearAttention.diagonal(2, a, 0.3), PROCESS, NextToken(horizon))


@pytest.mark.slow
@pytest.mark.parametrize(
    "compute",
    [
        lambda bar: gradient_flow(START, PROCESS, TASK, until=1.0, progress=bar),
        lambda bar: descend(START, PROCESS, TASK, learning_rate=0.01, steps=3, progress=bar),
        lambda bar: phase_diagram(diagonal_start, {"a": [0.1, 0.3], "horizon": [6]}, progress=bar),
    ],
)
def test_one_bar_serves_every_long_computation(compute):
    screen = io.StringIO()
    with ProgressBar(Console(file=screen, width=100, force_terminal=True)) as bar:
        compute(bar)
    assert re.search(r"[1-9]\d*/", screen.getvalue())
