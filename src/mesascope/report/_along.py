"""The figure of an identification along training: weights of the strategies, and their distances from the model."""

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal

from mesascope.records import (
    AlongRecord,
    Band,
    CurveRecord,
    Figure,
    Line,
    Panel,
    Rule,
    Trace,
    remove_leftovers,
    write_along,
)

from ._csv import write_csv
from ._render import render

ALONG = "along.json"
_NEAREST, _FURTHEST = 1e-8, 1e2  # of the distances that are drawn
_DECADES = 30  # the ratio of the last and the first steps, from which on their axis is logarithmic


def draw_along(record: AlongRecord, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write a record as `along.json` and `along.nc` into a folder, and beside it its figure as PDF, PNG and CSV.

    Returns:
        The paths.

    Raises:
        RecordError: a file cannot be written.
    """
    path = Path(folder) / ALONG
    remove_leftovers(Path(folder))
    write_along(path, record)  # first: it took minutes, and the figure follows from it
    figure = along_figure(record)
    drawn = render(figure, path.with_suffix(""))
    return path, path.with_suffix(".nc"), *drawn, write_csv(figure, path.with_suffix(".csv"))


def along_figure(record: AlongRecord) -> Figure:
    """The figure of a record: stacked weights with intervals, hatched where they are not determined, and distances."""
    steps = record.steps
    log = _is_log(record)
    x = tuple(float(step + log) for step in steps)
    xlabel = "training steps + 1" if log else "training steps"
    xscale = "log" if log else "linear"
    return Figure(
        title=f"{record.process}, {record.task}",
        across=1,
        width="page",
        panels=(
            Panel(
                title="The nearest convex mixture of strategies",
                xlabel=xlabel,
                ylabel="weights, stacked",
                xscale=xscale,
                traces=(*_weights(record, x), *_hatched(record, x)),
            ),
            Panel(
                title="How far strategies, and this mixture, are from the model",
                xlabel=xlabel,
                ylabel=r"distance $E\|f - g\|^2 / E\|f\|^2$",
                xscale=xscale,
                yscale="log",
                traces=(*_distances(record, x), Rule(value=record.tolerance, label="tolerance")),
            ),
        ),
        caption=(
            f"First: the weights of the convex mixture of {', '.join(_described(record))} that is nearest to the model at each "
            f"checkpoint. Grey bands are intervals of level {record.level:g} over tasks; where it is hatched, the tasks do not "
            "determine the weights. Second: the distances from the model of each strategy, and of the mixture, which is what "
            f"the weights leave unexplained; what lies below {_NEAREST:g} or above {_FURTHEST:g} is drawn there."
        ),
    )


def _is_log(record: AlongRecord) -> bool:
    return record.steps[-1] >= _DECADES * min(step for step in record.steps if step > 0)


def _geometric(one: float, other: float) -> float:
    return (one * other) ** 0.5


def _arithmetic(one: float, other: float) -> float:
    return (one + other) / 2


def _described(record: AlongRecord) -> Iterator[str]:
    for one in record.strategies:
        values = ", ".join(
            f"{name} {value:.3g}"
            for name, value in one.hyperparameters.items()
            if isinstance(value, int | float)
        )
        yield f"{one.name} ({values})" if values else one.name


def _weights(record: AlongRecord, x: tuple[float, ...]) -> Iterator[Trace]:
    """Areas between the sums of weights, and the intervals of these sums."""
    below = (0.0,) * len(x)
    for series, curve in enumerate(record.sums):
        yield Band(x=x, low=below, high=curve.value, label=curve.name, series=series)
        yield Line(x=x, y=curve.value, label=curve.name, series=series, style="solid")
        below = curve.value
    for curve in record.sums[:-1]:
        label = f"{100 * record.level:g} % interval"
        yield Band(x=x, low=curve.low, high=curve.high, label=label, series="theory")


def _hatched(record: AlongRecord, x: tuple[float, ...]) -> Iterator[Trace]:
    """Stretches of checkpoints whose weights are not determined, up to half way to the next."""
    middle = _geometric if _is_log(record) else _arithmetic
    for determined, places in groupby(range(len(x)), key=record.determined.__getitem__):
        if determined:
            continue
        first, *_, last = list(places) * 2
        left, right = middle(x[max(first - 1, 0)], x[first]), middle(x[last], x[min(last + 1, len(x) - 1)])
        yield Band(
            x=(left, right),
            low=(0.0, 0.0),
            high=(1.0, 1.0),
            label="not determined",
            series="theory",
            hatched=True,
        )


def _distances(record: AlongRecord, x: tuple[float, ...]) -> Iterator[Trace]:
    for series, curve in enumerate(record.distances):
        yield from _curve(curve, x, series)
    if len(record.distances) > 1:
        mixture = record.unexplained.model_copy(update={"name": "the nearest mixture"})
        yield from _curve(mixture, x, "theory", "dotted")


def _curve(
    curve: CurveRecord,
    x: tuple[float, ...],
    series: int | Literal["theory"],
    style: Literal["dotted"] | None = None,
) -> Iterator[Trace]:
    value, low, high = map(_clipped, (curve.value, curve.low, curve.high))
    yield Band(x=x, low=low, high=high, label=curve.name, series=series)
    yield Line(x=x, y=value, label=curve.name, series=series, style=style)


def _clipped(values: Sequence[float]) -> tuple[float, ...]:
    """The values clipped to the range of the axis; NaN counts as too large."""
    return tuple(max(_NEAREST, min(value, _FURTHEST)) if value == value else _FURTHEST for value in values)
