"""Take the verdicts of finished runs over into docs/papers: `python docs/write_claims.py RUN …`.

A run is a folder that `mesascope reproduce --out RUN` filled, or that of one preset in it. Its records replace those of the
same claims and preset in docs/papers/records. From all records there the table docs/papers/README.md is written anew, and on
the pages of papers what comes from records: marked numbers (page_marks.py) and verdicts. Figures that the run has drawn,
`figures/KEY/NAME.png`, replace the pictures `KEY-NAME.png` of the pages.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from page_marks import verdict_cells, written
from PIL import Image

from mesascope.papers import PAPERS, PRESETS, claims
from mesascope.records import RunDirectory, cite

FOLDER = Path(__file__).parent / "papers"
HEAD = """# The literature, executed

Every claim below is a function that can come out false: `mesascope reproduce` checks all of them, `mesascope reproduce KEY`
those of one paper, `--preset paper` at the papers' own sizes. Verdicts are those of the runs whose records, with every case,
interval, version, commit and the machine, lie in [records](records); the statements say at which scale they were checked.

## How a verdict is reached

- **verified**: what was measured lies within the tolerance of what the claim says, or the whole interval on the side of the
  threshold that it names. It holds at the scale of the statement, on the seeds that the record names, and no further.
- **refuted**: it lies outside the tolerance, or the whole interval on the other side. That is a result, and stays in the table.
- **inconclusive**: the interval lies across a threshold, or a run that the claim rests on did not come to its end. Neither of
  the others follows.

Intervals are 95 % intervals over seeds or prompts, as the claim says. A statement of several parts is refuted by any part that
is, else inconclusive by any that is. Exact computations are held to a tolerance for rounding and for the solver's own error;
every record gives its tolerance and why it is what it is (`tolerance_reason`). Thresholds are the paper's where it names one,
otherwise ours, and stand in the statement.

**Origin** says whose statement it is: *paper*, the paper's or its authors' program's; *review*, asked for in the reviews of the
paper or told there; *ours*, found or derived here. Claims whose settings are the same in both presets, identities at a few
sizes and exact results at the paper's, need no second run: *same* in the last column.

## Run it again

`mesascope reproduce --all --against docs/papers/records` checks every claim and compares the verdicts with those of the table:
the exit status is 0 if all are what they were, refuted ones too, and 1 after a table of those that changed. `--against` takes
the folder of any earlier run. Without it the status is 1 if a claim is refuted or could not be checked.

`--out DIR` keeps each preset in a folder of its own, `DIR/quick` and `DIR/paper`: `claims/` with the records, `data/` with
trajectories as NetCDF, `figures/` as traces, PDF and PNG. The same command goes on after Ctrl-C or a kill: a claim that was
finished with the same settings by the same code is reused, and of any other that has a record it is told why it is checked
again. A check that fails with an error leaves a finished record as it is; its own, with the traceback, goes to `failed/`.

Exact values come out the same, but for rounding, wherever they are computed. Training amplifies rounding, which depends on the
processor and the number of its cores: what was measured on trained models may differ from the tables by more than that.

## Verdicts
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
    yield "| paper | claims | verified | refuted | inconclusive | quick preset | with the settings of the paper preset |"
    yield "|---|---|---|---|---|---|---|"
    for paper in PAPERS:
        ids = [claim.id for claim in claims(paper)]
        records = [found["quick"][id] for id in ids if id in found["quick"]]
        verdicts = Counter(one.verdict for one in records)
        cells = " | ".join(str(verdicts[verdict]) for verdict in ("verified", "refuted", "inconclusive"))
        large = sum(_of_paper_preset(claim, found) for claim in claims(paper))
        seconds = sum(one.seconds for one in records)
        yield f"| [{paper}](#{paper}) | {len(ids)} | {cells} | {seconds:.0f} s | {large} of {len(ids)} |"


def _of_paper_preset(claim, found):
    """Whether a record is one of the paper preset, or of settings that are no others there."""
    return claim.id in found["paper"] or (_is_one_size(claim) and claim.id in found["quick"])


def _is_one_size(claim):
    return claim.settings["quick"] == claim.settings["paper"]


def _paper(paper, found):
    title = re.search(r"\btitle\s*=\s*\{+(.*?)\}+,?\n", cite(paper), re.S).group(1)  # not booktitle
    yield f"\n## {paper}\n"
    more = f" [More]({paper}.md)." if (FOLDER / f"{paper}.md").exists() else ""
    yield f"*{' '.join(re.sub('[{}]', '', title).split())}*.{more}\n"
    yield "| claim | origin | quick | paper |"
    yield "|---|---|---|---|"
    for claim in claims(paper):
        name = claim.id.partition("/")[2]
        quick, large = (_cell(found[preset].get(claim.id)) for preset in PRESETS)
        if _is_one_size(claim) and claim.id not in found["paper"]:
            large = "same"
        statement = claim.statement.replace("|", "∣")
        yield f"| **{name}**: {statement} ({claim.source}) | {claim.origin} | {quick} | {large} |"


def _cell(record):
    if record is None:
        return "–"
    day = record.provenance.created[:10]
    return (
        f"[{record.verdict}](records/{record.preset}/claims/{record.id}.json), {record.seconds:.0f} s, {day}"
    )


def paper_page(paper):
    """The page of a paper as it is, with marked numbers and verdicts as the records have them."""
    text = (FOLDER / f"{paper}.md").read_text(encoding="utf-8")
    text = written(text, paper, lambda preset, id: run_of(preset).read_claim(id))
    return verdict_cells(text, paper, {one.id: one.verdict for one in run_of("quick").claims()})


def main(runs):
    """Take records and figures over and write the pages."""
    folders = [folder for run in runs for folder in (Path(run), *(Path(run) / preset for preset in PRESETS))]
    for run in runs:
        if not any(RunDirectory(folder).holds_claims() for folder in folders if folder.is_relative_to(run)):
            sys.exit(f"{run}: holds no records; give a folder that `mesascope reproduce --out` filled")
    for folder in folders:
        for record in RunDirectory(folder).claims():
            RunDirectory.create(FOLDER / "records" / record.preset).write_claim(
                record.model_copy(update={"files": ()})
            )
            for file in record.files:
                _take_picture((folder / file).with_suffix(".png"), record)
    pages = {"README": page(), **{paper: paper_page(paper) for paper in PAPERS}}
    for name, text in pages.items():
        (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")


def _take_picture(drawn, record):
    """Put a figure that was drawn in place of the picture that a page shows, in 256 colours; pages show quick runs."""
    picture = FOLDER / f"{record.id.partition('/')[0]}-{drawn.name}"
    if record.preset == "quick" and picture.exists() and drawn.exists():
        Image.open(drawn).convert("RGB").quantize(256).save(picture, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
