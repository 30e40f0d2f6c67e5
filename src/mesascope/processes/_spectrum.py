"""Spectra of real normal matrices: intervals of real eigenvalues and conjugate pairs of complex ones."""

import cmath
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ..specs import (
    Number,
    SpecError,
    SpecTypeError,
    as_list,
    checked_at,
    error_path,
    in_file_form,
    number,
    show,
    unknown,
)

Interval: TypeAlias = tuple[Number, Number]
Spectrum: TypeAlias = tuple[Interval | complex, ...]


def given_spectrum(value: Any) -> Any:
    """Return a tuple of pairs (low, high) and complex numbers, or a table with one `low` and `high` for all eigenvalues."""
    if isinstance(value, Mapping):
        return _numbers(value, ("low", "high"))
    given = as_list(value)
    if not isinstance(given, list | tuple) or not given:
        raise SpecTypeError(
            "must list eigenvalues, pairs [low, high] and tables with re and im, or be a table with low and high for all, "
            f"got {show(given)}"
        )
    return tuple(checked_at(_entry, one, j) for j, one in enumerate(given))


def checked_spectrum(given: Any, dim: int) -> Spectrum:
    """Return one entry for each of `dim` eigenvalues; errors are at the field `spectrum`."""
    if isinstance(given, Mapping):
        with error_path("spectrum"):
            return (_interval(given["low"], given["high"]),) * dim
    if len(given) != dim:
        raise SpecError(
            f"must list one eigenvalue for each of the {dim} state dimensions, got {len(given)}; a table with low and high "
            "draws them all from one interval",
            "spectrum",
        )
    for j, (entry, partner) in enumerate(zip(given, partners(given), strict=True)):
        if isinstance(entry, complex) and partner == j:
            raise SpecError(
                f"{entry} is given without its conjugate, but complex eigenvalues of a real matrix come in pairs: list "
                f"{entry.conjugate()} too",
                "spectrum",
                j,
            )
    return tuple(given)


def written_spectrum(spectrum: Spectrum) -> list[Any]:
    """Return the entries in the form of specifications."""
    return [
        {"re": e.real, "im": e.imag} if isinstance(e, complex) else in_file_form(e[0] if e[0] == e[1] else e)
        for e in spectrum
    ]


def real_bounds(spectrum: Spectrum) -> np.ndarray:
    """Return the bounds low and high of the real parts of all eigenvalues, shape (n, 2)."""
    bounds = [(e.real, e.real) if isinstance(e, complex) else (float(e[0]), float(e[1])) for e in spectrum]
    return np.array(bounds)


def imaginary_parts(spectrum: Spectrum) -> np.ndarray:
    """Return the imaginary parts of all eigenvalues, shape (n,)."""
    return np.array([entry.imag if isinstance(entry, complex) else 0.0 for entry in spectrum])


def largest_size(spectrum: Spectrum) -> float:
    """Return the largest possible |λ|."""
    sizes = ([abs(e)] if isinstance(e, complex) else [abs(float(bound)) for bound in e] for e in spectrum)
    return max(max(size) for size in sizes)


def partners(spectrum: Spectrum) -> list[int]:
    """Return the index of the conjugate of every eigenvalue; the own index if it is real or has no conjugate in the list."""
    places = list(range(len(spectrum)))
    for i, one in enumerate(spectrum):
        if isinstance(one, complex) and one.imag > 0:
            for j, other in enumerate(spectrum):
                if other == one.conjugate() and places[j] == j:
                    places[i], places[j] = j, i
                    break
    return places


def _entry(given: Any) -> Interval | complex:
    if isinstance(given, Mapping):
        parts = _numbers(given, ("re", "im"))
        given = complex(float(parts["re"]), float(parts["im"]))
    if isinstance(given, complex | np.complexfloating):
        value = complex(given) + 0  # turns −0 into 0
        if not cmath.isfinite(value):
            raise SpecError(f"must be finite, got {value}")
        return value if value.imag else (value.real, value.real)
    if not isinstance(given, tuple | list):
        real = number(given)
        return (real, real)
    if len(given) != 2:
        raise SpecError(f"must be a number or a pair (low, high), got {len(given)} numbers")
    return _interval(*(checked_at(number, bound, end) for end, bound in enumerate(given)))


def _interval(low: Number, high: Number) -> Interval:
    if low > high:
        raise SpecError(f"has low = {low} above high = {high}: swap them")
    return (low, high)


def _numbers(table: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Number]:
    """Return the numbers of a table that must have exactly these fields."""
    for name in table:
        if name not in names:
            raise SpecError(unknown("field", name, names))
    for name in names:
        if name not in table:
            raise SpecError("missing; add it", name)
    return {name: checked_at(number, table[name], name) for name in names}
