"""Files that are whole or absent: every write goes to a temporary file that is then renamed to the target."""

import errno
import glob
import os
import platform
import re
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# .<target>.<host>-<pid>-<random>.tmp: the name shows whether the writer of a leftover file is still running.
_TEMPORARY = re.compile(r"^\..+\.(?P<host>[A-Za-z0-9_]*)-(?P<pid>\d+)-[0-9a-f]{8}\.tmp$")
_ABANDONED_AFTER = 24 * 3600  # seconds; no single write takes a day, on any machine that shares the folder
_MAX_TEXT = 2**29  # bytes; a study of a million points takes a quarter of it
_SHARED = stat.S_ISGID | stat.S_IWGRP
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_PLACE = (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)


class RecordError(ValueError):
    """A record is absent, torn, foreign or cannot be written; the message says which, where, and the fix."""


class UnreadableError(RecordError):
    """A file that exists and cannot be read: its content is unknown."""


class AbsentError(RecordError):
    """There is no file."""


def host_name() -> str:
    """The name of this machine, in letters for names of files."""
    return re.sub(r"\W", "_", platform.node(), flags=re.ASCII)[:32]


def _reason(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error)


def fix_for(error: OSError | ValueError, otherwise: str) -> str:
    """What to do about a file that cannot be read or written: about its permissions, or `otherwise`."""
    if getattr(error, "errno", None) in _FORBIDDEN:
        return (
            "check the permissions; what several users share is made with `chmod g+ws FOLDER`, and what lies in it "
            "already with `chmod -R g+rwX FOLDER`"
        )
    return otherwise


def unreadable(what: object, error: OSError, otherwise: str = "check the disk") -> UnreadableError:
    """The error of a file or folder that cannot be read, with what to do about it."""
    return UnreadableError(f"cannot read {what}: {error.strerror}; {fix_for(error, otherwise)}")


def read_json_text(path: str | os.PathLike[str]) -> str:
    """The text of a JSON file of mesascope, which is never large: a file that claims to be would fill the memory.

    Raises:
        OSError: it cannot be read, or is not a regular file.
        ValueError: it is larger than 512 MiB, or no UTF-8.
    """
    return read_bytes(path, _MAX_TEXT).decode()


