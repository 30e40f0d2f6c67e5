"""Write the table of docs/benchmark.md from the scores in docs/benchmark.json: `python docs/write_benchmark.py`.

The scores are those that `mesascope benchmark score bench identify.json nearest.json --json` prints.
"""

import json
import re
from pathlib import Path

from mesascope.benchmark import GROUPS, MARKS, Score

PAGE = Path(__file__).with_name("benchmark.md")
SCORES = PAGE.with_suffix(".json")
TABLE = re.compile(r"(?<=<!--benchmark-->\n).*?(?=<!--/benchmark-->)", re.S)


def written(page: str, scores: str) -> str:
    """The text of the page with the table of these scores."""
    found = [Score.model_validate(one) for one in json.loads(scores)["scores"]]
    lines = [f"| method | models | {' | '.join(MARKS)} | accuracy |", f"|---|---|{'---|' * (len(MARKS) + 1)}"]
    for one in found:
        for group in (*GROUPS, "all"):
            counts = one.counts[group]
            total = sum(counts.values())
            numbers = " | ".join(str(counts[mark]) for mark in MARKS)
            share = f"{100 * counts['right'] / total:.1f} %"
            lines.append(f"| `{one.method}` | {total} {group} | {numbers} | {share} |")
    notes = [f"`{one.method}`: {one.describe()}." for one in found]
    first = found[0]
    made = f"Benchmark {first.benchmark[:12]}: seed {first.seed}, {first.draws} draws."
    return TABLE.sub(lambda _: "\n".join([*lines, "", *notes, made, ""]), page)


if __name__ == "__main__":
    text = written(PAGE.read_text(encoding="utf-8"), SCORES.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
