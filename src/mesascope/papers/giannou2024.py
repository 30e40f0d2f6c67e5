"""Giannou et al. 2024, How Well Can Transformers Emulate In-Context Newton's Method?: its claims and figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.models import Context, LinearAttentionStack, LinearSelfAttention
from mesascope.processes import LinearRegression
from mesascope.records import Figure, Line, Panel, Points, Trace
from mesascope.theory import Construction
from mesascope.theory import giannou2024 as theory

from ._claim import Claim, Finding, Settings, UnsettledError, both, decide
from ._identity import identity, relative_error
from ._rotations import rotation

PAPER = "giannou2024"


def _stack(construction: Construction, context: Context) -> LinearAttentionStack:
    """Layers with residual connections, ρ = 1."""
    return LinearAttentionStack(
        LinearSelfAttention(*layer, "1", context) for layer in zip(*construction, strict=True)
    )


def _repeated(layers: Construction, times: int) -> Construction:
    """The same layers again and again; weights of a single layer have no axis for layers yet."""
    w_kq, w_pv = (weights if weights.ndim == 4 else weights[None] for weights in layers)
    return Construction(np.concatenate([w_kq] * times), np.concatenate([w_pv] * times))


def _matrices(dim: int, count: int, seed: int) -> np.ndarray:
    """Matrices without symmetry, well away from singular ones."""
    rng = np.random.default_rng([seed, dim])
    return np.eye(dim) + rng.normal(size=(count, dim, dim)) / (2 * dim)


def _newton(a: np.ndarray, x: np.ndarray, steps: int) -> Iterator[np.ndarray]:
    """X after 1 … `steps` Newton steps."""
    for _ in range(steps):
        x = x @ (2 * np.eye(a.shape[-1]) - a @ x)
        yield x


def _step(settings: Settings) -> Finding:
    """One layer a step, and two layers a step."""
    errors: dict[str, float] = {}
    for dim, steps in settings["cases"]:
        a = _matrices(dim, settings["matrices"], settings["seed"])
        tokens = theory.newton_tokens(a, theory.newton_start(a))
        wider = np.concatenate([tokens, np.zeros_like(a)], -1)
        one = _stack(_repeated(theory.newton_step(dim), steps), "all").outputs(tokens)
        pairs = _repeated(theory.newton_step_in_two_layers(dim), steps)
        two = _stack(pairs, "all").outputs(wider)[1::2]
        for name, streams in (("one layer a step", one), ("two layers a step", two)):
            expected = _newton(a, theory.newton_start(a), steps)
            found = [theory.newton_inverse(stream[..., : 3 * dim]) for stream in streams]
            gaps = [relative_error(x, y) for x, y in zip(found, expected, strict=True)]
            errors[f"{name}, d = {dim}, {steps} steps"] = max(gaps)
    return identity(errors, settings)


def _least_squares(settings: Settings) -> Finding:
    """Layers on prompts, k + 2 of them: Newton's iterate on the Gram matrix, and least squares at the end."""
    errors: dict[str, float] = {}
    for dim, examples in settings["cases"]:
        key = named_key(settings["seed"], "prompts", str(dim), str(examples))
        x, y = (
            np.asarray(a) for a in LinearRegression(dim, noise=0.5).sample(key, examples, settings["prompts"])
        )
        start = 1 / float(np.max(np.sum(x[:, :-1] ** 2, (1, 2))))
        tokens = theory.least_squares_tokens(x, y[:, :-1], start)
        gram = np.einsum("bni,bnj->bij", x[:, :-1], x[:, :-1])
        begin = np.broadcast_to(start * np.eye(dim), gram.shape)
        cross = np.einsum("bni,bn->bi", x[:, :-1], y[:, :-1])
        for steps in settings["steps"]:
            layers = _stack(theory.least_squares_by_newton(dim, steps), "examples")
            answer = np.asarray(layers(tokens))[:, -1, -1]
            (*_, inverse) = (begin, *_newton(gram, begin, steps))
            expected = np.einsum("bi,bij,bj->b", x[:, -1], inverse, cross)
            errors[f"Newton, d = {dim}, N = {examples}, k = {steps}"] = relative_error(answer, expected)
        solved = np.einsum("bi,bi->b", x[:, -1], np.linalg.solve(gram, cross[..., None])[..., 0])
        errors[f"least squares, d = {dim}, N = {examples}, k = {steps}"] = relative_error(answer, solved)
    return identity(errors, settings)


