"""Where training on a pool harms new tasks, and where stopping early helps (ours)."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from mesascope.records import CellMap, Figure, Panel
from mesascope.theory import lu2024 as theory

from .._claim import Claim, Finding, Settings, presets
from .._intervals import above, below, mean_interval
from ._data import PAPER, features_of, pool_on_the_sphere, regression

_KINDS = ("train to the end", "stop early; the end is harmful", "stop early")
_BEST: dict[str, Any] = {"colorlabel": "what is best", "kinds": _KINDS}
_TIMES = np.append(np.geomspace(1e-3, 1e4, 71), inf)  # ten a decade
_ONE = 30  # where the time is 1


class _Map(Settings):
    dim: int = 20
    noise: float = 0.25
    replicas: int = 40
    harmful: tuple[tuple[int, int], ...] = ((2, 10), (4, 6), (2, 200), (4, 200))  # tasks, examples
    early: tuple[tuple[int, int], ...] = ((8, 80), (10, 20), (12, 10))
    late: tuple[tuple[int, int], ...] = ((20, 40), (40, 10), (40, 80))
    followed: tuple[tuple[int, int], ...] = ((2, 200), (40, 80))
    gain: float = 0.01
    drawn: int = 8
    sizes: tuple[int, int, int] = (2, 200, 48)  # 40 different integers
    seed: int = 0


def _map(settings: _Map) -> Finding:
    """Errors on new tasks along exact flow: at the end against the answer 0, at the best time against both."""
    nothing, table = 1 + settings.noise, _Table.of(settings)
    found, parts = {}, {}
    for cell in (*settings.harmful, *settings.early, *settings.late):
        judged, others = _errors(settings, *cell, 2 * settings.replicas)[0].reshape(2, settings.replicas, -1)
        end, best = judged[:, -1], judged[:, others.mean(0).argmin()]
        harmful, name = cell in settings.harmful, f"K = {cell[0]}, ℓ = {cell[1]}"
        found[f"end over the answer 0, {name}"] = mean_interval(end / nothing - 1)
        parts[f"end over the answer 0, {name}"] = (above if harmful else below)(
            found[f"end over the answer 0, {name}"][1], 0.0
        )
        gained = f"gain of stopping over the {'answer 0' if harmful else 'end'}, {name}"
        found[gained] = mean_interval(1 - best / (nothing if harmful else end))
        parts[gained] = (below if cell in settings.late else above)(found[gained][1], settings.gain)
    return Finding.of_parts(
        {name: mean for name, (mean, _) in found.items()},
        "end: worse at the harmful cells, else better; gain: more than 0.01, less at the late cells",
        settings.gain,
        parts,
        {
            "intervals_95": {name: interval for name, (_, interval) in found.items()},
            "at_time_1_and_at_the_end": {
                f"K = {tasks}, ℓ = {examples}": _at_time_1(settings, tasks, examples)
                for tasks, examples in settings.followed
            },
            "error_on_new_tasks_over_that_on_the_pool": table.bounds_apart(),
        },
        {"map": _figure(settings, table)},
    )


def _at_time_1(settings: _Map, tasks: int, examples: int) -> dict[str, list[float]]:
    """Mean errors at the time 1 and at the end."""
    new, pool = _errors(settings, tasks, examples, settings.replicas).mean(1)[:, [_ONE, -1]].tolist()
    return {"new tasks": new, "pool": pool}


def _errors(settings: _Map, tasks: int, examples: int, pools: int) -> np.ndarray:
    """Exact errors on new tasks and on the pool at `_TIMES` of the flow on each pool, shape (2, pools, times)."""
    dim, noise = settings.dim, settings.noise
    fresh = features_of(regression(dim, "sphere", noise), examples)
    drawn = (pool_on_the_sphere(dim, tasks, noise, settings.seed + one) for one in range(pools))
    known = [features_of(pool, examples) for pool in drawn]
    paths = [pool.after(_TIMES) for pool in known]
    return np.array(
        [
            [fresh.error(path) for path in paths],
            [pool.error(path) for pool, path in zip(known, paths, strict=True)],
        ]
    )


class _Table(NamedTuple):
    """Mean errors at `_TIMES` for as many tasks and examples per dimension, shape (examples, tasks, times).

    Attributes:
        ratios: tasks, and examples, per dimension.
        new: on new tasks.
        pool: on the pool.
    """

    ratios: np.ndarray
    new: np.ndarray
    pool: np.ndarray

    @classmethod
    def of(cls, settings: _Map) -> _Table:
        low, high, count = settings.sizes
        sizes = sorted({round(one) for one in np.geomspace(low, high, count)})
        rows = np.array([[_errors(settings, k, ell, settings.drawn).mean(1) for k in sizes] for ell in sizes])
        new, pool = np.moveaxis(rows, 2, 0)
        return cls(np.array(sizes) / settings.dim, new, pool)

    @property
    def apart(self) -> np.ndarray:
        """The error on new tasks over that on the pool, at the end."""
        return self.new[..., -1] / self.pool[..., -1]

    def bounds_apart(self) -> dict[str, float]:
        """The least ratio for few tasks and at least d examples, and the largest for many tasks."""
        few = self.apart[np.ix_(self.ratios >= 1, self.ratios <= 0.5)]
        many = self.apart[:, self.ratios >= 4]
        return {
            "least, 2K ≤ d, ℓ ≥ d": float(few.min(initial=np.inf)),
            "largest, K ≥ 4d": float(many.max(initial=0)),
        }


def _figure(settings: _Map, table: _Table) -> Figure:
    """Errors in every cell, and what is best for new tasks, at this dimension and for d → ∞."""
    ratios, new, pool = table
    limit = np.array(
        [
            [theory.flow_errors(alpha, kappa, settings.noise, _TIMES)[0] for kappa in ratios]
            for alpha in ratios
        ]
    )
    here = f"$d = {settings.dim}$"
    shown = [pool[..., -1], new[..., -1], pool[..., _ONE], new[..., _ONE], new.min(-1)]
    names = ("Pool, at the end", "New tasks, at the end", "Pool, at time 1", "New tasks, at time 1")
    error = {
        "colorlabel": r"error $E(\hat y - y)^2$",
        "scale": "log",
        "limits": (float(np.min(shown)), float(np.max(shown))),
    }
    panels = (
        *(
            _panel(f"{name}, {here}", ratios, z, **error)
            for name, z in zip((*names, "New tasks, at the best time"), shown, strict=True)
        ),
        _panel(
            f"New tasks over pool, at the end, {here}",
            ratios,
            table.apart,
            colorlabel="ratio of errors",
            scale="log",
        ),
        _panel(f"Best for new tasks, {here}", ratios, _kinds(settings, new), **_BEST),
        _panel(r"Best for new tasks, $d \to \infty$", ratios, _kinds(settings, limit), **_BEST),
    )
    caption = (
        f"Exact errors, means over {settings.drawn} pools; the noise has variance {settings.noise:g}, the answer 0 the error "
        f"{1 + settings.noise:g}. Time is that of the flow Γ' = C - ΓF from 0. The end is harmful where it is worse than the "
        "answer 0; stopping early gains at least 1 %."
    )
    return Figure(title="Training on a pool", panels=panels, across=2, caption=caption)


def _panel(title: str, ratios: np.ndarray, z: np.ndarray, **how: Any) -> Panel:
    return Panel(
        title=title,
        xlabel=r"tasks per dimension $\kappa = K/d$",
        ylabel=r"examples per dimension $\alpha = \ell/d$",
        xscale="log",
        yscale="log",
        traces=(CellMap(x=ratios.tolist(), y=ratios.tolist(), z=z.tolist(), **how),),
    )


def _kinds(settings: _Map, courses: np.ndarray) -> np.ndarray:
    """The number of what is best, by the errors on new tasks at `_TIMES`, the last axis."""
    end, gains = courses[..., -1], courses.min(-1) < (1 - settings.gain) * courses[..., -1]
    return np.where(end > 1 + settings.noise, 1, np.where(gains, 2, 0))


CLAIMS = (
    Claim(
        id=f"{PAPER}/map",
        title="On few tasks training can end worse than the answer 0",
        evidence="measured, reduced",
        origin="ours",
        statement="""In 20 dimensions the flow on 2 or 4 tasks ends worse on new tasks than the answer 0; with 8 to 12 stopping
            early helps, with 20 or 40 by under 1 %.""",
        source="derived here, by the exact flow on the features of lu2024",
        settings=presets(_Map()),
        check=_map,
        criterion="""At ten pairs of K and ℓ, ρ = 0.25, the 95 % intervals over 40 pools lie on the stated side: of 0 for the
            end's error over that of the answer 0, minus 1; of a hundredth for the gain of an earlier time: over the answer 0
            where the end is worse than it, else over the end. The time is the best for 40 other pools. Errors are exact for
            each pool.""",
        history="""An earlier version predicted the sides from the limit d → ∞; at d = 20 four tasks are still harmful with 60
            and 80 examples, for the reason that `lu2024/mean-of-the-pool` gives. Then the time was the best for the judged
            pools themselves.""",
    ),
)
