"""`mesascope runs list|show|compare|export|rm|reindex|verify`."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import stopped_by_interrupts
from ._output import DONE, FAILED, InputError, print_json, printable, results, say

if TYPE_CHECKING:
    from mesascope.records import RunRow, Store

_SIGNS = ("=", "<", ">")
_COLOURS = {"done": "green", "failed": "red", "running": "yellow", "planned": "dim", "unreadable": "bold red"}

Filters = Annotated[Positional[tuple[str, ...]], arg(metavar="[FILTER ...]", help_behavior_hint="")]


@dataclass(frozen=True)
class Runs:
    """List, show, compare, export, remove and verify the runs of a store."""

    def run(self) -> int:
        """Refuse `mesascope runs` without a subcommand."""
        raise InputError(f"give one of {', '.join(RUNS)}; mesascope runs --help explains them")


@dataclass(frozen=True, kw_only=True)
class InStore:
    """A command on the runs of a store."""

    store: Annotated[str, arg(metavar="DIR|URL")]
    """Folder of the store, or the URL of its index."""
    index: Annotated[str | None, arg(metavar="URL", help_behavior_hint="")] = None
    """Database of the index; by default DIR/index.sqlite."""

    @contextmanager
    def opened(self, filters: Sequence[str] = ()) -> Iterator[Store]:
        """The store; refuse filters that name fields or studies it does not have."""
        from mesascope.records import open_store

        with stopped_by_interrupts(), open_store(self.store, self.index) as store:
            store.refuse_unknown(filters)
            yield store

    @staticmethod
    def ended(rows: Sequence[RunRow], studies: Iterable[str] = ()) -> int:
        """Say which of these runs, and which studies, have records that cannot be read; return the exit status.

        Args:
            rows: runs.
            studies: what is wrong with studies, a line each.
        """
        problems = [row.error or "" for row in rows if row.status == "unreadable"] + [*studies]
        for problem in problems:
            say(f"mesascope runs: {problem}")
        return FAILED if problems else DONE


@dataclass(frozen=True)
class List(InStore):
    """List runs, the last to end first.

    A FILTER is NAME=VALUE, or has !=, <, <=, >, >= in quotes; all must hold.

    - status: planned, running, done, failed, unreadable (its record)
    - kind, study, code, error, started, ended, seconds, attempts
    - id: the beginning of an id
    - spec.init.a, outcome.loss: any path in specification or outcome

    Without --json it also shows the settings that differ between runs of a kind.

    Exit status: 0 done, 1 a record cannot be read, 2 bad input.
    """

    filters: Filters = ()
    """Which runs: status=done study=NAME 'spec.init.a<0.1' …"""
    limit: Annotated[int | None, arg(metavar="N", help_behavior_hint="")] = None
    """At most so many; by default 50, with --json all."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: runs, a list of id, status, kind, spec, outcome, error, attempts,
    started, ended, seconds, code."""

    def run(self) -> int:
        """Print; return the exit status."""
        if self.limit is not None and self.limit < 1:
            raise InputError(f"--limit is {self.limit}; give a number from 1")
        with self.opened(self.filters) as store:
            if self.json:
                rows = store.rows(self.filters, self.limit)
                print_json({"runs": [_plain(row) for row in rows]})
                return self.ended(store.unreadable(self.filters), self._damaged(store))
            limit = self.limit or 50
            rows = store.rows(self.filters, limit + 1)
            total = len(rows) if len(rows) <= limit else store.count(self.filters)
            unreadable, damaged = store.unreadable(self.filters), self._damaged(store)
        _print_rows(rows[:limit], total)
        return self.ended(unreadable, damaged)

    def _damaged(self, store: Store) -> list[str]:
        """What is wrong with studies, a line each, unless the runs of one are asked for."""
        asked = any(one.startswith("study") for one in self.filters)
        return [] if asked else list(store.damaged_studies().values())


@dataclass(frozen=True)
class Show(InStore):
    """Show one run: its plan, its outcome, and the folder of its files.

    Exit status: 0 done, 1 its record cannot be read, 2 bad input.
    """

    id: Annotated[Positional[str], arg(metavar="ID")]
    """The run's id, or its beginning."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: id, status, kind, spec, outcome, error, traceback, attempts, started,
    ended, seconds, code, batch, provenance, files, folder."""

    def run(self) -> int:
        """Print; return the exit status."""
        with self.opened() as store:
            row = store.find(self.id)
            record = store.folders.run(row.id) if row.status != "unreadable" else None
            found = _plain(row) | {
                "traceback": record and record.traceback,
                "batch": record and record.batch,
                "provenance": record and record.provenance.model_dump(),
                "files": record.files if record else {},
                "folder": str(store.folders.folder(row.id)),
            }
        if self.json:
            print_json(found)
        else:
            _print_run(found)
        return self.ended([row])


@dataclass(frozen=True)
class Compare(InStore):
    """Compare runs: every path of specification and outcome that differs between them.

    Exit status: 0 done, 1 a record cannot be read, 2 bad input.
    """

    ids: Annotated[Positional[tuple[str, ...]], arg(metavar="ID ID [ID ...]", help_behavior_hint="")]
    """Ids of runs, or their beginnings."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: ids, and differences: path, and its value in each run."""

    def run(self) -> int:
        """Print; return the exit status."""
        with self.opened() as store:
            found = store.compare(self.ids)
            rows = [store.find(one) for one in self.ids]
        ids = [row.id for row in rows]
        if self.json:
            print_json({"ids": ids, "differences": found})
            return self.ended(rows)
        console = results()
        for path, values in found.items():
            console.print(printable(path), style="bold", markup=False)
            for run, value in zip(ids, values, strict=True):
                console.print(f"  {run[:12]}  {_short(value, 60)}", markup=False)
        if not found:
            console.print("they do not differ")
        return self.ended(rows)


