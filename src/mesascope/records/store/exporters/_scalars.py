"""A run for MLflow and TensorBoard: settings as texts, results as numbers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mesascope.records.store._rows import flat

if TYPE_CHECKING:
    from mesascope.records.store._folders import RunFolders
    from mesascope.records.store._rows import RunRow

_LARGEST = int(sys.float_info.max)
_STEPS = ("step", "steps", "time")


def computation(row: RunRow) -> str:
    """What tells one computation of a run from another: a run that failed may be computed again."""
    return f"{row.status} {row.ended}"


def parameters(row: RunRow) -> dict[str, str]:
    """The settings of a run, as texts."""
    return {name: _text(value) for name, value in flat(row.spec).items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def metrics(row: RunRow) -> dict[str, float]:
    """The numbers of its outcome."""
    found = flat(row.outcome).items()
    return {name: float(value) for name, value in found if isinstance(value, float) or _is_small(value)}


def _is_small(value: Any) -> bool:
    """Whether this is an integer within the range of floats."""
    return isinstance(value, int) and abs(value) <= _LARGEST


def curves(row: RunRow, folders: RunFolders) -> Iterator[tuple[str, int, float]]:
    """The numbers along its trajectory: name, place along it, value."""
    record = folders.run(row.id)
    if record is None or not record.files:
        return
    for name, variable in folders.trajectory(row.id).variables.items():
        if variable.ndim == 1 and variable.dtype.kind in "bif" and name not in _STEPS:
            for place, value in enumerate(variable.values.tolist()):
                yield str(name), place, float(value)
