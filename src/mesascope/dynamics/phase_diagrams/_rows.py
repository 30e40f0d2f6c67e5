"""One row of a phase diagram: its flows solved, and stored in a file."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mesascope.core import below_one, integer_at_least
from mesascope.objectives import Engine
from mesascope.records import (
    PACKAGE,
    RecordError,
    canonical_json,
    code_digest,
    difference,
    parse_json,
    read_dataset,
    write_dataset,
)

from .._parameters import Mask, by_structure, mask_vector, stacked
from ._points import PhasePoint, Problem, errors_at, problem_of, starts
from ._solve import FlowFacts, solve_flows

if TYPE_CHECKING:
    import xarray

_ALMOST_NO_TIME = 1e-300
_ROOMS = ("specs", "core", "processes", "models", "objectives", "dynamics")  # whose code computes a row
_COMPILING = threading.Lock()

Row = dict[str, np.ndarray]
"""Of every flow of a row what `FlowFacts` names; `end` is padded with NaN to the longest."""


@dataclass(frozen=True)
class Solving:
    """How the flows of a diagram are solved; as in `phase_diagram`."""

    engine: Engine | None
    until: float
    mask: Mask | None
    solver: diffrax.AbstractSolver
    rtol: float
    tolerance: float
    max_steps: int
    fraction: float

    def __post_init__(self) -> None:
        for name in ("rtol", "tolerance", "fraction"):
            object.__setattr__(self, name, below_one(name, getattr(self, name)))
        integer_at_least("max_steps", self.max_steps, 1)

    def facts(self) -> dict[str, Any]:
        """What determines every bit of a row, except its points."""
        masks = jax.tree.leaves(eqx.filter(self.mask, eqx.is_inexact_array))
        mask = [np.asarray(mask).real for mask in masks] if masks else self.mask
        words = {"engine": repr(self.engine), "solver": repr(self.solver), "mask": mask}
        return (
            {field.name: getattr(self, field.name) for field in fields(self)} | words | {"code": _own_code()}
        )


@cache
def _own_code() -> str:
    """Digest of the code and of the libraries that compute a row."""
    return code_digest(PACKAGE, [path for room in _ROOMS for path in (PACKAGE / room).rglob("*.py")])


def solve_row(points: Sequence[PhasePoint], places: Sequence[str], how: Solving) -> Row:
    """Solve the flows of a row, those of one structure in one compiled call.

    Raises:
        TypeError, ValueError: what a point asks for cannot be computed; says which by its place in the diagram.
    """
    problems = []
    for point, place in zip(points, places, strict=True):
        with errors_at(place):
            problems.append(problem_of(point, how.engine))
    parts = [(group, _solve_group([problems[n] for n in group], how)) for group in by_structure(problems)]
    longest = max(part.end.shape[1] for _, part in parts)
    row: Row = {}
    for group, part in parts:
        facts = part._asdict()
        facts["end"] = np.pad(part.end, ((0, 0), (0, longest - part.end.shape[1])), constant_values=np.nan)
        for name, values in facts.items():
            row.setdefault(name, np.zeros((len(points), *values.shape[1:]), values.dtype))[group] = values
    return row


def _solve_group(problems: list[Problem], how: Solving) -> FlowFacts:
    allowed = mask_vector(problems[0].start, how.mask)
    together = stacked(problems)

    def solve(until: float) -> FlowFacts:
        numbers = jnp.asarray([until, how.tolerance, how.rtol, how.fraction], float)
        return jax.device_get(solve_flows(*together, allowed, numbers, how.solver, how.max_steps))

    with _COMPILING:  # several rows would each compile the same program
        solve(_ALMOST_NO_TIME)
    return solve(how.until)


def _read_identity(text: Any) -> Any:
    """What `RowFile` wrote about the row; None where it wrote nothing."""
    try:
        return parse_json(text)
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True)
class RowFile:
    """Where a row is stored, and what must be the same for it to be used again."""

    path: Path
    facts: dict[str, Any]

    def read(self, points: Sequence[PhasePoint]) -> Row | None:
        """The row, if it is there.

        Raises:
            RecordError: the file is torn, or of another diagram.
        """
        if not self.path.exists():
            return None
        if self.path.is_dir():
            raise RecordError(f"{self.path}: is a folder, where a row should be; choose another folder")
        data = read_dataset(self.path)
        begin = starts(points)
        stored = data["start"].values if "start" in data else np.empty(0)
        same_start = stored.shape == begin.shape and np.allclose(
            stored, begin, rtol=1e-9, atol=1e-12, equal_nan=True
        )
        differs = difference(_read_identity(data.attrs.get("row")), json.loads(self._identity(points)))
        if differs or not same_start:
            field = differs[0] if differs else "start"
            raise RecordError(
                f"{self.path}: is a row of another phase diagram (its {field} differs from what is asked for); "
                "choose another folder"
            )
        return {name: self._numbers(data, name, len(points)) for name in FlowFacts._fields}

    def _numbers(self, data: xarray.Dataset, name: str, count: int) -> np.ndarray:
        """What is stored of every flow under this name."""
        values = data[name].values if name in data else np.empty(0)
        if values.ndim != 1 + (name == "end") or len(values) != count or values.dtype.kind not in "iuf":
            raise RecordError(
                f"{self.path}: holds no numbers of {count} flows called {name}; remove it and run again"
            )
        return values

    def write(self, points: Sequence[PhasePoint], row: Row) -> None:
        """Write the row, atomically.

        Raises:
            RecordError: it cannot be written.
        """
        variables: dict[str, Any] = {
            name: (("point", "weight") if name == "end" else ("point",), values)
            for name, values in row.items()
        }
        variables["start"] = (("point", "start weight"), starts(points))
        write_dataset(self.path, variables, {"row": self._identity(points)})

    def _identity(self, points: Sequence[PhasePoint]) -> str:
        return canonical_json({**self.facts, "points": [point.describe() for point in points]})
