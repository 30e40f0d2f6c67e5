"""Locks on folders: one process at a time writes."""

import errno
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ._files import RecordError, fix_for, host_name, prepare_output, read_json_text, share
from ._plain import parse_json

_AGAIN = 0.05  # seconds between attempts
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class InUseError(RecordError):
    """Somebody else writes to this folder now; the message says who."""


@contextmanager
def folder_lock(folder: str | os.PathLike[str], purpose: str, wait: float = 0.0) -> Iterator[None]:
    """Lock a folder while the block runs: no other lock for the same purpose is given, in this process or another.

    The lock is the operating system's, on the file `.PURPOSE.lock` in the folder. It ends with the process that holds it, also
    when that is killed. Where the operating system or the file system has no locks, nothing is locked.

    Args:
        folder: created if needed.
        purpose: what it is locked for, one word.
        wait: seconds to wait for the holder of the lock.

    Raises:
        InUseError: somebody else holds the lock; says who.
        RecordError: the folder cannot be made or written to.
    """
    path = prepare_output(folder) / f".{purpose}.lock"
    try:
        descriptor = _acquire_within(path, wait)
    except BlockingIOError:
        raise InUseError(
            f"{folder}: is in use by {_holder(path)}; wait until it ends, or choose another folder"
        ) from None
    except OSError as error:
        fix = "remove this link" if error.errno == errno.ELOOP else fix_for(error, "choose another folder")
        raise RecordError(f"{path}: cannot be written ({error.strerror}); {fix}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # while it is locked: waiting processes check that it is still there
        os.close(descriptor)


def require_lock(folder: Path, purpose: str) -> None:
    """Refuse to write where the lock that `folder_lock` has made is gone.

    Raises:
        RecordError: somebody has moved or removed the folder.
    """
    if not (folder / f".{purpose}.lock").exists():
        raise RecordError(
            f"{folder}: was moved or removed while this run wrote to it; nothing more is written there"
        )


def _acquire_within(path: Path, wait: float) -> int:
    """Open and lock the file at this path, as soon as it is free."""
    end = time.monotonic() + wait
    while True:
        try:
            return _acquire(path)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
            time.sleep(_AGAIN)


def _acquire(path: Path) -> int:
    """Open and lock the file at this path."""
    while True:
        # A link planted here would lead to a file of somebody else, which is overwritten below.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            _lock(descriptor)
            if _is_at(path, descriptor):
                share(path)
                me = {"pid": os.getpid(), "host": host_name(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
                os.truncate(descriptor, 0)
                with suppress(OSError):  # a full disk: errors then cannot name the holder
                    os.write(descriptor, json.dumps(me).encode())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder removed it meanwhile: this lock is on a file without a name


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    try:
        holder = parse_json(read_json_text(path))
        return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has just begun, or just ended
        return "another process"