def _with_condition(dim: int, condition: float, seed: int) -> np.ndarray:
    """Symmetric positive definite, largest eigenvalue 1, the others spread evenly in their logarithms."""
    basis = rotation(np.random.default_rng([seed, dim]), dim)
    return (basis * np.geomspace(1 / condition, 1, dim)) @ basis.T


def _descended(matrix: np.ndarray, goal: float, most: int) -> int:
    """Steps X ← X + (I − AX)/λ_max from I/λ_max until ‖I − AX‖ is at most `goal`.

    X stays a function of A: the entries of X in the eigenvectors of A are moved one by one.
    """
    values = np.linalg.eigvalsh(matrix)
    rate = 1 / values[-1]
    found = np.full_like(values, rate)
    for step in range(most):
        left = 1 - values * found
        if np.abs(left).max() <= goal:
            return step
        found += rate * left
    raise UnsettledError(f"gradient descent has not come to an error of {goal:g} after {most} steps")


def _convergence(settings: Settings) -> Finding:
    """The error after every layer, and how many layers, or steps of descent, reach a given error."""
    dim, depth, goal = settings["dim"], settings["layers"], settings["error"]
    stack = _stack(_repeated(theory.newton_step(dim), depth), "all")
    gaps, needed, counted, descent = [], [], [], []
    curves: list[Trace] = []
    for condition in settings["conditions"]:
        a = _with_condition(dim, condition, settings["seed"])
        streams = stack.outputs(theory.newton_tokens(a, np.eye(dim)))
        left = [np.linalg.norm(np.eye(dim) - a @ theory.newton_inverse(z), 2) for z in streams]
        layers = np.arange(1, depth + 1)
        law = (1 - 1 / condition) ** (2.0**layers)
        gaps.append(float(np.max(np.abs(np.asarray(left) - law))))
        counted.append(1 + int(np.argmax(np.asarray(left) <= goal)) if min(left) <= goal else depth + 1)
        needed.append(theory.newton_steps_needed(condition, goal))
        descent.append(_descended(a, goal, settings["most_steps"]))
        shown = law >= settings["floor"]
        label = f"κ = {condition:g}"
        series = len(curves) // 2
        curves += [
            Points(x=layers[shown], y=np.asarray(left)[shown], label=label, series=series),
            Line(x=layers[shown], y=law[shown], label="$(1 − 1/κ)^{2^k}$", series="theory", style="solid"),
        ]
    worst = max(gaps)
    # ln(1 − 1/κ) ≈ −1/κ: the steps are ln(1/ε) κ, but for what κ of some ten or less rounds
    large = np.asarray(settings["conditions"], float) >= settings["proportional_from"]
    per_condition = np.asarray(descent)[large] / np.asarray(settings["conditions"])[large]
    proportional = float(np.max(np.abs(per_condition / np.log(1 / goal) - 1)))
    return Finding(
        {
            "largest_error_from_the_law": worst,
            "layers_needed": counted,
            "steps_of_descent_from_proportionality": proportional,
        },
        {
            "largest_error_from_the_law": 0.0,
            "layers_needed": needed,
            "steps_of_descent_from_proportionality": f"at most {settings['descent_tolerance']}",
        },
        settings["tolerance"],
        decide(
            worst <= settings["tolerance"]
            and counted == needed
            and proportional <= settings["descent_tolerance"]
        ),
        {
            "conditions": settings["conditions"],
            "errors_from_the_law": gaps,
            "gradient_descent_steps": descent,
            "meaning": "law: (1 − 1/κ)^(2^k) after k layers; gradient descent: X ← X + (I − AX)/λ_max",
        },
        {"newton-layers": _figure(settings, curves, counted, needed, descent)},
    )


