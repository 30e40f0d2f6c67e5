"""Verdicts as tables that people read."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from ._output import results
from ._watch import COLOURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mesascope.papers import Change
    from mesascope.records import ClaimRecord


def error_of(record: "ClaimRecord") -> str | None:
    """What kept a claim from being checked, if something did."""
    error = record.details.get("error")
    return None if error is None else str(error)


def print_verdicts(records: "Sequence[ClaimRecord]", seconds: float) -> None:
    """The table of verdicts, and how many there are of each."""
    from rich import box
    from rich.table import Column, Table
    from rich.text import Text

    console = results()
    columns = Column("verdict", overflow="fold"), Column("claim", overflow="fold")  # nothing is cut off
    table = Table(*columns, box=box.SIMPLE_HEAD, padding=(0, 2, 1, 0))
    for record in records:
        colour, error = COLOURS[record.verdict], error_of(record)
        found = f"measured {_short(record.measured)}   expected {_short(record.expected)}"
        within = "" if record.tolerance is None else f"   tolerance {_short(record.tolerance)}"
        table.add_row(
            Text(record.verdict, style=colour),
            Text.assemble(
                (record.id, "bold"),
                (f" ({record.origin})\n" if record.origin not in (None, "paper") else "\n", "dim"),
                "" if record.verdict == "verified" and len(records) > 5 else f"{record.statement}\n",
                (f"could not be checked: {error}" if error else f"{found}{within}", colour),
            ),
        )
    console.print(table)
    counts = Counter(record.verdict for record in records)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in COLOURS if counts[verdict])
    console.print(f"{told or 'nothing to check'}; {seconds:.1f} s")


def print_changes(changes: "Sequence[Change]", folder: str) -> None:
    """The table of verdicts that are not those of the earlier run in `folder`."""
    from rich import box
    from rich.table import Column, Table
    from rich.text import Text

    console = results()
    if not changes:
        console.print(f"every verdict is that of {folder}", markup=False, soft_wrap=True)
        return
    console.print(f"not the verdicts of {folder}:", markup=False, soft_wrap=True)
    table = Table(*(Column(name, overflow="fold") for name in ("claim", "then", "now")), box=box.SIMPLE_HEAD)
    for one in changes:
        table.add_row(Text(one.id), Text(one.then), Text(one.now, style="bold"))
    console.print(table)


def _short(value: Any) -> str:
    """Write a measured or expected value briefly: numbers to six digits, long lists by their ends."""
    match value:
        case bool() | None:
            return str(value).lower()
        case float() | int():
            return f"{value:.6g}"
        case [first, _, _, *_, last]:
            return f"{_short(first)}, …, {_short(last)} ({len(value)})"
        case list() | tuple():
            return ", ".join(map(_short, value)) or "none"
        case dict():
            return ", ".join(f"{name}: {_short(one)}" for name, one in value.items())
        case _:
            return str(value)
