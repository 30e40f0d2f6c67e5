"""Labelled arrays on disk: NetCDF4 with a checksum on every block, complex numbers included."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ._files import RecordError, atomic_path

if TYPE_CHECKING:
    import xarray

FORMAT = "mesascope.data/1"
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

    if not isinstance(data, xarray.Dataset):
        data = xarray.Dataset({name: (dims, np.asarray(values)) for name, (dims, values) in data.items()})
    marked = data.assign_attrs({**(attrs or {}), _MARK: FORMAT})
    # A checksum on every block of every array that can have one: damage is then an error, never a wrong number.
    encoding = {
        name: {"fletcher32": True}
        for name, variable in marked.variables.items()
        if variable.ndim and variable.size and variable.dtype.kind in "biufc"
    }
    with atomic_path(path) as temporary:
        try:
            with _LIBRARY:
                marked.to_netcdf(temporary, engine="netcdf4", auto_complex=True, encoding=encoding)
        except PermissionError:
            temporary.write_bytes(
                bytes(8192)
            )  # netCDF reports a full disk so, too; this write then raises the right error
            raise
        except (TypeError, ValueError, RuntimeError) as error:
            full = "HDF error" in str(error)  # the only message of the library for a full disk
            fix = "free space or choose another output folder" if full else "store numbers and strings only"
            raise RecordError(f"cannot write {path}: {error}; {fix}") from error


def read_dataset(path: Path) -> "xarray.Dataset":
    """Read a data set that `write_dataset` wrote, wholly into memory.

    Raises:
        RecordError: the file is absent, torn, damaged, or not one of mesascope's.
    """
    import xarray

    if not path.is_file():
        raise RecordError(f"no data at {path}; run what writes it first")
    try:
        # decode_times: a variable with a unit of time is a number here, never a date.
        with (
            _LIBRARY,
            xarray.open_dataset(path, engine="netcdf4", auto_complex=True, decode_times=False) as opened,
        ):
            data = opened.load()
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        detail = " ".join(str(error).split())
        raise RecordError(
            f"{path} is torn, damaged or no NetCDF4 ({detail}); remove it and run again"
        ) from error
    if data.attrs.pop(_MARK, None) != FORMAT:
        raise RecordError(f"{path} is not a data set of mesascope ({FORMAT}); remove it and run again")
    return data
