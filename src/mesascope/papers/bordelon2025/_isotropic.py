"""Isotropic data, and data of a fixed covariance: what depth can gain at which context length."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import log2

import numpy as np

from mesascope.records import Figure, Line, Panel, Points
from mesascope.theory import bordelon2025 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from ._common import PAPER, engine_error


def _contexts(settings: _Contexts) -> list[Fraction]:
    """α = n/d, as fractions."""
    return [Fraction(str(one)) for one in settings.context_lengths]


def _limit(settings: _Best) -> Finding:
    """The closed form against the least error by moments, in fractions."""
    differences, steps = {}, {}
    for alpha in _contexts(settings):
        moments = theory.limit_moments(2 * max(settings.layers), alpha)
        for layers in settings.layers:
            name, least = f"α = {float(alpha):g}, L = {layers}", theory.limit_best_error(layers, alpha)
            differences[name] = float(theory.best_error(layers, moments) - least)
            sizes = [float(one) for one in theory.limit_best_steps(layers, alpha)]
            steps[name] = float(theory.error_of_steps(sizes, moments) / least - 1)
    worst = {"least errors": max(map(abs, differences.values())), "steps": max(map(abs, steps.values()))}
    parts = {
        "the least error is 1/(1 + α + … + α^L)": verdict_if(worst["least errors"] == 0),
        "the steps reach it": within(worst["steps"], settings.rounding),
    }
    return Finding.of_parts(
        worst,
        dict.fromkeys(worst, 0.0),
        settings.rounding,
        parts,
        {"differences": differences, "steps": steps},
        {"isotropic": _curves(settings)},
    )


def _curves(settings: _Best) -> Figure:
    """Least errors over the context length, in the limit and at a small dimension."""
    grid, dim = np.geomspace(0.25, 64, 80), settings.dim
    traces: list[Line | Points] = []
    for layers in settings.layers:
        errors = [float(theory.limit_best_error(layers, float(alpha))) for alpha in grid]
        label = f"{layers} layer{'s' * (layers > 1)}"
        traces.append(Line(x=grid, y=errors, label=label, series=layers, style="solid"))
    counts = sorted({max(1, round(alpha * dim)) for alpha in np.geomspace(0.25, 64, 17)})
    for layers in settings.layers:
        found = [float(theory.best_error(layers, theory.finite_moments(2 * layers, dim, n))) for n in counts]
        traces.append(Points(x=np.array(counts) / dim, y=found, label=f"d = {dim}", series=layers))
    return Figure(
        title="What the best layers leave of a task",
        panels=(
            Panel(
                title="isotropic data",
                xlabel="α, examples per dimension",
                ylabel="least error, relative to answer 0",
                xscale="log",
                yscale="log",
                traces=tuple(traces),
            ),
        ),
        caption="Lines: the limit of large d, 1/(1 + α + … + α^L). Points: exact least errors at finite d.",
    )


def _depth(settings: _Depth) -> Finding:
    """Least errors for several depths and context lengths at finite d; one layer at a fixed covariance and long contexts."""
    dim, few, most = settings.dim, min(settings.layers), max(settings.layers)
    lower, gains = [], []
    for examples in settings.lengths:
        moments = theory.finite_moments(2 * most, dim, examples)
        errors = [theory.best_error(layers, moments) for layers in settings.layers]
        lower += [float(after / before) for before, after in pairwise(errors)]
        gains.append(float(errors[settings.layers.index(few)] - errors[settings.layers.index(most)]))
    eigenvalues = settings.eigenvalues
    whitened = [np.diag(1 / np.array(eigenvalues))]
    left = {
        f"n = {n}": engine_error(eigenvalues, n, whitened) * n / (len(eigenvalues) + 1) - 1
        for n in settings.longest
    }
    parts = {
        "each layer lowers the error at every context length": verdict_if(max(lower) < 1),
        "what depth gains falls as the inverse of the context length": within(
            max(gain * n / (dim + 1) for gain, n in zip(gains, settings.lengths, strict=True)),
            settings.largest_gain,
        ),
        "for a fixed covariance one layer leaves (d + 1)/n": within(
            max(map(abs, left.values())), settings.tolerance
        ),
    }
    return Finding.of_parts(
        {
            "ratio of a layer more": max(lower),
            "gains": gains,
            "left by one layer": max(map(abs, left.values())),
        },
        {"ratio of a layer more": "below 1", "gains": "below (d + 1)/n", "left by one layer": 0.0},
        settings.tolerance,
        parts,
        {"left_by_one_layer": left},
    )


def _finite(settings: _Finite) -> Finding:
    """The order in 1/d in which least errors come to the limit."""
    orders = {}
    for alpha in _contexts(settings):
        for layers in settings.layers:
            gaps = [
                theory.best_error(layers, theory.finite_moments(2 * layers, d, int(alpha * d)))
                - theory.limit_best_error(layers, alpha)
                for d in settings.dims
            ]
            ratios = [float(one / next_) for one, next_ in pairwise(gaps)]
            orders[f"α = {float(alpha):g}, L = {layers}"] = [log2(ratio) for ratio in ratios]
    last = {name: each[-1] for name, each in orders.items()}
    worst = max(abs(order - 1) for order in last.values())
    return Finding.of_error(worst, settings.tolerance, {"orders": orders})


class _Contexts(Settings):
    context_lengths: tuple[float, ...] = (0.5, 1.0, 2.0, 8.0)


class _Best(_Contexts):
    layers: tuple[int, ...] = (1, 2, 3, 4)
    dim: int = 8
    rounding: float = 1e-9


class _Depth(Settings):
    dim: int = 4
    layers: tuple[int, ...] = (1, 2, 3, 4)
    lengths: tuple[int, ...] = (2, 4, 8, 32, 256, 4096)
    eigenvalues: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    longest: tuple[int, ...] = (10**3, 10**6, 10**9)
    largest_gain: float = 1.0
    tolerance: float = 1e-4


class _Finite(_Contexts):
    context_lengths: tuple[float, ...] = (0.5, 1.0, 2.0)
    layers: tuple[int, ...] = (1, 2, 3)
    dims: tuple[int, ...] = (64, 128, 256)
    tolerance: float = 0.05


CLAIMS = (
    Claim(
        id=f"{PAPER}/isotropic-best",
        title="The best L layers leave 1/(1 + α + … + α^L)",
        evidence="exact",
        origin="ours",
        statement="""On isotropic data of large dimension d with αd examples the best L layers that are gradient steps leave
            1/(1 + α + … + α^L) of the error of the answer 0.""",
        source="derived here, for bordelon2025, which has asymptotics for equal steps (abstract; notes of others)",
        settings=presets(_Best()),
        check=_limit,
        criterion="""The formula equals, in fractions, the least squares over polynomials by moments of the law of Marchenko and
            Pastur. The step sizes of the formula, rounded to doubles, have this error to 1e-9.""",
    ),
    Claim(
        id=f"{PAPER}/isotropic-depth",
        title="For one covariance depth helps only where the context is limited",
        evidence="exact",
        origin="paper",
        statement="""On isotropic data, and for a fixed covariance, further layers lower the least error at every context
            length, by less and less as it grows: at infinite context one layer leaves nothing.""",
        source="bordelon2025, abstract",
        settings=presets(_Depth()),
        check=_depth,
        criterion="""In fractions, in four dimensions and on 2 to 4096 examples, each of four layers lowers the least error, and
            four gain less than (d + 1)/n, which is more than one layer leaves. By the engine, on up to 10⁹ examples, one layer
            with the inverse covariance leaves (d + 1)/n at a fixed covariance, to 1e-4: the loss is rounded to 1e-16.""",
    ),
    Claim(
        id=f"{PAPER}/finite-dimension",
        title="Least errors come to their limit like one over d",
        evidence="exact",
        origin="ours",
        statement="""The least error of L layers on isotropic data of d dimensions differs from that of the limit of large d
            by a term of order 1/d.""",
        source="derived here, for bordelon2025",
        settings=presets(_Finite()),
        check=_finite,
        criterion="""Least errors are exact at every d. Between d = 128 and 256 the order of the difference is 1 within 0.05,
            what a next term of order L²/d² leaves.""",
    ),
)
