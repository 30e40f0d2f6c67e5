"""More layers, more examples: the least loss of layers with B = 0 beside gradient descent with one step size, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.polynomial import Polynomial

from mesascope.core import spectral_moments
from mesascope.models import preconditioned_linear_transformer
from mesascope.objectives import ExactMoments
from mesascope.processes import FewShot, LinearRegression
from mesascope.records import Figure, Line, Panel

from .._claim import Claim, Finding, presets, within
from .._minimized import best_of, minimized
from ._common import PAPER, Inputs, data
from ._proved import MultiplesLoss


class _Least(NamedTuple):
    """Least losses E(ŷ − y)² of L layers, and of L steps with one step size, preconditioned by Σ⁻¹ or not."""

    layers: float
    preconditioned: float
    plain: float


def _least(settings: _Sizes, layers: int, examples: int) -> _Least:
    process, _ = data(settings, "inverse")
    moments = spectral_moments(2 * layers, process.dim, examples)
    loss = MultiplesLoss(tuple(moments))
    best = best_of(
        lambda start: minimized(loss.in_floats, start, 1e-6, gtol=1e-9, maxiter=1000),
        _starts(settings, layers),
        nearness=1e-6,
    )
    return _Least(
        best.value, _lowest(_one_multiple(moments)), _lowest(_one_step_size(process, layers, examples))
    )


def _starts(settings: _Sizes, layers: int) -> list[np.ndarray]:
    """Multiples from which the best are searched."""
    return list(np.random.default_rng([settings.seed, layers]).uniform(0.1, 1.5, (settings.starts, layers)))


def _one_multiple(moments: list[Fraction]) -> Polynomial:
    """E tr (1 − aŜ)^{2L} as a polynomial in a."""
    power = len(moments) - 1
    return Polynomial([(-1) ** k * comb(power, k) * float(moment) for k, moment in enumerate(moments)])


def _one_step_size(process: LinearRegression, layers: int, examples: int) -> Polynomial:
    """E(ŷ − y)² at A_i = ηI, a polynomial of degree 2L in η: the one through 2L + 1 of its values."""
    objective = ExactMoments().objective(process, FewShot(examples))
    dim, key = process.dim, jax.random.key(0)

    def loss(size: float) -> float:
        start = [size * np.eye(dim)] * layers
        return 2 * float(
            objective(preconditioned_linear_transformer(dim, layers, key=key, start=start)).value
        )

    sizes = np.linspace(0, _LONGEST / float(np.trace(process.input_covariance)), 2 * layers + 1)
    return Polynomial.fit(sizes, [loss(size) for size in sizes], 2 * layers)


_LONGEST = 5.0  # of the step sizes between which the polynomial is fitted, in units of 1/tr Σ


def _lowest(polynomial: Polynomial) -> float:
    """The least value of a polynomial of even degree that is bounded from below."""
    zeros = polynomial.deriv().roots()
    return float(min(polynomial(zeros.real[np.abs(zeros.imag) < 1e-6])))


def _more(settings: _Sizes) -> Finding:
    """Least losses for every number of layers, and for every number of examples with the most layers."""
    most, examples = max(settings.layers), settings.examples
    by_layers = {layers: _least(settings, layers, examples) for layers in settings.layers}
    by_examples = {
        n: by_layers[most] if n == examples else _least(settings, most, n) for n in settings.lengths
    }
    every = [*by_layers.values(), *by_examples.values()]
    ratios = {
        "layers_over_preconditioned_steps": max(
            one.layers / one.preconditioned for one in (*list(by_layers.values())[1:], *by_examples.values())
        ),
        "preconditioned_over_plain_steps": max(one.preconditioned / one.plain for one in every),
        "layer_to_layer": _largest_ratio([one.layers for one in by_layers.values()]),
        "examples_to_examples": _largest_ratio([one.layers for one in by_examples.values()]),
    }
    names = (
        "layers are better than as many equal preconditioned steps",
        "and these better than plain ones",
        "more layers are better",
        "more examples are better",
    )
    return Finding.of_parts(
        ratios,
        dict.fromkeys(ratios, f"at most {settings.most}"),
        None,
        {name: within(ratio, settings.most) for name, ratio in zip(names, ratios.values(), strict=True)},
        {
            "by_layers": {f"{layers}": one._asdict() for layers, one in by_layers.items()},
            "by_examples": {f"{n}": one._asdict() for n, one in by_examples.items()},
            "meaning": "largest ratios of least losses E(ŷ − y)²; that of one layer is one preconditioned step",
        },
        {"layers-and-examples": _figure(settings, by_layers, by_examples)},
    )


def _largest_ratio(losses: list[float]) -> float:
    return max(after / before for before, after in pairwise(losses))


def _figure(settings: _Sizes, by_layers: dict[int, _Least], by_examples: dict[int, _Least]) -> Figure:
    def panel(title: str, xlabel: str, found: dict[int, _Least]) -> Panel:
        labels = {
            "plain": "steps of one size",
            "preconditioned": "preconditioned steps of one size",
            "layers": "layers",
        }
        lines = (
            Line(x=list(found), y=[getattr(one, name) for one in found.values()], label=label)
            for name, label in labels.items()
        )
        return Panel(
            title=title, xlabel=xlabel, ylabel="least expected loss", yscale="log", traces=tuple(lines)
        )

    return Figure(
        title="Layers choose another step size in each, and gain by it",
        panels=(
            panel(f"n = {settings.examples} examples", "layers, or steps", by_layers),
            panel(f"{max(settings.layers)} layers, or steps", "examples", by_examples),
        ),
    )


class _Sizes(Inputs):
    layers: tuple[int, ...] = (1, 2, 3)
    lengths: tuple[int, ...] = (2, 6, 10, 14, 20)
    starts: int = 12
    most: float = 0.98


_FULL: dict[str, Any] = {"lengths": tuple(range(2, 21, 2))}

CLAIMS = (
    Claim(
        id=f"{PAPER}/layers-and-examples",
        title="Layers beat as many equal steps of preconditioned gradient descent",
        statement=(
            "With B = 0 the best two or three layers have a lower expected loss than as many preconditioned steps of one "
            "size, these than plain steps; the loss falls with layers and with examples."
        ),
        source=(
            "ahn2023, programs `variable_L_exp.ipynb` and `variable_N_exp.ipynb`, which compare the same three with B "
            "trained, too; what they plotted is not stored, so that the result is ours"
        ),
        origin="ours",
        evidence="exact",
        settings=presets(_Sizes(), **_FULL),
        check=_more,
        criterion=(
            "Every ratio of least losses is at most 0.98; no number is drawn, so that the margin only keeps ties out. Equal "
            "steps have a polynomial in their size, rational for Σ⁻¹ and from the pairings of inputs for I, whose least value "
            "is exact. The best multiples of Σ⁻¹ are searched from 12 starts, of which three have to reach the least value; "
            "`distance-along-the-flow` and `theorem-3` show that training ends there."
        ),
        cost="about 1 min",
    ),
)
