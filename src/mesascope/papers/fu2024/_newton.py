"""Newton's iteration as layers of linear attention, and beside gradient descent by the similarity of their errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.processes import LinearRegression
from mesascope.records import Figure, Line, Panel
from mesascope.theory import fu2024 as theory

from .._claim import Claim, Finding, Settings, UnsettledError, presets, verdict_if
from .._figures import curve
from .._identity import identity, relative_error
from .._intervals import between, mean_interval
from .._prompts import construction_stack
from ._similar import Tried, tables, tried

PAPER = "fu2024"


def _layers(settings: _Layers) -> Finding:
    """The construction on random prompts beside the iteration, eigenvalue by eigenvalue."""
    errors = {}
    for dim, examples, steps in settings.cases:
        key = named_key(settings.seed, "newton", str(dim), str(steps))
        x, y = (np.asarray(part) for part in LinearRegression(dim).sample(key, examples, settings.prompts))
        alpha = 1 / float((x[:, :-1] ** 2).sum((1, 2)).max()) ** 2  # below 2/λ² for every prompt
        stack = construction_stack(theory.newton(dim, steps, alpha), "1")
        found = np.asarray(stack(theory.newton_tokens(x, y[:, :-1])))[:, -1, -1]
        expected = _by_eigenvalues(x, y[:, :-1], alpha, steps)
        errors[f"d = {dim}, N = {examples}, {steps} iterations"] = relative_error(found, expected)
    return identity(errors, settings.tolerance)


def _by_eigenvalues(x: np.ndarray, y: np.ndarray, alpha: float, steps: int) -> np.ndarray:
    """x_qᵀ M_k b with M_k = f_k(S), 1 − s f_k(s) = (1 − α s²)^(2^k)."""
    inputs = x[:, :-1]
    values, vectors = np.linalg.eigh(np.swapaxes(inputs, 1, 2) @ inputs)
    filtered = (1 - theory.newton_error(values, alpha, steps)) / values
    cross = np.einsum("bn,bnd,bdk->bk", y, inputs, vectors, optimize=True)
    query = np.einsum("bd,bdk->bk", x[:, -1], vectors)
    return (cross * filtered * query).sum(1)


def _matched(settings: _Matched) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Iterations, the gradient steps that err most like them, and how alike they are: the last two (batches, iterations).

    Raises:
        UnsettledError: an iteration errs most like the most steps tried.
    """
    iterations, steps = tried(settings)
    table = tables(settings)
    if np.any(table.argmax(2) == len(steps) - 1):
        raise UnsettledError(f"an iteration errs most like {steps[-1]} gradient steps, the most tried")
    return iterations, steps[table.argmax(2)], table.max(2)


def _doublings(iterations: np.ndarray, matched: np.ndarray) -> np.ndarray:
    """Slopes of log₂ of the steps, one per batch."""
    return np.polyfit(iterations, np.log2(matched).T, 1)[0]


def _gradient_steps(settings: _GradientSteps) -> Finding:
    """Whether the steps that err most like k iterations are multiplied as fast late as early."""
    iterations, matched, alike = _matched(settings)
    first, middle = settings.first, (settings.first + iterations[-1]) // 2
    early = _doublings(iterations[first : middle + 1], matched[:, first : middle + 1])
    late = _doublings(iterations[middle:], matched[:, middle:])
    ratio, interval = mean_interval(late / early)
    least, most = settings.steadiness
    parts = {
        "growth as fast late as early": between(interval, least, most),
        "similar errors": verdict_if(alike.min() >= settings.similarity),
    }
    return Finding.of_parts(
        {"late_growth_over_early": ratio, "least_similarity": float(alike.min())},
        {
            "late_growth_over_early": f"between {least:g} and {most:g}",
            "least_similarity": f"above {settings.similarity}",
        },
        None,
        parts,
        {
            "interval_95": interval,
            "iterations": iterations.tolist(),
            "gradient_steps": matched.tolist(),
            "similarities": alike.tolist(),
            "meaning": "one row per batch: gradient steps of the most similar errors, by Newton's iterations; "
            f"growth: doublings per iteration from {middle} on over those from {first} to {middle}",
        },
        {"gradient-steps": _figure(settings, iterations, matched)},
    )


