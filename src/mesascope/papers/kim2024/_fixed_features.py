"""The best attention for fixed features, and the landscape of the features under it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from mesascope.records import Decision, Figure, Line, Panel, Rule
from mesascope.theory import kim2024 as theory

from .._claim import Claim, Finding, Settings, presets, within
from .._identity import identity, relative_error
from .._prompts import prompt_model
from .._runs import Seeds, seeds_of
from ._common import PAPER, attention_layer


def _optimal_attention(settings: _Cases) -> Finding:
    """Closed form against least squares on all prompts of finitely many inputs, and the model's own loss."""
    weights: dict[str, float] = {}
    losses: dict[str, float] = {}
    for inputs, features, targets, examples in settings.cases:
        rng = np.random.default_rng([settings.seed, inputs, features, targets, examples])
        h, f = rng.normal(size=(inputs, features)), rng.normal(size=(inputs, targets))
        moments = theory.feature_moments(h, f)
        best = theory.optimal_attention(moments, examples)
        x, y = _all_prompts(h, f, examples)
        solved = _least_squares(x, y)
        answer = np.asarray(prompt_model(attention_layer(best))(x, y[:, :-1]))
        loss = float(np.mean((answer - y[:, -1]) ** 2) / 2)
        name = f"P = {inputs}, m = {features}, k = {targets}, N = {examples}"
        weights[f"{name}: W"] = relative_error(best, solved)
        losses[f"{name}: loss"] = relative_error(loss, theory.optimal_loss(moments, examples))
    parts = {
        "the best W": within(max(weights.values()), settings.tolerance),
        "its loss": within(max(losses.values()), settings.tolerance),
    }
    return replace(identity({**weights, **losses}, settings.tolerance), parts=parts)


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


class _End(NamedTuple):
    """What is left of the targets where a descent ended, and whether it converged there."""

    left: float
    converged: bool

    def kind(self, threshold: float) -> str:
        """Good up to the threshold, bad if the descent converged above it, else open."""
        # near 0 the loss is the steeper, the smaller its ridge, and a large gradient says nothing
        if self.left <= threshold:
            return "good"
        return "bad" if self.converged and self.left > threshold else "open"


def _benign(settings: _Benign) -> Finding:
    """The ends of descent on the features, for several sets of targets and widths, from several random starts each."""
    sets, widths, threshold = seeds_of(settings), settings.widths, settings.bad
    ends = {
        m: [[_end(seed, m, n, settings) for n in range(settings.starts)] for seed in sets] for m in widths
    }
    left = {m: np.array([[end.left for end in row] for row in rows]) for m, rows in ends.items()}
    kinds = {m: [[end.kind(threshold) for end in row] for row in rows] for m, rows in ends.items()}
    # a set of targets is bad if descent from one of its starts converges above the threshold
    bad = {m: sum("bad" in row for row in rows) for m, rows in kinds.items()}
    open_ends = {m: sum(row.count("open") for row in rows) for m, rows in kinds.items()}
    tests = {m: scipy.stats.binomtest(bad[m], len(sets), alternative="less") for m in widths}
    upper = {m: float(test.proportion_ci(0.95).high) for m, test in tests.items()}
    narrow, *wide = widths
    parts = {f"{m} features": _rare(bad[m], open_ends[m], upper[m], settings.most) for m in wide}
    parts[f"{narrow} features"] = _seen(bad[narrow], open_ends[narrow])
    return Finding.of_parts(
        {"sets_with_bad_ends": {str(m): count for m, count in bad.items()}},
        {"sets_with_bad_ends": f"none for width {wide}, some for width {narrow}"},
        None,
        parts,
        {
            "sets": len(sets),
            "starts": settings.starts,
            "ends_above_the_threshold": {str(m): int(np.sum(found > threshold)) for m, found in left.items()},
            "of_them_not_at_rest": {str(m): count for m, count in open_ends.items()},
            "upper_ends": {str(m): end for m, end in upper.items()},
            "worst_ends": {str(m): np.sort(found.ravel())[-5:].tolist() for m, found in left.items()},
            "meaning": (
                "bad: at rest with more of the targets outside of the span than the threshold; upper ends: of the "
                "probability that a set of targets has a bad start, 95 %, Clopper-Pearson"
            ),
        },
        {"landscape": _figure(left, settings)},
    )


def _rare(bad: int, open_ends: int, upper_end: float, most: float) -> Decision:
    """Not met with a bad set; without one it depends on how many were looked at, and whether all descents converged."""
    if bad:
        return "not met"
    return "met" if upper_end < most and not open_ends else "undecided"


def _seen(bad: int, open_ends: int) -> Decision:
    """Met with a bad set; without one it depends on whether all descents converged."""
    if bad:
        return "met"
    return "undecided" if open_ends else "not met"


