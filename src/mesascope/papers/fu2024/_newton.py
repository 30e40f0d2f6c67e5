"""Newton's iteration as layers of linear attention, and beside gradient descent by the similarity of their errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.core import named_key
from mesascope.learners import GradientDescent, Learner, Newton, features_of, prompt_examples
from mesascope.models import LinearAttentionStack, LinearSelfAttention
from mesascope.processes import LinearRegression
from mesascope.records import Figure, Line, Panel
from mesascope.theory import fu2024 as theory

from .._claim import Claim, Finding, Settings, all_of, both, decide
from .._figures import curve
from .._identity import identity, relative_error
from .._intervals import between, mean_interval

PAPER = "fu2024"


def _layers(settings: Settings) -> Finding:
    """The construction on random prompts beside the iteration, eigenvalue by eigenvalue."""
    errors = {}
    for dim, examples, steps in settings["cases"]:
        key = named_key(settings["seed"], "newton", str(dim), str(steps))
        x, y = (np.asarray(part) for part in LinearRegression(dim).sample(key, examples, settings["prompts"]))
        alpha = 1 / float((x[:, :-1] ** 2).sum((1, 2)).max()) ** 2  # below 2/λ² for every prompt
        layers = zip(*theory.newton(dim, steps, alpha), strict=True)
        stack = LinearAttentionStack([LinearSelfAttention(*layer, "1", "examples") for layer in layers])
        found = np.asarray(stack(theory.newton_tokens(x, y[:, :-1])))[:, -1, -1]
        expected = _by_eigenvalues(x, y[:, :-1], alpha, steps)
        errors[f"d = {dim}, N = {examples}, {steps} iterations"] = relative_error(found, expected)
    return identity(errors, settings)


def _by_eigenvalues(x: np.ndarray, y: np.ndarray, alpha: float, steps: int) -> np.ndarray:
    """x_qᵀ M_k b with M_k = f_k(S), 1 − s f_k(s) = (1 − α s²)^(2^k)."""
    inputs = x[:, :-1]
    values, vectors = np.linalg.eigh(np.swapaxes(inputs, 1, 2) @ inputs)
    filtered = (1 - theory.newton_error(values, alpha, steps)) / values
    cross = np.einsum("bn,bnd,bdk->bk", y, inputs, vectors, optimize=True)
    query = np.einsum("bd,bdk->bk", x[:, -1], vectors)
    return (cross * filtered * query).sum(1)


def _gradient_steps(settings: Settings) -> Finding:
    """How many gradient steps err most like every iteration, on several batches of prompts."""
    iterations = np.arange(settings["iterations"] + 1)
    steps = np.unique(np.round(np.geomspace(1, settings["most_steps"], settings["grid"])).astype(int))
    best, similar = [], []
    for number in range(settings["batches"]):
        table = similarities(settings, str(number), iterations, steps)
        best.append(steps[table.argmax(1)])
        similar.append(table.max(1))
    matched, alike = np.array(best), np.array(similar)
    first = settings["first"]
    slopes = [float(np.polyfit(iterations[first:], np.log2(row[first:]), 1)[0]) for row in matched]
    slope, interval = mean_interval(slopes)
    tolerance = settings["tolerance"]
    verdict = all_of(
        between(interval, 0.5 - tolerance, 0.5 + tolerance), decide(alike.min() >= settings["similarity"])
    )
    return Finding(
        {"doublings_per_iteration": slope, "least_similarity": float(alike.min())},
        {"doublings_per_iteration": 0.5, "least_similarity": f"above {settings['similarity']}"},
        tolerance,
        verdict,
        {
            "interval_95": interval,
            "iterations": iterations.tolist(),
            "gradient_steps": matched.tolist(),
            "similarities": alike.tolist(),
            "meaning": "one row per batch: gradient steps of the most similar errors, by Newton's iterations",
        },
        {"gradient-steps": _figure(settings, iterations, matched)},
    )


def _newton(steps: Any) -> Learner:
    """From M_0 = S/‖S‖²."""
    return Newton(1.0, steps)


def similarities(settings: Settings, batch: str, iterations: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Mean over prompts of the cosine of the errors after 1 … N examples: shape (iterations, steps)."""
    key = named_key(settings["seed"], "gradient steps", batch)
    x, y = LinearRegression(settings["dim"]).sample(key, settings["examples"], settings["prompts"])
    features = features_of(Newton, *prompt_examples(x, y))

    def errors(make: Any, counts: np.ndarray) -> np.ndarray:
        one = jax.jit(lambda seen, all: jax.lax.map(lambda k: make(k).respond(seen)[..., 0], all))
        off = np.asarray(one(features, jnp.asarray(counts)) - y)
        off = off[..., 1:]  # nobody knows anything without examples
        off = off / np.abs(off).max(-1, keepdims=True)  # steps that diverge: their squares overflow
        return off / np.linalg.norm(off, axis=-1, keepdims=True)

    newton = errors(_newton, iterations)
    descent = errors(lambda k: GradientDescent(settings["step_size"], k), steps)
    return np.einsum("kbn,gbn->kg", newton, descent) / settings["prompts"]


