"""Questions asked in the reviews and left open by the paper, answered exactly."""

from __future__ import annotations

import numpy as np

from mesascope.processes import DiagonalUnitary, NextToken
from mesascope.records import Figure, Line, Panel
from mesascope.theory import zheng2024 as theory

from .._claim import Claim, Finding, Settings, both, decide
from ._common import LAWS, PAPER, diagonal_run


def _last_only(settings: Settings) -> Finding:
    """The same data trained autoregressively and with the last term only, at equal total weight."""
    process, horizon = DiagonalUnitary(LAWS[settings["law"]](1.0), settings["dim"]), settings["horizon"]
    total = horizon - 2
    tasks = {"autoregressive": NextToken(horizon), "last term": NextToken(horizon, {horizon - 1: total})}
    ends, times, errors, risks = {}, {}, [], {}
    for name, task in tasks.items():
        flow = diagonal_run(process, task, settings["start"])
        expected = float(theory.limit_product(process, task))
        errors.append(float(np.max(np.abs(np.asarray(flow.model.products()) / expected - 1))))
        ends[name] = expected
        closed = theory.diagonal_flow(process, task, *settings["start"])
        times[name] = closed.time_to_reach(0.99 * expected)
        lengths = range(2, horizon)
        risks[name] = np.array([float(theory.finite_context_risk(process, t, expected)) for t in lengths])
    last = {name: float(risk[-1]) for name, risk in risks.items()}
    average = {name: float(risk.mean()) for name, risk in risks.items()}
    ratio = times["last term"] / times["autoregressive"]
    own_best = last["last term"] < last["autoregressive"] and average["autoregressive"] < average["last term"]
    same_time = abs(ratio - 1) <= settings["time_tolerance"]
    ok = max(errors) <= settings["tolerance"] and own_best and same_time
    figure = Figure(
        title="Autoregressive loss or last term only: risk of the trained layer",
        panels=(
            Panel(
                title=f"{process.law.describe()}, d = {process.dim}, T = {horizon}",
                xlabel="context length $t$ at test time",
                ylabel="mean squared error per coordinate",
                xscale="log",
                traces=tuple(
                    Line(x=list(range(2, horizon)), y=risks[name], label=f"trained on: {name}", series=i)
                    for i, name in enumerate(tasks)
                ),
            ),
        ),
    )
    details = {
        "limit_product": ends,
        "error_of_flows": errors,
        "time_to_99_percent": times,
        "risk_at_last_context": last,
        "risk_averaged_over_contexts": average,
    }
    details["meaning"] = "measured is the ratio of the times to 99 % of the limit, last term / autoregressive"
    verdict = decide(ok)
    return Finding(ratio, 1.0, settings["time_tolerance"], verdict, details, {"last-term": figure})


CLAIMS = (
    Claim(
        id=f"{PAPER}/last-term-only",
        statement=(
            "Asked in the reviews: on the same data (Gaussian, d = 5, T = 100, a0 = b0 = 0.1) and at equal "
            "total weight, "
            "training on the last term only also ends at Theorem 4.1 (weighted), takes the same flow time "
            "to 99 % of the limit "
            "within 1 %, and is better at the last context but worse averaged over contexts: neither is "
            "harder, each wins "
            "its own loss."
        ),
        source="zheng2024, reviews: is autoregressive training harder than the last term only?",
        settings=both(
            {
                "law": "gaussian",
                "dim": 5,
                "horizon": 100,
                "start": [0.1, 0.1],
                "tolerance": 1e-8,
                "time_tolerance": 0.01,
            },
        ),
        check=_last_only,
        asked_in_reviews=True,
    ),
)
