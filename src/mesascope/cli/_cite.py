"""`mesascope cite`."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._output import DONE, InputError, print_json


@dataclass(frozen=True)
class Cite:
    """Print BibTeX entries of papers and libraries."""

    keys: Annotated[Positional[tuple[str, ...]], arg(metavar="[KEY ...]", help_behavior_hint="")] = ()
    """Bib keys such as zheng2024; by default all."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: entries, from keys to BibTeX."""

    def run(self) -> int:
        """Print; return the exit status."""
        from mesascope.records import cite, known_keys

        try:
            text = cite(*self.keys)
        except ValueError as error:
            raise InputError(str(error).removeprefix("cite: ")) from error
        if self.json:
            print_json({"entries": {key: cite(key) for key in self.keys or known_keys()}})
        else:
            print(text)
        return DONE
