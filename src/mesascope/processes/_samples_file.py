"""Samples from files: arrays (.npy) and tables of numbers (.csv)."""

import csv
import re
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from ..specs import LARGEST

MAX_SAMPLES = 1_000_000
"""Moments of samples are computed in rational arithmetic, which takes seconds for a million numbers."""
_BYTES = 67  # of a number in a file, generously


def read_samples(path: Path, most_axes: int = 2, most: int = MAX_SAMPLES) -> Any:
    """Return the samples in a file as a float array of shape (n,) or (n, d), or of up to `most_axes` axes and `most` numbers.

    A .npy file holds the array itself. In a .csv file every line is one token, its coordinates separated by
    commas; a first line without numbers is a header and skipped, and a single column gives shape (n,).

    Raises:
        ValueError: the file is missing, of another kind, too large, or does not hold finite numbers.
    """
    readers = {".npy": _read_npy, ".csv": _read_csv}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path} ends in {path.suffix or 'nothing'}; give samples as .npy or .csv")
    try:
        if path.exists() and not path.is_file():
            raise ValueError(f"{path} is not a file; give a .npy or .csv file")
        if path.stat().st_size > _BYTES * most:
            raise ValueError(f"{path} is larger than {_BYTES * most // 2**20} MiB; give fewer numbers")
        samples = reader(path, most)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}; check the path") from error
    if samples.dtype.kind not in "iuf":
        raise ValueError(f"{path} holds {samples.dtype}, not real numbers; save a real array")
    if not 1 <= samples.ndim <= most_axes or samples.size == 0:
        known = ("(n,)", "(n, d)", "(n, d, d)")[:most_axes]
        raise ValueError(
            f"{path} holds an array of shape {samples.shape}; save one of shape {' or '.join(known)}"
        )
    if samples.size > most:
        raise _too_many(path, samples.size, most)
    samples = np.array(samples, dtype=float)
    beyond = ~(np.abs(samples) <= LARGEST)  # true for NaN too
    if beyond.any():
        where = tuple(map(int, np.argwhere(beyond)[0]))
        raise ValueError(
            f"{path} holds {samples[where]} at {where}, which is not finite or beyond {LARGEST:g}; change it"
        )
    return samples


def _read_npy(path: Path, most: int) -> Any:
    """Return the array of a file, of which nothing but its header is read yet."""
    try:
        return np.lib.format.open_memmap(path, mode="r")  # no pickle, and no archive
    except OSError:
        raise
    except Exception as error:  # numpy raises many kinds about headers that it cannot read
        raise ValueError(f"{path} is not an array in numpy's .npy format; save it with numpy.save") from error


def _too_many(path: Path, count: int | str, most: int) -> ValueError:
    return ValueError(f"{path} holds {count} numbers, at most {most} are accepted; give fewer")


def _number(cell: str) -> float:
    """A number as spreadsheets write it; `float` alone also takes digits of other scripts, and underscores."""
    if not cell.isascii() or "_" in cell:
        raise ValueError
    return float(cell)


def _begins_with_a_number(cell: str) -> bool:
    """Whether a cell is a number, or several of them with another separator."""
    try:
        _number(re.split(r"[;\s]+", cell.strip())[0])
    except ValueError:
        return False
    return True


def _read_csv(path: Path, most: int) -> Any:
    table, width = array("d"), 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        try:
            for row in reader:
                if not row or row == [""]:
                    continue
                try:
                    numbers = [_number(cell) for cell in row]
                except ValueError:
                    if reader.line_num == 1 and not any(map(_begins_with_a_number, row)):
                        continue  # the header
                    raise ValueError(
                        f"{path}, line {reader.line_num}: {row!r:.60} has an entry that is not a number; "
                        "separate numbers by commas"
                    ) from None
                width = width or len(numbers)
                if len(numbers) != width:
                    raise ValueError(
                        f"{path}, line {reader.line_num}: {len(numbers)} numbers, but the lines before "
                        f"have {width}; give every token all its coordinates"
                    )
                if len(table) + width > most:
                    raise _too_many(path, f"more than {most}", most)
                table.extend(numbers)
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} is not a text file of comma-separated numbers ({error})") from error
    samples = np.array(table)
    return samples.reshape(-1, width) if width > 1 else samples
