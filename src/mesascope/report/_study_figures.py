"""Figures of studies and runs: losses along trajectories, and outcomes over the axes."""

import sys
from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite
from typing import Any, Literal

import numpy as np

from mesascope.records import (
    LOSS_LABEL,
    CellMap,
    Figure,
    Line,
    Panel,
    Points,
    RecordError,
    RunFolders,
    RunRow,
    StudyAxis,
    StudyRecord,
    Trace,
    training_figure,
)

from ._distance_map import distance_map
from ._material import Figures

_CURVES = 6  # more curves cannot be distinguished by eye
_WIDE = 50.0  # ratio of the ends of a range from which on it is shown on a logarithmic axis
_SHOWN = {"loss": "loss at the end", "product": "product $a_j b_j$, mean over $j$"}


def run_figures(row: RunRow, folders: RunFolders, problems: list[str]) -> Figures:
    """The losses of a run along its trajectory, if it has one; adds one line to `problems` if it cannot be read."""
    data = _trajectory(row.id, folders, problems)
    if data is None:
        return ()
    if "step" in data.dims and "evaluation_step" in data.dims:

        def values(name: str) -> list[float]:
            found: list[float] = data[name].values.tolist()
            return found

        figure = training_figure(
            "Training",
            (values("step"), values("loss")),
            (values("evaluation_step"), values("evaluation_loss"), values("evaluation_standard_error")),
        )
        return () if figure is None else (("loss", figure),)
    curve = _curve(data, "loss")
    return () if curve is None else (("loss", _losses_figure([curve], f"Run {row.id[:12]}")),)


def study_figures(
    study: StudyRecord, rows: Mapping[str, RunRow], folders: RunFolders, problems: list[str]
) -> Figures:
    """Outcomes over the axes, losses of some runs along their trajectories, and distances of learners from models.

    Adds one line to `problems` for each trajectory that cannot be read.
    """
    figures = []
    panels = [panel for name in _SHOWN if (panel := _outcome(study, rows, name)) is not None]
    if panels:
        caption = "What the runs of the study came to, over its axes."
        figures.append(
            ("outcomes", Figure(title=f"Study {study.name}", panels=tuple(panels), caption=caption))
        )
    done = [point for point in study.points if point.run in rows and rows[point.run].status == "done"]
    curves = []
    for point in _spread(done, _CURVES):
        data = _trajectory(point.run, folders, problems)
        curve = None if data is None else _curve(data, _place(study.axes, point.place))
        if curve is not None:
            curves.append(curve)
    if curves:
        figures.append(("losses", _losses_figure(curves, f"Study {study.name}", len(done))))
    distances = _distances(study, rows)
    if len(distances) > 1:
        caption = "Distances of the nearest learners from the model of every run."
        figures.append(("distances", distance_map(distances, f"Study {study.name}", caption)))
    return tuple(figures)


def _distances(study: StudyRecord, rows: Mapping[str, RunRow]) -> dict[str, dict[str, float]]:
    """The place of every identification in a study → learner → distance."""
    found = {}
    for point in study.points:
        ranking = rows[point.run].outcome.get("ranking") if point.run in rows else None
        if ranking:
            found[_place(study.axes, point.place)] = {one["learner"]: one["distance"] for one in ranking}
    return found


# Trajectories


def _trajectory(run: str, folders: RunFolders, problems: list[str]) -> Any:
    try:
        record = folders.run(run)
        return folders.trajectory(run) if record is not None and record.files else None
    except RecordError as error:
        problems.append(str(error))
        return None


def _curve(data: Any, label: str) -> tuple[str, str, list[float], list[float]] | None:
    """Name, variable of the x axis, its values and the losses; values that are not finite are left out."""
    if "loss" not in data or data["loss"].ndim != 1:
        return None
    (along,) = data["loss"].dims
    pairs = zip(data[along].values.tolist(), data["loss"].values.tolist(), strict=True)
    kept = [(float(x), float(y)) for x, y in pairs if _number(x) is not None and _number(y) is not None]
    return (label, str(along), [x for x, _ in kept], [y for _, y in kept]) if kept else None