def read_bytes(path: str | os.PathLike[str], most: int = sys.maxsize) -> bytes:
    """The content of a regular file; a named pipe or a device in its place is refused, and not waited for.

    Raises:
        OSError: it cannot be read, or is not a regular file.
        ValueError: it has more than `most` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        if found.st_size > most:
            raise ValueError(f"it has {found.st_size} bytes, more than {most}")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def share(path: Path) -> None:
    """Let the group read and write a new file or folder in a shared folder, whatever the umask.

    A folder is shared if the group may write to it and new files inherit the group (`chmod g+ws`).
    """
    with suppress(OSError):  # it belongs to another user and stays as it is
        if os.stat(path.parent).st_mode & _SHARED == _SHARED:
            mode = os.stat(path).st_mode
            os.chmod(path, stat.S_IMODE(mode) | (0o2070 if stat.S_ISDIR(mode) else 0o060))


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents."""
    missing = _missing(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for part in reversed(missing):
        share(part)


def _missing(folder: Path) -> list[Path]:
    return [part for part in (folder, *folder.parents) if not part.exists()]


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable; a no-op where folders cannot be synced (Windows)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Give a temporary path to write to; on leaving, its content appears at `target` as a whole.

    The temporary file is in the target's folder (created if needed), is flushed to disk, then renamed over
    the target, and the folder is flushed: after a crash or a kill at any moment the target holds its old
    content or all of its new one. If the block raises, the temporary file is removed and the target stays as
    it was.

    Args:
        target: the file to write.

    Yields:
        A path in the same folder at which the block must leave a file.

    Raises:
        RecordError: the file cannot be written (no space, no permission, …), or what lies there is no file: a link, a pipe or
            a device would be replaced.
    """
    target = Path(target)
    _refuse_other_than_file(target)
    name = f"{_beginning(target)}{host_name()}-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    temporary = target.with_name(name)
    try:
        make_folder(target.parent)
        yield temporary
        with open(temporary, "r+b") as file:
            os.fsync(file.fileno())
        share(temporary)
        os.replace(temporary, target)
        sync_folder(target.parent)
    except OSError as error:
        otherwise = (
            "no file can lie there: choose another place"
            if error.errno in _NO_PLACE
            else "free space or choose another output folder"
        )
        raise RecordError(f"cannot write {target}: {_reason(error)}; {fix_for(error, otherwise)}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _beginning(target: Path) -> str:
    """How the names of temporary files of `target` begin: with all of a long name there would be no room for the rest."""
    return f".{target.name[:40]}."


def _refuse_other_than_file(target: Path) -> None:
    """Refuse to replace a link, a pipe or a device; what cannot be looked at is refused when it is written."""
    try:
        mode = target.lstat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        what = "link" if stat.S_ISLNK(mode) else "pipe, socket or device"
        raise RecordError(f"cannot write {target}: a {what} lies there; remove it, or choose another place")


def write_text(target: Path, text: str) -> None:
    """Write `text` as UTF-8 to `target`, atomically.

    Raises:
        RecordError: it cannot be written.
    """
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files below `folder` whose writers were killed; files of live writers stay."""
    _remove_abandoned(folder.rglob(".*.tmp"))


def remove_leftovers_of(target: Path) -> None:
    """Remove the temporary files of `target` whose writers were killed."""
    _remove_abandoned(target.parent.glob(f"{glob.escape(_beginning(target))}*.tmp"))


def _remove_abandoned(paths: Iterable[Path]) -> None:
    for path in paths:
        match = _TEMPORARY.match(path.name)
        with suppress(OSError):  # its writer or another sweeper may be faster
            if match and (
                _is_dead(match["host"], int(match["pid"]))
                or time.time() - path.stat().st_mtime > _ABANDONED_AFTER
            ):
                path.unlink()


def _is_dead(host: str, pid: int) -> bool:
    if os.name != "posix" or host != host_name():
        return False  # cannot know; age decides
    try:
        os.kill(pid, 0)  # signal 0 only asks
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def prepare_file(path: str | os.PathLike[str], what: str, is_such: Callable[[bytes], bool]) -> Path:
    """Prove, before any work is done, that a file can be written, and that it replaces only a file of its own kind.

    Args:
        path: the file; folders are made as needed.
        what: its kind, such as `an HTML page`.
        is_such: whether the first thousand bytes of a file are those of such a file.

    Raises:
        RecordError: it cannot be written; a record or checkpoint of mesascope would be lost, or a file of a run, or a file of
            another kind.
    """
    file = prepare_replacement(path)
    beginning = _beginning_of(file)
    if _RECORD.search(beginning):
        raise RecordError(
            f"{path} is a record or checkpoint of mesascope, which would be lost; name another file"
        )
    if beginning and (file.parent / "planned.json").is_file():
        raise RecordError(f"{path} is a file of a run of mesascope, which would be lost; name another file")
    if beginning and not is_such(beginning):
        raise RecordError(f"{path} exists and is not {what}; name another file, or remove it")
    return file


def prepare_replacement(path: str | os.PathLike[str]) -> Path:
    """Prove that a file can be written, where a record may lie that the caller knows to be of its own kind.

    Args:
        path: the file; folders are made as needed.

    Raises:
        RecordError: it cannot be written.
    """
    file = Path(path)
    if os.path.isdir(file):  # `Path.is_dir` raises where the name is too long
        raise RecordError(f"{path} is a folder; name a file in it")
    _refuse_other_than_file(file)
    prepare_output(file.parent)
    return file


_RECORD = re.compile(rb'"format": ?"mesascope')


def _beginning_of(file: Path) -> bytes:
    """The first bytes of a file; none where there is none."""
    try:
        with open(file, "rb") as there:
            return there.read(1000)
    except (FileNotFoundError, ValueError):
        return b""
    except OSError as error:
        raise RecordError(f"{file} exists and cannot be read ({error.strerror}); name another file") from None


def prepare_output(path: str | os.PathLike[str]) -> Path:
    """Make the output folder and prove that it can be written to, before any work is done.

    Args:
        path: the folder; parents are made as needed.

    Returns:
        The folder as a `Path`, existing and writable.

    Raises:
        RecordError: it cannot be made or written to; folders made on the way are removed again.
    """
    folder = Path(path)
    missing: list[Path] = []
    try:
        missing = _missing(folder)
        make_folder(folder)
        # Permission bits are not enough (read-only mounts, quotas, root): write a real file.
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"mesascope")
            probe.flush()
    except (OSError, ValueError) as error:
        for part in missing:
            with suppress(OSError, ValueError):
                part.rmdir()
        reason = "is a file" if isinstance(error, FileExistsError) else _reason(error)
        raise RecordError(
            f"output folder {str(path)!r} cannot be written to: {reason}; "
            + fix_for(error, "choose another folder")
        ) from error
    return folder
