"""Numbers that the precision of a run cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

Path = tuple[str | int, ...]


class OutOfRange(NamedTuple):
    """A number that is infinite or 0 in the precision of a run.

    Attributes:
        path: where it is, outermost name first.
        what: what is wrong with it, and the fix.
    """

    path: Path
    what: str


def number_out_of_range(tree: Any, precision: str) -> OutOfRange | None:
    """The first number of a tree that the precision cannot hold.

    A number beyond the range is too large, one that would be 0 too small. Of a list or an array only the largest entry counts:
    small entries beside it may vanish.

    Args:
        tree: modules, dataclasses, mappings, sequences and arrays, whose leaves are numbers or anything else.
        precision: "float32", "float64", or "bfloat16", which has the range of float32.
    """
    name = "float64" if precision == "float64" else "float32"
    low, high = (float(bound) for bound in (np.finfo(name).tiny, np.finfo(name).max))
    fix = "" if name == "float64" else ", or precision = 'float64'"
    for path, sizes in _sizes(tree, ()):
        most = max(sizes)
        if most > high:
            return OutOfRange(path, f"{most:.3g} is beyond the range of {name}; take a smaller number{fix}")
        if 0 < most < low:
            return OutOfRange(path, f"{most:.3g} would be 0 in {name}; take a larger number{fix}")
    return None


def refuse_numbers_out_of_range(precision: str, **parts: Any) -> None:
    """Refuse a run whose numbers its precision cannot hold.

    Raises:
        ValueError: names the number, by the path that leads to it, and the fix.
    """
    found = number_out_of_range(parts, precision)
    if found is not None:
        raise ValueError(f"{'.'.join(map(str, found.path))}: {found.what}")


def _sizes(tree: Any, path: Path) -> Iterator[tuple[Path, list[float]]]:
    """The sizes of all numbers, those of a list or an array together."""
    return (
        (key, [size for _, size in group]) for key, group in groupby(_leaves(tree, path), lambda one: one[0])
    )


def _leaves(tree: Any, path: Path) -> Iterator[tuple[Path, float]]:
    if isinstance(tree, int | float | Fraction) and not isinstance(tree, bool):
        while path and isinstance(path[-1], int):
            path = path[:-1]
        yield path, _size(tree)
    elif eqx.is_inexact_array_like(tree):
        array = np.asarray(tree)
        if array.size:
            yield path, float(max(np.abs(array.real).max(), np.abs(array.imag).max()))
    else:
        for name, value in _children(tree):
            yield from _leaves(value, (*path, name))


def _size(number: Any) -> float:
    try:
        return abs(float(number))
    except OverflowError:
        return float("inf")


def _children(tree: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(tree, Mapping):
        yield from ((str(name), value) for name, value in tree.items())
    elif isinstance(tree, list | tuple):
        yield from enumerate(tree)
    elif is_dataclass(tree) and not isinstance(tree, type):
        yield from ((field.name, getattr(tree, field.name)) for field in fields(tree))
