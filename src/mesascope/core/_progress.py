"""How far a long computation is, and a bar that shows it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

open_bars: list[Any] = []
"""The bars that are shown now."""


@dataclass(frozen=True)
class Progress:
    """What every long computation passes to its `progress` function.

    Attributes:
        done: finished units, such as steps.
        total: all units; None if not known, as for a flow that ends in its steady state.
        unit: what is counted, in the plural.
        rate: units per second, without compilation; NaN if not known yet.
        stage: what is being done, in a few words.
        values: present numbers by name, such as the loss; texts, such as an address.
    """

    done: int
    total: int | None = None
    unit: str = "steps"
    rate: float = math.nan
    stage: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def remaining(self) -> float:
        """Seconds left at this rate; NaN if not known."""
        left = math.nan if self.total is None else self.total - self.done
        return left / self.rate if self.rate else math.nan

    def describe(self) -> str:
        """Return one line: `30 of 100 steps, 12 steps/s, 0:06 left, loss 0.1235`."""
        return ", ".join(
            [f"{self.done}{f' of {self.total}' if self.total else ''} {self.unit}", *self.details()]
        )

    def details(self) -> list[str]:
        """Return the parts of the line after the number of units; what is not known is left out."""
        parts = [self.stage] if self.stage else []
        if self.rate == self.rate:
            parts.append(f"{_short(self.rate)} {self.unit}/s")
        if self.remaining == self.remaining:
            parts.append(f"{_duration(self.remaining)} left")
        return [*parts, *(f"{name} {_number(value)}" for name, value in self.values.items())]


class Clock:
    """The rate of a computation, measured from its first report on, so that compilation does not count."""

    def __init__(self) -> None:
        self._start: tuple[float, int] | None = None

    def read(self, done: int, total: int | None = None, **described: Any) -> Progress:
        """Return the progress now; `described` are further attributes of `Progress`."""
        now = time.monotonic()
        if self._start is None:
            self._start = now, done
        seconds, units = now - self._start[0], done - self._start[1]
        rate = units / seconds if units and seconds > 0 else math.nan
        return Progress(done, total, rate=rate, **described)


class ProgressBar:
    """A progress bar on standard error for any `progress` parameter: `with ProgressBar() as bar: train(…, progress=bar)`.

    Args:
        console: the rich console to draw on.
        transient: remove the bar at the end.
    """

    def __init__(self, console: Any = None, transient: bool = False) -> None:
        from rich import progress as rich
        from rich.console import Console

        columns = (
            rich.SpinnerColumn(),
            rich.BarColumn(bar_width=20),
            rich.MofNCompleteColumn(),
            rich.TimeElapsedColumn(),
            rich.TextColumn("{task.description}", markup=False),
        )
        self._bar = rich.Progress(*columns, console=console or Console(stderr=True), transient=transient)
        self._task: Any = None
        self._stage = ""

    def __enter__(self) -> Self:
        open_bars.append(self)
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        open_bars.remove(self)

    def __call__(self, now: Progress) -> None:
        """Show this progress."""
        description = ", ".join(now.details())
        if self._task is None:
            self._task = self._bar.add_task(description, total=now.total, completed=now.done)
        else:
            self._bar.update(self._task, completed=now.done, total=now.total, description=description)
        if now.stage != self._stage:  # however short it is
            self._stage = now.stage
            self._bar.refresh()


def _number(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
