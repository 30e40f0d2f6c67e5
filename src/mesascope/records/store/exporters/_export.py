"""From the rows and folders of a store to a file, a folder or a tracking server."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mesascope.records._dataset import read_dataset, write_dataset
from mesascope.records._files import RecordError
from mesascope.records._secrets import without_passwords
from mesascope.specs import extra

from ._mlflow import write_mlflow
from ._tables import write_csv, write_parquet
from ._tensorboard import write_tensorboard

if TYPE_CHECKING:
    import xarray

    from mesascope.records.store._folders import RunFolders
    from mesascope.records.store._rows import RunRow

Format = Literal["parquet", "csv", "netcdf", "mlflow", "tensorboard"]
"""The formats of exports."""

BEGINNINGS = {"parquet": b"PAR1", "csv": b"id,kind,", "netcdf": b"\x89HDF"}
"""How files of these formats begin that an export wrote."""
_OF_ROWS: dict[str, Callable[[Sequence[RunRow], str], None]] = {"parquet": write_parquet, "csv": write_csv}


def export_runs(
    form: Format, rows: Sequence[RunRow], folders: RunFolders, target: str, experiment: str
) -> Path | str:
    """Write runs in the format of another program, except netcdf; see `Store.export`.

    Raises:
        RecordError: there are no rows, they cannot be written, or a package is missing.
    """
    if not rows:
        raise RecordError(
            "no run is as the filters say, nothing was written; mesascope runs list shows what there is"
        )
    with _explained(form, target):
        match form:
            case "mlflow":
                write_mlflow(_ended(rows), folders, target, experiment)
            case "tensorboard":
                write_tensorboard(_ended(rows), folders, target)
            case _:
                _OF_ROWS[form](rows, target)
    return without_passwords(target) if "://" in target else Path(target)


def write_netcdf(data: xarray.Dataset, target: str) -> Path:
    """Write a study, as `Store.to_xarray` gives it, in the types and names of NetCDF."""
    import numpy as np

    for name, variable in data.variables.items():
        if (
            variable.dtype.kind == "O"
        ):  # texts with NaN, or labels of several types: NetCDF has one type in a variable
            texts = np.array(
                ["" if one != one else str(one) for one in variable.values.ravel()], dtype=object
            )
            data[name] = (variable.dims, texts.reshape(variable.shape))
    write_dataset(Path(target), data.rename(_in_letters_of_netcdf([*data.variables, *data.dims])))
    return Path(target)


def is_study(path: Path) -> bool:
    """Whether a NetCDF file holds a study, as `write_netcdf` writes it; trajectories and other results have no runs."""
    try:
        return "run" in read_dataset(path).variables
    except RecordError:
        return False


def _in_letters_of_netcdf(names: Iterable[Hashable]) -> dict[Hashable, str]:
    """New, distinct names for those that NetCDF does not take."""
    wanted = dict.fromkeys(names)
    clean = {name: re.sub(r"^$|^\W|[/\x00-\x1f\x7f]|\s$", "_", str(name)) for name in wanted}
    taken = {str(name) for name in wanted if clean[name] == name}
    found: dict[Hashable, str] = {}
    for name, new in clean.items():
        if new == name:
            continue
        candidates = chain([new], (f"{new}_{k}" for k in count(2)))
        found[name] = next(one for one in candidates if one not in taken)
        taken.add(found[name])
    return found


def _ended(rows: Sequence[RunRow]) -> list[RunRow]:
    """The runs that have ended."""
    return [row for row in rows if row.status in ("done", "failed")]


@contextmanager
def _explained(form: str, target: str) -> Iterator[None]:
    """Turn errors into messages that name the extra of a missing package, or the file that cannot be written."""
    try:
        with extra("exporters"):
            yield
    except OSError as error:
        raise RecordError(
            f"cannot write {target}: {error.strerror or error}; choose another place"
        ) from error
