"""Opening a store, by its folder or by the URL of its index."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from mesascope.records._files import RecordError
from mesascope.specs import extra

from ._folders import RunFolders
from ._paths import refuse_links
from ._store import Store

if TYPE_CHECKING:
    from sqlalchemy import URL

_NETWORKS = "nfs nfs4 cifs smb3 smbfs lustre gpfs beegfs ceph afs 9p glusterfs"
_warned: set[Path] = set()


def open_store(where: str | os.PathLike[str], index: str | None = None) -> Store:
    """Open a store of runs, and bring its index up to date with its folders.

    The index is a cache. One of another version is built again from the folders, and so is the store's own file where it is
    damaged; a warning says so.

    Args:
        where: the folder of the store; or the URL of its index, which knows the folder.
        index: URL of the index: `postgresql://USER@HOST/DATABASE`, the password in PGPASSWORD or ~/.pgpass, or
            `sqlite:////FOLDER/FILE`. By default the file `index.sqlite` in the store. It is made if there is none.

    Returns:
        The store. Close it, or use it as a context, when it is done with.

    Raises:
        RecordError: there is no store, the index belongs to another one or is a damaged file outside of the store, or the
            database cannot be reached; no message repeats a password.
        MissingExtraError: SQLAlchemy is not installed.
    """
    with extra("store"):
        from ._stamp import index_file
        from ._urls import is_url, read_url, sqlite_url

    if is_url(where):
        if index is not None:
            raise RecordError("give the index once: open_store(URL), or open_store(FOLDER, index=URL)")
        url = read_url(str(where))
        return _opened(RunFolders(_folder_of(url)), url)
    folders = RunFolders(where)
    if index is not None:
        return _opened(folders, read_url(index))
    file = index_file(folders)
    refuse_links(file, Path(f"{file}-wal"), Path(f"{file}-shm"))
    return _opened(folders, sqlite_url(file))


def _opened(folders: RunFolders, url: URL) -> Store:
    from ._engine import make_engine
    from ._stamp import ask, make_file, prepare

    if url.drivername == "sqlite":
        make_file(Path(url.database or ""))
    refuse_links(folders.root / "runs", folders.root / "studies")
    refuse_links(*(folders.root / "runs" / part for part in folders.parts()))
    engine = make_engine(url)
    try:
        ask(folders, engine, prepare, folders)
        if url.database is not None and url.drivername == "sqlite":
            warn_of_network(Path(url.database).absolute().parent)
        store = Store(folders, engine)
        store.refresh()
    except BaseException:
        engine.dispose()
        raise
    return store


def _folder_of(url: URL) -> str:
    """The folder of the store that an index belongs to."""
    from ._engine import make_engine, reading
    from ._stamp import read_stamp
    from ._urls import shown

    nothing = RecordError(
        f"{shown(url)} holds no index of a store; open_store(FOLDER, index=URL) makes one, and so does mesascope sweep"
    )
    if url.drivername == "sqlite" and not Path(url.database or "").is_file():
        raise nothing
    engine = make_engine(url)
    try:
        with reading(engine) as connection:
            stamp = read_stamp(connection)
    finally:
        engine.dispose()
    if stamp is None:
        raise nothing
    if not (Path(stamp.folder) / "store.json").exists():
        raise RecordError(
            f"the store of index {shown(url)} was at {stamp.folder}, which is not here; give its folder: "
            "open_store(FOLDER, index=URL), on the command line --store FOLDER --index URL"
        )
    return stamp.folder


def network_file_system(folder: Path, mounts: Path = Path("/proc/mounts")) -> str | None:
    """The kind of the network file system that a folder is on; None where it is local or unknown."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None  # not Linux
    where, kind, longest = folder.resolve(), None, -1
    for line in lines:
        _, at, found, *_ = [*line.split(), "", "", ""]
        place = Path(at.replace("\\040", " "))
        if where.is_relative_to(place) and len(place.parts) >= longest:  # the last mount covers the others
            kind, longest = found, len(place.parts)
    remote = kind is not None and (kind in _NETWORKS.split() or kind.startswith("fuse.sshfs"))
    return kind if remote else None


def warn_of_network(folder: Path) -> None:
    """Warn once that the index of a store on a network file system needs a server."""
    kind = network_file_system(folder)
    if kind is None or folder in _warned:
        return
    _warned.add(folder)
    warnings.warn(
        f"{folder} lies on {kind}: SQLite's index is unsafe where several machines write to it; give "
        "--index postgresql://…, or an --index sqlite:////… on a local disk (the runs themselves are safe)",
        stacklevel=3,
    )
