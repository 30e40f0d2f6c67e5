"""Spectra of real normal matrices: intervals of real eigenvalues and conjugate pairs of complex ones."""

import cmath
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from ..core import finite_number
from ..specs import Number

Interval: TypeAlias = tuple[Number, Number]
Spectrum: TypeAlias = tuple[Interval | complex, ...]


def checked_spectrum(owner: str, spectrum: Any, dim: int) -> Spectrum:
    """Return one entry for each of `dim` eigenvalues: a pair (low, high) for a real one, or a complex number.

    Raises:
        TypeError: no list, or an entry that is no number.
        ValueError: another number of entries, an entry that is not finite, low > high, or a complex eigenvalue whose
            conjugate is not in the list.
    """
    if isinstance(spectrum, str) or not isinstance(spectrum, Iterable):
        raise TypeError(f"{owner} must list eigenvalues, got {spectrum!r}")
    entries = tuple(spectrum)
    if len(entries) != dim:
        raise ValueError(
            f"{owner} must list one eigenvalue for each of the {dim} state dimensions, "
            f"got {len(entries)}; LinearAR.contracting draws them all from one interval"
        )
    checked = tuple(_entry(f"{owner}[{j}]", entry) for j, entry in enumerate(entries))
    for j, (entry, partner) in enumerate(zip(checked, partners(checked), strict=True)):
        if isinstance(entry, complex) and partner == j:
            raise ValueError(
                f"{owner}[{j}] = {entry} stands without its conjugate, but complex eigenvalues of a real matrix come in "
                f"pairs: list {entry.conjugate()} too"
            )
    return checked


def real_bounds(spectrum: Spectrum) -> np.ndarray:
    """Return low and high of the real parts of all eigenvalues, shape (n, 2)."""
    bounds = [(e.real, e.real) if isinstance(e, complex) else (float(e[0]), float(e[1])) for e in spectrum]
    return np.array(bounds)


def imaginary_parts(spectrum: Spectrum) -> np.ndarray:
    """Return the imaginary parts of all eigenvalues, shape (n,)."""
    return np.array([entry.imag if isinstance(entry, complex) else 0.0 for entry in spectrum])


def largest_size(spectrum: Spectrum) -> float:
    """Return the largest |λ| that may occur."""
    sizes = ([abs(e)] if isinstance(e, complex) else [abs(float(bound)) for bound in e] for e in spectrum)
    return max(max(size) for size in sizes)


def partners(spectrum: Spectrum) -> list[int]:
    """Return for every eigenvalue the place of its conjugate; its own for a real one and where there is none."""
    places = list(range(len(spectrum)))
    for i, one in enumerate(spectrum):
        if isinstance(one, complex) and one.imag > 0:
            for j, other in enumerate(spectrum):
                if other == one.conjugate() and places[j] == j:
                    places[i], places[j] = j, i
                    break
    return places


def _entry(name: str, entry: object) -> Interval | complex:
    if isinstance(entry, complex | np.complexfloating):
        value = complex(entry) + 0  # turns −0 into 0
        if not cmath.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
        return value if value.imag else (value.real, value.real)
    if not isinstance(entry, tuple | list):
        number = finite_number(name, entry)
        return (number, number)
    if len(entry) != 2:
        raise ValueError(f"{name} must be a number or a pair (low, high), got {len(entry)} numbers")
    low, high = (finite_number(name, bound) for bound in entry)
    if low > high:
        raise ValueError(f"{name} has low = {low} above high = {high}: swap them")
    return (low, high)
