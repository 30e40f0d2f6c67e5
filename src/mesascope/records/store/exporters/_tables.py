"""Runs as a table: one row a run, one column for every path of its specification and outcome."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesascope.records._files import atomic_path
from mesascope.records.store._rows import flat

if TYPE_CHECKING:
    from mesascope.records.store._rows import RunRow

_FACTS = ("id", "kind", "status", "code", "error", "attempts", "started", "ended", "seconds")
_NAMED = ("nan", "inf", "-inf")


def columns(rows: Sequence[RunRow]) -> dict[str, list[Any]]:
    """The columns of the table, each as long as there are runs; None where a run has no such value."""
    flattened = [
        {name: getattr(row, name) for name in _FACTS} | flat(row.spec, "spec") | flat(row.outcome, "outcome")
        for row in rows
    ]
    names = dict.fromkeys(name for one in flattened for name in one)
    return {name: [one.get(name) for one in flattened] for name in names}


def write_csv(rows: Sequence[RunRow], target: str) -> None:
    """Write the table as CSV: lists as JSON, nothing where a run has no such value."""
    table = columns(rows)
    with atomic_path(Path(target)) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*(map(_cell, column) for column in table.values()), strict=True))


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | list | dict) else value


def write_parquet(rows: Sequence[RunRow], target: str) -> None:
    """Write the table as Parquet: numbers, texts, and lists of numbers; what has no one type as JSON."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    arrays = {name: _array(pa, column) for name, column in columns(rows).items()}
    with atomic_path(Path(target)) as temporary:
        pa.parquet.write_table(pa.table(arrays), temporary)


def _array(pa: Any, column: list[Any]) -> Any:
    there = [value for value in column if value is not None]
    if any(
        isinstance(value, float) or value in _NAMED for value in there if not isinstance(value, list | dict)
    ):
        numbers = [_number(value) for value in column]
        if all(value is None or isinstance(value, float) for value in numbers):
            return pa.array(numbers, pa.float64())
    try:
        array = pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        array = None
    if array is None or not _is_storable(pa, array.type):
        return pa.array([None if value is None else json.dumps(value) for value in column])
    return array


def _is_storable(pa: Any, kind: Any) -> bool:
    """Whether Parquet can store this type; it cannot store an empty mapping."""
    if pa.types.is_list(kind):
        return _is_storable(pa, kind.value_type)
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_storable(pa, field.type) for field in kind)
    return True


def _number(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number or (isinstance(value, str) and value in _NAMED) else value