@dataclass(frozen=True)
class Export(InStore):
    """Write runs in the format of another program.

    Exit status: 0 done, 1 a record cannot be read, 2 bad input.
    """

    format: Literal["parquet", "csv", "netcdf", "mlflow", "tensorboard"]
    """netcdf: a study as labelled arrays; the others: a row or a folder for every run."""
    out: Annotated[str, arg(metavar="PATH")]
    """File; of tensorboard a folder; of mlflow a tracking URI, or a file for its database."""
    filters: Filters = ()
    """Which runs, as for list."""
    study: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    """The study; needed for netcdf, the name of the experiment for mlflow."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: out."""

    def run(self) -> int:
        """Write; return the exit status."""
        named = () if self.study is None else (f"study={self.study}",)
        with self.opened([*self.filters, *named]) as store:
            out = str(store.export(self.format, self.out, self.filters, self.study))
            unreadable = store.unreadable([*self.filters, *named])
        if self.json:
            print_json({"out": out})
        else:
            print(out)
        return self.ended(unreadable)


@dataclass(frozen=True)
class Remove(InStore):
    """Remove runs with all their files, unless one is being computed now."""

    which: Annotated[Positional[tuple[str, ...]], arg(metavar="[ID|FILTER ...]", help_behavior_hint="")] = ()
    """Ids of runs, or their beginnings; or filters, as for list."""
    study: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    """Remove a study, with the runs that no other study has."""
    all: FlagCreatePairsOff[bool] = False
    """Remove all runs of the store."""
    dry_run: FlagCreatePairsOff[bool] = False
    """List the runs that would be removed, and remove nothing."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: chosen and removed, lists of ids."""

    def run(self) -> int:
        """Remove; return the exit status."""
        filters = [one for one in self.which if any(sign in one for sign in _SIGNS)]
        if filters and len(filters) < len(self.which):
            raise InputError("give either ids or filters of what to remove, not both")
        if bool(self.which) + self.all + (self.study is not None) != 1:
            raise InputError(
                "name the runs to remove by ids or filters, or give --all and no names, or --study NAME alone"
            )
        with self.opened(filters) as store:
            chosen = self._chosen(store, filters)
            if not self.dry_run and self.study is not None:
                chosen = store.remove_study(self.study)
            elif not self.dry_run:
                store.remove(chosen)
        if self.json:
            print_json({"chosen": chosen, "removed": [] if self.dry_run else chosen})
        else:
            if self.dry_run:
                print("\n".join(map(printable, chosen)))
            print(f"{len(chosen)} {'would be removed' if self.dry_run else 'removed'}")
        return DONE

    def _chosen(self, store: Store, filters: list[str]) -> list[str]:
        """The ids of the chosen runs."""
        if self.study is not None:
            return store.folders.only_in(self.study)
        if self.all or filters:
            return [row.id for row in store.rows(filters)]
        return list(dict.fromkeys(store.find(one).id for one in self.which))


