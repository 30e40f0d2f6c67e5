"""Newton's iteration as layers of linear attention, and compared with gradient descent by the similarity of errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.processes import LinearRegression
from mesascope.records import Figure, Line, Panel
from mesascope.theory import fu2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if
from .._figures import curve
from .._identity import identity, relative_error
from .._intervals import between, mean_interval
from .._minimized import inside
from .._prompts import construction_stack
from ._similar import Compared, Tried, in_eigenvectors, similarities, tables, tried

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
        expected = _by_eigenvalues(x, y, alpha, steps)
        errors[f"d = {dim}, N = {examples}, {steps} iterations"] = relative_error(found, expected)
    return identity(errors, settings.tolerance)


def _by_eigenvalues(x: Any, y: Any, alpha: float, steps: int) -> np.ndarray:
    """x_qᵀ M_k b with M_k = f_k(S), 1 − s f_k(s) = (1 − α s²)^(2^k)."""
    values, vectors, cross = in_eigenvectors(x, y)  # of S/N
    learned = 1 - theory.newton_error(values * (x.shape[1] - 1), alpha, steps)
    query = np.einsum("bd,bdk->bk", x[:, -1], vectors)
    return (cross / values * learned * query).sum(1)


def _matched(settings: _Matched) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Iterations, the gradient steps with the most similar errors, and the similarities: the last two (batches, iterations).

    Raises:
        UnsettledError: an iteration of those that are compared errs most like the fewest or the most steps tried.
    """
    iterations, steps = tried(settings)
    table = tables(settings)
    for row in table[:, settings.first :].reshape(-1, len(steps)):
        inside(-row)
    return iterations, steps[table.argmax(2)], table.max(2)


def _slopes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Slopes of lines through y (batches, n) over x (n,), one per batch."""
    return np.asarray(np.polyfit(x, y.T, 1)[0])


def _gradient_steps(settings: _GradientSteps) -> Finding:
    """Whether the number of steps with the most similar errors grows as fast for many iterations as for few."""
    iterations, matched, alike = _matched(settings)
    first, middle = settings.first, (settings.first + iterations[-1]) // 2
    early, late = (  # doublings per iteration
        _slopes(iterations[part], np.log2(matched[:, part]))
        for part in (slice(first, middle + 1), slice(middle, None))
    )
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
    """The number of doublings of the gradient steps per iteration."""
    iterations, matched, _ = _matched(settings)
    first, tolerance = settings.first, settings.tolerance
    slope, interval = mean_interval(_slopes(iterations[first:], np.log2(matched[:, first:])))
    return Finding(
        {"doublings_per_iteration": slope},
        {"doublings_per_iteration": 0.5},
        tolerance,
        between(interval, 0.5 - tolerance, 0.5 + tolerance),
        {"interval_95": interval},
    )


def _printed(settings: _Printed) -> Finding:
    """The iterations with errors most like those of the printed numbers of gradient steps."""
    iterations, steps = np.arange(settings.most_iterations + 1), np.array(settings.steps)
    batches = [similarities(settings, str(number), iterations, steps) for number in range(settings.batches)]
    found = np.array([[_peak(column) for column in table.T] for table in batches])
    means, intervals = zip(*map(mean_interval, found.T), strict=True)
    slope, interval = mean_interval(_slopes(np.arange(found.shape[1]), found))
    near, (least, most) = settings.near, settings.per_layer
    parts = {
        f"layer {layer}": between(ends, count - near, count + near)
        for layer, count, ends in zip(settings.of_layers, settings.counts, intervals, strict=True)
    }
    parts["about three a layer"] = between(interval, least, most)
    return Finding.of_parts(
        {"iterations": means, "iterations_per_layer": slope},
        {"iterations": settings.counts, "iterations_per_layer": f"between {least} and {most}"},
        near,
        parts,
        {
            "intervals_95": {"iterations": intervals, "iterations_per_layer": interval},
            "gradient_steps": settings.steps,
            "layers": settings.of_layers,
            "meaning": "iterations of the most similar errors, by the gradient steps of the paper's layers",
        },
    )


def _peak(similar: np.ndarray) -> float:
    """The maximum of the parabola through the largest similarity and its neighbours."""
    (top,) = inside(-similar)
    before, here, after = similar[top - 1 : top + 2]
    return float(top + 0.5 * (before - after) / (before - 2 * here + after))


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


class _Printed(Compared):
    of_layers: tuple[int, ...] = (6, 7, 8, 9)
    steps: tuple[int, ...] = (50, 200, 650, 1250)
    counts: tuple[int, ...] = (10, 14, 17, 20)
    most_iterations: int = 24
    near: float = 1.5
    per_layer: tuple[float, float] = (2.5, 3.5)


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
        cost="about 1 min",
        papers_setting="about 1 min, in single precision and with iterations of matrices",
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
        cost="about 1 min",
    ),
    Claim(
        id=f"{PAPER}/printed-steps",
        title="Printed iterations and gradient steps of layers fit together",
        evidence="measured, reduced",
        origin="ours",
        statement=(
            "If layers 6 to 9 belong to the printed 10, 14, 17 and 20 iterations in this order, the gradient steps printed "
            "for them err most like that many iterations, about three more per layer."
        ),
        source=(
            "fu2024, legend of Figure 7b (10, 14, 17, 20 iterations) and Figure 8 (50, 200, 400-1000, 900-1250 steps); the "
            f"comparison is ours; {CONVENTIONS}"
        ),
        settings=presets(_Printed(), batches=10, prompts=320),
        check=_printed,
        criterion=(
            "Four printed pairs of numbers are compared; no layer is. That they belong to the same layers is assumed. The 95 % "
            "interval over batches of the most similar number of iterations, between whole numbers by a parabola, lies within "
            "1.5 of the printed one: half of what a layer adds, so that no layer is taken for the next. It cannot be exact: "
            "the paper tries gradient steps in fifties, and whole iterations. For the ties of layers 8 and 9 we take 650 and "
            "1250 steps. The slope over the four must round to three."
        ),
        history=(
            "Steps of 0.01, 0.02 and 0.04 on the mean loss were tried before the authors' step was known to act on the sum, "
            "with 50, 200, 650 and 1200 steps, from notes: slopes 3.09 to 3.16, but at 0.01 only 1.3 to 10.5 iterations. The "
            "seeds are those of then."
        ),
        cost="about 1 min",
    ),
)
