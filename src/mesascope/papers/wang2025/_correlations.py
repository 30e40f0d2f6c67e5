"""What linear attention loses where keys are correlated: its step ignores that least squares divides by their Gram matrix."""

from __future__ import annotations

import numpy as np

from mesascope.records import Figure, Line, Points
from mesascope.theory import wang2025 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._figures import one_panel
from .._memories import Pairs, answers, memory_layer
from .._rotations import rotated
from ._solvers import PAPER


def _memory(keys: np.ndarray) -> np.ndarray:
    """The memory of linear attention after these keys with the unit vectors as values, read entry by entry: (n, w)."""
    count, size = keys.shape
    queries = np.zeros((size, count, size))
    queries[:, -1] = np.eye(size)
    copies, values = (np.broadcast_to(one, (size, *one.shape)) for one in (keys, np.eye(count)))
    layer = memory_layer({"kind": "linear-attention"}, size, count, 0.0, 0)
    return answers(layer, Pairs(copies, values, queries))[:, -1].T


def _gap(keys: np.ndarray) -> float:
    """The largest difference between linear attention and least squares at a unit query, over unit values."""
    return float(np.linalg.norm(_memory(keys) - np.linalg.pinv(keys).T, 2))


def _orthonormal(settings: _Orthonormal) -> Finding:
    """The gap for orthonormal keys, and for others against their singular values."""
    orthonormal, others, gaps = [], [], {}
    for size, count in settings.cases:
        rng = np.random.default_rng([settings.seed, size, count])
        orthonormal.append(_gap(np.linalg.qr(rng.normal(size=(size, count)))[0].T))
        for number in range(settings.matrices):
            keys = rng.normal(size=(count, size)) / np.sqrt(size)
            found, singular = _gap(keys), np.linalg.svd(keys, compute_uv=False)
            expected = float(np.max(np.abs(singular - 1 / singular)))
            others.append(abs(found / expected - 1))
            gaps[f"w = {size}, n = {count}, {number}"] = found
    measured = {"orthonormal keys": max(orthonormal), "others, from the singular values": max(others)}
    return Finding.of_errors(measured, settings.tolerance, {"gaps of others": gaps})


def _covariance(dim: int, condition: float, seed: int) -> np.ndarray:
    """Σ with eigenvalues in geometric progression, trace d and random eigenvectors."""
    values = np.geomspace(1, condition, dim)
    return np.asarray(rotated(values * dim / values.sum(), np.random.default_rng(seed)))


def _few(settings: _Correlated) -> list[float]:
    """The excess of linear attention after few examples, for the least and the largest condition number."""
    dim, examples, noise = settings.dim, settings.fewer, settings.noise
    ends = (_covariance(dim, one, settings.seed) for one in (settings.conditions[0], settings.conditions[-1]))
    least = theory.least_squares_error(dim, examples, noise)
    return [theory.best_linear_attention_error(one, examples, noise) - least for one in ends]


def _excess(settings: _Correlated) -> Finding:
    """Exact errors of the best step size beyond those of least squares, by the condition number of the inputs."""
    dim, examples, noise = settings.dim, settings.examples, settings.noise
    least = theory.least_squares_error(dim, examples, noise)
    summed: list[float] = []
    online: list[float] = []
    formulas = []
    for condition in settings.conditions:
        covariance = _covariance(dim, condition, settings.seed)
        inputs = theory.gaussian_inputs(covariance)
        for errors, rule in ((summed, theory.linear_attention), (online, theory.delta_rule)):
            found = theory.best_step_size(rule, inputs, examples, noise=noise)[1]
            errors.append(found - least)
        formulas.append(theory.best_linear_attention_error(covariance, examples, noise) - least)
    deviation = float(np.max(np.abs(np.array(summed) / formulas - 1)))
    few = _few(settings)
    parts = {
        "larger for correlated inputs": verdict_if(min(summed[1:]) > summed[0]),
        "few examples: less for the largest condition number": verdict_if(few[1] < few[0]),
        "closed form": within(deviation, settings.tolerance),
    }
    return Finding.of_parts(
        {
            "linear attention": summed,
            "delta rule": online,
            "few examples": few,
            "from the closed form": deviation,
        },
        {"linear attention": "more for correlated inputs than for the first", "from the closed form": 0.0},
        settings.tolerance,
        parts,
        {"conditions": settings.conditions, "error of least squares": least},
        {"correlated-keys": _figure(settings, summed, online)},
    )


def _figure(settings: _Correlated, summed: list[float], online: list[float]) -> Figure:
    size = f"d = {settings.dim}, N = {settings.examples}, σ = {settings.noise:g}"
    return one_panel(
        "Correlated keys: what layers lose against least squares",
        size,
        Line(x=settings.conditions, y=summed, label="linear attention", series=0),
        Points(x=settings.conditions, y=summed, label="linear attention", series=0),
        Line(x=settings.conditions, y=online, label="delta rule", series=1),
        Points(x=settings.conditions, y=online, label="delta rule", series=1),
        xlabel="condition number of Σ",
        ylabel="squared error beyond least squares",
        xscale="log",
        yscale="log",
        caption="Exact errors with the step size that is best for each Σ; Tr Σ = d.",
    )


class _Orthonormal(Settings):
    cases: tuple[tuple[int, int], ...] = ((2, 1), (4, 3), (8, 8), (16, 10))
    matrices: int = 5
    seed: int = 0
    tolerance: float = 1e-10


class _Correlated(Settings):
    dim: int = 4
    examples: int = 40
    fewer: int = 6
    noise: float = 0.3
    conditions: tuple[int, ...] = (1, 3, 10, 30, 100)
    seed: int = 0
    tolerance: float = 1e-9


CLAIMS = (
    Claim(
        id=f"{PAPER}/orthonormal-keys",
        title="Linear attention is least squares for orthonormal keys only",
        evidence="exact",
        origin="ours",
        statement="""For orthonormal keys linear attention answers as least squares does; for other linearly independent keys
            with singular values s the largest difference, over unit queries and values, is the largest |s − 1/s|.""",
        source="""wang2025, abstract (arXiv: linear attention fails to capture correlations between tokens); the size of
            the difference is derived here""",
        settings=presets(_Orthonormal()),
        check=_orthonormal,
        criterion="""Largest difference for orthonormal keys, and relative deviation of the others from max |s − 1/s|: at most
            10⁻¹⁰, for the rounding of the pseudo-inverse of square random matrices with condition numbers up to
            about 10³.""",
    ),
    Claim(
        id=f"{PAPER}/correlated-keys",
        title="Linear attention loses more where keys are correlated, given enough examples",
        evidence="exact",
        origin="ours",
        statement="""In four dimensions, after 40 examples, linear attention's least error exceeds that of least squares by more
            for condition numbers from 3 to 100 than for uncorrelated inputs; after six, by less for 100.""",
        source="""wang2025, abstract (arXiv: linear attention fails to capture correlations between tokens); the exact
            errors are derived here""",
        settings=presets(_Correlated()),
        check=_excess,
        criterion="""Labels have noise 0.3, the eigenvalues of Σ are a geometric sequence with trace 4. After 40 examples the
            excess is larger at each of the other condition numbers than at 1; after six it is less at 100. Two
            derivations agree to 10⁻⁹, the recursion of second moments with a searched step size and the closed form
            of its optimum: a minimum is found to the square of the search's precision. The error of least squares is
            a formula without Σ.""",
    ),
)