def _root_two(settings: _RootTwo) -> Finding:
    """How many doublings of the gradient steps an iteration is worth."""
    iterations, matched, _ = _matched(settings)
    first, tolerance = settings.first, settings.tolerance
    slope, interval = mean_interval(_doublings(iterations[first:], matched[:, first:]))
    return Finding(
        {"doublings_per_iteration": slope},
        {"doublings_per_iteration": 0.5},
        tolerance,
        between(interval, 0.5 - tolerance, 0.5 + tolerance),
        {"interval_95": interval},
    )


def _figure(settings: _Matched, iterations: np.ndarray, matched: np.ndarray) -> Figure:
    middle, first = np.median(matched, 0), settings.first
    theory_line = middle[first] * 2 ** ((iterations[first:] - iterations[first]) / 2)
    panel = Panel(
        title=f"Similarity of errors, d = {settings.dim}, N = {settings.examples}",
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


class _Layers(Settings):
    cases: tuple[tuple[int, int, int], ...] = ((3, 6, 2), (5, 3, 4), (20, 40, 12))
    prompts: int = 16
    seed: int = 0
    tolerance: float = 1e-12


class _Matched(Tried):
    first: int = 6


class _GradientSteps(_Matched):
    similarity: float = 0.98
    steadiness: tuple[float, float] = (0.8, 1.25)


class _RootTwo(_Matched):
    tolerance: float = 0.05


_MORE: dict[str, Any] = {"iterations": 22, "most_steps": 8000, "grid": 120, "batches": 10, "prompts": 320}
CONVENTIONS = "step 0.01 on the sum and start S/‖SSᵀ‖_F: authors' code, eval_similarity.py:200, models.py:514-516 and 583-588"

CLAIMS = (
    Claim(
        id=f"{PAPER}/newton-layers",
        title="k + 2 layers of linear attention are k Newton iterations",
        evidence="exact",
        origin="ours",
        statement=(
            "On every prompt k + 2 layers of linear attention of width 3d + 1 answer as k of Newton's iterations do, which "
            "leave (1 − αs²)^(2^k) of the error at eigenvalue s of S."
        ),
        source=(
            "fu2024, Theorem 5.1 (k + 8 layers of normalised ReLU attention and MLPs do k iterations); that k + 2 layers of "
            "linear attention do, and their weights, are derived here"
        ),
        settings=presets(_Layers()),
        check=_layers,
        criterion=(
            "The layers and the formula in eigenvalues give the same answers, relative to the largest one. The tolerance is "
            "rounding in double precision, which every iteration at most doubles: 2¹² · 2·10⁻¹⁶ = 10⁻¹²."
        ),
    ),
    Claim(
        id=f"{PAPER}/gradient-steps",
        title="Gradient descent needs exponentially more steps than Newton's method",
        evidence="measured, reduced",
        origin="paper",
        statement=(
            "The number of gradient steps whose errors are most similar to those of k Newton iterations grows exponentially "
            "with k."
        ),
        source=f"fu2024, sections 3.3 and 4.2, Figures 8 and 10; {CONVENTIONS}",
        settings=presets(_GradientSteps(), **_MORE),
        check=_gradient_steps,
        criterion=(
            "In the second half of the iterations the steps double as often per iteration as in the first, to a fifth: the "
            "95 % interval over batches of the ratio lies between 0.8 and 1.25. Steps that grew as a power of k would double "
            "less and less: k² from 6 to 18 has the ratio 0.58. The errors must be alike (mean cosine above 0.98; the "
            "paper's layers reach 0.98 to 0.99), or the most similar count means nothing."
        ),
        history=(
            "The claim was first checked with steps of 0.03 on the mean loss and the start S/‖S‖², before the authors' "
            "program was read, and then contained the factor √2, which is ours."
        ),
    ),
    Claim(
        id=f"{PAPER}/root-two",
        title="Each Newton iteration multiplies the matching gradient steps by √2",
        evidence="measured, reduced",
        origin="ours",
        statement=(
            "The number of gradient steps whose errors are most similar to those of k Newton iterations grows by a factor √2 "
            "per iteration."
        ),
        source=f"fu2024, section 4.2 (exponential growth); the factor is derived here; {CONVENTIONS}",
        settings=presets(_RootTwo(), **_MORE),
        check=_root_two,
        criterion=(
            "Where the spectrum is broad, k iterations resolve eigenvalues above 2^(−k/2) of the largest and n gradient "
            "steps those above 1/n, so that n grows as 2^(k/2): half a doubling per iteration. The spectrum is finite and "
            "the grid of steps up to 14 % wide: a tenth of the exponent is allowed, for the 95 % interval over batches. The "
            "first six iterations resolve little but the largest eigenvalue and are left out."
        ),
    ),
)
