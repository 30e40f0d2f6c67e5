"""How many gradient steps and Newton iterations inputs take, by the condition number of their covariance."""

from __future__ import annotations

from math import log2
from typing import NamedTuple

import numpy as np

from mesascope.records import Figure, Panel

from .._claim import Claim, Finding, Settings, presets
from .._figures import curve
from .._intervals import between, mean_interval
from ._newton import PAPER

_DECADE = 2 * log2(10)
"""Iterations from M_0 = αS for a factor of ten: they leave (1 − αs²)^(2^k), so that 2^k grows as the square of the number."""


class _Counts(NamedTuple):
    """Means over prompts, shape (batches, conditions): gradient steps (their logarithm to base 10) and iterations."""

    steps: np.ndarray
    iterations: np.ndarray


def _spectra(settings: _IllConditioned, batch: int) -> np.ndarray:
    """Eigenvalues of XᵀX for the same draws at every condition number, shape (conditions, prompts, d).

    As in the authors' program half of the eigenvalues of the covariance are κ times the others, in a basis at random, which
    changes no eigenvalue of XᵀX.
    """
    rng = np.random.default_rng([settings.seed, batch])
    drawn = rng.normal(size=(settings.prompts, settings.examples, settings.dim))
    larger = np.arange(settings.dim) < settings.dim // 2
    scales = [np.where(larger, condition**0.5, 1.0) for condition in settings.conditions]
    return np.stack([np.linalg.svd(drawn * scale, compute_uv=False) ** 2 for scale in scales])


def _until(rates: np.ndarray, share: float) -> np.ndarray:
    """The number m where the mean of e^{2mr} over eigenvalues is the share, for r < 0 of shape (…, d): bisection of log m."""
    shape = rates.shape[:-1]
    low, high = np.full(shape, -5.0), np.full(shape, 40.0)
    for _ in range(60):
        middle = (low + high) / 2
        left = np.mean(np.exp(2 * np.exp(middle)[..., None] * rates), -1)
        low, high = np.where(left > share, middle, low), np.where(left > share, high, middle)
    return np.exp(high)


def _of_a_step(values: np.ndarray) -> np.ndarray:
    """The logarithm of what one gradient step of size 1/λ leaves of an error at each eigenvalue."""
    with np.errstate(divide="ignore"):  # nothing at the largest one
        return np.log1p(-values / values.max(-1, keepdims=True))


def _of_the_start(values: np.ndarray) -> np.ndarray:
    """The logarithm of what the start S/‖SSᵀ‖_F leaves; k iterations multiply it by 2^k."""
    return np.log1p(-(values**2) / np.linalg.norm(values**2, axis=-1, keepdims=True))


def _counts(settings: _IllConditioned) -> _Counts:
    """Real numbers of steps and of iterations after which E ‖ŵ − w‖²/‖w‖² is the share, for w from N(0, I)."""
    spectra = np.stack([_spectra(settings, batch) for batch in range(settings.batches)])
    steps = np.log10(_until(_of_a_step(spectra), settings.share))
    iterations = np.log2(_until(_of_the_start(spectra), settings.share))
    return _Counts(steps.mean(-1), iterations.mean(-1))


def _ill_conditioned(settings: _IllConditioned) -> Finding:
    """How both grow for a factor of ten of the condition number."""
    found, decades = _counts(settings), np.log10(settings.conditions)
    (steps, of_steps), (iterations, of_iterations) = (
        mean_interval(np.polyfit(decades, one.T, 1)[0]) for one in found
    )
    near = settings.near
    parts = {
        "gradient steps": between(of_steps, 1 - near, 1 + near),
        "iterations": between(of_iterations, _DECADE * (1 - near), _DECADE * (1 + near)),
    }
    return Finding.of_parts(
        {"decades of steps per decade": steps, "iterations per decade": iterations},
        {"decades of steps per decade": 1.0, "iterations per decade": _DECADE},
        near,
        parts,
        {
            "intervals_95": {"steps": of_steps, "iterations": of_iterations},
            "conditions": settings.conditions,
            "gradient steps": (10 ** found.steps.mean(0)).tolist(),
            "iterations": found.iterations.mean(0).tolist(),
            "meaning": "numbers until a hundredth of ‖w‖² is left; means over prompts and batches",
        },
        {"ill-conditioned": _figure(settings, found)},
    )


def _figure(settings: _IllConditioned, found: _Counts) -> Figure:
    size = f"d = {settings.dim}, N = {settings.examples}"
    axis = "condition number κ of the inputs"
    return Figure(
        title="Until a hundredth of the squared error of the weights is left",
        panels=(
            Panel(
                title=f"Gradient descent, {size}",
                xlabel=axis,
                ylabel="steps",
                xscale="log",
                yscale="log",
                traces=curve(settings.conditions, 10**found.steps, "median", 0, "all batches"),
            ),
            Panel(
                title=f"Newton's iteration, {size}",
                xlabel=axis,
                ylabel="iterations",
                xscale="log",
                traces=curve(settings.conditions, found.iterations, "median", 1, "all batches"),
            ),
        ),
        caption="Means over prompts. Steps of size 1/λ for the largest eigenvalue λ of each prompt; iterations from S/‖SSᵀ‖_F.",
    )


class _IllConditioned(Settings):
    dim: int = 20
    examples: int = 40
    conditions: tuple[int, ...] = (10, 100, 1000, 10_000)
    share: float = 0.01
    batches: int = 5
    prompts: int = 60
    near: float = 0.05
    seed: int = 0


CLAIMS = (
    Claim(
        id=f"{PAPER}/ill-conditioned",
        title="Ill-conditioned inputs slow gradient descent in proportion, Newton's iteration by a logarithm",
        evidence="measured, reduced",
        origin="paper",
        statement="""Until a hundredth of the weights' squared error is left gradient descent takes steps in proportion to the
            inputs' condition number, Newton's iteration 2 log₂ 10 more iterations for each factor of ten.""",
        source="""fu2024, abstract (gradient descent struggles on ill-conditioned data, Newton's iteration does not); the data
            are those of the authors' program, samplers.py:67-81, with κ = 100; the two rates are derived here""",
        settings=presets(_IllConditioned(), batches=10, prompts=320),
        check=_ill_conditioned,
        criterion="""The 95 % intervals over batches of both slopes, over the logarithm of κ from 10 to 10⁴, lie within a
            twentieth of 1 and of 6.64. At eigenvalue s gradient descent leaves (1 − s/λ)ⁿ and Newton's iteration 1 − αs² to
            the power 2ᵏ: n grows as λ/s, 2ᵏ as its square. At κ = 10 the two halves of the spectrum are not far apart,
            which moves slopes by a few percent.""",
        cost="about 1 min",
        papers_setting="about 50 days, for the transformer beside the two algorithms",
    ),
)