@dataclass(frozen=True)
class Reindex(InStore):
    """Build the index again from the folders of the runs.

    Exit status: 0 done, 1 a record cannot be read, 2 bad input.
    """

    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: runs, their number; unreadable, the ids of those whose records cannot be read;
    damaged_studies, the names of studies whose files cannot be read."""

    def run(self) -> int:
        """Rebuild; return the exit status."""
        with self.opened() as store:
            runs = store.reindex()
            unreadable, studies = store.unreadable(), store.damaged_studies()
        if self.json:
            ids = [row.id for row in unreadable]
            print_json({"runs": runs, "unreadable": ids, "damaged_studies": [*studies]})
        else:
            print(f"{runs} run{'' if runs == 1 else 's'} in the index")
        return self.ended(unreadable, studies.values())


@dataclass(frozen=True)
class Verify(InStore):
    """Check every file and row; list those that are damaged, changed, or misplaced.

    Exit status: 0 no problems, 1 problems.
    """

    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: runs, their number, and problems, a list of sentences."""

    def run(self) -> int:
        """Verify; return the exit status."""
        with self.opened() as store:
            problems = store.verify()
            runs = store.count()
        if self.json:
            print_json({"runs": runs, "problems": problems})
        else:
            for problem in problems:
                print(printable(problem))
            count = f"{runs} run{'' if runs == 1 else 's'}"
            print(f"{count}, {len(problems) or 'no'} problem{'' if len(problems) == 1 else 's'}")
        return FAILED if problems else DONE


RUNS: dict[str, type[Any]] = {
    "list": List,
    "show": Show,
    "compare": Compare,
    "export": Export,
    "rm": Remove,
    "reindex": Reindex,
    "verify": Verify,
}


def _plain(row: RunRow) -> dict[str, Any]:
    """A run as plain values."""
    names = ("kind", "spec", "outcome", "error", "attempts", "started", "ended", "seconds", "code")
    return {"id": row.id, "status": row.status, **{name: getattr(row, name) for name in names}}


def _print_rows(rows: list[RunRow], total: int) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from mesascope.records import differing_settings

    console = results()
    settings = [_assigned(one) for one in differing_settings(rows)]
    names = ("id", "status", "kind", "seconds", *(["setting"] if any(settings) else []), "outcome")
    table = Table(*names, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for row, setting in zip(rows, settings, strict=True):
        status = Text(row.status, style=_COLOURS[row.status])
        seconds = "" if row.seconds is None else f"{row.seconds:.2f}"
        cell = [Text(setting, overflow="fold")] if any(settings) else []
        summary = Text(_summary(row), overflow="ellipsis", no_wrap=True)
        table.add_row(row.id[:12], status, Text(printable(row.kind)), seconds, *cell, summary)
    if rows:
        console.print(table)
    more = f", {len(rows)} shown; --limit shows more" if total > len(rows) else ""
    console.print(f"{total} run{'' if total == 1 else 's'}{more}")


def _assigned(setting: dict[str, Any]) -> str:
    """Fields and their values, as text."""
    return " ".join(f"{printable(name)}={_short(value, 24)}" for name, value in setting.items())


def _summary(row: RunRow) -> str:
    """The outcome of a run, in a few words."""
    if row.error is not None:
        return printable(row.error)
    found = {name: value for name, value in row.outcome.items() if isinstance(value, int | float | str)}
    return "  ".join(f"{name} {_short(value, 24)}" for name, value in found.items())


def _print_run(found: dict[str, Any]) -> None:
    console = results()
    for name, value in found.items():
        if value in (None, {}, ""):
            continue
        console.print(name, style="bold", end="  " if name != "traceback" else "\n")
        if isinstance(value, dict):
            console.print()
            for key, one in value.items():
                console.print(f"  {printable(key)}  {_short(one, 66 - len(key))}", markup=False)
        else:
            lines = map(printable, str(value).splitlines())
            console.print("\n".join(lines), markup=False, soft_wrap=True)


def _short(value: Any, width: int) -> str:
    """Write a value briefly, numbers to six digits."""
    text = (
        f"{value:.6g}"
        if isinstance(value, float)
        else printable(value)
        if isinstance(value, str)
        else json_text.dumps(value)
    )
    return text if len(text) <= width else f"{text[: max(width - 1, 8)]}…"
