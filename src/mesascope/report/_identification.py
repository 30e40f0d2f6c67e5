"""Figures of an identification: curves over the number of examples, and the learners that the data distinguish."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from mesascope.records import (
    Band,
    CurveRecord,
    CurvesRecord,
    Figure,
    Heatmap,
    IdentificationRecord,
    Line,
    Panel,
    Points,
    Rule,
    Trace,
    read_identification,
    remove_leftovers,
    write_identification,
)

from ._csv import write_csv
from ._render import render
from ._style import WIDTH
from ._wrap import names_across

RECORD = "identification.json"
_LEARNERS = 4  # beside the model: more curves cannot be distinguished by eye
_MARKS = 16  # of the model's curve
_NEAREST, _FURTHEST = 1e-8, 1e4  # of the distances that are drawn
_DECADES = 1.5  # of errors, from which on their axis is logarithmic
_SAME, _OTHER = 1e-8, 4.0  # of the differences that are drawn
_ALIKE = 1e-6  # differences of curves that would cover each other
_CELL = 0.2  # inches that the name of a learner needs


def draw_identification(record: IdentificationRecord, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write a record as `identification.json` into a folder, and beside it its figures as PDF, PNG and CSV.

    Returns:
        The path of the record, then those of the figures' files.

    Raises:
        ValueError: the record holds no curves.
        RecordError: a file cannot be written.
    """
    path = Path(folder) / RECORD
    drawn, figures = [path], identification_figures(record)
    remove_leftovers(Path(folder))
    write_identification(path, record)  # first: it took minutes, and the figures follow from it
    for name, figure in figures.items():
        drawn += [*render(figure, Path(folder) / name), write_csv(figure, Path(folder) / f"{name}.csv")]
    return tuple(drawn)


