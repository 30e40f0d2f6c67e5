"""Covariances that are rotated in every context, at infinite context length."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import zeta

from mesascope.records import Figure, Line
from mesascope.theory import bordelon2025 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._figures import one_panel
from ._common import PAPER, engine_error

_MODES = 100_000  # eigenvalues that are summed; for smaller ones nothing is learned, and their sum is a zeta function


def _depth(settings: _Depth) -> Finding:
    """Least errors by the number of layers; the engine's, at a long context."""
    eigenvalues = settings.eigenvalues
    dim = len(eigenvalues)
    moments = theory.rotated_moments(2 * dim, eigenvalues, eigenvalues)
    errors = [theory.best_error(layers, moments) for layers in range(dim + 1)]
    engine = {}
    for layers in settings.layers:
        matrices = [step * np.eye(dim) for step in theory.best_steps(layers, moments)]
        found = engine_error(eigenvalues, settings.longest, matrices)
        engine[f"{layers} layers"] = found / float(errors[layers]) - 1
    off = float(np.abs(list(engine.values())).max())
    falls = [float(after / before) for before, after in pairwise(errors)]
    parts = {
        "every layer lowers the error": verdict_if(max(falls) < 1),
        "as many layers as eigenvalues leave nothing": verdict_if(errors[-1] == 0 < errors[-2]),
        "the engine has these errors": within(off, settings.tolerance),
    }
    return Finding.of_parts(
        {"errors": [float(one) for one in errors], "largest difference of the engine": off},
        {"errors": "falling to 0", "largest difference of the engine": 0.0},
        settings.tolerance,
        parts,
        {"engine": engine, "largest_ratio_of_a_layer_more": max(falls)},
    )


def _left(nu: float, beta: float, layers: int) -> float:
    """The least error of equal steps where eigenvalues are k^−ν and their shares k^(−νβ − 1), over that of the answer 0."""
    k, power = np.arange(1.0, _MODES + 1), nu * beta + 1
    eigenvalues, shares = k**-nu, k**-power
    rest = float(zeta(power, _MODES + 1))

    def error(step: float) -> float:
        return float(shares @ (1 - step * eigenvalues) ** (2 * layers)) + rest

    return float(minimize_scalar(error, bounds=(0.0, 2.0), method="bounded").fun) / float(zeta(power))


def _power_law(settings: _PowerLaw) -> Finding:
    """How the error of equal steps falls with their number, against the exponent of the source."""
    errors = {
        f"ν = {nu:g}, β = {beta:g}": [_left(nu, beta, layers) for layers in settings.layers]
        for nu, beta in settings.tried
    }
    exponents = {
        name: (-np.diff(np.log(each)) / np.diff(np.log(settings.layers))).tolist()
        for name, each in errors.items()
    }
    last = [each[-1] for each in exponents.values()]
    worst = max(abs(one - beta) for one, (_, beta) in zip(last, settings.tried, strict=True))
    return Finding.of_error(
        worst, settings.tolerance, {"exponents": exponents}, {"power-law": _curves(settings, errors)}
    )


def _curves(settings: _PowerLaw, errors: dict[str, list[float]]) -> Figure:
    lines = [
        Line(x=settings.layers, y=each, label=name, series=series, style="solid")
        for series, (name, each) in enumerate(errors.items())
    ]
    return one_panel(
        "Depth helps at infinite context length where covariances are rotated",
        "equal steps; eigenvalues $k^{-\\nu}$, source $\\beta$",
        *lines,
        xlabel="layers",
        ylabel="least error, relative to answer 0",
        xscale="log",
        yscale="log",
    )


class _Depth(Settings):
    eigenvalues: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    layers: tuple[int, ...] = (1, 2)
    longest: int = 10**9
    tolerance: float = 1e-5


class _PowerLaw(Settings):
    tried: tuple[tuple[float, float], ...] = ((1.5, 0.5), (2.0, 0.5), (1.2, 1.0), (2.0, 1.0))
    layers: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512)
    tolerance: float = 0.02


CLAIMS = (
    Claim(
        id=f"{PAPER}/rotated-depth",
        title="With rotated covariances depth helps at infinite context, too",
        evidence="exact",
        origin="paper",
        statement="""Where every context rotates the covariance, and layers are multiples of the identity, each further layer
            lowers the least error at infinite context length, until there are as many as different eigenvalues.""",
        source="bordelon2025, abstract",
        settings=presets(_Depth()),
        check=_depth,
        criterion="""In fractions each of four layers lowers the least error of four eigenvalues, the fourth to 0. The engine,
            at the best steps of one and two layers and on 10⁹ examples, has these errors to 1e-5: more than L²/n over the
            error.""",
    ),
    Claim(
        id=f"{PAPER}/rotated-power-law",
        title="Equal steps leave an error that falls with depth like L^−β",
        evidence="exact",
        origin="ours",
        statement="""With rotated covariances of eigenvalues k^−ν and tasks of source exponent β the least error of L equal
            steps at infinite context length falls as L^−β, whatever ν is.""",
        source="derived here; bordelon2025 announces power laws under source and capacity conditions (abstract)",
        settings=presets(_PowerLaw()),
        check=_power_law,
        criterion="""From 256 to 512 layers the exponent is β within 0.02: the best step still grows, to 2, and lowers errors a
            little more.""",
    ),
)
