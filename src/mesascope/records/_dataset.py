"""Labelled arrays on disk: NetCDF4 with a checksum, complex numbers included.

Behind the NetCDF4, where its libraries do not look, there are `_SEAL` and the SHA-256 of all that is before it.
"""

import errno
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ._files import RecordError, atomic_path

if TYPE_CHECKING:
    import xarray

FORMAT = "mesascope.data/2"
_UNSEALED = "mesascope.data/1"  # of versions before, with a checksum on every block of arrays only
_SEAL = b"\nmesascope.data sha256 "
_SEAL_LENGTH = len(_SEAL) + 64
_MAX_TEXTS = 2**30  # bytes
_MARK = "mesascope_format"
_LIBRARY = Lock()
"""HDF5 as it is shipped serves one thread at a time: two at once cause errors or a crash of the process."""

# name → (dimensions, values)
Variables = Mapping[str, tuple[str | Sequence[str], Any]]


def write_dataset(
    path: Path, data: "xarray.Dataset | Variables", attrs: Mapping[str, Any] | None = None
) -> None:
    """Write a data set to `path` as NetCDF4, atomically.

    Args:
        path: the file to write.
        data: an `xarray.Dataset`, or a mapping name → (dimensions, values); a variable named like its only
            dimension becomes the coordinate of that dimension.
        attrs: attributes of the whole, numbers and strings, added to those of `data`.

    Raises:
        RecordError: the file cannot be written, or NetCDF has no form for something in it.
        ValueError: variables disagree about the length of a dimension.
    """
    import numpy as np
    import xarray

    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RecordError(
            f"{str(path)!r} is not valid UTF-8, as the library of NetCDF needs it; choose another name"
        ) from None
    if not isinstance(data, xarray.Dataset):
        data = xarray.Dataset({name: (dims, np.asarray(values)) for name, (dims, values) in data.items()})
    marked = data.assign_attrs({**(attrs or {}), _MARK: FORMAT}).drop_encoding()  # not compressed
    with atomic_path(path) as temporary:
        try:
            with _LIBRARY:
                marked.to_netcdf(temporary, engine="netcdf4", auto_complex=True)
            digest = _digest(temporary, temporary.stat().st_size)
            with temporary.open("ab") as file:
                file.write(_SEAL + digest)
        except PermissionError:
            temporary.write_bytes(
                bytes(8192)
            )  # netCDF reports a full disk so, too; this write then raises the right error
            raise
        except (TypeError, ValueError, RuntimeError) as error:
            full = "HDF error" in str(error)  # the only message of the library for a full disk
            fix = "free space or choose another output folder" if full else "store numbers and strings only"
            cause = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if full else error
            raise RecordError(f"cannot write {path}: {error}; {fix}") from cause


def read_dataset(path: Path) -> "xarray.Dataset":
    """Read a data set that `write_dataset` wrote, wholly into memory.

    Raises:
        RecordError: the file is absent, torn, damaged, or not one of mesascope's.
    """
    import xarray

    if not path.is_file():
        raise RecordError(f"no data at {path}; run what writes it first")
    try:
        sealed = _is_sealed(path)
        # decode_times: a variable with a unit of time is a number here, never a date.
        with (
            _LIBRARY,
            xarray.open_dataset(path, engine="netcdf4", auto_complex=True, decode_times=False) as opened,
        ):
            _refuse_bomb(opened, path.stat().st_size)
            data = opened.load()
    except MemoryError:
        raise
    except Exception as error:  # the libraries raise many kinds
        detail = " ".join(str(error).split())
        raise RecordError(
            f"{path} is torn, damaged or no NetCDF4 ({detail}); remove it and run again"
        ) from error
    if data.attrs.pop(_MARK, None) != (FORMAT if sealed else _UNSEALED):
        raise RecordError(f"{path} is not a data set of mesascope ({FORMAT}); remove it and run again")
    return data


def is_as_written(path: Path) -> bool:
    """Whether a data set is as it was written, by its seal and its format; one without a seal is read, which takes seconds."""
    try:
        if not _is_sealed(path):
            read_dataset(path)
            return True
        from netCDF4 import Dataset  # in a tenth of the time of xarray

        with _LIBRARY, Dataset(path) as opened:
            return bool(opened.getncattr(_MARK) == FORMAT)
    except (OSError, ValueError, RuntimeError, AttributeError, RecordError):
        return False


def _refuse_bomb(data: "xarray.Dataset", size: int) -> None:
    """Refuse arrays that are compressed or were never written; texts take more than their file, since all get one length.

    Raises:
        ValueError: they would take more memory than the file has bytes, or texts a gigabyte.
    """
    texts = sum(one.nbytes for one in data.variables.values() if one.dtype.kind in "UO")
    if data.nbytes - texts > size or texts > _MAX_TEXTS:
        raise ValueError(f"its arrays would take {data.nbytes} bytes, more than the file has")


def _is_sealed(path: Path) -> bool:
    """Whether the file ends in a seal.

    Raises:
        ValueError: it does not match the file.
    """
    size = path.stat().st_size - _SEAL_LENGTH
    if size < 0:
        return False
    with path.open("rb") as file:
        file.seek(size)
        end = file.read()
    if end.startswith(_SEAL) and end[len(_SEAL) :] != _digest(path, size):
        raise ValueError("it was changed after it was written: its digest differs")
    return end.startswith(_SEAL)


def _digest(path: Path, size: int) -> bytes:
    """The SHA-256 of the first bytes of a file, as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(min(size, 2**20)):
            digest.update(block)
            size -= len(block)
    return digest.hexdigest().encode()
