"""`mesascope claims`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._outcomes import COLOURS, NOT_CHECKED, print_table, totals
from ._output import DONE, FAILED, print_json, results, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.text import Text

    from mesascope.papers import Claim
    from mesascope.records import ClaimRecord


@dataclass(frozen=True)
class Claims:
    """List the claims that `reproduce` checks, one line each (two on a narrow terminal); show claims given by id in full.

    Evidence and outcome are those of the records in the package. Exit status: 0 done;
    1 a record in the package cannot be read; 2 bad input.
    """

    papers: Annotated[
        Positional[tuple[str, ...]], arg(metavar="[PAPER[/CLAIM] ...]", help_behavior_hint="")
    ] = ()
    """Papers or single claims; by default all."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: claims, a list of id, title, statement, source, origin, evidence, outcome, verdict, criterion,
    history, settings (by preset)."""

    def run(self) -> int:
        """Print; return the exit status."""
        from mesascope.papers import claims, shipped_record
        from mesascope.records import RecordError

        found: list[tuple[Claim, ClaimRecord | None]] = []
        status = DONE
        for claim in claims(*self.papers):
            try:
                found.append((claim, shipped_record(claim)))
            except RecordError as error:
                say(f"mesascope claims: {error}")
                found.append((claim, None))
                status = FAILED
        if self.json:
            print_json({"claims": [_summary(claim, record) for claim, record in found]})
        elif self.papers and all("/" in one for one in self.papers):
            for claim, record in found:
                _print_whole(claim, record)
        else:
            _print_lines(found)
        return status


def _summary(claim: "Claim", record: "ClaimRecord | None") -> dict[str, Any]:
    words = ("id", "title", "statement", "source", "origin", "criterion", "history")
    return {
        **{name: getattr(claim, name) for name in words},
        "settings": {preset: settings.as_table() for preset, settings in claim.settings.items()},
        "evidence": record.evidence if record else claim.evidence,
        "outcome": record.outcome if record else None,
        "verdict": record.verdict if record else None,
    }


def _print_lines(found: "list[tuple[Claim, ClaimRecord | None]]") -> None:
    """One line for each claim, and totals; on a terminal that is too narrow for that, titles in lines of their own."""
    widest = max(len(claim.id) for claim, _ in found)
    whole = [_line(claim, record, widest) for claim, record in found]
    console = results()
    narrow = console.is_terminal and max(line.cell_len for line in whole) > console.width
    lines = [_two_lines(claim, record) for claim, record in found] if narrow else whole
    for line in (*lines, *_totals(found), "`mesascope claims ID` shows all of a claim"):
        console.print(line, markup=False, soft_wrap=not narrow)


def _totals(found: "list[tuple[Claim, ClaimRecord | None]]") -> "Iterator[str]":
    for group, ours in (("of papers, programs and reviews", False), ("ours", True)):
        chosen = [record for claim, record in found if (claim.origin == "ours") == ours]
        if chosen:
            counts = totals(record.outcome if record else NOT_CHECKED for record in chosen)
            yield f"{group}: {counts}"


def _line(claim: "Claim", record: "ClaimRecord | None", widest: int) -> "Text":
    from rich.text import Text

    outcome, colour = _outcome(record)
    return Text.assemble(
        (f"{claim.id:{widest}}  ", "bold"),
        (f"{outcome:28}  ", colour),
        f"{(record or claim).evidence:31}  {_title(claim)}",
    )


def _two_lines(claim: "Claim", record: "ClaimRecord | None") -> "RenderableType":
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    outcome, colour = _outcome(record)
    first = Text.assemble((claim.id, "bold"), "  ", (outcome, colour), f" · {(record or claim).evidence}")
    return Group(first, Padding(Text(_title(claim)), (0, 0, 0, 2), expand=False))


def _outcome(record: "ClaimRecord | None") -> tuple[str, str]:
    """The outcome and its colour."""
    return (record.outcome, COLOURS[record.outcome]) if record else (NOT_CHECKED, "dim")


def _title(claim: "Claim") -> str:
    return claim.title + " (ours)" * (claim.origin == "ours")


def _print_whole(claim: "Claim", record: "ClaimRecord | None") -> None:
    """Title, statement and all other fields with their names; settings as a table by preset."""
    from textwrap import fill

    from rich.text import Text

    console = results()
    width = min(console.width, 100)
    console.print(Text(f"{claim.id}: {claim.title}", "bold"))
    outcome = record.outcome if record else NOT_CHECKED
    lines = {
        "statement": claim.statement,
        "outcome": f"{outcome} ({(record or claim).evidence})",
        "difference": record.difference if record else "",
        "parts": ", ".join(f"{name}: {decision}" for name, decision in record.parts.items())
        if record
        else "",
        "measured": _short(record.measured) if record else "",
        "expected": _short(record.expected) if record else "",
        "criterion": claim.criterion,
        "source": claim.source,
        "origin": claim.origin,
        "history": claim.history,
        "checked": f"{record.provenance.created[:10]}, preset {record.preset}, {record.seconds:.1f} s"
        if record
        else "",
        "left open": claim.not_run(record.preset if record else None),
    }
    for name, line in lines.items():
        if line:
            text = fill(line, width, initial_indent=f"  {name:11} ", subsequent_indent=" " * 14)
            console.print(text, markup=False, highlight=False)
    small, full = claim.settings["small"].as_table(), claim.settings["full"].as_table()
    rows = [(Text(name.replace("_", " ")), Text(str(small[name])), Text(str(full[name]))) for name in small]
    if claim.one_size:
        print_table(("setting", "both presets"), [row[:2] for row in rows])
    else:
        print_table(("setting", "small", "full"), rows)


_MAX_LENGTH = 400


def _short(value: Any) -> str:
    """Numbers to four digits, with their names; cut if it is long."""
    text = _text(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]} …"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name.replace('_', ' ')}: {_text(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
