"""The best attention for fixed features, and the landscape of the features under it."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize
from scipy.stats import beta

from mesascope.models import LastEntry, PromptModel, StackedPrompt
from mesascope.records import Figure, Line, Panel, Rule, Trace
from mesascope.theory import kim2024 as theory

from .._claim import Claim, Finding, Settings, both, decide
from ._common import PAPER, attention_layer


def _optimal_attention(settings: Settings) -> Finding:
    """Closed form against least squares on all prompts of finitely many inputs, and the model's own loss."""
    errors: dict[str, float] = {}
    for inputs, features, targets, examples in settings["cases"]:
        rng = np.random.default_rng([settings["seed"], inputs, features, targets, examples])
        h, f = rng.normal(size=(inputs, features)), rng.normal(size=(inputs, targets))
        moments = theory.feature_moments(h, f)
        best = theory.optimal_attention(moments, examples)
        x, y = _all_prompts(h, f, examples)
        solved = _least_squares(x, y)
        model = PromptModel(StackedPrompt(features), attention_layer(best), LastEntry(-1))
        answer = np.asarray(model(jnp.asarray(x), jnp.asarray(y[:, :-1])))
        loss = float(np.mean((answer - y[:, -1]) ** 2) / 2)
        name = f"P = {inputs}, m = {features}, k = {targets}, N = {examples}"
        errors[f"{name}: W"] = float(np.max(np.abs(best - solved)) / np.max(np.abs(solved)))
        errors[f"{name}: loss"] = abs(loss / theory.optimal_loss(moments, examples) - 1)
    worst = max(errors.values())
    return Finding(
        worst, 0.0, settings["tolerance"], decide(worst <= settings["tolerance"]), {"errors": errors}
    )


def _all_prompts(h: np.ndarray, f: np.ndarray, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Every prompt once with every v = √k e_j: inputs (·, N + 1, m) and labels (·, N + 1)."""
    places = np.array(list(itertools.product(range(len(h)), repeat=examples + 1)))
    labels = np.sqrt(f.shape[1]) * np.moveaxis(f[places], -1, 0)
    return np.tile(h[places], (f.shape[1], 1, 1)), labels.reshape(-1, examples + 1)


def _least_squares(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The W that minimises the squared error on these prompts, which are linear in it."""
    read = np.mean(y[:, :-1, None] * x[:, :-1], 1)
    design = np.einsum("ba,bc->bac", read, x[:, -1]).reshape(len(x), -1)
    size = x.shape[-1]
    return np.asarray(np.linalg.lstsq(design, y[:, -1], rcond=None)[0].reshape(size, size))


def _benign(settings: Settings) -> Finding:
    """Where descent on the features ends, from many random starts and for several widths."""
    targets = _targets(settings)
    ends = {
        m: np.sort([_end(targets, m, n, settings) for n in range(settings["starts"])])
        for m in settings["widths"]
    }
    bad = {m: int(np.sum(found > settings["bad"])) for m, found in ends.items()}
    most = {m: _upper_end(count, settings["starts"]) for m, count in bad.items()}
    narrow, *wide = settings["widths"]
    return Finding(
        {"bad_ends": {str(m): count for m, count in bad.items()}, "upper_end": most[wide[-1]]},
        {
            "bad_ends": f"none for width {wide}, some for width {narrow}",
            "upper_end": f"below {settings['most']}",
        },
        None,
        decide(all(bad[m] == 0 and most[m] < settings["most"] for m in wide) and bad[narrow] > 0),
        {
            "starts": settings["starts"],
            "upper_ends": {str(m): end for m, end in most.items()},
            "worst_ends": {str(m): found[-5:].tolist() for m, found in ends.items()},
            "meaning": "bad: more of the targets than the threshold is outside of the span; upper end: 95 %, Clopper-Pearson",
        },
        {"landscape": _figure(ends, settings)},
    )


def _targets(settings: Settings) -> np.ndarray:
    """Vectors v of the targets relu(v·x), shape (k, d)."""
    rng = np.random.default_rng(settings["target_seed"])
    return rng.normal(size=(settings["targets"], settings["dim"]))


def _end(targets: np.ndarray, width: int, number: int, settings: Settings) -> float:
    """The loss where quasi-Newton descent ends from one start."""
    start = _random_features(width, targets.shape[1], settings["seed"], number)

    def loss(entries: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = theory.relu_span_loss(entries.reshape(start.shape), targets)
        return value, slope.ravel()

    options: dict[str, Any] = {"maxiter": settings["iterations"], "gtol": 1e-9, "ftol": 1e-15}
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return float(found.fun)


def _random_features(width: int, dim: int, *seeds: int) -> np.ndarray:
    """Vectors w of the features relu(w·x) at a start, shape (m, d)."""
    return np.random.default_rng([*seeds, width]).normal(size=(width, dim))


def _upper_end(count: int, of: int) -> float:
    """The 95 % upper end for a probability that was seen `count` times."""
    return 1.0 if count == of else float(beta.ppf(0.95, count + 1, of - count))


def _figure(ends: dict[int, np.ndarray], settings: Settings) -> Figure:
    shares = np.arange(1, settings["starts"] + 1) / settings["starts"]
    curves: tuple[Trace, ...] = tuple(
        Line(x=shares, y=np.maximum(found, 1e-10), label=f"{m} features") for m, found in ends.items()
    )
    where = f"d = {settings['dim']}, {settings['targets']} targets"
    return Figure(
        title="No bad ends once there are more features than targets",
        panels=(
            Panel(
                title=where,
                xlabel="share of the starts",
                ylabel="targets outside of the span",
                yscale="log",
                traces=(*curves, Rule(value=settings["bad"], label="threshold")),
            ),
        ),
        caption="Ends of descent from random starts, sorted; the ridge of the Gram matrix holds the good ones at 2·10⁻⁹.",
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/optimal-attention",
        statement=(
            "For fixed features the best linear attention is W = G⁻¹MᵀM S⁻¹ after N examples: that of least squares on all "
            "prompts of a few inputs, and the model with it has the loss of the closed form (3 to 5 inputs, 2 to 3 features, "
            "N = 1 to 4; both presets)."
        ),
        source="kim2024, attention at its optimum for given features; the form for finite N is derived here",
        settings=both({"cases": [[3, 2, 2, 4], [5, 3, 2, 3], [4, 3, 4, 1]], "seed": 0, "tolerance": 1e-11}),
        check=_optimal_attention,
        tolerance_reason=(
            "an identity: rounding of double precision times the condition of two moment matrices of random features, some 10⁴"
        ),
    ),
    Claim(
        id=f"{PAPER}/benign-landscape",
        statement=(
            "Under the best attention with endless context, descent on ReLU features (L-BFGS on the exact loss) finds the span "
            "of the targets, to a thousandth, from every start when there are two or four times as many features as targets, "
            "and not always when there are as many: a start is bad with probability below 0.1 at 95 % (d = 4, four ReLU "
            "targets; quick: 40 starts; paper: 400 and 0.01)."
        ),
        source="kim2024, benign landscape of the mean-field loss (qualitative); finite widths are ours",
        settings=both(
            {
                "dim": 4,
                "targets": 4,
                "widths": [4, 8, 16],
                "starts": 40,
                "iterations": 3000,
                "bad": 1e-3,
                "most": 0.1,
                "seed": 0,
                "target_seed": 3,
            },
            starts=400,
            most=0.01,
        ),
        check=_benign,
        tolerance_reason=(
            "no distance: counts of starts; good ends lie at some 10⁻⁹, where the ridge holds them, and bad ones leave "
            "more than a thousandth"
        ),
    ),
)
