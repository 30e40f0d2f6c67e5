"""Where training on a pool harms new tasks, and where stopping early helps (ours)."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from mesascope.records import CellMap, Figure, Panel
from mesascope.theory import lu2024 as theory

from .._claim import Claim, Finding, Settings, presets
from .._intervals import above, below, mean_interval
from ._data import PAPER, features_of, pool_on_the_sphere, regression

_KINDS = ("train to the end", "stop early; the end is harmful", "stop early")
_BANDS = (1.1, 2.0)  # of errors on new tasks over those on the pool
_TIMES = np.append(np.geomspace(1e-3, 1e4, 71), inf)  # ten a decade
_ONE = 30  # where the time is 1


class _Map(Settings):
    dim: int = 20
    noise: float = 0.25
    replicas: int = 40
    harmful: tuple[tuple[int, int], ...] = ((2, 10), (4, 6), (2, 200), (4, 200))  # tasks, examples
    early: tuple[tuple[int, int], ...] = ((8, 80), (10, 20), (12, 10))
    late: tuple[tuple[int, int], ...] = ((20, 40), (40, 10), (40, 80))
    gain: float = 0.01
    drawn: int = 8
    sizes: tuple[int, int, int] = (2, 200, 48)  # 40 different integers
    seed: int = 0


def _map(settings: _Map) -> Finding:
    """Errors on new tasks along exact flow: at the end against the answer 0, at the best time against both."""
    nothing = 1 + settings.noise
    found, parts = {}, {}
    for cell in (*settings.harmful, *settings.early, *settings.late):
        course = _errors(settings, *cell, settings.replicas)[0]
        end, best = course[:, -1], course[:, course.mean(0).argmin()]
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
        {"intervals_95": {name: interval for name, (_, interval) in found.items()}},
        {"map": _figure(settings)},
    )


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


def _figure(settings: _Map) -> Figure:
    """Errors at the end of training in every cell, and what is best for new tasks, at this dimension and for d → ∞."""
    low, high, count = settings.sizes
    sizes = sorted({round(one) for one in np.geomspace(low, high, count)})
    ratios = [size / settings.dim for size in sizes]
    exact = np.array(
        [[_errors(settings, k, ell, settings.drawn).mean(1) for k in sizes] for ell in sizes]
    )  # (examples, tasks, new or pool, times)
    limit = np.array(
        [
            [theory.flow_errors(alpha, kappa, settings.noise, _TIMES)[0] for kappa in ratios]
            for alpha in ratios
        ]
    )
    new, pool = exact[:, :, 0], exact[:, :, 1]
    here, error = f"$d = {settings.dim}$", {"colorlabel": "$E(ŷ - y)^2$", "scale": "log"}
    near, far = _BANDS
    bands = f"< {near - 1:.0%}", f"{near - 1:.0%} to {far - 1:.0%}", f"> {far - 1:.0%}"
    apart = np.digitize(new[..., -1] / pool[..., -1], _BANDS)
    panels = (
        _panel(f"Tasks of the pool, at the end, {here}", ratios, pool[..., -1], **error),
        _panel(f"New tasks, at the end, {here}", ratios, new[..., -1], **error),
        _panel(f"Tasks of the pool, at time 1, {here}", ratios, pool[..., _ONE], **error),
        _panel(f"New tasks, at time 1, {here}", ratios, new[..., _ONE], **error),
        _panel(f"New tasks, at the best time, {here}", ratios, new.min(-1), **error),
        _panel(f"New tasks are worse by, {here}", ratios, apart, colorlabel="at the end", kinds=bands),
        _panel(f"For new tasks, {here}", ratios, _kinds(settings, new), colorlabel="best", kinds=_KINDS),
        _panel(
            r"For new tasks, $d \to \infty$", ratios, _kinds(settings, limit), colorlabel="best", kinds=_KINDS
        ),
    )
    caption = (
        f"Exact errors, means over {settings.drawn} pools; the noise has variance {settings.noise:g}, the answer 0 the error "
        f"{1 + settings.noise:g}. The end is harmful where it is worse than that; stopping early gains at least 1 %."
    )
    return Figure(title="Training on a pool", panels=panels, across=2, caption=caption)


def _panel(title: str, ratios: list[float], z: np.ndarray, **how: Any) -> Panel:
    return Panel(
        title=title,
        xlabel=r"tasks per dimension $\kappa = K/d$",
        ylabel=r"examples per dimension $\alpha = \ell/d$",
        xscale="log",
        yscale="log",
        traces=(CellMap(x=ratios, y=ratios, z=z.tolist(), **how),),
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
        statement="""At d = 20 the flow of Γ on few tasks can end worse on new tasks than the answer 0, or past a better time;
            with 2d tasks that time gains under 1 %.""",
        source="derived here, by the exact flow on the features of lu2024",
        settings=presets(_Map()),
        check=_map,
        criterion="""At listed K and ℓ, ρ = 0.25, the 95 % intervals over 40 pools lie on the stated side: of 0 for the end's
            error over that of the answer 0, minus 1; of a hundredth for the gain of the time that is best for the mean: over
            the answer 0 where the end is worse than it, else over the end. Errors are exact for each pool.""",
        history="""An earlier version predicted the sides from the limit d → ∞; at d = 20 four tasks are still harmful with 60
            and 80 examples, for the reason that `lu2024/mean-of-the-pool` gives.""",
    ),
)