def _losses_figure(
    curves: Sequence[tuple[str, str, list[float], list[float]]], title: str, of: int | None = None
) -> Figure:
    xs = [x for _, _, places, _ in curves for x in places if x > 0]
    log_x = len(xs) > 2 and max(xs) > _WIDE * min(xs)
    traces = []
    for label, _, places, losses in curves:
        kept = [(x, y) for x, y in zip(places, losses, strict=True) if x > 0 or not log_x]
        if kept:
            traces.append(Line(x=[x for x, _ in kept], y=[y for _, y in kept], label=label))
    if not traces:
        return _losses_figure(
            [(label, along, list(range(len(ys))), ys) for label, along, _, ys in curves], title, of
        )
    ys = [y for trace in traces for y in trace.y]
    panel = Panel(
        title="Loss along the trajectory",
        xlabel="flow time" if curves[0][1] == "time" else curves[0][1],
        ylabel=LOSS_LABEL,
        xscale="log" if log_x else "linear",
        yscale="log" if min(ys) > 0 and max(ys) > 10 * min(ys) else "linear",
        traces=tuple(traces),
    )
    some = (
        f" {len(curves)} of {of} runs that are done, evenly over the study."
        if of and of > len(curves)
        else ""
    )
    return Figure(
        title=title,
        panels=(panel,),
        caption=f"Losses along trajectories.{some}",
        width="page" if of else None,
    )


def _spread(points: Sequence[Any], most: int) -> list[Any]:
    """Some of the points, evenly spaced, with the first and the last."""
    if len(points) <= most:
        return list(points)
    return [points[round(n * (len(points) - 1) / (most - 1))] for n in range(most)]


# Outcomes over the axes


def _outcome(study: StudyRecord, rows: Mapping[str, RunRow], name: str) -> Panel | None:
    """One number of the outcomes over one or two axes; None where there are none, or more axes."""
    found = {
        point.place: _number(rows[point.run].outcome.get(name)) for point in study.points if point.run in rows
    }
    values = {place: value for place, value in found.items() if value is not None}
    return _over_axes(study.axes, values, _SHOWN[name])


def array_figure(data: Any) -> Figure:
    """Every outcome of a study that is one number, and the mean product, over its axes: of arrays as `to_xarray` returns them.

    Raises:
        ValueError: there is no number over one or two axes of more than one value.
    """
    dims = data["run"].dims
    axes = [StudyAxis(name=dim, labels=tuple(_labels_of(data, dim))) for dim in dims]
    panels = []
    for name, array in data.data_vars.items():
        if name == "product":
            array = array.mean(array.dims[len(dims) :])
        if array.dims != dims or array.dtype.kind not in "iuf":
            continue
        values = {place: float(value) for place, value in np.ndenumerate(array.values) if isfinite(value)}
        panel = _over_axes(axes, values, _SHOWN.get(name, str(name)))
        panels += [] if panel is None else [panel]
    if not panels:
        raise ValueError(
            "plot: no number of these arrays changes along one or two axes; there is nothing to draw"
        )
    return Figure(title=f"Study {data.attrs.get('study', '')}".strip(), panels=tuple(panels))


def _labels_of(data: Any, dim: str) -> list[Any]:
    if dim not in data.coords:
        return list(range(data.sizes[dim]))
    return [one if isinstance(one, int | float | bool) else str(one) for one in data[dim].values.tolist()]


