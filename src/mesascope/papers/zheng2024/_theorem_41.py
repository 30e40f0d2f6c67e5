"""Theorem 4.1: from a diagonal start, training ends at one gradient step with a step size known in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.dynamics import gradient_flow
from mesascope.models import LinearAttention
from mesascope.processes import DiagonalUnitary, NextToken
from mesascope.records import Figure, Line, Panel, Points, Rule, Trace
from mesascope.theory import zheng2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._runs import require_finished
from .._shared import shared
from ._common import (
    LAWS,
    PAPER,
    STARTS,
    LawAndSizes,
    diagonal_run,
    diagonals,
    off_diagonal_size,
    process_and_task,
)


def _limit(settings: _Limit) -> Finding:
    """Flows of every law from every start in every case against the formula."""
    cases: list[dict[str, Any]] = []
    worst = dict.fromkeys(settings.laws, 0.0)
    for law in settings.laws:
        for dim, horizon, scale in settings.cases:
            process, task = DiagonalUnitary(LAWS[law](scale), dim), NextToken(horizon)
            expected = float(theory.limit_product(process, task))
            for start in settings.starts:
                flow = diagonal_run(process, task, start)
                error = float(np.max(np.abs(np.asarray(flow.model.products()) / expected - 1)))
                error = max(error, off_diagonal_size(flow.model))
                worst[law] = max(worst[law], error)
                case = {"law": law, "dim": dim, "horizon": horizon, "scale": scale, "start": start}
                case |= {"expected": expected, "error": error}
                cases.append({**case, "flow_time": flow.time, "steps": flow.stats["steps"]})
    parts = {law: within(error, settings.tolerance) for law, error in worst.items()}
    return Finding.of_parts(worst, 0.0, settings.tolerance, parts, {"cases": cases})


def _conserved(settings: _Paths) -> Finding:
    """Largest drift of a² − b² along flows, relative to a0² + b0²."""
    process, task = process_and_task(settings)
    drifts = []
    for start in settings.starts:
        a, b = diagonals(diagonal_run(process, task, start).trajectory)
        invariant = a**2 - b**2
        drifts.append(float(np.abs(invariant - invariant[0]).max() / (a[0] ** 2 + b[0] ** 2).max()))
    worst = max(drifts)
    return Finding(worst, 0.0, settings.tolerance, within(worst, settings.tolerance), {"drifts": drifts})


def _trajectory(settings: _Paths) -> Finding:
    """The whole path of the flow, all d² · 6 weights free, against the elementary solution."""
    process, task = process_and_task(settings)
    errors: list[float] = []
    traces: list[Trace] = []
    points: list[Trace] = []
    data: dict[str, tuple[tuple[str, ...], Any]] = {}
    for number, start in enumerate(settings.starts):
        flow = diagonal_run(process, task, start)
        closed = theory.diagonal_flow(process, task, *start)
        a, b = diagonals(flow.trajectory)
        exact = closed(flow.times)
        gap_a = np.abs(a - exact.a[:, None]).max() / np.abs(exact.a).max()
        gap_b = np.abs(b - exact.b[:, None]).max() / np.abs(exact.b).max()
        errors.append(max(float(gap_a), float(gap_b), off_diagonal_size(flow.trajectory)))
        label = f"$a_0={start[0]:g},\\ b_0={start[1]:g}$"
        traces.append(
            Line(x=flow.times[1:], y=exact.product[1:], label=f"closed form, {label}", series=number)
        )
        solved = slice(1, None, max(1, len(flow.times) // 12))
        points.append(
            Points(
                x=flow.times[solved],
                y=(a * b).mean(1)[solved],
                label="solver, all weights free",
                series=number,
            )
        )
        data[f"times_{number}"] = ((f"point_{number}",), flow.times)
        data[f"product_{number}"] = ((f"point_{number}",), (a * b).mean(1))
        data[f"closed_form_{number}"] = ((f"point_{number}",), exact.product)
    limit = float(theory.limit_product(process, task))
    figure = Figure(
        title="Gradient flow on the diagonal, solved",
        panels=(
            Panel(
                title=f"{process.law.describe()}, d = {process.dim}, T = {task.horizon}",
                xlabel="flow time $s$",
                ylabel="product $ab$",
                xscale="log",
                yscale="log",
                traces=(*traces, *points, Rule(value=limit, label="limit of Theorem 4.1")),
            ),
        ),
    )
    worst = max(errors)
    decision = within(worst, settings.tolerance)
    return Finding(
        worst,
        0.0,
        settings.tolerance,
        decision,
        {"errors": errors},
        {"trajectory": figure},
        {"trajectory": data},
    )


def _one_product(settings: _OneProduct) -> Finding:
    """Limits (a, b) of several starts: distinct points, one product."""
    process, task = process_and_task(settings)
    ends = []
    for start in settings.starts:
        a, b = diagonals(diagonal_run(process, task, start).model)
        ends.append((float(a.mean()), float(b.mean())))
    products = [a * b for a, b in ends]
    spread = max(products) / min(products) - 1
    distance = min(abs(p[0] - q[0]) for i, p in enumerate(ends) for q in ends[:i])
    parts = {
        "one product": within(spread, settings.tolerance),
        "different a": verdict_if(distance >= settings.distinct),
    }
    measured = {"spread_of_product": spread, "smallest_distance_of_a": distance}
    expected = {"spread_of_product": 0.0, "smallest_distance_of_a": f">= {settings.distinct:g}"}
    details = {"ends": ends, "products": products}
    return Finding.of_parts(measured, expected, settings.tolerance, parts, details)


class _Random(LawAndSizes):
    scales: tuple[float, ...] = (0.01, 0.1, 0.2)
    starts_per_scale: int = 3
    seed: int = 0
    rest: float = 1e-10
    max_steps: int = 200_000


@shared(_Random)
def _random_ends(settings: _Random) -> list[tuple[dict[str, Any], LinearAttention, float]]:
    """Where flows from Gaussian weights end: scale and number of the start, weights, loss."""
    process, task = process_and_task(settings)
    rest, steps = settings.rest, settings.max_steps
    ends = []
    for scale in settings.scales:
        for index in range(settings.starts_per_scale):
            model = _gaussian_start(process.dim, scale, settings.seed, index)
            flow = require_finished(gradient_flow(model, process, task, tolerance=rest, max_steps=steps))
            case = {"scale": scale, "index": index, "flow_time": flow.time}
            ends.append((case, flow.model, float(flow.loss[-1])))
    return ends


def _standard_start(settings: _StandardStart) -> Finding:
    """The structure and the loss where flows from Gaussian weights end, against those of diagonal starts."""
    process, task = process_and_task(settings)
    lowest = float(theory.limit_loss(process, task))
    ends = _random_ends(settings)
    off = [off_diagonal_size(model) for _, model, _ in ends]
    excess = [abs(loss / lowest - 1) for *_, loss in ends]
    cases = [
        {**case, "off_diagonal": other, "loss_error": error}
        for (case, *_), other, error in zip(ends, off, excess, strict=True)
    ]
    parts = {
        "only the two diagonals are left": within(max(off), settings.off_diagonal_tolerance),
        "loss of the diagonal start": within(max(excess), settings.tolerance),
    }
    data = {
        "w_kq": (("flow", "row", "column"), np.stack([np.asarray(end.w_kq) for _, end, _ in ends])),
        "w_pv": (("flow", "output", "column"), np.stack([np.asarray(end.w_pv) for _, end, _ in ends])),
    }
    return Finding.of_parts(
        {"error_of_loss": max(excess), "largest_other_weight": max(off)},
        {"error_of_loss": 0.0, "largest_other_weight": 0.0},
        settings.tolerance,
        parts,
        {"cases": cases, "expected_loss": lowest},
        data={"standard-initialization": data},
    )


def _signs(settings: _Signs) -> Finding:
    """The products where flows from Gaussian weights end, and the signs of their coordinates."""
    process, task = process_and_task(settings)
    expected = float(theory.limit_product(process, task))
    ends = _random_ends(settings)
    products = np.array([np.asarray(model.products()) for _, model, _ in ends])
    signs = ["".join("+" if a > 0 else "-" for a in diagonals(model)[0]) for _, model, _ in ends]
    error = float(np.abs(products / expected - 1).max())
    mixed = sum(len(set(one)) > 1 for one in signs)
    parts = {
        "product of Theorem 4.1 in every coordinate": within(error, settings.tolerance),
        "signs differ within one layer": verdict_if(mixed > 0),
    }
    mixed_end = next(
        (model for (_, model, _), one in zip(ends, signs, strict=True) if len(set(one)) > 1), None
    )
    figures = (
        {} if mixed_end is None else {"random-starts": _signed_figure(mixed_end, process, task, expected)}
    )
    return Finding.of_parts(
        {"error_of_products": error, "ends_with_both_signs": mixed, "ends": len(ends)},
        {"error_of_products": 0.0, "ends_with_both_signs": "at least one"},
        settings.tolerance,
        parts,
        {"signs": signs, "products": products, "expected_product": expected},
        figures,
    )


def _signed_figure(
    model: LinearAttention, process: DiagonalUnitary, task: NextToken, product: float
) -> Figure:
    """a_j, b_j and their products at one end, side by side."""
    coordinates = np.arange(1, process.dim + 1)
    a, b = diagonals(model)
    shown = (("$a_j$", a, -0.12), ("$b_j$", b, 0.0), ("$a_j b_j$", a * b, 0.12))
    return Figure(
        title="Where a random start ends",
        panels=(
            Panel(
                title=f"{process.law.describe()}, d = {process.dim}, T = {task.horizon}",
                xlabel="coordinate $j$",
                ylabel="weight at the end of the flow",
                traces=(
                    *(
                        Points(x=coordinates + shift, y=values, label=label, series=number)
                        for number, (label, values, shift) in enumerate(shown)
                    ),
                    Rule(value=product, label="product of Theorem 4.1"),
                ),
            ),
        ),
    )


def _gaussian_start(dim: int, scale: float, seed: int, index: int) -> LinearAttention:
    return LinearAttention.gaussian(
        dim, scale, key=named_key(seed, PAPER, "standard-start", str(scale), str(index))
    )


class _Limit(Settings):
    laws: tuple[str, ...]
    cases: tuple[tuple[int, int, float], ...] = (
        (2, 20, 0.5),
        (5, 100, 0.5),
        (5, 100, 1.0),
        (5, 100, 2.0),
        (5, 1000, 1.0),
    )
    starts: tuple[tuple[float, float], ...] = STARTS
    tolerance: float = 1e-8


class _Paths(LawAndSizes):
    starts: tuple[tuple[float, float], ...] = STARTS
    tolerance: float


class _OneProduct(_Paths):
    distinct: float = 0.01


class _Signs(_Random):
    tolerance: float = 1e-8


class _StandardStart(_Signs):
    off_diagonal_tolerance: float = 1e-5


_RANDOM_FULL: dict[str, Any] = {"scales": (0.01, 0.1, 0.5), "starts_per_scale": 5, "max_steps": 2_000_000}

_FLOW_ERROR = """The flow rests at 1e-11 of the curvature, in landscapes with condition numbers up to a thousand, so its end is
    known within 1e-8."""

CLAIMS = (
    Claim(
        id=f"{PAPER}/theorem-4.1",
        title="Training ends at one gradient step of a known size",
        evidence="exact",
        origin="paper, second-hand",
        statement="""From diagonal starts, gradient flow on Gaussian, one-hot, Rademacher or uniform tokens ends at diagonal
            weights with ab = κ1/(κ2 + κ3/(T−2) Σ 1/(t−1)).""",
        source="""zheng2024, Theorem 4.1 (second-hand; the abstract says that one step of gradient descent emerges). Starts and
            the Gaussian and one-hot cases: authors' program ML-GSAI/MesaOpt-AR-Transformer@1e0a19d, plot.py:6-18, 82-94""",
        settings=presets(_Limit(laws=("gaussian", "one-hot", "rademacher", "uniform"))),
        check=_limit,
        criterion=f"""For every law the relative error of all products and the size of all other weights are at most 1e-8.
            {_FLOW_ERROR}""",
    ),
    Claim(
        id=f"{PAPER}/small-contexts",
        title="Theorem 4.1 also holds for sequences of 3 or 10 tokens",
        evidence="exact",
        statement="""On Gaussian sequences of only 3 or 10 tokens, gradient flow from diagonal starts still ends at the product
            of Theorem 4.1.""",
        source="zheng2024, rebuttal on small contexts (second-hand: the rebuttal was not found)",
        origin="review",
        settings=presets(_Limit(laws=("gaussian",), cases=((5, 3, 1.0), (5, 10, 1.0)))),
        check=_limit,
        criterion=f"Relative error of the products and size of all other weights at most 1e-8. {_FLOW_ERROR}",
    ),
    Claim(
        id=f"{PAPER}/conservation",
        title="a² − b² is conserved along training",
        evidence="exact",
        origin="paper, second-hand",
        statement="a² − b² is conserved along gradient flow from diagonal starts on Gaussian tokens.",
        source="zheng2024, proof of Theorem 4.1 (second-hand)",
        settings=presets(_Paths(starts=((0.1, 0.3), (0.5, 1.5), (2.0, 1.0)), tolerance=1e-9)),
        check=_conserved,
        criterion="""The largest drift, relative to a0² + b0², is at most 1e-9: the solver keeps 1e-12 per step, over up to some
            hundred steps that change a and b.""",
    ),
    Claim(
        id=f"{PAPER}/trajectory",
        title="The whole training path has a closed form",
        evidence="exact",
        statement="""From diagonal starts on Gaussian tokens the whole path of a and b along gradient flow is an elementary
            function of time, and all other weights stay zero.""",
        source="zheng2024: derived here; the proof of Theorem 4.1 (second-hand) has the two equations that it solves",
        origin="ours",
        settings=presets(_Paths(tolerance=1e-7)),
        check=_trajectory,
        criterion="""The largest error of a and b, relative to their largest value, and all other weights are at most 1e-7: the
            solver keeps 1e-12 per step, and errors grow by the instability of the origin on the way out.""",
    ),
    Claim(
        id=f"{PAPER}/one-product",
        title="Different starts end at different weights with one product",
        evidence="exact",
        origin="paper, second-hand",
        statement="""On Gaussian tokens, training from diagonal starts with different a0² − b0² ends at different a and b, but
            at one product ab.""",
        source="zheng2024, Theorem 4.1 and rebuttal on initialization (second-hand); starts chosen here",
        settings=presets(
            _OneProduct(starts=((0.1, 0.1), (0.5, 1.5), (1.5, 0.5), (2.0, 3.0)), tolerance=1e-8)
        ),
        check=_one_product,
        criterion=f"""The products spread by at most 1e-8, and any two a differ by at least 0.01, a million times that.
            {_FLOW_ERROR}""",
    ),
    Claim(
        id=f"{PAPER}/standard-initialization",
        title="Standard initialization keeps structure and loss of diagonal starts",
        evidence="exact",
        statement="""From random Gaussian values of all weights, training on Gaussian tokens ends at weights on the two
            diagonals alone, and at the loss of diagonal starts.""",
        source="""zheng2024, Figure 5 (caption, second-hand, as reproduced in deep-diver/neurips2024,
            content/posters/E2BYPreuU8/index.md)""",
        origin="paper, second-hand",
        settings=presets(_StandardStart(), **_RANDOM_FULL),
        check=_standard_start,
        criterion="""Losses agree within 1e-8, and all other weights are at most 1e-5: a flow at rest to 1e-10 of the largest
            curvature leaves so much in directions whose curvature is 1e-5 of the largest, which the other weights have. The
            paper's scales of the weights are not stated where we could read.""",
    ),
    Claim(
        id=f"{PAPER}/random-starts",
        title="Random starts end at one product with random signs",
        evidence="exact",
        statement="""From random Gaussian values of all weights, training on Gaussian tokens ends with the product of Theorem
            4.1 in every coordinate, while the sign of a_j and b_j differs between coordinates.""",
        source="zheng2024: found here, beside Figure 5 (standard initialization)",
        origin="ours",
        settings=presets(_Signs(), **_RANDOM_FULL),
        check=_signs,
        criterion="""All products are within 1e-8: they lie in steep directions, where a flow at rest to 1e-10 of the largest
            curvature knows them so well. At least one of the ends has coordinates of both signs.""",
    ),
)
