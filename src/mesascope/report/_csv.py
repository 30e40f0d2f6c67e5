"""Figures as tables of numbers."""

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from mesascope.records import (
    Band,
    CellMap,
    Figure,
    Heatmap,
    Histogram,
    Line,
    Panel,
    Points,
    Rule,
    atomic_path,
)

_HEADER = ("panel", "trace", "x", "y", "low", "high")
_Row = tuple[str | float, ...]


def write_csv(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write every number of a figure's traces as comma-separated values, atomically.

    One line for each point: panel, trace, x, y, low, high; what a trace does not have is empty. Of a heatmap the trace is the
    row, x the column and y the entry; of a cell map the trace is what the colour means, x and y the place, low the entry, and
    high the name of its kind or the entry; of a histogram low and high are the ends of the bin, y its height.

    Returns:
        The path.

    Raises:
        RecordError: it cannot be written.
    """
    with (
        atomic_path(Path(path)) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_HEADER)
        for panel in figure.panels:
            writer.writerows((panel.title, *row) for row in _rows(panel))
    return Path(path)


def _rows(panel: Panel) -> Iterator[_Row]:
    for trace in panel.traces:
        match trace:
            case Line():
                yield from ((trace.label, x, y, "", "") for x, y in zip(trace.x, trace.y, strict=True))
            case Band():
                ends = zip(trace.x, trace.low, trace.high, strict=True)
                yield from ((trace.label, x, "", low, high) for x, low, high in ends)
            case Points():
                bars = trace.yerr or (None,) * len(trace.x)
                for x, y, bar in zip(trace.x, trace.y, bars, strict=True):
                    yield (trace.label, x, y, *(("", "") if bar is None else (y - bar, y + bar)))
            case Rule():
                yield (trace.label, *((trace.value, "") if trace.axis == "x" else ("", trace.value)), "", "")
            case Histogram():
                bins = zip(trace.edges, trace.edges[1:], trace.counts, strict=False)
                yield from ((trace.label, "", count, low, high) for low, high, count in bins)
            case Heatmap():
                yield from _cells(trace)
            case CellMap():
                yield from _places(trace)


def _cells(trace: Heatmap) -> Iterator[_Row]:
    rows = trace.rows or tuple(str(number + 1) for number in range(len(trace.z)))
    columns = trace.columns or tuple(str(number + 1) for number in range(len(trace.z[0])))
    for row, values in zip(rows, trace.z, strict=True):
        for column, value in zip(columns, values, strict=True):
            yield (row, column, value, "", "")


def _places(trace: CellMap) -> Iterator[_Row]:
    xs: Sequence[str | float] = trace.xnames or trace.x
    ys: Sequence[str | float] = trace.ynames or trace.y
    for y, entries in zip(ys, trace.z, strict=True):
        for x, entry in zip(xs, entries, strict=True):
            if entry is not None:
                yield (
                    trace.colorlabel,
                    x,
                    y,
                    entry,
                    entry if trace.kinds is None else trace.kinds[int(entry)],
                )
