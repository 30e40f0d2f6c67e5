"""The folders of a store, which are the truth about its runs.

    store.json                         what this is
    runs/<id[:2]>/<id>/planned.json    sealed PlannedRun, written before anything is computed
    runs/<id[:2]>/<id>/trajectory.nc   labelled arrays; run.json holds its digest
    runs/<id[:2]>/<id>/checkpoint/     of a training, kept to go on from
    runs/<id[:2]>/<id>/attempts.jsonl  when it was begun, and by which process, one line each
    runs/<id[:2]>/<id>/run.json        sealed RunRecord, written last: it makes the run done or failed
    runs/<id[:2]>/<id>/run.json.damaged  a record that could not be read, before the run was computed again
    studies/<name>.json                sealed StudyRecord
    drivers/<host>-<pid>-<study>.json  the sweeps that compute now
    index.sqlite                       what the folders hold, in tables; made again from them when it is gone

Every file is whole or absent. Workers use folders only, never the database.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mesascope.records._dataset import Variables, read_dataset, write_dataset
from mesascope.records._files import (
    AbsentError,
    RecordError,
    fix_for,
    remove_leftovers,
    unreadable,
)
from mesascope.records._folder_lock import InUseError, folder_lock
from mesascope.records._sealed import none_if_damaged, read_sealed, write_sealed

from ._models import RUN_ID, STUDY_NAME, PlannedRun, RunRecord, StudyRecord
from ._paths import (
    RECORD,
    STORE,
    TRAJECTORY,
    exists,
    identity_of,
    make_store,
    refuse_links,
    run_folder,
    store_folder,
    study_file,
    throw_away,
)

if TYPE_CHECKING:
    import xarray

_PLANNED, _RUN, _STUDY = (f"mesascope.{kind}/1" for kind in ("planned-run", "run", "study"))
ATTEMPTS = "attempts.jsonl"
"""The file of a run that says when it was begun."""

Status = Literal["planned", "running", "done", "failed", "unreadable"]
"""The status of a run: `running` is being computed now; `done` and `failed` have ended; the record of one that is `unreadable`
is there and cannot be read."""


class RunFolders:
    """The runs of a store, as files.

    Any number of processes may use the same folders at once. `holding` a run keeps others from computing it.

    Attributes:
        root: the store's folder.
        identity: distinguishes this store from all others, also after it was moved.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Open a store that is there.

        Raises:
            RecordError: the folder is not a store, or is damaged.
        """
        self.root = store_folder(root).absolute()
        self.identity = identity_of(self.root)

    @classmethod
    def create(cls, root: str | os.PathLike[str]) -> RunFolders:
        """Make the folder a store, or open the store that is there.

        Raises:
            RecordError: it cannot be made or written to, or holds other things.
        """
        make_store(store_folder(root))
        return cls(root)

    def has_locks(self) -> bool:
        """Whether the file system has locks; without them nothing keeps two processes from computing the same run."""
        purpose = f"probe-{os.getpid()}-{secrets.token_hex(4)}"
        with folder_lock(self.root, purpose):
            try:
                with folder_lock(self.root, purpose):
                    return False
            except InUseError:
                return True

    def __repr__(self) -> str:
        return f"RunFolders({str(self.root)!r})"

    # Runs

    def folder(self, run: str) -> Path:
        """The folder of a run, whether or not it is there.

        Raises:
            ValueError: `run` is not an id.
            RecordError: it is, or is in, a symbolic link.
        """
        return run_folder(self.root, run)

    def ids(self) -> list[str]:
        """The ids of all runs that have a folder, sorted."""
        return [run for part in self.parts() for run in self.ids_of_part(part)]

    def parts(self) -> list[str]:
        """The first two digits of the runs that have a folder, sorted."""
        return _names(self.root / "runs", "[0-9a-f]{2}")

    def are_there(self) -> bool:
        """Whether the store has not been moved or removed."""
        return exists(self.root / STORE)

    def ids_of_part(self, part: str) -> list[str]:
        """The ids that begin with these two digits, of runs that have a folder, sorted."""
        return [run for run in _names(self.root / "runs" / part, RUN_ID) if run[:2] == part]

    def plan(self, run: PlannedRun) -> None:
        """Record what is to be computed, unless it is recorded already.

        Raises:
            RecordError: it cannot be written, or another run has this id.
        """
        there = none_if_damaged(lambda: self.planned(run.id))
        if there is None:
            write_sealed(self.folder(run.id) / "planned.json", _PLANNED, run)
        elif there != run:
            raise RecordError(f"{self.folder(run.id)} is of another run; remove it, or choose another store")

    def planned(self, run: str) -> PlannedRun:
        """Read what is to be computed.

        Raises:
            RecordError: nothing is planned under this id, or the file is damaged or of another run.
        """
        file = self.folder(run) / "planned.json"
        planned = read_sealed(file, _PLANNED, PlannedRun)
        if planned.id != run:
            raise RecordError(f"{file} is the plan of run {planned.id}; remove it")
        return planned

    def is_planned(self, run: str) -> bool:
        """Whether a run is planned here."""
        return exists(self.folder(run) / "planned.json")

    @contextmanager
    def holding(self, run: str) -> Iterator[None]:
        """Lock a planned run while the block computes it.

        Files that a killed process has left half-written are removed first, and a damaged record is renamed to
        `run.json.damaged`.

        Raises:
            InUseError: somebody else computes it now; says who.
            UnreadableError: its record is of a newer version, or may not be read.
            RecordError: it is not planned.
        """
        folder = self.folder(run)
        self.planned(run)
        refuse_links(folder / ".run.lock")
        with folder_lock(folder, "run"):
            if not self.is_planned(run):  # removed a moment ago, before it was locked
                raise RecordError(f"run {run} was removed; plan it again")
            remove_leftovers(folder)
            if self.reusable(run) is None:
                _set_aside(folder / RECORD)
            yield

    def finish(self, record: RunRecord, data: xarray.Dataset | Variables | None = None) -> RunRecord:
        """Store the result of a run: its arrays, then the record that makes it done or failed. `holding` must be active.

        A run that is done stays as it is, since it would give the same again.

        Args:
            record: of the run; its `files` are filled in here.
            data: labelled arrays, as for `RunDirectory.write_data`.

        Returns:
            The record in the store.

        Raises:
            RecordError: it cannot be written, or another run was planned.
        """
        there = self.run(record.id)
        if there is not None and there.status == "done":
            return there
        planned = self.planned(record.id)
        if (planned.kind, planned.spec, planned.code) != (record.kind, record.spec, record.code):
            raise RecordError(f"the record of run {record.id} is not of the run that was planned")
        folder = self.folder(record.id)
        # Remove the record of an earlier attempt first: it must never be beside the arrays of this one.
        (folder / RECORD).unlink(missing_ok=True)
        files = {}
        if data is not None:
            write_dataset(folder / TRAJECTORY, data)
            files[TRAJECTORY] = _digest(folder / TRAJECTORY)
        else:
            (folder / TRAJECTORY).unlink(missing_ok=True)
        finished = record.model_copy(update={"files": files})
        write_sealed(folder / RECORD, _RUN, finished)
        return finished

    def run(self, run: str) -> RunRecord | None:
        """Read the record of a run, or None where it has not ended.

        Raises:
            UnreadableError: there is a record that may not be read, or is of a newer version.
            RecordError: there is a record, and it is damaged.
        """
        try:
            return self.finished(run)
        except AbsentError:
            return None

    def reusable(self, run: str) -> RunRecord | None:
        """Read the record of a run, or None where it must be computed: it has not ended, or its record is damaged.

        Raises:
            UnreadableError: there is a record that may not be read, or is of a newer version.
        """
        return none_if_damaged(lambda: self.finished(run))

    def finished(self, run: str) -> RunRecord:
        """Read the record of a run that has ended.

        Raises:
            RecordError: it has not ended, or its record is damaged.
        """
        folder = self.folder(run)
        refuse_links(folder / RECORD)
        record = read_sealed(folder / RECORD, _RUN, RunRecord)
        if record.id != run:
            raise RecordError(f"{folder / RECORD} is the record of run {record.id}; remove it")
        for name in record.files:
            if name != TRAJECTORY or not (folder / name).is_file() or (folder / name).is_symlink():
                raise RecordError(f"{folder / name} is missing; remove the run and compute it again")
        return record

    def trajectory(self, run: str) -> xarray.Dataset:
        """Read the labelled arrays of a run, wholly into memory.

        Raises:
            RecordError: it has none, or they are not those that its record was written with.
        """
        record = self.finished(run)
        if TRAJECTORY not in record.files:
            raise RecordError(f"run {run} has no arrays; its record holds all that it gave")
        file = self.folder(run) / TRAJECTORY
        if _digest(file) != record.files[TRAJECTORY]:
            raise RecordError(f"{file} was changed after it was written; remove the run and compute it again")
        return read_dataset(file)

    def running(self, run: str) -> bool:
        """Whether somebody computes this run now."""
        lock = f"{self.folder(run)}/.run.lock"
        try:
            descriptor = os.open(
                lock, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            )
        except PermissionError:
            return True  # the lock of another user; the run is left alone
        except OSError:
            return False  # there is no lock; one that a killed process left is tested below
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except (ImportError, OSError):
            return False
        finally:
            os.close(descriptor)
        return False

    def status(self, run: str) -> Status:
        """The status of a run that is planned."""
        try:
            record = self.run(run)
        except RecordError:
            return "unreadable"
        if record is not None:
            return record.status
        return "running" if self.running(run) else "planned"

    def remove(self, run: str) -> None:
        """Remove a run's folder.

        Raises:
            InUseError: somebody computes it now.
            RecordError: something in it leads out of the store, or it cannot be removed.
        """
        folder = self.folder(run)
        if self.running(run):
            raise InUseError(
                f"run {run} is being computed, or its lock may not be read; stop it first, or leave it out"
            )
        # Without a lock, which needs space: runs are removed to empty a full disk. Whoever begins the run at this
        # moment learns at its end that it was removed.
        if folder.is_dir():
            throw_away(self.root, folder)

    # Studies

    def write_study(self, study: StudyRecord) -> None:
        """Store a study, in place of one with its name.

        Raises:
            RecordError: it cannot be written.
        """
        write_sealed(study_file(self.root, study.name), _STUDY, study)

    def study(self, name: str) -> StudyRecord:
        """Read a study.

        Raises:
            RecordError: there is none of this name, or it is damaged.
        """
        file = study_file(self.root, name)
        if not file.exists():
            known = ", ".join(self.studies()) or "none"
            raise RecordError(f"no study {name!r} in {self.root}; it has: {known}")
        study = read_sealed(file, _STUDY, StudyRecord)
        if study.name != name:
            raise RecordError(f"{file} is the study {study.name!r}; give the file its name")
        return study

    def studies(self) -> list[str]:
        """The names of the studies, sorted."""
        files = _names(self.root / "studies", rf"{STUDY_NAME}\.json")
        return [name.removesuffix(".json") for name in files]

    def misplaced_studies(self) -> list[str]:
        """One line for everything among the studies that is none."""
        known = {f"{study}.json" for study in self.studies()}
        lying = {path.name for path in self.root.glob("studies/*") if not path.name.startswith(".")}
        return [
            f"{self.root / 'studies'} holds {name!r}, which is not a study; remove it"
            for name in sorted(lying - known)
        ]

    def only_in(self, study: str) -> list[str]:
        """The ids of a study's runs that have a folder and that no other study shares, sorted.

        Raises:
            RecordError: there is none of this name, or one of the studies is damaged.
        """
        runs = set(self.study(study).runs)
        for other in self.studies():
            if other != study:
                runs.difference_update(self.study(other).runs)
        return sorted(run for run in runs if self.folder(run).is_dir())

    def remove_study(self, name: str) -> None:
        """Remove the file of a study; its runs stay.

        Raises:
            RecordError: it cannot be removed.
        """
        file = study_file(self.root, name)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            fix = fix_for(error, "check the disk")
            raise RecordError(f"{file} cannot be removed ({error.strerror}); {fix}") from error


def _names(folder: Path, pattern: str) -> list[str]:
    """The names in a folder that are of this form, sorted; none where there is no such folder."""
    try:
        return sorted(name for name in os.listdir(folder) if re.fullmatch(pattern, name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(f"the folder {folder}", error, "put a folder there") from error


def _set_aside(file: Path) -> None:
    """Rename a record that cannot be read, if there is one."""
    try:
        names = (file.with_name(f"{file.name}.damaged{number}") for number in chain([""], count(2)))
        os.rename(file, next(name for name in names if not os.path.lexists(name)))
    except FileNotFoundError:
        return
    except OSError as error:
        fix = fix_for(error, "remove it")
        raise RecordError(f"{file} is damaged and cannot be renamed ({error.strerror}); {fix}") from error


def _digest(file: Path) -> str:
    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(file, error) from error