def _end(seed: int, width: int, number: int, settings: _Benign) -> _End:
    """The end of quasi-Newton descent from one start, for the set of targets of a seed."""
    shape = (settings.targets, settings.dim)
    targets = np.random.default_rng([seed, settings.targets]).normal(size=shape)
    start = np.random.default_rng([seed, number, width]).normal(size=(width, settings.dim))
    found, converged = _descended(start, targets, settings)
    return _End(theory.relu_span_loss(found, targets)[0], converged)


def _descended(start: np.ndarray, targets: np.ndarray, settings: _Benign) -> tuple[np.ndarray, bool]:
    """Features relu(w·x), w (m, d), for targets relu(v·x), v (k, d), and whether descent has converged there."""

    def loss(entries: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = theory.relu_span_loss(entries.reshape(start.shape), targets)
        return value, slope.ravel()

    found = start.ravel()
    options: dict[str, Any] = {"maxiter": settings.iterations, "gtol": 1e-7, "ftol": 1e-15}
    for _ in range(settings.restarts):  # the approximate Hessian is forgotten
        found = scipy.optimize.minimize(loss, found, jac=True, method="L-BFGS-B", options=options).x
    converged = np.abs(loss(found)[1]).max() <= settings.largest_slope
    return np.asarray(found.reshape(start.shape)), bool(converged)


def _figure(ends: dict[int, np.ndarray], settings: _Benign) -> Figure:
    curves = (
        Line(
            x=np.arange(1, found.size + 1) / found.size,
            y=np.sort(np.maximum(found, 1e-10).ravel()),
            label=f"{m} features",
        )
        for m, found in ends.items()
    )
    panel = Panel(
        title=f"d = {settings.dim}, {settings.seeds} sets of {settings.targets} targets",
        xlabel="share of all starts",
        ylabel="targets outside of the span",
        yscale="log",
        traces=(*curves, Rule(value=settings.bad, label="threshold")),
    )
    return Figure(
        title="No bad ends once there are more features than targets",
        panels=(panel,),
        caption="Ends of descent from random starts, sorted; the ridge of the Gram matrix holds the good ones at 2·10⁻⁹.",
    )


class _Cases(Settings):
    cases: tuple[tuple[int, int, int, int], ...] = ((3, 2, 2, 4), (5, 3, 2, 3), (4, 3, 4, 1))
    seed: int = 0
    tolerance: float = 1e-11


class _Benign(Seeds):
    dim: int = 4
    targets: int = 4
    widths: tuple[int, ...] = (4, 8, 16)
    starts: int = 4
    iterations: int = 5000
    restarts: int = 3
    largest_slope: float = 1e-5
    bad: float = 1e-3
    most: float = 0.05
    seeds: int = 100


CLAIMS = (
    Claim(
        id=f"{PAPER}/optimal-attention",
        title="The best linear attention for given features, in closed form",
        evidence="exact",
        statement=(
            "For given features and any number N of examples the best linear attention is W = G⁻¹MᵀM S⁻¹, and what it "
            "leaves is a closed form in the moments of features and targets."
        ),
        source=(
            "kim2024, Lemma 3.1 (second-hand) for endless context, where W is the inverse of S; the form for finite N is "
            "derived here"
        ),
        origin="ours",
        settings=presets(_Cases()),
        check=_optimal_attention,
        criterion=(
            "S = E hhᵀ, M = E fhᵀ and G = (1 − 1/N) MᵀM + E|f|²hhᵀ/N of features h and targets f. W is that of least "
            "squares on all prompts of a few inputs, and the loss that of the layer itself on them, both to a relative "
            "error of 1e-11: rounding of double precision times the condition of two moment matrices of random features, "
            "some 10⁴."
        ),
    ),
    Claim(
        id=f"{PAPER}/benign-landscape",
        title="With twice as many features as targets descent finds their span",
        evidence="measured, another model",
        origin="ours",
        statement=(
            "With two or four times as many ReLU features as targets, descent under the best attention reaches the targets' "
            "span from every random start; with only as many, it sometimes stops elsewhere."
        ),
        source=(
            "kim2024, abstract (a benign landscape in the mean-field, two-timescale limit); finite widths, ReLU features "
            "without output weights and L-BFGS are ours"
        ),
        settings=presets(_Benign(), starts=10, seeds=300, most=0.01),
        check=_benign,
        criterion=(
            "A set of targets is bad if a start comes to rest with more than a thousandth of the targets outside of the span; "
            "nearly all good ends lie at some 10⁻⁹, where the ridge holds them. With 8 and 16 features no set is bad, all "
            "starts end at rest or good, and the 95 % upper end for the probability of a bad set (Clopper-Pearson) is "
            "below 0.05 for the 100 sets of the small preset and 0.01 for the 300 of the full one. With 4 features some "
            "set is bad. The paper's limit of infinitely many neurons says nothing on any of these widths."
        ),
        history="Listed as the paper's before, with the same sets and starts.",
        cost="about 2 min",
    ),
)
