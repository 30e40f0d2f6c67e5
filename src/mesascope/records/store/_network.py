"""Whether a folder lies on a network file system, where SQLite's write-ahead log is unsafe."""

from __future__ import annotations

import warnings
from pathlib import Path

_KINDS = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "afs",
    "9p",
    "glusterfs",
}
_warned: set[Path] = set()


def network_file_system(folder: Path, mounts: Path = Path("/proc/mounts")) -> str | None:
    """The kind of the network file system that a folder lies on; None where it is local or unknown."""
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
    remote = kind is not None and (kind in _KINDS or kind.startswith("fuse.sshfs"))
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
