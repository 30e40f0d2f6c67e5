"""`mesascope report`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import stopped_by_interrupts
from ._output import DONE, FAILED, print_json, progress, progress_bar, results, say

if TYPE_CHECKING:
    from mesascope.report import WrittenReport


@dataclass(frozen=True)
class Report:
    """Write stored records as one HTML file, which needs no network; nothing is computed.

    WHAT is any of

    - a folder that `reproduce`, `train`, `identify --figures` or `sweep` filled,
      or a folder of folders of `reproduce`
    - a file: a certificate, an identification, the record of a claim
    - PAPER or PAPER/CLAIM, from the folders of --results
    - the name of a study or the id of a run (or its beginning) in --store

    Exit status: 0 done, for any outcomes; 1 some records could not be read and are
    missing; 2 bad input.
    """

    what: Annotated[Positional[tuple[str, ...]], arg(metavar="[WHAT ...]", help_behavior_hint="")] = ()
    """Records to show; by default all of --results and --store."""
    out: Annotated[str, arg(metavar="FILE")] = "report.html"
    """The HTML file to write; it replaces a file of this name."""
    latex: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder for LaTeX: the figures as PDF at the widths of a column and a page, figures.tex with captions, references.bib."""
    results: Annotated[str, arg(metavar="DIR")] = "results"
    """Folder of the folders that `reproduce` filled, or one of these."""
    store: Annotated[str | None, arg(metavar="DIR|URL", help_behavior_hint="")] = None
    """Folder of a store of runs, or the URL of its index."""
    index: Annotated[str | None, arg(metavar="URL", help_behavior_hint="")] = None
    """Database of the store's index; by default DIR/index.sqlite."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: file, latex, claims (their number), outcomes, studies, runs, trainings, identifications,
    certificates, figures, problems."""

    def run(self) -> int:
        """Write; return the exit status."""
        from mesascope.report import write_report

        with stopped_by_interrupts(), progress_bar(progress()) as show:
            written = write_report(
                *self.what,
                out=self.out,
                latex=self.latex,
                results=self.results,
                store=self.store,
                index=self.index,
                progress=show,
            )
        for problem in written.problems:
            say(f"mesascope report: left out: {problem}")
        if self.json:
            print_json(
                {
                    **{name: getattr(written, name) for name in _NUMBERS},
                    "file": str(written.file.absolute()),
                    "latex": None if written.latex is None else str(written.latex.absolute()),
                    "claims": sum(written.outcomes.values()),
                    "outcomes": written.outcomes,
                    "problems": written.problems,
                }
            )
        else:
            results().print(_contents(written), markup=False)
            print(written.file)
            if written.latex is not None:
                print(written.latex)
        return FAILED if written.problems else DONE


_NUMBERS = ("studies", "runs", "trainings", "identifications", "certificates", "figures")


def _contents(written: "WrittenReport") -> str:
    """The contents of the report, in one line."""
    claims = [f"{count} {name}" for name, count in written.outcomes.items()]
    counts = {name: getattr(written, name) for name in _NUMBERS}
    others = [f"{count} {name if count > 1 else _singular(name)}" for name, count in counts.items() if count]
    return ", ".join([*claims, *others])


def _singular(name: str) -> str:
    return "study" if name == "studies" else name.removesuffix("s")
