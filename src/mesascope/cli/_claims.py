"""`mesascope claims`."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._output import DONE, print_json, results


@dataclass(frozen=True)
class Claims:
    """List the claims that `reproduce` checks, with their statements."""

    papers: Annotated[
        Positional[tuple[str, ...]], arg(metavar="[PAPER[/CLAIM] ...]", help_behavior_hint="")
    ] = ()
    """Papers or single claims; without any, all of them."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: claims, a list of id, statement, source, origin (paper, review or ours)."""

    def run(self) -> int:
        """Print; return the exit status."""
        from mesascope.papers import claims

        found = claims(*self.papers)
        if self.json:
            fields = ("id", "statement", "source", "origin")
            print_json({"claims": [{name: getattr(claim, name) for name in fields} for claim in found]})
            return DONE
        from textwrap import fill

        console = results()
        width = min(console.width, 100)
        for claim in found:
            source = f"{claim.source} [{claim.origin}]"
            console.print(claim.id, style="bold", markup=False)
            for text, style in ((claim.statement, None), (source, "dim")):
                indent = "  "
                told = fill(text, width, initial_indent=indent, subsequent_indent=indent)
                console.print(told, style=style, markup=False)
        return DONE
