"""The progress of a training run."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self


class TrainingProgress(NamedTuple):
    """What `train` reports while it runs.

    Attributes:
        step: optimizer steps taken.
        steps: steps asked for.
        loss: mean loss of the batches since the record before.
        rate: steps per second since the first record of this call, so that compilation is left out; NaN at that record.
        remaining: seconds left at this rate; NaN like it.
    """

    step: int
    steps: int
    loss: float
    rate: float
    remaining: float


class Clock:
    """The rate of steps, measured from the end of the first record on, so that compilation does not count."""

    def __init__(self) -> None:
        self._start: tuple[float, int] | None = None

    def read(self, step: int, steps: int, loss: float) -> TrainingProgress:
        """The progress at this step."""
        now = time.monotonic()
        if self._start is None:
            self._start = now, step
        seconds, done = now - self._start[0], step - self._start[1]
        rate = done / seconds if done and seconds > 0 else float("nan")
        return TrainingProgress(step, steps, loss, rate, (steps - step) / rate)


class ProgressBar:
    """A progress bar for `train(…, progress=bar)`: steps, rate, time left and the loss.

    Use as a context manager: `with ProgressBar() as bar: train(…, progress=bar)`.
    """

    def __init__(self, console: Any = None) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._bar = Progress(*columns, console=console)
        self._task: Any = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, now: TrainingProgress) -> None:
        """Show this progress."""
        if self._task is None:
            self._task = self._bar.add_task("", total=now.steps)
        known = now.rate == now.rate
        rate = f"{_speed(now.rate)} steps/s, {_duration(now.remaining)} left, " if known else ""
        description = f"{rate}loss {now.loss:.4g}"
        self._bar.update(self._task, completed=now.step, total=now.steps, description=description)


def _speed(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


ProgressCallback = Callable[[TrainingProgress], None]
