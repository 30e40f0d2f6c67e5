"""A store of runs: folders that are the truth, and an index that finds runs in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mesascope.records._files import RecordError, prepare_file
from mesascope.records._folder_lock import InUseError

from ._folders import RunFolders
from ._models import StudyAxis, StudyRecord
from ._rows import RunRow, flat, row_of, run_row

if TYPE_CHECKING:
    import xarray
    from sqlalchemy import Engine

    from .exporters import Format

_Answer = TypeVar("_Answer")


class Store:
    """The runs of a store, with the index that finds them. `open_store` opens one.

    Any number of processes may use a store at once, with one index or several: an index is a cache of what the folders say. If
    the store's own index is damaged, it is built again from them, and a warning says so.

    Attributes:
        folders: the runs as files.
        index: the URL of the index, without a password.
    """

    def __init__(self, folders: RunFolders, engine: Engine) -> None:
        from ._urls import shown

        self.folders = folders
        self.index = shown(engine.url)
        self._engine = engine

    def __repr__(self) -> str:
        return f"Store({str(self.folders.root)!r}, index={self.index!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the index; a later use opens new ones."""
        self._engine.dispose()

    def _ask(self, question: Callable[..., _Answer], *arguments: Any) -> _Answer:
        from ._stamp import ask

        return ask(self.folders, self._engine, question, *arguments)

    # Writing the index

    def enter(self, runs: Iterable[str]) -> None:
        """Bring the index up to date with the folders of these runs, 500 of them in each transaction.

        Raises:
            RecordError: the index cannot be written. The runs are in their folders all the same.
        """
        from ._sync import enter

        self._ask(enter, self.folders, tuple(runs))

    def write_study(self, study: StudyRecord) -> None:
        """Store a study in its file and in the index, in place of one with its name.

        Raises:
            RecordError: it cannot be written.
        """
        from ._sync import enter_studies

        self.folders.write_study(study)
        self._ask(enter_studies, self.folders, [study.name])

    def refresh(self) -> None:
        """Bring the index up to date with what others have written into the folders."""
        from ._sync import refresh

        self._ask(refresh, self.folders)

    def confirm(self, filters: Sequence[str] = ()) -> None:
        """Read the records again, of the runs that all the filters hold for, that have changed since the index was made.

        `rows` confirms what it gives, `count` does not: of 100 000 runs it takes a fraction of a second, on a local disk.

        Raises:
            RecordError: a filter cannot be read, or the index cannot.
        """
        from ._queries import confirm_all

        self._ask(confirm_all, self.folders, filters)

    def reindex(self) -> int:
        """Build the whole index again from the folders, and remove what killed processes have left half-done.

        Returns:
            The number of runs.
        """
        from ._sync import rebuild

        self._ask(rebuild, self.folders)
        return self.count()

    # Reading the index

    def rows(self, filters: Sequence[str] = (), limit: int | None = None) -> list[RunRow]:
        """The runs that all the filters hold for, those that ended last first.

        A record whose time or size is not that in the index is read again: a row is never an old copy of it.

        Args:
            filters: such as `status=done`, `kind=flow`, `study=NAME`, `id=3f` (how it begins), `spec.init.a<=0.1`,
                `outcome.converged=true`; the signs are =, !=, <, <=, >, >=.
            limit: how many at most; None for all.

        Raises:
            RecordError: a filter cannot be read, or the index cannot.
        """
        from ._queries import find

        return self._ask(find, self.folders, filters, limit)

    def unreadable(self, filters: Sequence[str] = ()) -> list[RunRow]:
        """The runs whose records are known to be unreadable: by `rows`, `confirm` or an earlier command.

        Args:
            filters: as for `rows`; only those count that the plan of a run decides: kind, code, id, study, spec.
        """
        from ._filters import of_plans
        from ._queries import find_known

        return self._ask(find_known, self.folders, [*of_plans(filters), "status=unreadable"], None)

    def count(self, filters: Sequence[str] = ()) -> int:
        """The number of runs that all the filters hold for."""
        from ._queries import count

        return self._ask(count, self.folders, filters)

    def refuse_unknown(self, filters: Sequence[str]) -> None:
        """Refuse filters by a study or a field that nothing in the index has: they are probably misspelt.

        A field of outcomes counts as known while some kind of run has none that is done.

        Raises:
            RecordError: the first such filter; or one that cannot be read; or the file of the study that one names cannot be.
        """
        from ._queries import refuse_unknown

        named = {one.removeprefix("study=") for one in filters if one.startswith("study=")}
        for study, reason in self.damaged_studies().items() if named else ():
            if study in named:
                raise RecordError(reason)
        self._ask(refuse_unknown, filters)

    def damaged_studies(self) -> dict[str, str]:
        """The studies whose files cannot be read, which the index does not have: name → one line that says why."""
        from ._queries import study_names

        found = {}
        for name in sorted(set(self.folders.studies()) - set(self._ask(study_names))):
            try:
                self.folders.study(name)
            except RecordError as error:
                found[name] = str(error)
        return found

    def find(self, beginning: str) -> RunRow:
        """The one run whose id begins so, as its folder says.

        Raises:
            RecordError: there is none, or there are several.
        """
        found = self.rows([f"id={beginning}"], limit=2)
        if len(found) != 1:
            many = "several runs begin" if found else "no run begins"
            raise RecordError(f"{many} with {beginning!r}; `mesascope runs list` shows their ids")
        row = row_of(self.folders, found[0].id)
        return found[0] if row is None else run_row(row, self.folders)

    def compare(self, runs: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        """The differences of runs: path → its value in each of them, None where it has none.

        Args:
            runs: ids, or how they begin; at least two.

        Raises:
            RecordError: one of them is not there.
        """
        if len(runs) < 2:
            raise RecordError("give at least two runs to compare")
        rows = [self.find(run) for run in runs]
        facts = [
            {"kind": row.kind, "status": row.status, "code": row.code}
            | flat(row.spec, "spec")
            | flat(row.outcome, "outcome")
            for row in rows
        ]
        paths = dict.fromkeys(path for one in facts for path in one)
        table = {path: tuple(one.get(path) for one in facts) for path in paths}
        return {path: values for path, values in table.items() if any(value != values[0] for value in values)}

    def to_xarray(self, study: str) -> xarray.Dataset:
        """The outcomes of a study's runs over its axes, as one labelled data set.

        Args:
            study: its name.

        Returns:
            Variables `run` (id) and `status` (empty text where no run fills the place), and one for every name in the outcomes:
            numbers with NaN where there are none, texts as objects, arrays of one shape with dimensions of their own. What
            has no one shape or type is left out and named in the attribute `left_out`. Attributes `study`, `kind`, `code`,
            `spec`, `mesascope` say where it comes from.

        Raises:
            RecordError: there is no such study.
        """
        from ._labelled import labelled, study_attributes
        from ._queries import study_points

        self.refuse_unknown([f"study={study}"])
        self.confirm([f"study={study}"])
        row, points, codes = self._ask(study_points, study)
        axes = [StudyAxis.model_validate(axis) for axis in row["axes"]]
        return labelled(axes, points, study_attributes(study, row["kind"], row["spec"], codes))

    def studies(self) -> dict[str, dict[str, int]]:
        """How many runs of every study have each status: name → status → number."""
        from ._queries import study_statuses

        self.confirm()
        return self._ask(study_statuses)

    def export(
        self, form: Format, out: str | os.PathLike[str], filters: Sequence[str] = (), study: str | None = None
    ) -> Path | str:
        """Write runs in the format of another program.

        Args:
            form: parquet and csv: a table, one row a run; netcdf: a study as `to_xarray` gives it; mlflow: runs of an
                experiment; tensorboard: event files.
            out: file; of tensorboard a folder; of mlflow a tracking URI, or a file for its own database on SQLite.
            filters: which runs, as for `rows`.
            study: which study; needed by netcdf, and the name of the experiment of mlflow.

        Returns:
            Where it was written; of a URI without its password.

        Raises:
            RecordError: it cannot be written, or would replace a record or a file of the store; or a package is missing: says
                which extra brings it.
        """
        from .exporters import BEGINNINGS, export_runs, is_study, write_netcdf

        target = os.fspath(out)
        if not target.strip():
            raise RecordError("the output of an export is empty; name a file or a folder")
        if form != "tensorboard" and "://" not in target:
            self._refuse_own(target)
        if form in BEGINNINGS:
            begins = BEGINNINGS[form]
            prepare_file(
                target,
                f"a {form} file of an export",
                lambda first: first.startswith(begins) and (form != "netcdf" or is_study(Path(target))),
            )
        if form == "netcdf":
            if study is None or filters:
                raise RecordError(
                    "netcdf holds one study as a whole: name it with --study, and leave out filters"
                )
            return write_netcdf(self.to_xarray(study), target)
        rows = self.rows([*filters, *([] if study is None else [f"study={study}"])])
        return export_runs(form, rows, self.folders, target, study or "mesascope")

    def _refuse_own(self, target: str) -> None:
        """Refuse to write over the files of the store."""
        place = Path(os.path.realpath(target))
        if not place.is_relative_to(root := Path(os.path.realpath(self.folders.root))) or place == root:
            return
        name = place.relative_to(root).parts[0]
        if name in ("runs", "studies", "drivers", "store.json") or name.startswith("index.sqlite"):
            raise RecordError(f"{target} lies among the files of the store; name a file elsewhere")

    # Health

    def remove(self, runs: Iterable[str]) -> int:
        """Remove runs: their folders, then their rows.

        Raises:
            InUseError: one of them is being computed; then none is removed.
            RecordError: a folder holds something that leads out of the store.
        """
        chosen = sorted(set(runs))
        for run in chosen:
            if self.folders.running(run):
                raise InUseError(
                    f"run {run} is being computed, or its lock may not be read; stop it first, or leave it out"
                )
        removed = 0
        try:
            for run in chosen:
                self.folders.remove(run)
                removed += 1
        finally:
            self.enter(chosen[: removed + 1])
        return removed

    def remove_study(self, study: str) -> list[str]:
        """Remove a study with the runs that no other study shares.

        Returns:
            The ids of the runs, the same as `folders.only_in` gave before.

        Raises:
            InUseError: one of them is being computed; then nothing is removed.
            RecordError: there is no such study, another one is damaged, or something cannot be removed.
        """
        from ._sync import enter_studies

        runs = self.folders.only_in(study)
        self.remove(runs)
        self.folders.remove_study(study)  # last: the same command finishes what was interrupted
        self._ask(enter_studies, self.folders, [study])
        return runs

    def verify(self) -> list[str]:
        """Check every file of the store and every row of its index; one line for each problem."""
        from ._problems import problems
        from ._sync import clean, differences

        clean(self.folders)
        self.refresh()
        return [*problems(self.folders), *differences(self._engine, self.folders)]
