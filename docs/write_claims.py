"""Take the outcomes of finished runs over: `python docs/write_claims.py [RUN …]`.

A run is a folder that `mesascope reproduce --out RUN` filled, or that of one preset in it. Its records replace those of the
same claims and preset among the records that come with the package. From all of these the overview docs/papers/README.md and
its picture matrix.svg are written anew, and on the pages of papers what comes from records and claims: marked numbers, outcomes
and the tables of differences (page_marks.py); on all other pages with marks, like the dossiers `disagreement-KEY.md`, the
marked numbers alone. Figures that the
run has drawn, `figures/KEY/NAME.png`, become the pictures `KEY-NAME.png` of the pages that show them, and small ones beside
the records (claim_pictures.py). Records whose claim is gone are
removed. Title, source, origin and history of a claim that changed since its check are taken over; a record of another
statement, criterion, evidence or setting is refused, since that was not checked.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import claim_pictures
from page_marks import DIFFERENCES, MARK, outcome_cells, written
from PIL import Image

from mesascope.papers import (
    INSIGHTS,
    PAPERS,
    PRESETS,
    claims,
    differences,
    headlines,
    restated,
    shipped_record,
    shipped_run,
)
from mesascope.records import SIGNS, Evidence, RecordError, RunDirectory, cite
from mesascope.report import MatrixCell, MatrixRow, matrix

FOLDER = Path(__file__).parent / "papers"
MATRIX = "matrix.svg"
HEAD = f"""# The literature, executed

![A row for each paper, a cell for each claim: its shape is the evidence, its colour and sign the outcome]({MATRIX})

For each claim there is a program that checks it and can also refute it. Each claim has an **evidence**, how it was checked, and
an **outcome**, what was found. [What the abstracts announce](headlines.md), with what is not checked,
[what we found that the papers do not say](findings.md) and [where we differ](disagreements.md) have pages of their own. The
page of a paper says what of it was read.

| evidence | what it is |
|---|---|
| proved | by interval or rational arithmetic, without rounding; `mesascope reproduce ID` proves it again |
| exact | computed without sampling, to rounding; it says nothing of sizes or starts that were not tried |
| measured at the paper's setting | trained, or compared with printed numbers, where only seeds or the program differ |
| measured, reduced | the same with smaller sizes, or another optimizer, batch or number of steps |
| measured, another model | trained or sampled with a model or data that the paper does not use |

| outcome | what it says |
|---|---|
| ✓ holds | the criterion is met |
| ≈ holds with a difference | it is met, except for the difference given in the table |
| ✗ contradicted | it is not met, by proof, by exact computation or at the paper's own setting |
| ○ not reproduced at this scale | it is not met at a setting that is not the paper's: nothing against the paper |
| ? undecided | the result is too uncertain, or the training was too short to decide |

**Origin** says who claims it: *paper*, its text at a place that was read; *paper, second-hand*, as notes or other papers
report it; *authors' code*, their program or what it printed; *review*, asked for or said in the reviews; *ours*, found or
derived here.

`mesascope claims ID` shows all of a claim: statement, criterion with the reason of its tolerance, setting by preset, source,
history. Where a claim was checked at two sizes, the larger one counts here.
"""
FOUND = """# What we found that the papers do not say

Each of these is a claim of its own, of origin *ours*, which `mesascope reproduce` checks like every other. They are
counted apart from the claims of papers.
"""
ANNOUNCED = """# What the abstracts announce

{count} results that the abstracts of {papers} papers announce, in our words, with the claims that check them. The last column
says what they leave out. {without} results have no claim, and it says why.
"""
RERUN = """## Run it again

`mesascope reproduce --all --against DIR` checks every claim and compares the outcomes with those of an earlier run in `DIR`:
the exit status is 0 if all are what they were, and 1 after a table of those that changed. Without `--against` the status
is 1 if a claim is contradicted or could not be checked.

