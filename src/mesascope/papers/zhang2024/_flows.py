"""Gradient flow of the layer: its reduced form, its end, and where other starts end."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from mesascope.core import named_key
from mesascope.models import LinearSelfAttention
from mesascope.processes import LinearRegression
from mesascope.records import Figure, Line, Panel, Rule
from mesascope.theory import Construction
from mesascope.theory import zhang2024 as theory

from .._claim import Claim, Finding, Settings, both, decide, within
from ._layer import (
    PAPER,
    covariance,
    exact_risk,
    flow_of,
    model_of,
    preconditioner_of,
    small_start,
    trained,
    weights_of,
)


def _reduced(settings: Settings) -> Finding:
    """The flow of all weights against the ordinary differential equation of U and u, and what stays zero."""
    lam, examples = covariance(settings["eigenvalues"], settings["seed"]), settings["examples"]
    dim = len(lam)
    start = small_start(dim, settings["scale"], settings["seed"])
    flow = flow_of(start, LinearRegression(dim, None, lam), examples)
    w_kq, w_pv = weights_of(flow.trajectory)
    u_matrix, scalar = _solved(start, lam, examples, flow.times)
    sizes = np.abs(u_matrix).max(), np.abs(scalar).max()
    errors = {
        "U": float(np.abs(w_kq[:, :dim, :dim] - u_matrix).max() / sizes[0]),
        "u": float(np.abs(w_pv[:, dim, dim] - scalar).max() / sizes[1]),
    }
    others = _others(w_kq, w_pv)
    limit_matrix, limit_scalar = theory.flow_limit(lam, examples)
    errors["limit_of_U"] = float(np.abs(w_kq[-1, :dim, :dim] - limit_matrix).max() / sizes[0])
    errors["limit_of_u"] = float(abs(w_pv[-1, dim, dim] / limit_scalar - 1))
    return Finding(
        {**errors, "other_entries": others},
        {**dict.fromkeys(errors, 0.0), "other_entries": 0.0},
        settings["tolerance"],
        decide(max(errors.values()) <= settings["tolerance"] and others <= settings["zero"]),
        {"time": flow.time, "limit_u": limit_scalar, "condition": _condition(settings, lam)},
        {"reduced-flow": _flow_figure(flow, lam, examples, (u_matrix, scalar))},
    )


def _solved(start: Any, lam: np.ndarray, examples: int, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U and u at the given times, from the paper's equations alone."""
    dim = len(lam)
    w_kq, w_pv = weights_of(start)

    def velocity(_: float, state: np.ndarray) -> np.ndarray:
        matrix, scalar = theory.reduced_flow(state[:-1].reshape(dim, dim), float(state[-1]), lam, examples)
        return np.append(matrix.ravel(), scalar)

    first = np.append(w_kq[:dim, :dim].ravel(), w_pv[dim, dim])
    solved = solve_ivp(velocity, (0.0, times[-1]), first, "DOP853", t_eval=times, rtol=1e-10, atol=1e-13).y.T
    return solved[:, :-1].reshape(-1, dim, dim), solved[:, -1]


def _others(w_kq: np.ndarray, w_pv: np.ndarray) -> float:
    """Largest entry outside U and u along the flow, relative to the largest entry."""
    w_kq, w_pv = w_kq.copy(), w_pv.copy()
    size = max(np.abs(w_kq).max(), np.abs(w_pv).max())
    w_kq[:, :-1, :-1] = 0
    w_pv[:, -1, -1] = 0
    return float(max(np.abs(w_kq).max(), np.abs(w_pv).max()) / size)


def _condition(settings: Settings, lam: np.ndarray) -> dict[str, float]:
    """Theorem 4.1 asks for σ²‖Γ‖√d < 2."""
    norm = float(np.linalg.norm(theory.gamma(lam, settings["examples"]), 2))
    return {"σ²‖Γ‖√d": settings["scale"] ** 2 * norm * len(lam) ** 0.5, "below": 2.0}