def _figure(
    settings: Settings, curves: list[Trace], counted: list[int], needed: list[int], descent: list[int]
) -> Figure:
    return Figure(
        title="Newton's iteration in layers of linear attention",
        panels=(
            Panel(
                title=f"Inverse of a matrix, d = {settings['dim']}",
                xlabel="layers $k$",
                ylabel="error $\\|I − A X_k\\|$",
                yscale="log",
                traces=tuple(curves),
            ),
            Panel(
                title=f"Until the error is {settings['error']:g}",
                xlabel="condition number κ",
                ylabel="layers or steps",
                xscale="log",
                yscale="log",
                traces=(
                    Points(x=settings["conditions"], y=counted, label="layers"),
                    Line(x=settings["conditions"], y=needed, label="Newton, closed form", series="theory"),
                    Line(x=settings["conditions"], y=descent, label="gradient descent", style="dashed"),
                ),
            ),
        ),
    )


_MATRICES: dict[str, Any] = {
    "cases": [[1, 6], [5, 8], [20, 12]],
    "matrices": 16,
    "seed": 0,
    "tolerance": 1e-12,
}

CLAIMS = (
    Claim(
        id=f"{PAPER}/newton-step",
        statement=(
            "Layers of linear attention carry out Newton's iteration X ← X(2I − AX) on tokens that hold A and X, two layers a "
            "step as the paper announces, and also one layer a step (d ≤ 20, up to 12 steps from Aᵀ/(‖A‖₁‖A‖_∞), matrices "
            "without symmetry; both presets)."
        ),
        source="giannou2024, construction of a Newton step; both sets of weights are derived here",
        settings=both(_MATRICES),
        check=_step,
        tolerance_reason=(
            "an identity: rounding of double precision, relative to the largest entry; a step at most doubles what the "
            "one before left"
        ),
    ),
    Claim(
        id=f"{PAPER}/least-squares",
        statement=(
            "On prompts with d tokens of workspace, k + 2 layers answer x_qᵀ X_k Σ y_i x_i with the k-th Newton "
            "iterate X_k for "
            "the Gram matrix, and after 30 steps least squares (d ≤ 10, N ≤ 40, noisy Gaussian prompts; both presets)."
        ),
        source="giannou2024, linear regression by Newton's iteration; the weights are derived here",
        settings=both(
            {
                "cases": [[3, 10], [10, 40]],
                "steps": [0, 5, 30],
                "prompts": 32,
                "seed": 0,
                "tolerance": 1e-12,
            }
        ),
        check=_least_squares,
        tolerance_reason=(
            "an identity: rounding of double precision, relative to the largest answer; so many steps leave nothing of "
            "the error "
            "of Newton's iteration either"
        ),
    ),
    Claim(
        id=f"{PAPER}/quadratic-convergence",
        statement=(
            "The error after k layers is exactly (1 − 1/κ)^(2^k) for positive definite matrices of condition number κ "
            "started at "
            "I/λ_max, so that the number of layers needed grows like log₂ κ where gradient descent, run as far, takes κ "
            "ln(1/ε) steps to 2 % from κ = 32 on (d = 8, κ from 2 to 2048, ε = 10⁻⁶; both presets)."
        ),
        source="giannou2024, rate of Newton's iteration; the exact law is derived here",
        settings=both(
            {
                "dim": 8,
                "layers": 18,
                "conditions": [2, 8, 32, 128, 512, 2048],
                "error": 1e-6,
                "floor": 1e-12,
                "most_steps": 100_000,
                "proportional_from": 32,
                "descent_tolerance": 0.02,
                "seed": 0,
                "tolerance": 2e-11,
            }
        ),
        check=_convergence,
        tolerance_reason=(
            "every step doubles the rounding of those before until the error is squared away, some 15 times for the "
            "largest κ: 2¹⁵ · 2·10⁻¹⁶ = 7·10⁻¹²; −ln(1 − 1/κ) is 1/κ to 1/(2κ) = 1.6 % at κ = 32"
        ),
    ),
)
