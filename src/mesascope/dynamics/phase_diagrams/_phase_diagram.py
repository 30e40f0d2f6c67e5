"""Phase diagrams: thousands of flows over two parameters, and which critical point each of them reaches."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import diffrax

from mesascope.core import Progress, cores, in_this_precision, named_key, shows_progress
from mesascope.objectives import Engine
from mesascope.records import RecordError, folder_lock, remove_leftovers
from mesascope.specs import show

from .._integrate import checked_solver, checked_until
from .._parameters import Mask
from .._rodas4 import Rodas4
from ._points import Make, PhaseAxis, PhasePoint, build_rows, checked_axes, checked_workers, label, place_of
from ._rows import Row, RowFile, Solving, solve_row
from ._table import NAMES, as_dataset

if TYPE_CHECKING:
    import xarray


@shows_progress
def phase_diagram(
    make: Make,
    axes: Mapping[str, Sequence[Any]],
    *,
    seed: int = 0,
    engine: Engine | None = None,
    until: float | str = "steady-state",
    mask: Mask | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-6,
    tolerance: float = 1e-9,
    max_steps: int = 4096,
    fraction: float = 0.99,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> xarray.Dataset:
    """Solve θ' = −∇L(θ) at every point of a grid over two parameters: where each flow ends, when, and how good that is.

    At each point (u, v) of the grid `make(u, v, key)` returns a `PhasePoint`, or a tuple (start, process, task) or (start,
    process, task, test). Points whose arrays have equal shapes and whose other parts are equal (two horizons, two scales of
    one law, but not two dims) share one compiled program. Rows, flows with one value of the first axis, are divided
    among the cores.

    Args:
        make: from a value of each axis, in their order, and a random key to what is solved there. The key is
            `named_key(seed, "phase diagram")` at every point, so that neighbours start alike; for independent draws fold
            something in, as in `jax.random.fold_in(key, number)`.
        axes: names and values of the two axes: numbers, or anything with distinct descriptions (laws, normalizers).
        seed: of the key.
        engine: how expectations are computed; `ExactMoments()` by default.
        until: flow time > 0, or `"steady-state"` (as in `gradient_flow`).
        mask: entries whose gradient is masked (see `Mask`).
        solver: any diffrax solver; `Rodas4()` by default, which stiffness does not slow down.
        rtol: relative local error allowed per step; the absolute one is this times the size of the smallest starting matrix.
        tolerance: of the steady state, as in `flow_ends`.
        max_steps: limit on solver steps for each flow.
        fraction: of the way, for `time_to_reach`; between 0 and 1.
        folder: keeps every row in a file as soon as it is solved; the same call then goes on with the rows that are missing
            and gives the same bits.
        workers: rows solved at the same time; as many as there are cores by default.
        progress: called after every row; KeyboardInterrupt in it, or Ctrl-C, ends the diagram
            and keeps the rows that were solved.

    Returns:
        A data set over the two axes. Where a flow did not come to its end `loss`, `risk`, both times, `end` and the critical
        point are NaN, and `status` says why.

        - `critical_point`: the number of the critical point reached, 0 being the most frequent: ends that differ by
          (W^KQ, W^PV) → (sW^KQ, W^PV/s) are one, and critical points that move with the parameters stay one;
          `up_to_symmetry`: the same up to signs and order of the coordinates. `name` has words for each.
        - `loss`, `loss_start`, `limit_loss` (where zheng2024 knows the limit from diagonal starts), `relative_loss` (their
          ratio, `loss/limit_loss`, where that is not 0), `risk` (the loss on the test of the point).
        - `time` at the end, `time_to_reach`: when the loss had fallen by `fraction` of what it falls in all.
        - `status`: "converged", "finished" (the time asked for), "step limit", "diverged", "not resolved" (rounding hides
          its end) or "interrupted".
        - `gradient_norm`, `steps`, and `end`, the weights in the coordinates of `real_vector`.

    Raises:
        ValueError, TypeError: bad axes or settings; `make` returns something else, its message naming the point.
        RecordError: the folder has rows of another diagram, or cannot be written; InUseError: another process writes there.
    """
    if not callable(make):
        raise TypeError(
            f"make: must be a function of a value of each axis and a random key, got {show(make)}"
        )
    grid = checked_axes(axes, NAMES)
    limit, solver = checked_until(until), checked_solver(solver, Rodas4())
    how = Solving(engine, limit, mask, solver, rtol, tolerance, max_steps, fraction)
    points = build_rows(make, grid, named_key(seed, "phase diagram"))
    place = None if folder is None else Path(folder)
    if place is not None and place.is_file():
        raise RecordError(f"folder: {place} is a file; name a folder")
    with nullcontext() if place is None else folder_lock(place, "diagram"):
        if place is not None:
            remove_leftovers(place)
        running = _Running(grid, points, how, seed, place, progress)
        running.solve(checked_workers(workers, len(points), cores()))
    return as_dataset(grid, running.rows, points, how, seed)


class _Running:
    """The rows of a diagram while they are solved."""

    def __init__(
        self,
        grid: tuple[PhaseAxis, PhaseAxis],
        points: list[list[PhasePoint]],
        how: Solving,
        seed: int,
        folder: Path | None,
        progress: Callable[[Progress], None] | None,
    ):
        self.rows: dict[int, Row] = {}
        self._grid, self._points, self._how = grid, points, how
        self._seed, self._folder, self._progress = seed, folder, progress
        self._computed = 0
        self._began = math.nan  # when the first row was done, for which a program was compiled

    def solve(self, workers: int) -> None:
        """Solve the missing rows, until all are solved or an interruption."""
        missing = iter([row for row in range(len(self._points)) if not self._read(row)])
        run = in_this_precision(self._solve)
        # A row is handed out when a worker is free, so that an interruption finds only those that are being solved: these
        # end, and are kept.
        with ThreadPoolExecutor(workers) as pool, suppress(KeyboardInterrupt):
            self._tell()
            waiting: set[Future[None]] = {pool.submit(run, row) for row in islice(missing, workers)}
            while waiting:
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for one in ended:
                    one.result()
                    if math.isnan(self._began):
                        self._began = time.monotonic()
                    else:
                        self._computed += 1
                    self._tell()
                waiting |= {pool.submit(run, row) for row in islice(missing, len(ended))}

    def _file(self, row: int) -> RowFile | None:
        if self._folder is None:
            return None
        first, second = self._grid
        value, others = label(first.values[row]), [label(other) for other in second.values]
        axes = {"row": [first.name, value], "columns": [second.name, others]}
        facts = {**self._how.facts(), "seed": self._seed, **axes}
        return RowFile(self._folder / f"row-{row:05}.nc", facts)

    def _read(self, row: int) -> bool:
        file = self._file(row)
        found = None if file is None else file.read(self._points[row])
        if found is not None:
            self.rows[row] = found
        return found is not None

    def _solve(self, row: int) -> None:
        places = [place_of(self._grid, row, column) for column in range(len(self._points[row]))]
        solved = solve_row(self._points[row], places, self._how)
        file = self._file(row)
        if file is not None:
            file.write(self._points[row], solved)
        self.rows[row] = solved

    def _tell(self) -> None:
        if self._progress is None:
            return
        each, rows = len(self._points[0]), len(self._points)
        seconds = time.monotonic() - self._began
        rate = each * self._computed / seconds if self._computed else math.nan
        self._progress(Progress(each * len(self.rows), each * rows, "flows", rate))
