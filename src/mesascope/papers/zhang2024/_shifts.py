"""The trained layer on prompts of other kinds: longer ones, and inputs of another size."""

from __future__ import annotations

import numpy as np

from mesascope.models import PromptModel
from mesascope.processes import Gaussian, LinearRegression
from mesascope.records import Figure, Line, Rule, Trace
from mesascope.theory import zhang2024 as theory

from .._claim import Claim, Finding, presets, within
from .._figures import one_panel
from ._layer import (
    PAPER,
    Inputs,
    Trained,
    covariance,
    exact_risk,
    factors,
    preconditioner_of,
    trained,
    weights_of,
)


def _test_risk(settings: _TestRisk) -> Finding:
    """Risks on prompts of other lengths: exact, falling to a floor of order 1/N²."""
    lam = covariance(settings.eigenvalues, settings.seed)
    process = LinearRegression(len(lam), None, lam)
    lengths = np.unique(np.geomspace(1, 10**5, settings.lengths).astype(int))
    errors, floors, far_errors = [], [], []
    curves: list[Trace] = []
    ends: list[Trace] = []
    for series, examples in enumerate(settings.examples):
        layer = trained(Trained.of(settings, examples=examples))
        closed_forms = np.array([theory.prediction_error(lam, examples, int(m)) for m in lengths])
        measured = np.array([exact_risk(layer, process, int(m)) for m in lengths])
        errors.append(float(np.abs(measured / closed_forms - 1).max()))
        far = exact_risk(layer, process, 10**15)
        floors.append(far)
        far_errors.append(abs(far / theory.risk_floor(lam, examples) - 1))
        label = f"trained on N = {examples}"
        curves.append(Line(x=lengths, y=measured / np.trace(lam), label=label, series=series))
        ends.append(Rule(value=far / np.trace(lam), label="$M \\to \\infty$", series=series))
    title = f"d = {len(lam)}"
    orders = -np.diff(np.log(floors)) / np.diff(np.log(settings.examples))
    parts = {
        "the risk at every length": within(max(errors), settings.tolerance),
        "the floor": within(max(far_errors), settings.tolerance),
        "its order": within(abs(float(orders[-1]) - 2), settings.order),
    }
    return Finding.of_parts(
        {"largest_relative_error": max(*errors, *far_errors), "order_of_the_floor": float(orders[-1])},
        {"largest_relative_error": 0.0, "order_of_the_floor": 2.0},
        settings.tolerance,
        parts,
        {"floors": floors, "orders": [float(order) for order in orders]},
        {"test-risk": _figure("Risk on prompts of another length", title, curves + ends, "$ / tr Λ")},
    )


def _figure(title: str, panel: str, traces: list[Trace], unit: str) -> Figure:
    return one_panel(
        title,
        panel,
        *traces,
        xlabel="examples in the test prompt $M$",
        ylabel=f"$E(\\hat y - y)^2{unit}",
        xscale="log",
        yscale="log",
    )


def _covariate_shift(settings: _CovariateShift) -> Finding:
    """Inputs c times as large are answered with c² times the truth."""
    lam, examples = covariance(settings.eigenvalues, settings.seed), settings.examples
    layer = trained(settings)
    rows, off, correlations = {}, [], []
    curves: list[Trace] = []
    ends: list[Trace] = []
    for series, c in enumerate(settings.scales):
        process = LinearRegression(len(lam), Gaussian(c), lam)
        factor, correlation = factors(layer, process, examples)
        rows[c] = {"factor": factor, "squared_correlation": correlation}
        off.append(abs(factor / c**2 - 1))
        correlations.append(abs(1 - correlation))
        lengths = np.unique(np.geomspace(1, 10**4, 25).astype(int))
        risks = [exact_risk(layer, process, int(m)) / (c**2 * np.trace(lam)) for m in lengths]
        curves.append(Line(x=lengths, y=risks, label=f"$c$ = {c:g}", series=series))
        if c != 1:  # a logarithmic axis has no 0
            ends.append(Rule(value=(c**2 - 1) ** 2, label="$(c^2 - 1)^2$", series=series))
    where = f"d = {len(lam)}, trained on long prompts"
    figure = _figure("Inputs c times as large as in training", where, curves + ends, " / E y^2$")
    errors = {"factor": max(off), "correlation": max(correlations)}
    parts = {name: within(error, settings.tolerance) for name, error in errors.items()}
    return Finding.of_parts(
        {"largest_error": max(errors.values())},
        {"largest_error": 0.0},
        settings.tolerance,
        parts,
        {
            "by_scale": rows,
            "largest_errors": errors,
            "meaning": "errors of the factor relative to c², and one minus the squared correlation",
        },
        {"covariate-shift": figure},
    )


