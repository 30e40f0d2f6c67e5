"""The time course of merged heads on white inputs, in closed form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mesascope.dynamics import gradient_flow
from mesascope.models import LinearSelfAttention
from mesascope.processes import FewShot
from mesascope.records import Figure, Line, Panel, Points
from mesascope.theory import zhang2025 as theory

from .._claim import Claim, Finding, Settings, presets
from .._identity import identity, relative_error
from .._runs import require_finished
from ._model import PAPER, Data, model_of, process_of


class _Followed(NamedTuple):
    """Errors E(ŷ − y)² along one flow, and those of the formula."""

    times: np.ndarray
    errors: np.ndarray
    formula: np.ndarray


def _followed(settings: _Course, dim: int, examples: int, equal: bool) -> _Followed:
    """Follow heads U_h = u_h I/√D; `equal`: from v_h = u_h, which the formula describes by a logistic curve."""
    data = Data(eigenvalues=(1 / dim,) * dim, examples=examples)
    rng = np.random.default_rng([settings.seed, settings.heads])
    values, sizes = settings.scale * rng.normal(size=(2, settings.heads))
    if equal:
        sizes = values
    matrices, value = np.zeros((settings.heads, dim + 1, dim + 1)), np.zeros((settings.heads, 1, dim + 1))
    matrices[:, range(dim), range(dim)] = sizes[:, None] / dim**0.5
    value[:, 0, -1] = values
    layer = LinearSelfAttention(matrices, value, context="examples")
    flow = require_finished(gradient_flow(model_of(layer), process_of(data), FewShot(examples)))
    formula = theory.merged_course(values, sizes, 1 / dim, dim, examples, flow.times)
    return _Followed(flow.times, 2 * flow.loss, formula)


def _course(settings: _Course) -> Finding:
    """Errors along flows against the formula, from equal and unequal factors."""
    shown = {
        f"D = {dim}, N = {examples}, {kind} factors": _followed(settings, dim, examples, kind == "equal")
        for dim, examples in settings.sizes
        for kind in ("equal", "unequal")
    }
    errors = {name: relative_error(one.errors, one.formula) for name, one in shown.items()}
    return identity(errors, settings.tolerance, {"merged-course": _curves(settings, shown)})


def _curves(settings: _Course, shown: dict[str, _Followed]) -> Figure:
    traces: list[Line | Points] = []
    for series, (name, one) in enumerate(shown.items()):
        few = np.unique(np.linspace(0, len(one.times) - 1, settings.positions).round().astype(int))
        traces.append(Line(x=one.times, y=one.formula, label=name, series=series, style="solid"))
        traces.append(Points(x=one.times[few], y=one.errors[few], label="flow", series=series))
    return Figure(
        title="Merged heads on white inputs learn in one drop, on a curve in closed form",
        panels=(
            Panel(
                title=f"{settings.heads} heads, starts of {settings.scale:g}",
                xlabel="flow time",
                ylabel="$E(\\hat y - y)^2$",
                traces=tuple(traces),
            ),
        ),
        caption="Lines: the formula. Points: the flow.",
    )


class _Course(Settings):
    seed: int = 0
    heads: int = 3
    scale: float = 0.01
    sizes: tuple[tuple[int, int], ...] = ((2, 9), (4, 31))  # D and N
    positions: int = 40
    tolerance: float = 1e-9


CLAIMS = (
    Claim(
        id=f"{PAPER}/merged-course",
        title="On white inputs merged heads follow a closed form in time",
        evidence="exact",
        origin="ours",
        statement="""On inputs without correlations, and from multiples of the identity, the error of merged heads has a closed
            form in time: a logistic curve of the slope where both factors of every head are equal.""",
        source="derived here; zhang2025 announces a time course for certain data and starts (abstract)",
        settings=presets(_Course()),
        check=_course,
        criterion="""At all times that flows save their errors are those of the formula, to 1e-9 of the largest: flows are
            solved with local errors of 1e-12.""",
    ),
)