def redraw_identification(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Draw the figures of the record in a folder again, as `draw_identification` did.

    Raises:
        RecordError: there is no record, or it was changed, or a file cannot be written.
    """
    return draw_identification(read_identification(Path(folder) / RECORD), folder)


def identification_figures(record: IdentificationRecord) -> dict[str, Figure]:
    """The figures of a record: "by-length" and "confusion".

    Raises:
        ValueError: the record holds no curves.
    """
    if record.curves is None:
        raise ValueError("this record holds no curves to draw; write it with curves=True")
    return {"by-length": _by_length(record, record.curves), "confusion": _confusion(record, record.curves)}


def _by_length(record: IdentificationRecord, curves: CurvesRecord) -> Figure:
    shown = _closest(record, curves)
    errors = {curve.name: curve for curve in curves.errors}
    distances = {curve.name: curve for curve in curves.distances}
    model = errors["model"]
    largest = max(model.high) or 1.0
    within = (1e-8 * largest, 1e2 * largest)
    seen = [_clipped(errors[name].value, within) for name in shown] + [_clipped(model.value, within)]
    wide = max(map(max, seen)) > 10**_DECADES * min(map(min, seen))
    x = tuple(map(float, curves.lengths))
    beyond = [_beyond(record)] if any(one.distance == one.distance for one in record.beyond) else []
    xlabel = "number of examples $n$" if len(x) > 1 else f"place in the legend ($n = {x[0]:g}$ examples)"
    return Figure(
        title=f"{_verdict(record)}, on {record.process}, {record.task}",
        panels=(
            Panel(
                title="What it gets wrong",
                xlabel=xlabel,
                ylabel=r"squared error $E\|\hat y - y\|^2$",
                yscale="log" if wide else "linear",
                traces=(
                    _of_the_model(model, x, within),
                    *_of_learners([errors[name] for name in shown], x, within),
                ),
            ),
            Panel(
                title="How far the closest learners are from it",
                xlabel=xlabel,
                ylabel=r"distance $E\|f - g\|^2 / E\|f\|^2$",
                yscale="log",
                traces=(
                    *_of_learners([distances[name] for name in shown], x, (_NEAREST, _FURTHEST)),
                    Rule(value=record.tolerance, label="tolerance"),
                ),
            ),
            *beyond,
        ),
        caption=(
            f"Bands and bars are intervals of level {record.level:g} over tasks. "
            "Left: squared errors of the model and of the learners closest to it, as fitted. Then: how far their "
            f"predictions are from the model's; what lies below {_NEAREST:g} is drawn there."
            + " Right: the nearest learner on data unlike those of the process."
            * len(beyond)
        ),
    )


def _beyond(record: IdentificationRecord) -> Panel:
    """The nearest learner and the model on other data; without points where the model does not answer."""
    points = []
    for series, one in enumerate(one for one in record.beyond if one.distance == one.distance):
        value, low, high = (_clipped((end,), (_NEAREST, _FURTHEST)) for end in (one.distance, *one.interval))
        points.append(_points(one.setting, (1.0,), value, low, high, series))
    return Panel(
        title=f"How far {record.ranking[0].learner} is from it on other data",
        xlabel="place in the legend",
        ylabel=r"distance $E\|f - g\|^2 / E\|f\|^2$",
        yscale="log",
        traces=(Rule(value=record.tolerance, label="tolerance"), *points),
    )


def _closest(record: IdentificationRecord, curves: CurvesRecord) -> list[str]:
    """The learners to draw: candidates, then the nearest that answer differently from those before them."""
    place = {name: at for at, name in enumerate(curves.names)}
    contained = {name for entry in record.ranking for name in entry.contains}
    shown: list[str] = []
    for name in (entry.learner for entry in record.ranking if entry.learner not in contained):
        alike = any(curves.differences[place[name]][place[other]] < _ALIKE for other in shown)
        if name in record.candidates or not alike:
            shown.append(name)
    return shown[:_LEARNERS]


def _of_the_model(curve: CurveRecord, x: tuple[float, ...], within: tuple[float, float]) -> Points:
    every = max(1, -(-len(x) // _MARKS))
    value, low, high = (_clipped(one, within)[::every] for one in (curve.value, curve.low, curve.high))
    return _points("the model", x[::every], value, low, high, series=0)


def _of_learners(
    curves: Sequence[CurveRecord], x: tuple[float, ...], within: tuple[float, float]
) -> Iterable[Trace]:
    """Lines with bands; points where there is a single number of examples."""
    for series, curve in enumerate(curves, start=1):
        value, low, high = (_clipped(one, within) for one in (curve.value, curve.low, curve.high))
        if len(x) == 1:
            yield _points(curve.name, x, value, low, high, series)
        else:
            yield Band(x=x, low=low, high=high, label=curve.name, series=series)
            yield Line(x=x, y=value, label=curve.name, series=series)


def _points(
    label: str,
    x: tuple[float, ...],
    value: tuple[float, ...],
    low: tuple[float, ...],
    high: tuple[float, ...],
    series: int,
) -> Points:
    """Points with error bars; a series of one point is placed by its number, beside the others."""
    bars = tuple((b - a) / 2 for a, b in zip(low, high, strict=True))
    return Points(x=x if len(x) > 1 else (series + 1.0,), y=value, yerr=bars, label=label, series=series)


def _clipped(values: Sequence[float], within: tuple[float, float]) -> tuple[float, ...]:
    """The values clipped to the range of the axis; NaN counts as too large."""
    low, high = within
    return tuple(max(low, min(high, value)) if value == value else high for value in values)


def _confusion(record: IdentificationRecord, curves: CurvesRecord) -> Figure:
    names = ("the model", *curves.names[1:])
    return Figure(
        title=_verdict(record),
        width="column" if WIDTH["column"] - 1.2 - names_across(names) > _CELL * len(names) else "page",
        panels=(
            Panel(
                title=f"{_verdict(record)}; what {record.process}, {record.task} tells apart",
                xlabel="learner, as fitted to the model",
                ylabel="learner, as fitted to the model",
                traces=(
                    Heatmap(
                        z=[_clipped(row, (_SAME, _OTHER)) for row in curves.differences],
                        rows=names,
                        columns=names,
                        scale="log",
                        limits=(_SAME, _OTHER),
                        colorlabel=r"$2 E\|g - h\|^2 / (E\|g\|^2 + E\|h\|^2)$",
                    ),
                ),
            ),
        ),
        caption=(
            "Squared differences of the predictions of the model and of all learners fitted to it, relative to the mean size "
            "of the two (distances are relative to the model's alone), pooled over the numbers of examples. Dark: these data "
            f"cannot tell the two apart. What lies below {_SAME:g} is drawn there."
        ),
    )


def _verdict(record: IdentificationRecord) -> str:
    mixed = " or ".join(" + ".join(part.learner for part in one.parts) for one in record.mixtures)
    named = mixed or ", ".join(record.candidates)
    if record.verdict == "none":
        return "No learner within tolerance"
    verdicts = {"identified": "Identified as", "mixture": "A mixture of", "ambiguous": "Ambiguous:"}
    return f"{verdicts[record.verdict]} {named}"
