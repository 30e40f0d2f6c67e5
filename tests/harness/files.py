"""What the harness knows of a file that mesascope reads, and how contents are compared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        file: an example, whose bytes are mutated.
        read: what our readers make of the file, as a text that is equal for equal contents.
        forge: a mutant with a new checksum, or another valid form; None where every mutant of the bytes may be one.
        checksum: whether no other content may be read after an accident.
        command: that reads it, too, with exit status 0 for the file as it was.
        others: further contents to mix it with.
    """

    file: Path
    read: Callable[[], str]
    forge: Callable[..., bytes] | None = None
    checksum: bool = True
    command: tuple[str, ...] = ()
    others: tuple[bytes, ...] = ()


def text(value: Any) -> str:
    """A text that is equal for equal values, NaN included."""
    if hasattr(value, "model_dump_json"):
        return value.model_dump_json()
    return repr(value)


def data_text(data: Any) -> str:
    values = {
        name: (one.dims, one.dtype.str, one.values.tolist(), one.attrs)
        for name, one in data.variables.items()
    }
    return repr((sorted(values.items()), sorted(data.attrs.items())))


def arrays_text(tree: Any) -> str:
    return repr([np.asarray(leaf).tolist() for leaf in jax.tree.leaves(tree)])


def report(path: Path) -> tuple[str, ...]:
    """The command that writes the report of what lies there."""
    return "report", str(path), "--out", f"{path}.html"


TRAIN = {
    "process": {"kind": "linear-regression", "dim": 2},
    "examples": 3,
    "model": {"kind": "prompt-linear-transformer", "layers": 1},
    "steps": 2,
    "batch": 2,
    "held_out": 4,
    "average": 0.9,
    "checkpoint_every": 1,
}
"""A training that is over at once."""
