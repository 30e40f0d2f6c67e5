"""The parts of a study in the page."""

from collections import Counter
from collections.abc import ItemsView, Mapping, Sequence
from typing import Any

from mesascope.records import RunRow, StudyAxis, StudyPoint, StudyRecord

_COLUMNS = 7  # of outcomes in the table of runs
_FIRST = ("product", "limit_product", "loss", "loss_standard_error", "verdict", "proved", "radius")


def statuses(study: StudyRecord, rows: Mapping[str, RunRow]) -> ItemsView[str, int]:
    """How many runs have each status."""
    return Counter(rows[run].status if run in rows else "planned" for run in study.runs).items()


def axis_names(axes: Sequence[StudyAxis]) -> list[str]:
    """The names of all coordinates."""
    return [name for axis in axes for name in (*([axis.name] if axis.labels else []), *axis.coordinates)]


def axis_values(axes: Sequence[StudyAxis], point: StudyPoint) -> list[Any]:
    """The values of all coordinates at a point."""
    placed = zip(axes, point.place, strict=True)
    return [
        labels[at]
        for axis, at in placed
        for labels in (*([axis.labels] if axis.labels else []), *axis.coordinates.values())
    ]


def outcome_columns(rows: Mapping[str, RunRow]) -> list[str]:
    """The short values of the outcomes, the most useful first."""
    found = {name for row in rows.values() for name, value in row.outcome.items() if _is_short(value)}
    rest = sorted(found - set(_FIRST))
    return [*(name for name in _FIRST if name in found), *rest][:_COLUMNS]


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 4 and not any(isinstance(one, list | dict) for one in value)
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= 16)