def _any_task(settings: _AnyTask) -> Finding:
    """What the trained layer computes, and its error for the worst task and query on long prompts."""
    lam = covariance(settings.eigenvalues, settings.seed)
    worst = 1 + np.trace(lam) / min(settings.eigenvalues)
    lengths = np.unique(np.geomspace(1, 10**6, 25).astype(int))
    others, floors, expected = [], [], []
    curves: list[Trace] = []
    for series, examples in enumerate(settings.examples):
        layer = trained(Trained.of(settings, examples=examples))
        a = preconditioner_of(layer)
        others.append(_other_weights(layer))
        floors.append(theory.pointwise_bound(a, lam, 10**15))
        expected.append((worst / (examples + worst)) ** 2)
        bounds = [theory.pointwise_bound(a, lam, int(m)) for m in lengths]
        curves.append(Line(x=lengths, y=bounds, label=f"trained on N = {examples}", series=series))
    errors = {
        "weights that the answer leaves out": max(others),
        "error of the worst for long prompts": float(np.abs(np.divide(floors, expected) - 1).max()),
    }
    parts = {name: within(error, settings.tolerance) for name, error in errors.items()}
    title = "A bound on the error for every task and query"
    figure = _figure(title, f"d = {len(lam)}", curves, " / \\max\\, y^2$, bound")
    return Finding.of_parts(
        {"largest_error": max(errors.values())},
        {"largest_error": 0.0},
        settings.tolerance,
        parts,
        {"largest_errors": errors, "worst_on_long_prompts": floors},
        {"any-task-and-query": figure},
    )


def _other_weights(layer: PromptModel) -> float:
    """The largest weight other than U and u that reaches the answer, over the largest of all.

    The answer is the last entry of the query token, which only the last row of W^PV writes; the label of the query is 0, so
    that the last column of W^KQ has no effect.
    """
    w_kq, w_pv = weights_of(layer)
    reaching = np.concatenate([w_kq[-1, :-1], w_pv[-1, :-1]])
    return float(np.abs(reaching).max() / max(np.abs(w_kq).max(), np.abs(w_pv).max()))


class _TestRisk(Inputs):
    examples: tuple[int, ...] = (10, 100, 1000)
    lengths: int = 20
    order: float = 0.1
    tolerance: float = 1e-4


class _AnyTask(Inputs):
    examples: tuple[int, ...] = (10, 100, 1000)
    tolerance: float = 1e-4


class _CovariateShift(Trained):
    examples: int = 10**6
    scales: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    tolerance: float = 1e-4


CLAIMS = (
    Claim(
        id=f"{PAPER}/test-risk",
        title="Risk on prompts of any length, with a floor of order 1/N²",
        evidence="exact",
        origin="paper",
        statement="""The layer trained on prompts of N examples has on test prompts of M examples the risk of Theorem 4.2, which
            falls with M to a floor of order 1/N².""",
        source="zhang2024, Theorem 4.2, eq. (4.6), averaged over w ~ N(0, I), and the text after it (arXiv v3)",
        settings=presets(_TestRisk(), eigenvalues=(2.0, 1.0, 0.4), lengths=60),
        check=_test_risk,
        criterion="""Exact risks of the layer at the end of the flow, M from 1 to 10⁵. Flows stop where the gradient is 1e-9 of
            its scale, with the preconditioner good to 10⁻⁸; at the floor of N = 1000 the square of what is 1/400 of it is left,
            off by a thousand times as much: 1e-4. The order between N = 100 and 1000 nears 2 like 1/N: 0.1.""",
        history="Theorem 4.2 was taken for a bound before; it is an equality. A formula of ours stood in its place.",
        cost="about 1 min",
    ),
    Claim(
        id=f"{PAPER}/any-task-and-query",
        title="Every task and query is answered on long prompts",
        evidence="exact",
        origin="paper",
        statement="""For any task and query that do not depend on the examples, the trained layer's error on long prompts is of
            order 1/N² of the largest possible squared label.""",
        source="zhang2024, section 4.2 (task and query shifts; arXiv v3); the worst case is derived here",
        settings=presets(_AnyTask(), eigenvalues=(2.0, 1.0, 0.4)),
        check=_any_task,
        criterion="""Where the flow ends, all weights but U and u that reach the answer are 0, so that it is x_qᵀA (1/M) Σ x_i
            y_i for every prompt; its error for the worst task and query, for M → ∞, is (c/(N + c))², c = 1 + tr Λ/λ_min. Flows
            stop as for test-risk, and so the tolerance is its 1e-4.""",
        cost="about 1 min",
    ),
    Claim(
        id=f"{PAPER}/covariate-shift",
        title="Covariates c times as large are answered c² times too large",
        evidence="exact",
        origin="paper",
        statement="""On long prompts whose covariates are all c times as large as in training the trained layer answers c²·wᵀx_q
            instead of wᵀx_q.""",
        source="zhang2024, section 4.2 (covariate shifts), after eq. (4.8) (arXiv v3)",
        settings=presets(_CovariateShift(), eigenvalues=(2.0, 1.0, 0.4)),
        check=_covariate_shift,
        criterion="""The best multiple of wᵀx_q is c² and the squared correlation with it 1, from exact losses at a million
            examples in training and test: finite prompts add terms of order tr Λ/(N λ_min), about 10⁻⁵ here.""",
        cost="about 1 min",
    ),
)
