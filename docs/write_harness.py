"""Write the table of docs/store.md from what the tests of tests/harness have recorded: `python docs/write_harness.py`."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).with_name("store.md")
RECORDS = PAGE.parents[1] / "tests" / "harness"
TABLE = re.compile(r"(?<=<!--harness-->\n).*?(?=<!--/harness-->)", re.S)
HEAD = "| what | tried | refused | recovered | lost |\n|---|---|---|---|---|\n"


def written(page: str) -> str:
    """The text of the page with the table as the records say; a record that is not there has no row."""
    rows = [_mutations(*_read("mutations", "kinds")), _kills(*_read("kills", "commands"))]
    return TABLE.sub(lambda _: HEAD + "".join(rows), page)


def _read(name: str, parts: str) -> tuple[dict[str, int], list[str]]:
    """The sums of a record, and the names of its parts."""
    file = RECORDS / f"{name}.json"
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"total": {}, parts: []}
    return found["total"], list(found[parts])


def _mutations(total: dict[str, int], kinds: list[str]) -> str:
    what = f"files of {len(kinds)} kinds, damaged or forged"
    return _row(what, total, "same") if total else ""


def _kills(total: dict[str, int], commands: list[str]) -> str:
    what = f"commands stopped by SIGKILL, SIGTERM or SIGINT: {', '.join(commands)}"
    return _row(what, total, "recovered") if total else ""


def _row(what: str, total: dict[str, int], recovered: str) -> str:
    if total.get("other"):
        what += f"; {total['other']} more became valid files of their own, with a new checksum or none"
    numbers = [total[name] for name in ("tried", "refused", recovered, "lost")]
    return f"| {what} | {' | '.join(map(str, numbers))} |\n"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