`--out DIR` keeps each preset in a folder of its own, `DIR/small` and `DIR/full`: `claims/` with the records, `data/` with
trajectories as NetCDF, `figures/` as traces, PDF and PNG. The same command goes on after Ctrl-C or a kill: finished claims are
reused, and a training inside an unfinished one goes on from its last checkpoint. A check that fails with an error leaves a
finished record as it is; its own, with the traceback, goes to `failed/`.

Exact values come out the same, but for rounding, wherever they are computed. Training amplifies rounding, which depends on the
processor and the number of its cores: numbers from trained models can differ noticeably between machines.
"""
LEFT = {
    "contradicted": "Contradicted",
    "holds with a difference": "Holds with a difference",
    "not reproduced at this scale": "Not reproduced at this scale",
    "undecided": "Undecided",
}
"""The outcomes that have a section of their own, in its order."""
HELD = {
    "proved": "Proved",
    "exact": "Exact",
    "measured at the paper's setting": "Measured at the paper's setting",
    "measured, reduced": "Measured at a reduced setting",
    "measured, another model": "Measured with another model",
}
"""What simply holds, by evidence."""
GROUPS = {"Of the papers, their programs and reviews": False, "Ours": True}
"""Group of claims → whether it is ours."""


def overview():
    """The page of all claims, from the records."""
    found = {claim.id: (claim, record) for claim in claims() if (record := shipped_record(claim))}
    return "\n".join([HEAD, *_counts(found), *_differ(), *_sections(found), RERUN])


def picture():
    """The matrix of all claims, from the records; a cell leads to the page of its paper."""
    return matrix([MatrixRow(paper, tuple(_cells(paper)), f"{paper}.md") for paper in PAPERS])


def _cells(paper):
    for claim in claims(paper):
        if record := shipped_record(claim):
            yield MatrixCell.of(record, f"{paper}.md")


def _differ():
    """The dossiers, by their titles."""
    yield "\n## Where we differ from a paper or its program\n"
    for paper in disagreeing():
        name = f"disagreement-{paper}.md"
        title = (FOLDER / name).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        yield f"- [{title}]({name})"


def disagreeing():
    """The papers with a dossier."""
    return [paper for paper in PAPERS if (FOLDER / f"disagreement-{paper}.md").exists()]


def _counts(found):
    """Counts by outcome and evidence, for what the papers claim and for what we do, then by paper."""
    yield f"## {len(claims())} claims of {len(PAPERS)} papers"
    for group, of_ours in GROUPS.items():
        chosen = [(c, record) for c, record in found.values() if (c.origin == "ours") == of_ours]
        yield f"\n**{group}: {len(chosen)}**\n"
        yield f"| | {' | '.join(HELD.values())} |"
        yield f"|---|{'---|' * len(HELD)}"
        for outcome, sign in SIGNS.items():
            counts = Counter(record.evidence for _, record in chosen if record.outcome == outcome)
            if counts:
                yield f"| {sign} {outcome} | {' | '.join(str(counts[evidence] or '') for evidence in HELD)} |"
    yield f"\n| paper | [Results that its abstract announces](headlines.md) | {' | '.join(GROUPS)} |"
    yield f"|---|---|{'---|' * len(GROUPS)}"
    for paper in PAPERS:
        cells = " | ".join(_signs(found, paper, of_ours) for of_ours in GROUPS.values())
        announced = headlines(paper)
        with_claims = f"claims for {sum(bool(one.claims) for one in announced)} of {len(announced)}"
        yield f"| [{paper}]({paper}.md), *{_title(paper)}* | {with_claims} | {cells} |"


def _signs(found, paper, of_ours):
    """How many claims of a paper have which outcome: "5 ✓, 1 ?"."""
    counts = Counter(
        record.outcome
        for claim, record in found.values()
        if claim.id.startswith(f"{paper}/") and (claim.origin == "ours") == of_ours
    )
    return ", ".join(f"{counts[outcome]} {sign}" for outcome, sign in SIGNS.items() if counts[outcome])


def _title(paper):
    title = re.search(r"\btitle\s*=\s*\{+(.*?)\}+,?\n", cite(paper), re.S).group(1)  # not booktitle
    return " ".join(re.sub("[{}]", "", title).split())


def _sections(found):
    for outcome, title in LEFT.items():
        chosen = [(claim, record) for claim, record in found.values() if record.outcome == outcome]
        yield f"\n## {SIGNS[outcome]} {title}\n"
        yield from _left(chosen) if chosen else ["None."]
    yield f"\n## {SIGNS['holds']} Holds"
    for evidence, title in HELD.items():
        chosen = [
            claim
            for claim, record in found.values()
            if (record.outcome, record.evidence) == ("holds", evidence)
        ]
        if chosen:
            yield f"\n### {title}\n\n| claim | what holds | origin |\n|---|---|---|"
            yield from (f"| `{claim.id}` | {claim.title} | {claim.origin} |" for claim in chosen)
    yield ""


def _left(chosen):
    """Claims with what differs or what is missing."""
    yield "| claim | what is claimed | evidence | origin | more |\n|---|---|---|---|---|"
    for claim, record in chosen:
        cost = claim.not_run(record.preset)
        falling = record.details.get("fall_of_the_loss_in_the_second_half")
        if record.decision == "undecided" and isinstance(falling, float) and falling > 0.1:
            cost = f"the loss still fell by {falling:.0%} in the second half of the training; {cost}"
        more = record.difference or cost
        if (
            page := FOLDER / f"disagreement-{claim.id.partition('/')[0]}.md"
        ).exists() and claim.id in page.read_text(encoding="utf-8"):
            more += f" [More]({page.name})"
        yield f"| `{claim.id}` | {claim.title} | {record.evidence} | {claim.origin} | {more} |"


def findings():
    """The page of what was found here, from the insights and their claims."""
    parts = [FOUND]
    for insight in INSIGHTS:
        (claim,) = claims(insight.claim)
        record = shipped_record(claim)
        paper = claim.id.partition("/")[0]
        parts += [
            f"## {claim.title}\n",
            f"{insight.text}\n",
            f"$$\n{insight.formula}\n$$\n",
            f"![{claim.title}]({paper}-{insight.figure}.png)\n",
            f"`{claim.id}`: {record.outcome} ({record.evidence}). {claim.statement} [More]({insight.page or paper}.md).\n",
        ]
    return "\n".join(parts)


def announced():
    """The page of what the abstracts announce, with the outcomes of the claims that check it."""
    every = [one for paper in PAPERS for one in headlines(paper)]
    without = sum(not one.claims for one in every)
    parts = [ANNOUNCED.format(count=len(every), papers=len(PAPERS), without=without)]
    for paper in PAPERS:
        parts.append(f"## {paper}\n\n[*{_title(paper)}*]({paper}.md)\n")
        parts.append("| what is announced | claims | what they leave out |\n|---|---|---|")
        for one in headlines(paper):
            checks = "<br>".join(_checked(f"{paper}/{name}") for name in one.claims) or "none"
            parts.append(f"| {one.says} | {checks} | {one.rest} |")
        parts.append("")
    return "\n".join(parts)


def _checked(id):
    """A claim with its outcome and evidence."""
    (claim,) = claims(id)
    record = shipped_record(claim)
    return f"{SIGNS[record.outcome]} `{id.partition('/')[2]}` ({record.evidence})"


def paper_page(paper):
    """The page of a paper as it is, with what comes from records and claims written anew."""
    text = _with_numbers((FOLDER / f"{paper}.md").read_text(encoding="utf-8"), paper)
    text = DIFFERENCES.sub(lambda _: "\n".join([*_differences(paper), "", ""]), text)
    return outcome_cells(text, paper, _told())


def marked_pages():
    """The names of the pages that have marked numbers and are not of a paper."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
    return [name for name, text in texts.items() if name not in PAPERS and MARK.search(text)]


