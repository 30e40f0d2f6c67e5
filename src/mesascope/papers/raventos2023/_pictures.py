"""The figures of raventos2023."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mesascope.records import Figure, Line, Panel

from .._figures import curve, one_panel
from ._data import Tested, measured, recorded


def crossover(settings: Tested) -> Figure:
    """Distances and losses on new tasks over the size of the pool."""
    powers = np.log2(settings.sizes)
    found = [measured(settings, tasks) for tasks in settings.sizes]
    setting = f"d = {settings.dim}, {settings.examples + 1} pairs, $\\sigma^2 = {settings.noise**2:g}$"
    axes = {"xlabel": "$\\log_2 K$, tasks of the pool", "yscale": "log"}

    def table(law: str, name: str) -> np.ndarray:
        return np.array([one[law][name] for one in found]).T

    distances = Panel(
        title=f"Distance on new tasks, {setting}",
        ylabel="mean square of the difference$/d$",
        traces=(
            *curve(powers, table("new", "dmmse"), "transformer to dMMSE", 0),
            *curve(powers, table("new", "ridge"), "transformer to ridge", 1),
        ),
        **axes,
    )
    losses = Panel(
        title="Loss on new tasks",
        ylabel="mean squared error$/d$",
        traces=(
            *curve(powers, table("new", "loss"), "transformer", 2),
            Line(x=powers, y=table("new", "loss of dmmse").mean(0), label="dMMSE", series=0),
            Line(x=powers, y=table("new", "loss of ridge").mean(0), label="ridge", series=1),
        ),
        **axes,
    )
    return Figure(
        title="A transformer trained on a pool of tasks",
        panels=(distances, losses),
        caption="Lines: median over the seeds, bands: all seeds; of dMMSE and ridge the mean over the same prompts.",
    )


def course(settings: Tested, courses: Mapping[int, np.ndarray]) -> Figure:
    """Distances from ridge during training: size of the pool → one row per seed."""
    return one_panel(
        "How far a transformer is from ridge during training",
        f"new tasks, d = {settings.dim}, {settings.examples + 1} pairs",
        *(
            trace
            for series, (tasks, one) in enumerate(courses.items())
            for trace in curve(recorded(settings), one, f"K = {tasks}", series)
        ),
        xlabel="steps",
        ylabel="distance from ridge",
        yscale="log",
        caption="Lines: median over the seeds, bands: all seeds.",
    )
