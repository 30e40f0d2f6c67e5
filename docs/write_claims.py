"""Take the verdicts of finished runs over into docs/papers: `python docs/write_claims.py RUN …`.

A run is a folder that `mesascope reproduce --out RUN` filled. Its records replace those of the same claims and preset in
docs/papers/records, and the page docs/papers/README.md is written anew from all records there.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from mesascope.core import cite
from mesascope.papers import PAPERS, PRESETS, claims
from mesascope.records import RunDirectory

FOLDER = Path(__file__).parent / "papers"
HEAD = """# The literature, executed

Every claim below is a function that can come out false: `mesascope reproduce` checks all of them, `mesascope reproduce KEY`
those of one paper, `--preset paper` at the papers' own sizes. Verdicts are those of the runs whose records, with every case,
interval, version, commit and the machine, lie in [records](records); the statements say at which scale they were checked.
"""


def run_of(preset):
    """The records of one preset that the repository keeps."""
    return RunDirectory(FOLDER / "records" / preset)


def page():
    """The page, from the records."""
    found = {preset: {one.id: one for one in run_of(preset).claims()} for preset in PRESETS}
    return "\n".join([HEAD, *_summary(found), *(line for paper in PAPERS for line in _paper(paper, found))])


def _summary(found):
    quick = found["quick"].values()
    counts = Counter(one.verdict for one in quick)
    told = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
    yield f"{len(claims())} claims of {len(PAPERS)} papers; quick preset: {told}, in {sum(c.seconds for c in quick):.0f} s."
    yield ""
    yield "| paper | claims | verified | refuted | inconclusive | quick preset | checked at the paper's sizes |"
    yield "|---|---|---|---|---|---|---|"
    for paper in PAPERS:
        ids = [claim.id for claim in claims(paper)]
        records = [found["quick"][id] for id in ids if id in found["quick"]]
        verdicts = Counter(one.verdict for one in records)
        cells = " | ".join(str(verdicts[verdict]) for verdict in ("verified", "refuted", "inconclusive"))
        large = sum(id in found["paper"] for id in ids)
        seconds = sum(one.seconds for one in records)
        yield f"| [{paper}](#{paper}) | {len(ids)} | {cells} | {seconds:.0f} s | {large} of {len(ids)} |"


def _paper(paper, found):
    title = re.search(r"\btitle\s*=\s*\{+(.*?)\}+,?\n", cite(paper), re.S).group(1)  # not booktitle
    yield f"\n## {paper}\n"
    more = f" [More]({paper}.md)." if (FOLDER / f"{paper}.md").exists() else ""
    yield f"*{' '.join(re.sub('[{}]', '', title).split())}*.{more}\n"
    yield "| claim | quick | paper |"
    yield "|---|---|---|"
    for claim in claims(paper):
        name = claim.id.partition("/")[2]
        cells = [_cell(found[preset].get(claim.id)) for preset in PRESETS]
        yield f"| **{name}**: {claim.statement.replace('|', '∣')} ({claim.source}) | {' | '.join(cells)} |"


def _cell(record):
    if record is None:
        return "–"
    day = record.provenance.created[:10]
    return (
        f"[{record.verdict}](records/{record.preset}/claims/{record.id}.json), {record.seconds:.0f} s, {day}"
    )


def main(runs):
    """Take the records over and write the page."""
    for run in runs:
        for record in RunDirectory(run).claims():
            RunDirectory.create(FOLDER / "records" / record.preset).write_claim(
                record.model_copy(update={"files": ()})
            )
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