def marked_page(name):
    """A page that is not of a paper as it is, with its marked numbers written anew."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return _with_numbers(text, name.removeprefix("disagreement-"))


def _with_numbers(text, paper):
    return written(text, paper, lambda preset, id: shipped_run(preset).read_claim(id))


def _told():
    """Claim id → outcome and evidence, as pages write them."""
    return {
        claim.id: f"{record.outcome} ({record.evidence})"
        for claim in claims()
        if (record := shipped_record(claim))
    }


def _differences(paper):
    yield "| what | paper | here | claims |"
    yield "|---|---|---|---|"
    measured = any(claim.evidence.startswith("measured") for claim in claims(paper))
    for one in differences(paper):
        names = ", ".join(f"`{name}`" for name in one.claims) or (
            "all that are measured" if measured else "all"
        )
        only = "" if one.presets == PRESETS else f" ({', '.join(one.presets)} preset)"
        yield f"| {one.what} | {one.paper} | {one.here}{only} | {names} |"


def main(runs):
    """Take records and figures over and write the pages; nothing is changed where anything is wrong."""
    known = {claim.id: claim for claim in claims()}
    taken = [(record, folder) for run in runs for record, folder in _records_of(run)]
    news = {
        (record.preset, record.id): record.model_copy(update={"files": claim_pictures.kept(record, folder)})
        for record, folder in taken
    }
    kept = {(preset, record.id): record for preset in PRESETS for record in shipped_run(preset).claims()}
    wrong = [line for preset in PRESETS for line in shipped_run(preset).problems()]
    records = {}
    found = {**kept, **news}
    for (preset, id), record in found.items():
        if id not in known:
            continue
        if preset == "small" and ("full", id) in found:  # pages and the lab show the larger run
            record = record.model_copy(update={"files": ()})
        try:
            records[preset, id] = restated(record, known[id])
        except RecordError as error:
            wrong.append(str(error))
    if wrong:
        sys.exit("\n".join(wrong))
    changes = {key: record for key, record in records.items() if record != kept.get(key)}
    _ship(changes)
    try:
        pages = {
            "README": overview(),
            "findings": findings(),
            "headlines": announced(),
            **{paper: paper_page(paper) for paper in PAPERS},
            **{name: marked_page(name) for name in marked_pages()},
        }
        drawn = picture()
    except ValueError as error:  # a mark for which the new records have no number
        _ship({key: kept[key] for key in changes if key in kept})
        sys.exit(str(error))
    for preset, id in kept:
        if id not in known:
            (shipped_run(preset).path / "claims" / f"{id}.json").unlink()
    for record, folder in taken:
        if record.preset == shipped_record(known[record.id]).preset:
            claim_pictures.take(record, folder, FOLDER)
    for name, text in pages.items():
        (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
    (FOLDER / MATRIX).write_text(drawn, encoding="utf-8")
    claim_pictures.tidy(FOLDER, PRESETS)


def _ship(records):
    for (preset, _), record in records.items():
        shipped_run(preset).write_claim(record)


def _records_of(run):
    """The records of a run with the folders they lie in; ends where there are none, or one is damaged or failed."""
    folders = [Path(run), *(Path(run) / preset for preset in PRESETS)]
    if not any(RunDirectory(folder).holds_claims() for folder in folders):
        sys.exit(f"{run}: holds no records; give a folder that `mesascope reproduce --out` filled")
    problems = [line for folder in folders for line in RunDirectory(folder).problems()]
    found = [(record, folder) for folder in folders for record in RunDirectory(folder).claims()]
    drawn = ((folder / file).with_suffix(".png") for record, folder in found for file in record.files)
    problems += [f"{path}: no picture; remove it and run again" for path in drawn if not _is_picture(path)]
    problems += [f"{folder}: {record.id} could not be checked" for record, folder in found if record.failed]
    if problems:
        sys.exit("\n".join(problems))
    return found


def _is_picture(path):
    """Whether there is none, or one that can be read."""
    try:
        with Image.open(path) as picture:
            picture.verify()
    except FileNotFoundError:
        return True
    except (OSError, SyntaxError):
        return False
    return True


assert set(HELD) == set(get_args(Evidence))

if __name__ == "__main__":
    main(sys.argv[1:])
