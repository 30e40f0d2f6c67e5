"""`mesascope counterexample`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import stopped_by_interrupts
from ._output import DONE, FAILED, InputError, in_file, print_json, progress, results, say

if TYPE_CHECKING:
    from mesascope.dynamics import Searched


@dataclass(frozen=True)
class CounterexampleCommand:
    """Search for a law of the initial token that breaks a stated property.

    The search ends at the first law that breaks it, and nothing found proves nothing.
    What is found is decided in rational numbers; --check decides it again from its file.

    Properties: limit-is-critical, limit-is-minimum, flow-returns, diagonal-optimum,
    one-gradient-step, monotone-risk. Laws: independent, exchangeable, cyclic.
    """

    property: Annotated[Positional[str | None], arg(metavar="[PROPERTY]", help_behavior_hint="")] = None
    """What may hold for all laws."""
    laws: Annotated[tuple[str, ...], arg(metavar="LAW …", help_behavior_hint="")] = ()
    """Families of laws; by default those of the property."""
    dims: Annotated[tuple[int, ...], arg(metavar="INT …")] = (2, 3, 4)
    """Token dimensions d."""
    horizons: Annotated[tuple[int, ...], arg(metavar="INT …")] = (3, 4, 5, 10)
    """Horizons T."""
    rho: Annotated[tuple[str, ...], arg(metavar="RHO …", help_behavior_hint="")] = ()
    """Normalizers ρ_t: t-1, t, 1; by default those of the property."""
    starts: int = 20
    """Random starts."""
    seed: int = 0
    """Seed of the starts."""
    out: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write what is found as JSON: law, witness, quantity."""
    check: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Decide again what such a file states, without the search; instead of PROPERTY."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: found (or null), property, laws, dims, horizons, normalizers, starts, seed, tried."""

    def run(self) -> int:
        """Search or check, print and write; return the exit status."""
        if (self.property is None) == (self.check is None):
            raise InputError("give either PROPERTY, or --check FILE; see mesascope counterexample --help")
        if self.check is not None:
            return self._checked(self.check)
        if self.out is not None:
            _refuse_output(self.out)
        with stopped_by_interrupts():
            search = self._searched(str(self.property))
        from mesascope.records import RecordError, write_text

        found, out = search.found, self.out
        if found is not None and out is not None:
            try:
                write_text(Path(out), json.dumps(found.record(), indent=1) + "\n")
            except RecordError as error:
                self._show(search)  # so that the result is not lost
                say(f"mesascope counterexample: {error}")
                return FAILED
        self._show(search)
        if found is not None and out is not None and not self.json:
            print(out)
        return DONE

    def _show(self, search: Searched) -> None:
        if self.json:
            print_json(_object(search))
            return
        _print(search._printed())
        if search.found is not None:
            _print(search.found._printed())

    def _searched(self, name: str) -> Searched:
        from mesascope.dynamics import counterexample

        def search(show: Any = None) -> Searched:
            return counterexample(
                name,
                laws=self.laws or None,
                dims=self.dims,
                horizons=self.horizons,
                normalizers=self.rho or None,
                starts=self.starts,
                seed=self.seed,
                progress=show,
            )

        console = progress()
        if console.quiet:
            return search()
        with console.status("search") as status:
            return search(lambda now: status.update(now.describe()))

    def _checked(self, file: str) -> int:
        from mesascope.dynamics import check_counterexample

        with in_file(file):
            found = check_counterexample(_read(file))
        if self.json:
            print_json({"found": found.record()})
        else:
            _print(found._printed())
        return DONE


def _read(file: str) -> dict[str, Any]:
    from mesascope.records import RepeatedKeyError, read_json_text, without_repetition

    try:
        record = json.loads(read_json_text(file), object_pairs_hook=without_repetition)
    except RepeatedKeyError as error:
        raise InputError(f"{error} occurs twice; give a file that --out wrote") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path") from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON; give a file that --out wrote") from None
    if not isinstance(record, dict):
        raise InputError("must be one object; give a file that --out wrote")
    return record


def _refuse_output(out: str) -> None:
    """Refuse a place where no file can be written, or where another file would be lost."""
    from mesascope.records import prepare_replacement

    path = Path(out)
    if not out.strip():
        raise InputError("--out is empty; name a file")
    if path.is_file() and not _is_counterexample(out):
        raise InputError(f"--out {out} exists and is not a counterexample; name another file, or remove it")
    prepare_replacement(path)


def _is_counterexample(file: str) -> bool:
    try:
        return "property" in _read(file)
    except InputError:
        return False


def _object(search: Searched) -> dict[str, Any]:
    return {
        "found": search.found and search.found.record(),
        "property": search.property,
        "laws": search.families,
        "dims": search.dims,
        "horizons": search.horizons,
        "normalizers": search.normalizers,
        "starts": search.starts,
        "seed": search.seed,
        "tried": search.tried,
    }


def _print(printed: tuple[str, dict[str, str]]) -> None:
    console = results()
    title, values = printed
    console.print(title, markup=False, style="bold")
    for name, value in values.items():
        console.print(f"{name}: {value}", markup=False, soft_wrap=True, highlight=False)
