"""Studies, runs of a store and training runs in the page."""

from collections.abc import Mapping
from typing import Any

from mesascope.records import RunRow

from .._material import RunEntry, StudyEntry, TrainingEntry
from ._claims import provenance_html
from ._figures import figure_html
from ._html import Markup, join, tag
from ._values import brief, folded, listing, named, scrolled, specification

_ROWS = 500  # of a table of runs
_COLUMNS = 7  # of outcomes in it
_FIRST = ("product", "limit_product", "loss", "loss_standard_error", "verdict", "proved", "radius")
_SIGNS = {"done": "✓", "failed": "✗", "running": "…", "planned": "○"}
_CLASSES = {"done": "holds", "failed": "contradicted"}


def state(found: str) -> Markup:
    """The state of a run with its sign."""
    return tag("span", f"{_SIGNS[found]} {found}", class_=f"outcome {_CLASSES.get(found, 'undecided')}")


def study_html(entry: StudyEntry, names: Mapping[int, str]) -> Markup:
    """A study: its axes, figures, the table of its runs, and its specification."""
    record = entry.record
    anchor = f"study-{record.name}"
    axes = [
        tag(
            "li",
            tag("b", axis.name),
            ": ",
            brief(list(axis.labels or next(iter(axis.coordinates.values()), ()))),
        )
        for axis in record.axes
    ]
    return tag(
        "section",
        tag("h2", f"Study {record.name}", id=anchor),
        tag("p", f"{len(record.runs)} runs of kind {record.kind}: ", *_states(entry)),
        tag("h3", "Axes") if axes else None,
        tag("ul", *axes) if axes else None,
        *(figure_html(names[id(figure)], figure) for _, figure in entry.figures),
        tag("h3", "Runs"),
        _runs_table(entry),
        folded("Specification of the study", specification(record.spec)),
        aria_labelledby=anchor,
    )


def _states(entry: StudyEntry) -> list[object]:
    counts: dict[str, int] = {}
    for run in entry.record.runs:
        found = entry.rows[run].state if run in entry.rows else "planned"
        counts[found] = counts.get(found, 0) + 1
    return [part for found, count in counts.items() for part in (f" {count} ", state(found))]


def _runs_table(entry: StudyEntry) -> Markup:
    record = entry.record
    columns = _outcome_columns(entry)
    where = [
        name for axis in record.axes for name in (*([axis.name] if axis.labels else []), *axis.coordinates)
    ]
    head = tag(
        "tr", *(tag("th", name, scope="col") for name in (*where, "status", *map(named, columns), "run"))
    )
    body = []
    for point in record.points[:_ROWS]:
        row = entry.rows.get(point.run)
        place = [
            value
            for axis, at in zip(record.axes, point.place, strict=True)
            for value in (
                *([axis.labels[at]] if axis.labels else []),
                *(labels[at] for labels in axis.coordinates.values()),
            )
        ]
        found = row.outcome if row else {}
        body.append(
            tag(
                "tr",
                *(tag("td", brief(value)) for value in place),
                tag(
                    "td",
                    state(row.state if row else "planned"),
                    f" {row.error}" if row and row.error else None,
                ),
                *(tag("td", brief(found[name]) if name in found else "") for name in columns),
                tag("td", tag("code", point.run[:12])),
            )
        )
    left = len(record.points) - len(body)
    more = (
        tag("p", f"… and {left} more; `mesascope runs list study={record.name}` lists them.")
        if left > 0
        else None
    )
    return join(scrolled(tag("table", tag("thead", head), tag("tbody", *body))), more)


def _outcome_columns(entry: StudyEntry) -> list[str]:
    """The short values of the outcomes, the most useful first."""
    found = {name for row in entry.rows.values() for name, value in row.outcome.items() if _is_short(value)}
    rest = sorted(found - set(_FIRST))
    return [*(name for name in _FIRST if name in found), *rest][:_COLUMNS]


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 4 and not any(isinstance(one, list | dict) for one in value)
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= 16)


def run_html(entry: RunEntry, names: Mapping[int, str]) -> Markup:
    """A run of a store: its state, outcome, figures, specification."""
    row = entry.row
    anchor = f"run-{row.id}"
    return tag(
        "section",
        tag("h2", f"Run {row.id[:12]}", " ", state(row.state), id=anchor),
        tag("p", _told(row)),
        _failure(row, entry.traceback),
        listing(row.outcome) if row.outcome else None,
        *(figure_html(names[id(figure)], figure) for _, figure in entry.figures),
        folded("Specification", specification(row.spec)),
        provenance_html(entry.provenance) if entry.provenance else None,
        aria_labelledby=anchor,
    )


def _told(row: RunRow) -> str:
    if row.seconds is None:
        return f"A run of kind {row.kind} that has not ended."
    return f"A run of kind {row.kind}; {row.seconds:.2f} s, ended {row.ended}, attempt {row.attempts}."


def _failure(row: RunRow, traceback: str | None) -> Markup | None:
    if row.error is None:
        return None
    trace = folded("Traceback", tag("pre", traceback, tabindex=0)) if traceback else None
    return tag("div", tag("p", row.error), trace, class_="failure")


def training_html(number: int, entry: TrainingEntry, names: Mapping[int, str]) -> Markup:
    """The folder of a training run: its losses, its model, its specification."""
    header, anchor = entry.header, f"training-{number}"
    facts = {name: value for name, value in header.get("run", {}).items()}
    log = header.get("log", {})
    told = [f"{header.get('step', 0)} steps"]
    if log.get("losses"):
        told.append(f"mean loss of the last batches {log['losses'][-1]:.6g}")
    if log.get("values"):
        told.append(f"held-out loss {log['values'][-1]:.6g} ± {log['errors'][-1]:.2g} (standard error)")
    return tag(
        "section",
        tag("h2", f"Training {entry.folder.name}", id=anchor),
        tag("p", "; ".join(told), "."),
        *(figure_html(names[id(figure)], figure) for _, figure in entry.figures),
        folded("What was trained", listing({**facts, "weights": header.get("weights", {})})),
        folded("Specification", specification(entry.spec)) if entry.spec else None,
        _provenance(header.get("provenance")),
        aria_labelledby=anchor,
    )


def _provenance(found: Any) -> Markup | None:
    from mesascope.records import Provenance

    return provenance_html(Provenance.model_validate(found)) if found else None