def _figure(settings: Settings, iterations: np.ndarray, matched: np.ndarray) -> Figure:
    middle, first = np.median(matched, 0), settings["first"]
    theory_line = middle[first] * 2 ** ((iterations[first:] - iterations[first]) / 2)
    panel = Panel(
        title=f"Similarity of errors, d = {settings['dim']}, N = {settings['examples']}",
        xlabel="Newton iterations",
        ylabel="most similar gradient steps",
        yscale="log",
        traces=(
            *curve(iterations, matched, "median", 0, "all batches"),
            Line(
                x=iterations[first:],
                y=theory_line,
                label="a factor √2 per iteration",
                series="theory",
                style="dashed",
            ),
        ),
    )
    return Figure(title="Newton's iterations in steps of gradient descent", panels=(panel,))


CLAIMS = (
    Claim(
        id=f"{PAPER}/newton-layers",
        statement=(
            "k + 2 layers of linear attention of width 3d + 1 answer every prompt as k iterations of Newton's method "
            "from M_0 = αS do, (1 − αs²)^(2^k) of the error being left along an eigenvector of S (d ≤ 20, N ≤ 40, k ≤ "
            "12; both presets)."
        ),
        source="fu2024, Theorem 5.1 (which takes k + 8 layers); the layers are derived here",
        settings=both(
            {
                "cases": [[3, 6, 2], [5, 3, 4], [20, 40, 12]],
                "prompts": 16,
                "seed": 0,
                "tolerance": 1e-12,
            }
        ),
        check=_layers,
        tolerance_reason="an identity: only rounding of double precision, relative to the largest prediction",
    ),
    Claim(
        id=f"{PAPER}/gradient-steps",
        statement=(
            "From the fourth of Newton's iterations on the number of gradient steps with the most similar errors (mean "
            "cosine over prompts of the errors after 1 to N examples, above 0.98 throughout) grows exponentially, by a "
            "factor √2 per iteration to a tenth of the exponent (d = 20, N = 40 as in the paper; quick: 10 iterations, "
            "five batches of 60 prompts; paper: 16 iterations, ten batches of 500)."
        ),
        source="fu2024, section 4 (similarity of errors) and its table of best-matching steps; the factor is derived here",
        settings=both(
            {
                "dim": 20,
                "examples": 40,
                "iterations": 10,
                "first": 4,
                "step_size": 0.03,
                "most_steps": 2000,
                "grid": 60,
                "batches": 5,
                "prompts": 60,
                "similarity": 0.98,
                "seed": 0,
                "tolerance": 0.05,
            },
            iterations=16,
            most_steps=50_000,
            grid=120,
            batches=10,
            prompts=500,
        ),
        check=_gradient_steps,
        tolerance_reason=(
            "where the spectrum is broad, k iterations resolve eigenvalues above 2^(-k/2) of the largest and n "
            "gradient steps those above 1/n, so that n grows as 2^(k/2); the spectrum is finite and the grid of steps "
            "14 % wide: a tenth of the exponent; the first iterations resolve nothing but the largest eigenvalues"
        ),
    ),
)