def _flow_figure(flow: Any, lam: np.ndarray, examples: int, reduced: Any) -> Figure:
    end = theory.risk(np.linalg.inv(theory.gamma(lam, examples)), lam, examples)
    risks = [
        theory.risk(scalar * matrix.T, lam, examples) / np.trace(lam)
        for matrix, scalar in zip(*reduced, strict=True)
    ]
    later = slice(1, None)
    return Figure(
        title="Gradient flow of one layer on linear regression",
        panels=(
            Panel(
                title=f"d = {len(lam)}, N = {examples}",
                xlabel="time",
                xscale="log",
                ylabel="$E(\\hat y - y)^2$ / tr Λ",
                traces=(
                    Line(
                        x=flow.times[later],
                        y=2 * flow.loss[later] / np.trace(lam),
                        label="all weights of the layer",
                        series=0,
                    ),
                    Line(
                        x=flow.times[later],
                        y=risks[later],
                        label="reduced flow of (U, u)",
                        series=1,
                        style="dashed",
                    ),
                    Rule(
                        value=end / np.trace(lam),
                        label="$\\mathrm{tr}(\\Lambda - \\Lambda^2\\Gamma^{-1}) / \\mathrm{tr}\\,\\Lambda$",
                    ),
                ),
            ),
        ),
    )


def _limit(settings: Settings) -> Finding:
    """Ends of flows over covariances and prompt lengths: weights, preconditioner and risk."""
    errors: dict[str, list[float]] = {"weights": [], "risk": []}
    for number, (eigenvalues, examples) in enumerate(settings["cases"]):
        lam = covariance(eigenvalues, number)
        process = LinearRegression(len(lam), None, lam)
        end = trained(
            {"eigenvalues": eigenvalues, "examples": examples, "scale": settings["scale"], "seed": number}
        )
        w_kq, w_pv = weights_of(end)
        matrix, scalar = theory.flow_limit(lam, examples)
        wanted = theory.layer(matrix, scalar)
        gap = max(np.abs(w_kq - wanted.w_kq[0]).max(), np.abs(w_pv - wanted.w_pv[0]).max())
        errors["weights"].append(float(gap) / scalar)
        inverse = np.linalg.inv(theory.gamma(lam, examples))
        closed_form = float(np.trace(lam - lam @ lam @ inverse))
        errors["risk"].append(abs(exact_risk(end, process, examples) / closed_form - 1))
    worst = {name: max(found) for name, found in errors.items()}
    return Finding(
        worst,
        dict.fromkeys(worst, 0.0),
        settings["tolerance"],
        within(max(worst.values()), settings["tolerance"]),
        {"errors": errors, "cases": settings["cases"]},
    )


def _other_starts(settings: Settings) -> Finding:
    """From random entries everywhere: the global minimum, or a local one of rank one."""
    lam, examples = covariance(settings["eigenvalues"], settings["seed"]), settings["examples"]
    process = LinearRegression(len(lam), None, lam)
    g = theory.gamma(lam, examples)
    best = theory.risk(np.linalg.inv(g), lam, examples)
    first, gammas = np.linalg.eigvalsh(lam)[-1], np.linalg.eigvalsh(g)[-1]
    trapped = float(np.trace(lam) - first**2 / gammas)
    risks, kinds, paths, products = [], [], [], []
    for number in range(settings["starts"]):
        start = _random_start(len(lam), settings["scale"], settings["seed"], number)
        flow = flow_of(start, process, examples)
        risks.append(2 * float(flow.loss[-1]))
        kinds.append("global" if abs(risks[-1] - best) < abs(risks[-1] - trapped) else "rank one")
        products.append(float(abs(preconditioner_of(flow.model)).max()))
        paths.append(
            Line(
                x=flow.times[1:],
                y=2 * flow.loss[1:] / np.trace(lam),
                label=kinds[-1],
                series=int(kinds[-1] != "global"),
            )
        )
    gaps = [
        abs(risk / (best if kind == "global" else trapped) - 1)
        for risk, kind in zip(risks, kinds, strict=True)
    ]
    figure = Figure(
        title="Flows from random weights",
        panels=(
            Panel(
                title=f"d = {len(lam)}, N = {examples}, entries $N(0, {settings['scale']}^2)$",
                xlabel="time",
                xscale="log",
                ylabel="$E(\\hat y - y)^2$ / tr Λ",
                traces=(
                    *paths,
                    Rule(value=best / np.trace(lam), label="risk of Theorem 4.1"),
                    Rule(
                        value=trapped / np.trace(lam),
                        label="$\\mathrm{tr}\\,\\Lambda - \\lambda_1^2/\\gamma_1$",
                    ),
                ),
            ),
        ),
    )
    counts = {kind: kinds.count(kind) for kind in ("global", "rank one")}
    return Finding(
        {"largest_error_of_the_risk": max(gaps), **counts},
        {"largest_error_of_the_risk": 0.0, "global": "at least one", "rank one": "at least one"},
        settings["tolerance"],
        decide(max(gaps) <= settings["tolerance"] and min(counts.values()) > 0),
        {
            "risks": risks,
            "kinds": kinds,
            "global": best,
            "rank_one": trapped,
            "largest_entry_of_uU": products,
        },
        {"other-starts": figure},
    )


