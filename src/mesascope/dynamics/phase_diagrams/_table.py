"""The rows of a phase diagram as one labelled data set."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mesascope.processes import DiagonalUnitary, MomentError, NextToken
from mesascope.records import canonical_json, provenance
from mesascope.theory import zheng2024

from .._parameters import real_vector
from ._ends import Heads, predict_nothing, same_ends, typical_ends, up_to_symmetry
from ._points import PhaseAxis, PhasePoint
from ._rows import Row, Solving
from ._solve import CONVERGED, DIVERGED, FINISHED, NOT_RESOLVED, STEP_LIMIT, FlowFacts

if TYPE_CHECKING:
    import xarray

_INTERRUPTED = -1
_STATUS = {
    CONVERGED: "converged",
    FINISHED: "finished",
    STEP_LIMIT: "step limit",
    DIVERGED: "diverged",
    NOT_RESOLVED: "not resolved",
    _INTERRUPTED: "interrupted",
}
_ATTRIBUTES: dict[str, tuple[str, str]] = {
    "loss_start": ("loss at the start", "1"),
    "loss": ("loss at the end", "1"),
    "limit_loss": ("loss at the limit from diagonal starts (zheng2024)", "1"),
    "relative_loss": ("loss at the end over loss at the limit", "1"),
    "risk": ("test risk", "1"),
    "gradient_norm": ("norm of the gradient at the end", "1"),
    "time": ("flow time at the end", "flow time"),
    "time_to_reach": ("flow time to reach the end", "flow time"),
    "steps": ("solver steps", "1"),
    "critical_point": ("critical point reached", "1"),
    "up_to_symmetry": ("critical point reached, up to signs and order of coordinates", "1"),
    "status": ("how the flow ended", "1"),
    "end": ("weights at the end", "1"),
}
NAMES = (*_ATTRIBUTES, "name", "weight", "point")
"""Names that an axis may not have."""


def as_dataset(
    grid: tuple[PhaseAxis, PhaseAxis],
    rows: dict[int, Row],
    points: list[list[PhasePoint]],
    how: Solving,
    seed: int,
) -> xarray.Dataset:
    """All rows, with the critical points that they reach."""
    import xarray

    first, second = grid
    shape = len(first.values), len(second.values)
    table = _table(rows, shape)
    code = table.pop("code").astype(int)
    ended = (code == CONVERGED) | (code == FINISHED)
    nothing = ended & predict_nothing(table["loss"], table.pop("loss_zero"))
    for name in ("loss", "risk", "time", "time_to_reach", "end"):
        table[name][~ended] = np.nan
    table["limit_loss"] = np.full(shape, np.nan)
    for row in rows:
        table["limit_loss"][row] = [_limit(point, how.mask) for point in points[row]]
    limits = np.where(table["limit_loss"] > 0, table["limit_loss"], np.nan)
    table["relative_loss"] = table["loss"] / limits
    numbers, symmetric, names = _critical_points(table["end"], ended, nothing, points)
    table["critical_point"], table["up_to_symmetry"] = numbers, symmetric
    table["status"] = np.vectorize(_STATUS.get, otypes=[str])(code)
    axes = (first.name, second.name)
    data = xarray.Dataset(
        {
            name: (
                (*axes, "weight") if name == "end" else axes,
                table[name],
                {"long_name": words, "units": units},
            )
            for name, (words, units) in _ATTRIBUTES.items()
        },
        coords={axis.name: axis.coordinates for axis in grid} | {"point": np.arange(len(names))},
    )
    data["name"] = (("point",), names, {"long_name": "critical point"})
    data["time_to_reach"].attrs["fraction"] = how.fraction
    return data.assign_attrs(
        seed=seed, settings=canonical_json(how.facts()), provenance=canonical_json(provenance().model_dump())
    )


def _table(rows: dict[int, Row], shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Every quantity over the whole grid, NaN where a row is missing; weights padded to the longest."""
    longest = max((row["end"].shape[1] for row in rows.values()), default=0)
    names = [name for name in FlowFacts._fields if name != "end"]
    table = {name: np.full(shape, np.nan) for name in names}
    table["end"] = np.full((*shape, longest), np.nan)
    table["code"][:] = _INTERRUPTED
    for number, row in rows.items():
        for name in names:
            table[name][number] = row[name]
        table["end"][number, :, : row["end"].shape[1]] = row["end"]
    return table


def _critical_points(
    ends: np.ndarray, ended: np.ndarray, nothing: np.ndarray, points: list[list[PhasePoint]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers, and numbers up to symmetry, over the grid, with a name for each; layers of one shape are compared."""
    numbers, symmetric = np.full(ended.shape, np.nan), np.full(ended.shape, np.nan)
    kinds: dict[Any, list[tuple[int, int]]] = {}
    for row, column in np.argwhere(ended):
        start = points[row][column].start
        shapes = tuple(part.shape for part in start.heads())
        kinds.setdefault(shapes, []).append((row, column))
    names: list[str] = []
    for places in kinds.values():
        at = tuple(np.array(places).T)
        heads = _heads(ends, places, points)
        found = same_ends(heads, nothing[at])
        typical, named = typical_ends(heads, nothing[at], found)
        numbers[at] = found + len(names)
        leaders = heads[0][typical], heads[1][typical]
        symmetric[at] = up_to_symmetry(leaders, nothing[at][typical])[found] + len(names)
        names += [f"{name}, d = {heads[1].shape[-2]}" if len(kinds) > 1 else name for name in named]
    return numbers, symmetric, np.array(names, dtype=str)


def _heads(ends: np.ndarray, places: list[tuple[int, int]], points: list[list[PhasePoint]]) -> Heads:
    layers = []
    for row, column in places:
        vector, rebuild = real_vector(points[row][column].start)
        layers.append([np.asarray(part) for part in rebuild(ends[row, column, : vector.size]).heads()])
    kq, pv = zip(*layers, strict=True)
    return np.stack(kq), np.stack(pv)


def _limit(point: PhasePoint, mask: Any) -> float:
    """The loss at the limit of diagonal starts, NaN where it is not known."""
    if mask not in (None, "off-diagonal"):
        return float("nan")
    return _limit_loss(point.process, point.task, point.start.normalizer, mask)


@lru_cache(maxsize=4096)
def _limit_loss(process: Any, task: NextToken, normalizer: Any, mask: Any) -> float:
    if not isinstance(process, DiagonalUnitary) or not isinstance(normalizer, str):
        return float("nan")
    try:
        return float(zheng2024.limit_loss(process, task, mask=mask, normalizer=normalizer))
    except (zheng2024.AssumptionError, MomentError):
        return float("nan")
