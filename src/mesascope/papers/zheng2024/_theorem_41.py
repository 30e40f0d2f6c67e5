"""Theorem 4.1: from a diagonal start, training ends at one gradient step with a step size known in closed form."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.dynamics import gradient_flow
from mesascope.models import LinearAttention
from mesascope.processes import DiagonalUnitary, NextToken
from mesascope.records import Figure, Line, Points, Rule, Trace
from mesascope.theory import zheng2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._figures import one_panel
from .._identity import relative_error
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
    product_error,
    stacked_weights,
    start_label,
)

_SHORT = "gaussian, 3 or 10 tokens"


def _limit(settings: _Limit) -> Finding:
    """Flows of every law from every start in every case against the formula; Gaussian ones also in short contexts."""
    cases: list[dict[str, Any]] = []
    asked = {law: (law, settings.cases) for law in settings.laws} | {_SHORT: ("gaussian", settings.short)}
    worst = dict.fromkeys(asked, 0.0)
    for name, (law, sizes) in asked.items():
        for dim, horizon, scale in sizes:
            process, task = DiagonalUnitary(LAWS[law](scale), dim), NextToken(horizon)
            expected = float(theory.limit_product(process, task))
            for start in settings.starts:
                flow = diagonal_run(process, task, start)
                error = max(product_error(flow.model, expected), off_diagonal_size(flow.model))
                worst[name] = max(worst[name], error)
                case = {"law": law, "dim": dim, "horizon": horizon, "scale": scale, "start": start}
                case |= {"expected": expected, "error": error}
                cases.append({**case, "flow_time": flow.time, "steps": flow.stats["steps"]})
    parts = {name: within(error, settings.tolerance) for name, error in worst.items()}
    return Finding.of_parts(worst, 0.0, settings.tolerance, parts, {"cases": cases})


def _conserved(settings: _Paths) -> Finding:
    """Largest drift of a² − b² along flows, relative to a0² + b0²."""
    process, task = process_and_task(settings)
    drifts = []
    for start in settings.starts:
        a, b = diagonals(diagonal_run(process, task, start).trajectory)
        invariant = a**2 - b**2
        drifts.append(float(np.abs(invariant - invariant[0]).max() / (a[0] ** 2 + b[0] ** 2).max()))
    return Finding.of_error(max(drifts), settings.tolerance, {"drifts": drifts})


def _trajectory(settings: _Paths) -> Finding:
    """The whole path of the flow, all d² · 6 weights free, against the elementary solution."""
    process, task = process_and_task(settings)
    errors: list[float] = []
    lines: list[Trace] = []
    points: list[Trace] = []
    data: dict[str, tuple[tuple[str, ...], Any]] = {}
    for number, start in enumerate(settings.starts):
        flow = diagonal_run(process, task, start)
        exact, times = theory.diagonal_flow(process, task, *start)(flow.times), flow.times
        a, b = diagonals(flow.trajectory)
        gaps = relative_error(a, exact.a[:, None]), relative_error(b, exact.b[:, None])
        errors.append(max(*gaps, off_diagonal_size(flow.trajectory)))
        learned = (a * b).mean(1)
        label = f"closed form, {start_label(start)}"
        lines.append(Line(x=times[1:], y=exact.product[1:], label=label, series=number))
        solved, label = slice(1, None, max(1, len(times) // 12)), "solver, all weights free"
        points.append(Points(x=times[solved], y=learned[solved], label=label, series=number))
        for name, values in (("times", times), ("product", learned), ("closed_form", exact.product)):
            data[f"{name}_{number}"] = ((f"point_{number}",), values)
    limit = float(theory.limit_product(process, task))
    figure = one_panel(
        "Gradient flow on the diagonal, solved",
        f"{process.law.describe()}, d = {process.dim}, T = {task.horizon}",
        *lines,
        *points,
        Rule(value=limit, label="limit of Theorem 4.1"),
        xlabel="flow time $s$",
        ylabel="product $ab$",
        xscale="log",
        yscale="log",
    )
    return Finding.of_error(
        max(errors), settings.tolerance, {"errors": errors}, {"trajectory": figure}, {"trajectory": data}
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
    for scale, index in product(settings.scales, range(settings.starts_per_scale)):
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
    return Finding.of_parts(
        {"error_of_loss": max(excess), "largest_other_weight": max(off)},
        {"error_of_loss": 0.0, "largest_other_weight": 0.0},
        settings.tolerance,
        parts,
        {"cases": cases, "expected_loss": lowest},
        data={"standard-initialization": stacked_weights([model for _, model, _ in ends], "flow")},
    )


def _signs(settings: _Signs) -> Finding:
    """The products where flows from Gaussian weights end, and the signs of their coordinates."""
    process, task = process_and_task(settings)
    expected = float(theory.limit_product(process, task))
    ends = _random_ends(settings)
    models = [model for _, model, _ in ends]
    signs = ["".join("+" if a > 0 else "-" for a in diagonals(model)[0]) for model in models]
    products = np.array([np.asarray(model.products()) for model in models])
    error = float(np.abs(products / expected - 1).max())
    mixed = [model for model, one in zip(models, signs, strict=True) if len(set(one)) > 1]
    parts = {
        "product of Theorem 4.1 in every coordinate": within(error, settings.tolerance),
        "signs differ within one layer": verdict_if(bool(mixed)),
    }
    return Finding.of_parts(
        {"error_of_products": error, "ends_with_both_signs": len(mixed), "ends": len(ends)},
        {"error_of_products": 0.0, "ends_with_both_signs": "at least one"},
        settings.tolerance,
        parts,
        {"signs": signs, "products": products, "expected_product": expected},
        {"random-starts": _signed_figure(mixed[0], process, task, expected)} if mixed else {},
    )


def _signed_figure(
    model: LinearAttention, process: DiagonalUnitary, task: NextToken, product: float
) -> Figure:
    """a_j, b_j and their products at one end, side by side."""
    coordinates = np.arange(1, process.dim + 1)
    a, b = diagonals(model)
    shown = (("$a_j$", a, -0.12), ("$b_j$", b, 0.0), ("$a_j b_j$", a * b, 0.12))
    return one_panel(
        "Where a random start ends",
        f"{process.law.describe()}, d = {process.dim}, T = {task.horizon}",
        *(
            Points(x=coordinates + shift, y=values, label=label, series=number)
            for number, (label, values, shift) in enumerate(shown)
        ),
        Rule(value=product, label="product of Theorem 4.1"),
        xlabel="coordinate $j$",
        ylabel="weight at the end of the flow",
    )


def _gaussian_start(dim: int, scale: float, seed: int, index: int) -> LinearAttention:
    key = named_key(seed, PAPER, "standard-start", str(scale), str(index))
    return LinearAttention.gaussian(dim, scale, key=key)


class _Limit(Settings):
    laws: tuple[str, ...]
    cases: tuple[tuple[int, int, float], ...] = (
        (2, 20, 0.5),
        (5, 100, 0.5),
        (5, 100, 1.0),
        (5, 100, 2.0),
        (5, 1000, 1.0),
    )
    short: tuple[tuple[int, int, float], ...] = ((5, 3, 1.0), (5, 10, 1.0))
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
            weights with ab = κ1/(κ2 + κ3/(T−2) Σ 1/(t−1)), in short contexts, too.""",
        source="""zheng2024, Theorem 4.1 (second-hand; the abstract says that one step of gradient descent emerges). Starts and
            the Gaussian and one-hot cases: authors' program ML-GSAI/MesaOpt-AR-Transformer@1e0a19d, plot.py:6-18, 82-94;
            contexts of 3 and 10 tokens: rebuttal (second-hand)""",
        settings=presets(_Limit(laws=("gaussian", "one-hot", "rademacher", "uniform"))),
        check=_limit,
        criterion=f"""For every law, and for Gaussian sequences of only 3 and 10 tokens, the relative error of all products and
            the size of all other weights are at most 1e-8. {_FLOW_ERROR}""",
        history="Contexts of 3 and 10 tokens were a claim of their own, small-contexts.",
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
        cost="about 1 min",
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
        cost="about 1 min",
    ),
)
