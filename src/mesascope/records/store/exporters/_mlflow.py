"""Runs as runs of an MLflow experiment."""

from __future__ import annotations

import errno
import logging
import os
import re
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mesascope.records._files import RecordError, prepare_output
from mesascope.records._secrets import without_passwords

from ._scalars import computation, curves, metrics, parameters

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

    from mesascope.records.store._folders import RunFolders
    from mesascope.records.store._rows import RunRow

# MLflow tries a server that does not answer for minutes, without a word.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
_LONGEST = 6000  # characters of a parameter that MLflow takes


def write_mlflow(rows: Sequence[RunRow], folders: RunFolders, target: str, experiment: str) -> None:
    """Log the runs that MLflow does not have.

    Args:
        rows: the runs.
        folders: where their trajectories are.
        target: tracking URI, or a file that becomes MLflow's own database on SQLite.
        experiment: its name; made if there is none.

    Raises:
        RecordError: MLflow cannot reach the target, or refuses something.
    """
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # MLflow's own use of SQLAlchemy
        from alembic.util.exc import CommandError
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with _quiet():
                _write(rows, folders, target, experiment)
        except (MlflowException, SQLAlchemyError, CommandError) as error:
            said = " ".join(str(error).split())
            message = without_passwords(f"MLflow at {target}: {said[:200]}")
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if "disk is full" in said else None
            fix = "make room" if full else "check the tracking URI"
            raise RecordError(f"{message}; {fix}") from full


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what MLflow logs while it makes its tables and connects to them."""
    logger = logging.getLogger("mlflow")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _write(rows: Sequence[RunRow], folders: RunFolders, target: str, experiment: str) -> None:
    from mlflow.tracking import MlflowClient

    file = None if "://" in target else _database(Path(target).absolute())
    _refuse_unreachable(target)
    client = MlflowClient(target if file is None else f"sqlite:///{file}")
    found = client.get_experiment_by_name(experiment)
    artifacts = None if file is None else (file.parent / "artifacts").as_uri()
    at = client.create_experiment(experiment, artifacts) if found is None else found.experiment_id
    there = _finished(client, at)
    for row in rows:
        run, ended = there.get(row.id, (None, None))
        if ended == computation(row):
            continue
        _log(client, at, row, folders)
        if run is not None:  # it failed then, and has been computed again
            client.delete_run(run)


def _database(file: Path) -> Path:
    """The file of MLflow's own database, checked here since MLflow retries for minutes."""
    prepare_output(file.parent)
    if file.is_dir() or (file.exists() and not os.access(file, os.W_OK)):
        raise RecordError(f"{file} is a folder, or cannot be written to; name a file for MLflow's database")
    if not file.exists():
        _make(file)
    elif not _is_of_mlflow(file):
        raise RecordError(f"{file} exists and is not a database of MLflow; name another file, or remove it")
    return file


def _is_of_mlflow(file: Path) -> bool:
    """Whether a file is empty, or a database with MLflow's tables."""
    if file.stat().st_size == 0:
        return True
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            tables = {
                name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
    except sqlite3.Error:
        return False
    return {"alembic_version", "experiments", "runs", "metrics"} <= tables


def _make(file: Path) -> None:
    """Make the tables elsewhere: an interrupt among MLflow's migrations leaves a database that it never reads again."""
    from mlflow.tracking import MlflowClient

    temporary = file.with_name(f".{file.name}-{os.getpid()}.tmp")
    try:
        MlflowClient(f"sqlite:///{temporary}").search_experiments(max_results=1)
        try:
            os.link(temporary, file)
        except FileExistsError:
            pass  # another export was faster: its database stays
        except OSError:  # a file system without links
            os.replace(temporary, file)
    finally:
        for left in (temporary, temporary.with_name(f"{temporary.name}-journal")):
            left.unlink(missing_ok=True)


def _refuse_unreachable(target: str) -> None:
    """Connect once to the database of a URL: MLflow tries fifteen times."""
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    if not re.match(r"(postgresql|mysql|mssql)\b.*://", target):
        return
    try:
        with create_engine(target, poolclass=NullPool).connect():
            pass
    except ModuleNotFoundError as error:
        raise RecordError(
            f"SQLAlchemy's driver {error.name} is not installed; install it, or name another one, as postgresql+psycopg://…"
        ) from None


def _finished(client: MlflowClient, experiment: str) -> dict[str, tuple[str, str]]:
    """Id → MLflow's own, and how it had ended, of runs logged completely; what a killed export left is logged again."""
    found: dict[str, tuple[str, str]] = {}
    token = None
    while True:
        page = client.search_runs([experiment], "attributes.status != 'RUNNING'", page_token=token)
        for run in page:
            tags = run.data.tags
            found[tags.get("mesascope_id", "")] = run.info.run_id, tags.get("mesascope_ended", "")
        token = page.token
        if not token:
            return found


def _name(name: str) -> str:
    """A name in the letters that MLflow takes, not a path."""
    return re.sub(r"^\.*$|[^\w.\- :]", "_", name)[:250]


def _log(client: MlflowClient, experiment: str, row: RunRow, folders: RunFolders) -> None:
    from mlflow.entities import Metric, Param, RunTag

    tags = {
        "mesascope_id": row.id,
        "mesascope_ended": computation(row),
        "kind": row.kind,
        "status": row.status,
    }
    tags["code"] = row.code
    run = client.create_run(experiment, run_name=row.id[:12], tags=tags).info.run_id
    numbers = [Metric(_name(name), value, 0, 0) for name, value in metrics(row).items()]
    numbers += [
        Metric(_name(f"trajectory.{name}"), value, 0, place) for name, place, value in curves(row, folders)
    ]
    settings = [Param(_name(name), text[:_LONGEST]) for name, text in parameters(row).items()]
    for many in range(0, max(len(numbers), len(settings), 1), 100):  # MLflow takes 100 parameters at once
        client.log_batch(run, numbers[many : many + 100], settings[many : many + 100], ())
    if row.error is not None:
        client.log_batch(run, tags=[RunTag("error", row.error[:_LONGEST])])
    client.set_terminated(run, "FAILED" if row.status == "failed" else "FINISHED")
