"""Figures as data: traces in panels, independent of the library that draws them."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, FiniteFloat, StringConstraints, model_validator

from ._plain import as_list


def _without_nan(value: Any) -> Any:
    return [[None if entry is None or entry != entry else entry for entry in row] for row in as_list(value)]


Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Numbers = Annotated[tuple[FiniteFloat, ...], BeforeValidator(as_list), Field(min_length=1)]
Rows = Annotated[tuple[Numbers, ...], BeforeValidator(as_list), Field(min_length=1)]
Cells = Annotated[
    tuple[Annotated[tuple[FiniteFloat | None, ...], Field(min_length=1)], ...],
    BeforeValidator(_without_nan),
    Field(min_length=1),
]
# Traces of one series share a colour; "theory" is black; None takes the next free colour.
Series = Annotated[int, Field(ge=0)] | Literal["theory"] | None
Style = Literal["solid", "dashed", "dotted", "dashdot"]
Scale = Literal["linear", "log"]


def _same_length(what: str, **columns: tuple[float, ...] | None) -> None:
    lengths = {name: len(values) for name, values in columns.items() if values is not None}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"{what}: the columns differ in length ({found}); give one value of each per point")


class Line(BaseModel, frozen=True, extra="forbid"):
    """A curve through (x_i, y_i).

    Attributes:
        x: abscissas, any order, finite.
        y: ordinates, as many.
        label: its name in the legend; traces with one name share one entry.
        style: dash pattern; None gives every series of the panel its own.
        series: colour number ≥ 0, `"theory"` for black, None for the next free colour.
    """

    kind: Literal["line"] = "line"
    x: Numbers
    y: Numbers
    label: Label
    style: Style | None = None
    series: Series = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        _same_length(f"line {self.label!r}", x=self.x, y=self.y)
        return self


class Band(BaseModel, frozen=True, extra="forbid"):
    """The region low_i ≤ y ≤ high_i over x_i: an interval along a curve.

    Attributes:
        x: abscissas, finite.
        low: lower ends, as many.
        high: upper ends, as many, each ≥ its lower end.
        label: its name in the legend; with the name of a line it shares that line's entry.
        series: as in `Line`.
        hatched: draw it as hatching in front of all else, where the other traces say less.
    """

    kind: Literal["band"] = "band"
    x: Numbers
    low: Numbers
    high: Numbers
    label: Label
    series: Series = None
    hatched: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        _same_length(f"band {self.label!r}", x=self.x, low=self.low, high=self.high)
        if any(low > high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError(f"band {self.label!r}: a lower end exceeds its upper end; swap low and high")
        return self


class Points(BaseModel, frozen=True, extra="forbid"):
    """Markers at (x_i, y_i), with symmetric error bars where given.

    Attributes:
        x: abscissas, finite.
        y: ordinates, as many.
        yerr: half lengths of the error bars, ≥ 0, as many; None draws none.
        label: its name in the legend.
        series: as in `Line`.
    """

    kind: Literal["points"] = "points"
    x: Numbers
    y: Numbers
    yerr: Numbers | None = None
    label: Label
    series: Series = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        _same_length(f"points {self.label!r}", x=self.x, y=self.y, yerr=self.yerr)
        if self.yerr is not None and min(self.yerr) < 0:
            raise ValueError(f"points {self.label!r}: an error bar is negative; give half lengths ≥ 0")
        return self


class Rule(BaseModel, frozen=True, extra="forbid"):
    """A straight line across the panel at one value, such as that of a theory.

    Attributes:
        value: its position.
        axis: the axis that `value` is read on: `"y"` draws a horizontal, `"x"` a vertical line.
        label: its name in the legend.
        series: as in `Line`; black if not said.
    """

    kind: Literal["rule"] = "rule"
    value: FiniteFloat
    axis: Literal["x", "y"] = "y"
    label: Label
    series: Series = "theory"


class Heatmap(BaseModel, frozen=True, extra="forbid"):
    """A matrix as coloured cells, first row on top; the panel's labels name its columns (x) and rows (y).

    Attributes:
        z: the entries, one tuple a row, all rows of one length.
        colorlabel: what the colour means.
        center: the value that is white; a diverging map then spans equal lengths on both sides.
            None takes a sequential map.
        limits: (lowest, highest) value of the map, to compare panels; None takes the data's own.
        rows: names of the rows; None numbers them from 1.
        columns: names of the columns; None numbers them from 1.
        block: draw a line after every so many rows and columns; None draws none.
        scale: of the colours; a logarithmic one takes positive entries only, and a sequential map.
        marks: (row, column) of the entries that a ring marks, counted from 1.
    """

    kind: Literal["heatmap"] = "heatmap"
    z: Rows
    colorlabel: Label
    center: FiniteFloat | None = None
    limits: tuple[FiniteFloat, FiniteFloat] | None = None
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    block: Annotated[int, Field(ge=1)] | None = None
    scale: Scale = "linear"
    marks: tuple[tuple[int, int], ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        width = len(self.z[0])
        if any(len(row) != width for row in self.z):
            raise ValueError("heatmap: the rows of z differ in length; give a rectangular matrix")
        for name, names, size in (("rows", self.rows, len(self.z)), ("columns", self.columns, width)):
            if names is not None and len(names) != size:
                raise ValueError(f"heatmap: {len(names)} names for {size} {name}; give one a {name[:-1]}")
        if self.limits is not None and not self.limits[0] < self.limits[1]:
            raise ValueError(f"heatmap: limits {self.limits} are empty; give (lowest, highest)")
        if self.scale == "log":
            self._refuse_what_has_no_logarithm()
        for row, column in self.marks:
            if not (1 <= row <= len(self.z) and 1 <= column <= width):
                raise ValueError(
                    f"heatmap: no entry ({row}, {column}) to mark in {len(self.z)} rows and {width} columns; "
                    "count them from 1"
                )
        return self

    def _refuse_what_has_no_logarithm(self) -> None:
        if self.center is not None:
            raise ValueError("heatmap: logarithmic colours have no center; leave one of the two out")
        if min(*map(min, self.z), *(self.limits or ()), math.inf) <= 0:
            raise ValueError(
                "heatmap: values ≤ 0 have no logarithmic colour; raise them to a floor, or use scale='linear'"
            )


class CellMap(BaseModel, frozen=True, extra="forbid"):
    """Coloured cells around (x_j, y_i), y upwards; cells without a value are hatched.

    Attributes:
        x: places of the columns, strictly increasing; on the axis of the panel, linear or logarithmic.
        y: places of the rows, the same.
        z: the entries, one tuple a row; None or NaN where there is none. With `kinds` they number these, from 0.
        colorlabel: what the colour means.
        kinds: names of what the entries number; None: they are values.
        scale: of the colours of values; a logarithmic one takes positive entries only.
        limits: values at both ends of the colours; None: the smallest and the largest entry.
        xnames: names of the columns where they have no numbers; None shows the places.
        ynames: names of the rows, the same.
        missing: what a cell without a value is, for the legend.
    """

    kind: Literal["cell-map"] = "cell-map"
    x: Numbers
    y: Numbers
    z: Cells
    colorlabel: Label
    kinds: tuple[str, ...] | None = None
    scale: Scale = "linear"
    limits: tuple[FiniteFloat, FiniteFloat] | None = None
    xnames: tuple[str, ...] | None = None
    ynames: tuple[str, ...] | None = None
    missing: Label = "no value"

    @property
    def known(self) -> list[float]:
        """The entries that are there."""
        return [entry for row in self.z for entry in row if entry is not None]

    @property
    def ends(self) -> tuple[float, float]:
        """The values at both ends of the colours, the first below the second."""
        low, high = self.limits or (min(self.known, default=1.0), max(self.known, default=1.0))
        if high > low:
            return low, high
        return low, 10 * low if self.scale == "log" else low + 1.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.z) != len(self.y) or any(len(row) != len(self.x) for row in self.z):
            raise ValueError(
                f"cell map: z must have {len(self.y)} rows of {len(self.x)} entries, one for each y and x"
            )
        for name, places in (("x", self.x), ("y", self.y)):
            if any(a >= b for a, b in pairwise(places)):
                raise ValueError(f"cell map: {name} must increase; sort the places and the entries with them")
        for name, names, size in (("xnames", self.xnames, len(self.x)), ("ynames", self.ynames, len(self.y))):
            if names is not None and len(names) != size:
                raise ValueError(f"cell map: {len(names)} {name} for {size} places; give one to each")
        if self.kinds is not None and not all(e == int(e) and 0 <= e < len(self.kinds) for e in self.known):
            raise ValueError(f"cell map: entries must number the {len(self.kinds)} kinds, from 0")
        if self.limits is not None and (self.kinds is not None or self.limits[0] >= self.limits[1]):
            raise ValueError("cell map: limits are two increasing values, and not of kinds")
        if self.scale == "log" and (
            self.kinds is not None or min(*self.known, *(self.limits or ()), 1.0) <= 0
        ):
            raise ValueError("cell map: values ≤ 0 and kinds have no logarithmic colour; use scale='linear'")
        return self


class Histogram(BaseModel, frozen=True, extra="forbid"):
    """Counts (or densities) over bins.

    Attributes:
        edges: bin edges, strictly increasing, one more than there are bins.
        counts: height of each bin, ≥ 0.
        label: its name in the legend.
        series: as in `Line`.
    """

    kind: Literal["histogram"] = "histogram"
    edges: Numbers
    counts: Numbers
    label: Label
    series: Series = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(
                f"histogram {self.label!r}: {len(self.edges)} edges for {len(self.counts)} bins; "
                "give one edge more than bins"
            )
        if any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)) or min(self.counts) < 0:
            raise ValueError(f"histogram {self.label!r}: edges must increase and counts be ≥ 0")
        return self

    @classmethod
    def of(cls, values: Any, bins: Any, label: str, density: bool = False, series: Series = None) -> Self:
        """Count `values` (any shape, finite) into `bins`: their number, or their edges.

        With `density` the bins' areas sum to one.
        """
        import numpy as np

        counts, edges = np.histogram(np.asarray(values), bins=bins, density=density)
        return cls(edges=edges, counts=counts, label=label, series=series)


Trace = Annotated[Line | Band | Points | Rule | Heatmap | CellMap | Histogram, Field(discriminator="kind")]
"""The contents of panels, distinguished by `kind`."""


def _coordinates(trace: Trace, axis: Literal["x", "y"]) -> Iterator[float]:
    match trace:
        case Rule():
            yield from (trace.value,) if trace.axis == axis else ()
        case Histogram():
            yield from (
                trace.edges if axis == "x" else ()
            )  # an empty bin is not an error on a logarithmic axis
        case Band():
            yield from trace.x if axis == "x" else trace.low
        case Line() | Points():
            yield from trace.x if axis == "x" else trace.y
        case CellMap():
            named = trace.xnames if axis == "x" else trace.ynames
            yield from () if named else trace.x if axis == "x" else trace.y
        case Heatmap():
            pass


class Panel(BaseModel, frozen=True, extra="forbid"):
    """One pair of axes with its traces.

    Attributes:
        title: what it shows.
        xlabel: quantity (and unit) along x; TeX mathematics between `$` signs.
        ylabel: quantity along y.
        xscale: `"linear"` or `"log"`; a logarithmic axis takes positive values only.
        yscale: the same for y.
        traces: at least one; a `Heatmap` or `CellMap` stands alone, a heat map on linear axes.
    """

    title: Label
    xlabel: Label
    ylabel: Label
    xscale: Scale = "linear"
    yscale: Scale = "linear"
    traces: Annotated[tuple[Trace, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(isinstance(trace, Heatmap | CellMap) for trace in self.traces):
            if len(self.traces) > 1:
                raise ValueError(f"panel {self.title!r}: a heatmap shares no panel; give it one of its own")
            if isinstance(self.traces[0], Heatmap) and (self.xscale, self.yscale) != ("linear", "linear"):
                raise ValueError(
                    f"panel {self.title!r}: a heatmap has linear axes; leave xscale and yscale out"
                )
        if self.xscale == "log":
            self._refuse_nonpositive("x")
        if self.yscale == "log":
            self._refuse_nonpositive("y")
        return self

    def _refuse_nonpositive(self, axis: Literal["x", "y"]) -> None:
        for trace in self.traces:
            if any(value <= 0 for value in _coordinates(trace, axis)):
                name = getattr(trace, "label", trace.kind)
                raise ValueError(
                    f"panel {self.title!r}: {name!r} has values ≤ 0 on the logarithmic {axis} axis; "
                    f"leave them out or use {axis}scale='linear'"
                )


class Figure(BaseModel, frozen=True, extra="forbid"):
    """A figure: one or more panels.

    Attributes:
        title: what it shows, in one line.
        panels: at least one.
        caption: what to see in it, for a page; not drawn.
        width: `"column"` or `"page"` of a two-column paper; None: one panel a column, several a page.
        across: panels side by side; None chooses by their number.
    """

    title: Label
    panels: Annotated[tuple[Panel, ...], Field(min_length=1)]
    caption: str = ""
    width: Literal["column", "page"] | None = None
    across: Annotated[int, Field(ge=1)] | None = None
