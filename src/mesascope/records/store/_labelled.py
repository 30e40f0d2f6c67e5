"""A study as one labelled data set: the outcomes of its runs over its axes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._models import StudyAxis
from ._rows import flat

if TYPE_CHECKING:
    import numpy as np
    import xarray

    Array = np.ndarray[Any, np.dtype[Any]]

_NAMED = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_BY_RANK = {1: ("index",), 2: ("row", "column")}


def labelled(
    axes: Sequence[StudyAxis],
    points: Sequence[tuple[int, str, str, Mapping[str, Any]]],
    attributes: Mapping[str, Any],
) -> xarray.Dataset:
    """Arrange the outcomes of runs over the axes of their study.

    Args:
        axes: the dimensions.
        points: row-major number of the place, run, status, and outcome of every place that has a run.
        attributes: of the whole.

    Returns:
        Variables `run` and `status`, and one for every name in the outcomes: numbers, with NaN where there are none; texts
        as objects; arrays of one shape with dimensions of their own, called after them. What has no one shape or type is
        left out, and named in the attribute `left_out`.
    """
    import numpy as np
    import xarray

    sizes = tuple(axis.size for axis in axes)
    dims = tuple(axis.name for axis in axes)
    columns: dict[str, dict[int, Any]] = defaultdict(dict)
    for place, run, status, outcome in points:
        columns["run"][place], columns["status"][place] = run, status
        for name, value in flat(outcome).items():
            if value is not None:
                columns[f"outcome.{name}" if name in ("run", "status", *dims) else name][place] = value
    coordinates = {name: (dim, values) for name, dim, values in _coordinates(axes)}
    total = int(np.prod(sizes, dtype=np.int64))
    taken = {*dims, *coordinates, *columns}
    variables, left_out = {}, []
    for name, column in columns.items():
        array = _texts(column, total, "") if name in ("run", "status") else _column(column, total)
        if array is None or name in coordinates:
            left_out.append(name)
            continue
        own = tuple(_unused(f"{name}_{part}", taken) for part in _parts(array.ndim - 1))
        variables[name] = ((*dims, *own), array.reshape((*sizes, *array.shape[1:])))
    attrs = {
        name: value for name, value in {**attributes, "left_out": sorted(left_out)}.items() if value != []
    }
    return xarray.Dataset(variables, coordinates, attrs)


def _coordinates(axes: Sequence[StudyAxis]) -> list[tuple[str, str, Array]]:
    own = [(axis.name, axis.name, _labels(axis.labels)) for axis in axes if axis.labels]
    return own + [
        (name, axis.name, _labels(labels)) for axis in axes for name, labels in axis.coordinates.items()
    ]


def _labels(labels: Sequence[Any]) -> Array:
    import numpy as np

    of_one_type = len({type(label) for label in labels}) == 1 or all(map(_is_real, labels))
    return np.asarray(labels) if of_one_type else _objects(labels)


def _objects(values: Sequence[Any]) -> Array:
    import numpy as np

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _parts(rank: int) -> tuple[str, ...]:
    """What the dimensions of an array are called, behind its name."""
    return _BY_RANK.get(rank, tuple(f"axis_{k}" for k in range(rank)))


def _unused(name: str, taken: Container[str]) -> str:
    """The name of a dimension that no axis and no variable has."""
    while name in taken:
        name = f"outcome.{name}"
    return name


def _column(column: Mapping[int, Any], total: int) -> Array | None:
    """All values of one name, the place first; None where they have no one type and shape."""
    import numpy as np

    values = list(column.values())
    if all(isinstance(value, str) for value in values) and not all(value in _NAMED for value in values):
        return _texts(column, total, float("nan"))
    arrays = [_numbers(value) for value in values]
    found = [array for array in arrays if array is not None]
    if len(found) < len(arrays) or len({array.shape for array in found}) > 1:
        return None
    every = np.stack(found)
    if len(values) < total and every.dtype.kind in "bi":
        every = every.astype(float)  # NaN where there is no value
    result = np.full((total, *every.shape[1:]), np.nan if every.dtype.kind in "fc" else 0, dtype=every.dtype)
    result[list(column)] = every
    return result


def _texts(column: Mapping[int, Any], total: int, missing: object) -> Array:
    array = _objects([missing] * total)
    for place, value in column.items():
        array[place] = value
    return array


def _numbers(value: Any) -> Array | None:
    """A number or nested lists of numbers as an array of booleans, integers, floats or complex numbers."""
    import numpy as np

    try:
        array = np.asarray(value)
        if array.dtype.kind not in "bif":
            array = np.asarray(_read(value))
    except (ValueError, TypeError, OverflowError):  # lists of different lengths, or not of numbers
        return None
    return array if array.dtype.kind in "bifc" else None


def _read(value: Any) -> Any:
    """Numbers that JSON has no form for, read back."""
    match value:
        case str():
            return _NAMED.get(value, value)
        case list():
            return [_read(one) for one in value]
        case {"re": re, "im": im}:
            return complex(_read(re), _read(im))
        case _:
            return value


def _is_real(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def study_attributes(name: str, kind: str, spec: Mapping[str, Any], codes: Sequence[str]) -> dict[str, Any]:
    """The origin of a data set: study, code of its runs, and the version that reads them."""
    from importlib.metadata import version

    return {
        "study": name,
        "kind": kind,
        "code": list(codes),
        "mesascope": version("mesascope"),
        "spec": json.dumps(spec, ensure_ascii=False),
    }
