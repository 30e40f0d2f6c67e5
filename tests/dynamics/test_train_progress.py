"""What a run tells while it goes."""

import io
import math

from rich.console import Console

from mesascope import DiagonalUnitary, Gaussian, LinearAttention, NextToken, train
from mesascope.dynamics import ProgressBar, TrainingProgress

PROCESS, TASK = DiagonalUnitary(Gaussian(1.0), 2), NextToken(6)
START = LinearAttention.diagonal(2, 0.3, 0.3)
SETTINGS = {"steps": 18, "batch": 8, "held_out": 16, "record_every": 4}


def test_progress_is_told_at_every_record():
    seen = []
    run = train(START, PROCESS, TASK, progress=seen.append, evaluate_every=3, **SETTINGS)
    assert [now.step for now in seen] == run.steps.tolist() == [4, 8, 12, 16, 18]
    assert [now.loss for now in seen] == run.losses.tolist()
    assert all(now.steps == 18 for now in seen)
    first, *others = seen
    assert math.isnan(first.rate) and math.isnan(first.remaining)  # compilation would count
    for now in others:
        assert math.isfinite(now.rate) and now.rate > 0
        assert now.remaining == (18 - now.step) / now.rate


def _shown(*progress):
    screen = io.StringIO()
    with ProgressBar(Console(file=screen, width=100, force_terminal=True)) as bar:
        for now in progress:
            bar(now)
    return screen.getvalue()


def test_the_bar_shows_steps_rate_time_left_and_loss():
    unknown = float("nan")
    first = _shown(TrainingProgress(50, 4000, 0.123456, unknown, unknown))
    assert "50/4000" in first and "loss 0.1235" in first and "steps/s" not in first and "nan" not in first
    shown = _shown(TrainingProgress(1000, 20_000, 2.5e-7, 1234.5, 61.2))
    assert (
        "1000/20000" in shown
        and "1,234 steps/s" in shown
        and "1:01 left" in shown
        and "loss 2.5e-07" in shown
    )
    slow = _shown(TrainingProgress(1, 4000, 1.0, 0.25, 15_996.0))
    assert "0.25 steps/s" in slow and "4:26:36 left" in slow


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
        bar(TrainingProgress(18, 18, 0.5, 10.0, 0.0))
    assert "18/18" in screen.getvalue()
