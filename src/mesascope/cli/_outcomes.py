"""Outcomes of claims as tables."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from ._output import results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mesascope.papers import Change
    from mesascope.records import ClaimRecord, Outcome

COLOURS: "dict[Outcome, str]" = {
    "holds": "green",
    "holds with a difference": "cyan",
    "contradicted": "bold red",
    "not reproduced at this scale": "magenta",
    "undecided": "yellow",
}
NOT_CHECKED = "not checked"
"""The outcome of a claim without a record."""
_MAX_NUMBERS = 160  # characters of what was measured or expected; the record has all


def error_of(record: "ClaimRecord") -> str | None:
    """The error that prevented the check of a claim, if there was one."""
    error = record.details.get("error")
    return None if error is None else str(error)


def print_outcomes(records: "Sequence[ClaimRecord]", seconds: float) -> None:
    """One row for every claim: outcome and evidence, what was measured and expected, seconds; then totals."""
    from rich.text import Text

    console = results()
    rows = []
    for record in records:
        error = error_of(record)
        cell = Text.assemble((record.id, "bold"), f"\n{record.title}")
        if record.difference:
            cell.append(f"\n{record.difference}", COLOURS[record.outcome])
        if error:
            cell.append(f"\ncould not be checked: {error}", COLOURS[record.outcome])
        else:
            cell.append(f"\n{_numbers(record)}", "dim")
        below = f"\n{record.evidence}\n{record.seconds:.1f} s"
        rows.append((Text.assemble((record.outcome, COLOURS[record.outcome]), (below, "dim")), cell))
    print_table(("outcome", "claim"), rows)
    console.print(f"{totals(record.outcome for record in records) or 'nothing to check'}; {seconds:.1f} s")


def totals(outcomes: "Iterable[str]") -> str:
    """How many there are of each outcome, in a fixed order, such as `holds 9, undecided 4`."""
    counts = Counter(outcomes)
    return ", ".join(f"{outcome} {counts[outcome]}" for outcome in (*COLOURS, NOT_CHECKED) if counts[outcome])


def print_table(names: "Sequence[str]", rows: "Iterable[Sequence[Any]]") -> None:
    """A table with wrapped cells, which are never cut off."""
    from rich import box
    from rich.table import Column, Table

    table = Table(*(Column(name, overflow="fold") for name in names), box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*row)
    results().print(table)


def _numbers(record: "ClaimRecord") -> str:
    within = "" if record.tolerance is None else f"   tolerance {_short(record.tolerance)}"
    return f"measured {_cut(_short(record.measured))}   expected {_cut(_short(record.expected))}{within}"


def _cut(text: str) -> str:
    """A long list of numbers by its beginning."""
    return text if len(text) <= _MAX_NUMBERS else f"{text[:_MAX_NUMBERS]}…"


def print_changes(changes: "Sequence[Change]", folder: str) -> None:
    """The table of outcomes that differ from the earlier run in `folder`."""
    from rich.text import Text

    console = results()
    if not changes:
        console.print(f"every outcome is the same as in {folder}", markup=False, soft_wrap=True)
        return
    console.print(f"different from {folder}:", markup=False, soft_wrap=True)
    print_table(
        ("claim", "then", "now"),
        ((Text(one.id), Text(one.then), Text(one.now, style="bold")) for one in changes),
    )


def _short(value: Any) -> str:
    """Write a measured or expected value briefly: numbers to four digits, long lists by their ends."""
    match value:
        case bool() | None:
            return str(value).lower()
        case float() | int():
            return f"{value:.4g}"
        case [first, _, _, *_, last]:
            return f"{_short(first)}, …, {_short(last)} ({len(value)})"
        case list() | tuple():
            return ", ".join(map(_short, value)) or "none"
        case dict():
            return ", ".join(f"{name}: {_short(one)}" for name, one in value.items())
        case _:
            return str(value)
