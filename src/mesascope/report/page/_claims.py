"""The parts of a claim in the page."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from mesascope.records import ClaimRecord

from ._values import brief

_SEPARATE = ("meaning", "error", "traceback")  # details that have a place of their own
_INTERVAL = re.compile(r"intervals?_(\d+)(.*)")


def look(outcome: str) -> str:
    """The class of an outcome in the style sheet."""
    return outcome.partition(" at ")[0].replace(" ", "-")


def summary(record: ClaimRecord) -> dict[str, Any]:
    """The table of values, the list of facts, the other details, and the facts of the run."""
    details = record.details
    columns, rows = _table(record)
    rest = {
        key: value for key, value in details.items() if key not in _SEPARATE and not _INTERVAL.fullmatch(key)
    }
    return {
        "error": details.get("error"),
        "traceback": details.get("traceback"),
        "columns": columns,
        "rows": rows,
        "said": _said(record),
        "rest": rest,
        "facts": list(_run_facts(record)),
    }


def _said(record: ClaimRecord) -> dict[str, Any]:
    texts = {
        "parts": ", ".join(f"{name}: {decision}" for name, decision in record.parts.items()),
        "criterion": record.criterion,
        "what the numbers are": record.details.get("meaning"),
        "history": record.history,
    }
    return {
        **({"expected": record.expected} if _is_sentence(record) else {}),
        **({} if record.tolerance is None else {"tolerance": record.tolerance}),
        **{title: text for title, text in texts.items() if text},
    }


def _is_sentence(record: ClaimRecord) -> bool:
    """Whether the expected value of several numbers is one sentence."""
    return isinstance(record.measured, dict) and isinstance(record.expected, str)


def _table(record: ClaimRecord) -> tuple[list[str], list[tuple[str, list[Any]]]]:
    """Measured and expected values, with the intervals in the record: names of columns, and rows by name."""
    if record.measured is None and record.expected is None:
        return [], []
    measured, expected = _named(record.measured), {} if _is_sentence(record) else _named(record.expected)
    rows: dict[str, list[Any]] = {}
    for column, values in enumerate((measured, expected)):
        for key, value in values.items():
            rows.setdefault(key, [None, None, None])[column] = value
    for key, value in _intervals(record.details).items():
        row = key if key in rows else next(iter(rows)) if key == "" else f"{key} "
        rows.setdefault(row, [None, None, None])[2] = value
    shown = [n for n in range(3) if any(row[n] is not None for row in rows.values())]
    names = [("measured", "expected", "interval")[n] for n in shown]
    return names, [(name, [row[n] for n in shown]) for name, row in rows.items()]


def _named(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {"": value}


def _intervals(details: Mapping[str, Any]) -> dict[str, Any]:
    """The intervals of a record, by the names of their values; "" for the only one."""
    found: dict[str, Any] = {}
    for key, value in details.items():
        if match := _INTERVAL.fullmatch(key):
            of = match[2].removeprefix("_of_the_").removeprefix("_of_").strip("_")
            ends = value if isinstance(value, dict) else {of: value}
            found |= {name: Markup("{} %: {}").format(match[1], brief(one)) for name, one in ends.items()}
    return found


def _run_facts(record: ClaimRecord) -> Iterator[str]:
    if record.preset:
        yield f"{record.preset} preset"
    yield f"{record.seconds:.1f} s"
    if record.seed is not None:
        yield f"seed {record.seed}"