def _over_axes(axes: Sequence[StudyAxis], found: Mapping[tuple[int, ...], float], label: str) -> Panel | None:
    """Numbers by their place, over the axes of more than one value; None where there are none, or more axes than two."""
    long = [n for n, axis in enumerate(axes) if axis.size > 1]
    if not found or not 1 <= len(long) <= 2:
        return None
    values = {tuple(place[n] for n in long): value for place, value in found.items()}
    axes = [axes[n] for n in long]
    if len(axes) == 1:
        axes.append(StudyAxis(name="all", labels=("all",)))
        values = {(*place, 0): value for place, value in values.items()}
    numeric = [_numbers(axis) for axis in axes]
    if numeric[0] is None and numeric[1] is not None:
        axes, numeric = axes[::-1], numeric[::-1]
        values = {place[::-1]: value for place, value in values.items()}
    if numeric[0] is not None and axes[1].size <= _CURVES:
        return _as_curves(axes, numeric[0], values, label)
    return _as_cells(axes, values, label)


_LARGEST = sys.float_info.max


def _number(value: Any) -> float | None:
    """A finite number, or the mean of a list of them."""
    try:
        if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
            value = sum(value) / len(value)
        return float(value) if isinstance(value, int | float) and isfinite(value) else None
    except OverflowError:  # a whole number beyond double precision
        return None


def _numbers(axis: StudyAxis) -> list[float] | None:
    """The labels of an axis as distinct numbers; None where they are not."""
    numbers = [
        label for label in axis.labels if isinstance(label, int | float) and not isinstance(label, bool)
    ]
    distinct = len(set(numbers)) == len(numbers) == axis.size
    return (
        [float(one) for one in numbers] if distinct and max(map(abs, numbers), default=0) < _LARGEST else None
    )


def _as_curves(
    axes: Sequence[StudyAxis], places: list[float], values: Mapping[tuple[int, ...], float], label: str
) -> Panel:
    traces: list[Trace] = []
    order = sorted(range(len(places)), key=places.__getitem__)
    for other in range(axes[1].size):
        at = [n for n in order if (n, other) in values]
        if at:
            x, y = [places[n] for n in at], [values[n, other] for n in at]
            name = _label(axes[1], other) if axes[1].size > 1 else "runs"
            traces += [Line(x=x, y=y, label=name, series=other), Points(x=x, y=y, label=name, series=other)]
    return Panel(title=label, xlabel=axes[0].name, ylabel=label, xscale=_scale(places), traces=tuple(traces))


def _as_cells(axes: Sequence[StudyAxis], values: Mapping[tuple[int, ...], float], label: str) -> Panel:
    sides = []
    for axis in axes:
        numbers = _numbers(axis)
        order = sorted(range(axis.size), key=numbers.__getitem__) if numbers else list(range(axis.size))
        places = [numbers[n] for n in order] if numbers else [float(n + 1) for n in order]
        names = None if numbers else tuple(_place([axis], [n]) for n in order)
        sides.append((order, places, names, _scale(places) if numbers else "linear"))
    (columns, x, xnames, xscale), (rows, y, ynames, yscale) = sides
    z: list[list[float | None]] = [[None] * len(columns) for _ in rows]
    for (row, at), (column, n) in product(enumerate(rows), enumerate(columns)):
        z[row][column] = values.get((n, at))
    trace = CellMap(x=x, y=y, z=z, xnames=xnames, ynames=ynames, colorlabel=label, missing="not done")
    return Panel(
        title=label, xlabel=axes[0].name, ylabel=axes[1].name, xscale=xscale, yscale=yscale, traces=(trace,)
    )


def _scale(places: Sequence[float]) -> Literal["linear", "log"]:
    return "log" if min(places) > 0 and max(places) > _WIDE * min(places) else "linear"


def _place(axes: Sequence[StudyAxis], place: Sequence[int]) -> str:
    """The place in a study: the labels along axes with more than one value."""
    labels = [_label(axis, at) for axis, at in zip(axes, place, strict=True) if axis.size > 1]
    return ", ".join(labels) or "the run"


def _label(axis: StudyAxis, at: int) -> str:
    if axis.labels:
        return f"{axis.name} = {_short(axis.labels[at])}"
    return ", ".join(f"{name} = {_short(labels[at])}" for name, labels in axis.coordinates.items())


def _short(label: object) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)