def _random_start(dim: int, scale: float, seed: int, number: int) -> Any:
    layer = LinearSelfAttention.gaussian(
        dim + 1, 1, scale, key=named_key(seed, "start", str(number)), context="all"
    )
    return model_of(Construction(np.asarray(layer.w_kq), np.asarray(layer.w_pv)))


CLAIMS = (
    Claim(
        id=f"{PAPER}/reduced-flow",
        statement=(
            "From the paper's start, gradient flow of all (d + 1)² weights of W^KQ and of W^PV under the exact population loss "
            "is the flow U' = −u²ΓΛUΛ + uΛ², u' = −tr[uΓΛUΛUᵀ − Λ²Uᵀ], solved on its own, at all times; the other entries stay "
            "0, and it ends at U = tr(Γ⁻²)^{−1/4}Γ⁻¹, u = tr(Γ⁻²)^{1/4} (quick: d = 3, N = 8; paper: d = 8, N = 40)."
        ),
        source="zhang2024, section 5 (dynamics of the reduced weights) and Theorem 4.1",
        settings=both(
            {
                "eigenvalues": [2.0, 1.0, 0.4],
                "examples": 8,
                "scale": 0.3,
                "seed": 0,
                "zero": 1e-9,
                "tolerance": 1e-6,
            },
            eigenvalues=[2.0, 1.6, 1.3, 1.0, 0.8, 0.6, 0.4, 0.2],
            examples=40,
        ),
        check=_reduced,
        tolerance_reason=(
            "both solvers keep local errors below 1e-9, and rounding of the other entries grows no further; the flow stops "
            "where the gradient is 1e-9 of its scale"
        ),
    ),
    Claim(
        id=f"{PAPER}/limit",
        statement=(
            "For every covariance and prompt length tried, gradient flow of the exact population loss from the paper's start "
            "ends at the weights of Theorem 4.1, with E(ŷ − y)² = tr(Λ − Λ²Γ⁻¹) (quick: d = 2, N = 2 and 100; paper: d up to "
            "10, N from 2 to 1000)."
        ),
        source="zhang2024, Theorem 4.1",
        settings=both(
            {"cases": [[[1.0, 0.3], 2], [[1.0, 0.3], 100]], "scale": 0.3, "tolerance": 1e-6},
            cases=[[[1.0, 0.3], 2], [[1.0] * 5, 20], [[3.0, 1.0, 0.5, 0.2, 0.1], 1000], [[1.0] * 10, 40]],
        ),
        check=_limit,
        tolerance_reason="flows stop where the gradient is 1e-9 of its scale; the flattest direction is 100 times flatter",
    ),
    Claim(
        id=f"{PAPER}/other-starts",
        statement=(
            "The start matters: from random entries in all of W^KQ and W^PV (N(0, 0.3²)) every gradient flow ends either at "
            "the risk of Theorem 4.1 or at tr Λ − λ₁²/γ₁, a predictor of rank one that attends from the labels, ŷ = x_qᵀm "
            "vᵀΣx_iy_i; both occur (d = 2, N = 6; quick: eight starts; paper: forty)."
        ),
        source="zhang2024, Assumption 3.3 (the start that Theorem 4.1 needs); the local minimum was found here",
        origin="ours",
        settings=both(
            {
                "eigenvalues": [1.1, 0.4],
                "examples": 6,
                "starts": 8,
                "scale": 0.3,
                "seed": 0,
                "tolerance": 1e-6,
            },
            starts=40,
        ),
        check=_other_starts,
        tolerance_reason="flows stop where the gradient is 1e-9 of its scale, and the loss is quadratic there",
    ),
)
