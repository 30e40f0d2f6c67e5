"""Opening a store, by its folder or by the URL of its index."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mesascope.records._files import RecordError, share
from mesascope.records._held import held

from ._folders import RunFolders
from ._network import warn_of_network
from ._paths import refuse_links
from ._store import Store

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine


_INDEX = "index.sqlite"


def open_store(where: str | os.PathLike[str], index: str | None = None) -> Store:
    """Open a store of runs, and bring its index up to what its folders say.

    Args:
        where: the folder of the store; or the URL of its index, which knows the folder.
        index: URL of the index: `postgresql://USER@HOST/DATABASE`, the password in PGPASSWORD or ~/.pgpass, or
            `sqlite:////FOLDER/FILE`. By default the file `index.sqlite` in the store. It is made if there is none.

    Returns:
        The store. Close it, or use it as a context, when it is done with.

    Raises:
        RecordError: there is no store, the index belongs to another one or was written by a newer version, or the database
            cannot be reached; no message repeats a password.
    """
    from ._urls import is_url, read_url, sqlite_url

    if is_url(where):
        if index is not None:
            raise RecordError("give the index once: open_store(URL), or open_store(FOLDER, index=URL)")
        return _by_index(read_url(str(where)))
    folders = RunFolders(where)
    if index is None:
        file = folders.root / _INDEX
        refuse_links(file, Path(f"{file}-wal"), Path(f"{file}-shm"))
        return _by_folder(folders, sqlite_url(file))
    return _by_folder(folders, read_url(index))


def reindex(where: str | os.PathLike[str], index: str | None = None) -> int:
    """Write the index of a store anew from its folders, also where the file of the index is damaged.

    Args:
        where: as for `open_store`.
        index: as for `open_store`.

    Returns:
        The number of runs.

    Raises:
        DamagedIndexError: the file of the index is damaged, and it is not the one in the store, which may be replaced.
        RecordError: as for `open_store`.
    """
    from ._urls import DamagedIndexError, is_url

    own = None if index is not None or is_url(where) else RunFolders(where).root / _INDEX
    found = own and _number(own)
    try:
        if own is not None:
            _check_file(own)
        with open_store(where, index) as store:
            return store.reindex()
    except DamagedIndexError as error:
        if own is None:
            raise DamagedIndexError(f"{error}, after you have removed what is there") from None
        with held(own.parent, "index"):
            if _number(own) == found:  # else somebody else has replaced it meanwhile
                for part in ("", "-wal", "-shm"):
                    Path(f"{own}{part}").unlink(missing_ok=True)
    with open_store(where, index) as store:
        return store.reindex()


def _number(file: Path) -> int | None:
    """What tells this file from another that takes its name."""
    try:
        return os.stat(file).st_ino
    except OSError:
        return None


def _check_file(file: Path) -> None:
    """Let SQLite look for damage in the index of a store before anything is read from it."""
    from ._engine import check, make_engine
    from ._urls import sqlite_url

    if file.is_file() and not file.is_symlink():
        engine = make_engine(sqlite_url(file))
        try:
            check(engine)
        finally:
            engine.dispose()


def _by_folder(folders: RunFolders, url: URL) -> Store:
    from ._engine import make_engine

    if url.drivername == "sqlite":
        _make_file(Path(url.database or ""))
    engine = make_engine(url)
    try:
        _prepare(engine, folders)
        if url.database is not None and url.drivername == "sqlite":
            warn_of_network(Path(url.database).absolute().parent)
        store = Store(folders, engine)
        store.refresh()
    except BaseException:
        engine.dispose()
        raise
    return store


def _make_file(file: Path) -> None:
    """Make the file of an index: SQLite gives its log the same rights, and a group that shares the folder needs both."""
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError:
        return  # it is there; or SQLite says why it cannot be
    share(file)


def _by_index(url: URL) -> Store:
    from ._engine import make_engine, reading
    from ._index import get_store
    from ._migrate import revision
    from ._urls import shown

    nothing = RecordError(
        f"{shown(url)} holds no index of a store; open_store(FOLDER, index=URL) makes one, and so does mesascope sweep"
    )
    if url.drivername == "sqlite" and not Path(url.database or "").is_file():
        raise nothing
    engine = make_engine(url)
    try:
        with reading(engine) as connection:
            owner = get_store(connection) if revision(connection) is not None else None
    finally:
        engine.dispose()
    if owner is None:
        raise nothing
    if not (Path(owner[1]) / "store.json").exists():
        raise RecordError(
            f"the store of index {shown(url)} was at {owner[1]}, which is not here; give its folder: "
            "open_store(FOLDER, index=URL), on the command line --store FOLDER --index URL"
        )
    return _by_folder(RunFolders(owner[1]), url)


def _prepare(engine: Engine, folders: RunFolders) -> None:
    """Make or upgrade the tables, and see that they are of this store."""
    from ._engine import reading, writing
    from ._index import get_store, put_store
    from ._migrate import HEAD, revision, upgrade
    from ._urls import shown

    with reading(engine) as connection:
        current = revision(connection) == HEAD
        owner = get_store(connection) if current else None
    if not current:
        with writing(engine) as connection:
            if revision(connection) != HEAD:  # somebody else may have been faster
                upgrade(connection, shown(engine.url))
            owner = get_store(connection)
    if owner is not None and owner[0] != folders.identity:
        raise RecordError(
            f"index {shown(engine.url)} is of the store at {owner[1]}, not of {folders.root}; give every store a "
            "database or a schema of its own"
        )
    if owner is None or (owner[1] != str(folders.root) and not _is_store(owner[1], folders.identity)):
        with writing(engine) as connection:
            put_store(connection, folders.identity, str(folders.root))


def _is_store(folder: str, identity: str) -> bool:
    """Whether this store is also found at that folder: mounted twice, not moved."""
    try:
        return RunFolders(folder).identity == identity
    except RecordError:
        return False
