"""The two axes of a phase diagram, checked, and the words by which their values are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from mesascope.core import finite_number


@dataclass(frozen=True)
class PhaseAxis:
    """One axis.

    Attributes:
        name: of the dimension.
        values: what `make` receives.
        coordinates: the values, if all are numbers; otherwise a word for each.
    """

    name: str
    values: tuple[Any, ...]
    coordinates: np.ndarray


def checked_axes(axes: Any, taken: Sequence[str]) -> tuple[PhaseAxis, PhaseAxis]:
    """The two axes of a mapping from names to values.

    Raises:
        TypeError: for something that is not such a mapping.
        ValueError: for another number of axes, a name that is taken, and an axis without values, with one twice, or with a
            number that is not finite.
    """
    if not isinstance(axes, Mapping) or not all(isinstance(name, str) for name in axes):
        raise TypeError(
            f"axes: must be a mapping from names to values, such as {{'scale': [0.1, 1.0], 'horizon': [10, 20]}}, got {axes!r}"
        )
    if len(axes) != 2:
        raise ValueError(f"axes: a phase diagram has two, got {len(axes)}: {', '.join(axes) or 'none'}")
    first, second = (_axis(name, values, taken) for name, values in axes.items())
    return first, second


def _axis(name: str, values: Any, taken: Sequence[str]) -> PhaseAxis:
    if name in taken or not name:
        raise ValueError(f"axes: {name!r} is no name for an axis, for something else has it; choose another")
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise TypeError(f"axes: {name} must be a sequence of values, got {values!r}")
    given = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if not given:
        raise ValueError(f"axes: {name} has no values; give at least one")
    numeric = all(isinstance(value, Number) and not isinstance(value, bool) for value in given)
    if numeric:
        coordinates = np.array([float(finite_number(f"axes: {name}", value)) for value in given])
        if all(isinstance(value, int) for value in given):
            coordinates = np.array(given)
    else:
        coordinates = np.array([words(value) for value in given])
    if len(set(coordinates.tolist())) < len(given):
        twice = next(c for c in coordinates.tolist() if coordinates.tolist().count(c) > 1)
        raise ValueError(f"axes: {name} has {twice!r} twice; give every value once")
    return PhaseAxis(name, given, coordinates)


def words(value: Any) -> str:
    """A value in words that are the same in every process."""
    if hasattr(value, "describe"):
        return str(value.describe())
    return str(getattr(value, "__qualname__", value))
