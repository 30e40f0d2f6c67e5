"""What the authors print for three trained layers, beside the minima of the loss of multiples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import sqrtm

from mesascope.core import named_key
from mesascope.models import PromptModel
from mesascope.processes import FewShot, LinearRegression
from mesascope.records import Decision
from mesascope.theory import ahn2023 as theory

from .._claim import Claim, Finding, all_of, presets, verdict_if, within
from .._identity import relative_error
from .._prompts import construction_model, fresh_losses
from ._common import PAPER, covariance
from ._multiples import Multiples, Search, best_multiples, minimum_near
from ._printed_numbers import IDENTITY, ROTATED
from ._spectra import Spectra, drawn_spectrum

_ROTATED, _IDENTITY = "rotated covariance", "covariance I"


def _printed(settings: _Printed) -> Finding:
    """Matrices and losses, printed and at the two minima, and whether the covariance matters."""
    dim, printed, spectrum = len(settings.eigenvalues), settings.printed, drawn_spectrum(settings)
    best, search = best_multiples(spectrum, settings)
    other = minimum_near(spectrum, printed[_IDENTITY]["a"], printed[_IDENTITY]["b"])
    minima = {_ROTATED: best, _IDENTITY: other}
    models = {name: _layers(one, np.eye(dim)) for name, one in minima.items()}
    process, task = LinearRegression(dim), FewShot(settings.examples)
    drawn = fresh_losses(models, process, task, settings.prompts, settings.seed)
    losses = {name: 2 * one for name, one in drawn.items()}  # E(ŷ − y)², without the half
    ranges = _ranges(losses, settings)
    off = {name: _off(printed[name], minimum) for name, minimum in minima.items()}
    rounded = _from_rotated(best, models[_ROTATED], settings)
    parts: dict[str, Decision] = {
        f"the matrices for {_ROTATED} are the best multiples": within(off[_ROTATED], settings.tolerance),
        f"the matrices for {_IDENTITY} are another minimum": all_of(
            within(off[_IDENTITY], settings.tolerance), within(-other.loss / best.loss, -settings.least_ratio)
        ),
        "the losses for both are those of their minima": verdict_if(
            all(
                low <= printed[name][what] <= high
                for name, found in ranges.items()
                for what, (low, high) in found.items()
            )
        ),
        "the covariance does not matter": within(rounded, settings.rounding),
    }
    return Finding.of_parts(
        {
            "loss_of_the_best": best.loss,
            "loss_of_the_other": other.loss,
            "distance_of_the_matrices": off,
            "ranges_of_the_losses": ranges,
            "change_by_the_covariance": rounded,
        },
        {"distance_of_the_matrices": 0.0, "printed": printed, "change_by_the_covariance": 0.0},
        settings.tolerance,
        parts,
        {
            "best_multiples": best.facts(),
            "other_minimum": other.facts(),
            "searches": [search.reached, search.starts],
            "minima_that_searches_ended_at": _different(search.values),
            "means_of_the_drawn_losses": {name: float(one.mean()) for name, one in losses.items()},
            "share_of_the_hundredth_with_the_largest": float(
                np.sort(losses[_ROTATED])[-len(losses[_ROTATED]) // 100 :].sum() / losses[_ROTATED].sum()
            ),
            "meaning": (
                "losses are E(ŷ − y)²; ranges hold 99 % of the means over as many prompts as the printed number is a mean of; "
                "distances of matrices: the largest relative one of a_i and b_i"
            ),
        },
    )


def _off(printed: Mapping[str, Any], minimum: Multiples) -> float:
    found = np.concatenate([minimum.a, minimum.b[:-1]])
    return relative_parts(np.array([*printed["a"], *printed["b"]]), found)


def relative_parts(one: np.ndarray, other: np.ndarray) -> float:
    """The largest relative distance of an entry."""
    return float(np.max(np.abs(one / other - 1)))


def _layers(best: Multiples, sigma: np.ndarray) -> PromptModel:
    a, b = (one[:, None, None] for one in (best.a, best.b))
    return construction_model(
        theory.preconditioned_gradient_descent(a * np.linalg.inv(sigma), b * np.eye(len(sigma)))
    )


def _from_rotated(best: Multiples, model: PromptModel, settings: _Printed) -> float:
    """How far answers on inputs Σ^{1/2} x, with multiples of Σ⁻¹, are from those on x with multiples of I."""
    sigma = covariance(settings.eigenvalues, settings.seed)
    key = named_key(settings.seed, "rotated")
    x, y = (
        np.asarray(one) for one in LinearRegression(len(sigma)).sample(key, settings.examples, settings.tasks)
    )
    rotated = _layers(best, sigma)(x @ np.real(sqrtm(sigma)), y[:, :-1])
    return relative_error(rotated, model(x, y[:, :-1]))


def _ranges(losses: dict[str, np.ndarray], settings: _Printed) -> dict[str, dict[str, list[float]]]:
    """Where 99 % of the means over as many prompts lie, for every printed loss."""
    rng = np.random.default_rng([settings.seed, 1])
    return {
        name: {what: _range(losses[name], prompts, settings.replicas, rng) for what, prompts in found.items()}
        for name, found in settings.batches.items()
    }


def _range(losses: np.ndarray, prompts: int, replicas: int, rng: np.random.Generator) -> list[float]:
    """By batches that are drawn again from the losses; of a mean over more prompts than were drawn, with their own error."""
    size = min(prompts, len(losses))
    means = [losses[rng.integers(len(losses), size=size)].mean() for _ in range(replicas)]
    low, high = np.quantile(means, [0.005, 0.995])
    return [float(low), float(high)]


def _different(values: tuple[float, ...]) -> list[float]:
    """Values that differ by more than a thousandth."""
    found: list[float] = []
    for one in values:
        if not found or one > found[-1] * 1.001:
            found.append(one)
    return found


class _Printed(Search, Spectra):
    prompts: int = 400_000
    tasks: int = 100
    replicas: int = 2000
    printed: Mapping[str, Mapping[str, Any]]
    batches: Mapping[str, Mapping[str, int]]
    tolerance: float = 0.05
    least_ratio: float = 1.5
    rounding: float = 1e-9


CLAIMS = (
    Claim(
        id=f"{PAPER}/printed-losses",
        title="The authors' printed losses are two minima of one loss",
        evidence="measured at the paper's setting",
        origin="authors' code",
        statement=(
            "What the authors print for three layers, 6.6e-4 for a rotated covariance and 1.1e-3 for covariance I, are two "
            "minima of one loss, which no covariance changes."
        ),
        source=(
            "ahn2023, program: `simple demonstration.ipynb`, cells 2 and 5; `rotation demonstration-Adam.ipynb`, cells "
            "2, 6 and 7 (two of three runs are printed)"
        ),
        settings=presets(
            _Printed(
                printed={_ROTATED: ROTATED, _IDENTITY: IDENTITY},
                batches={
                    _ROTATED: {"mean of the last 200 losses": 4_000_000, "last loss": 20_000},
                    _IDENTITY: {"mean of the last 30 losses": 120_000},
                },
            )
        ),
        check=_printed,
        criterion=(
            "Multiples are searched on 200 000 drawn spectra from 100 random starts, of which three or more have to reach the "
            "least loss. Printed multiples agree to 5 %: they are given to two digits, and minima are 10 % apart in some "
            "multiple. The loss at the other minimum is at least 1.5 times the least. Each of three printed losses lies where "
            "99 % of the means over as many prompts do (a batch of 20 000, 200 such batches, for covariance I 30 of 4000), so "
            "that a true claim fails in at most 3 % of cases."
        ),
        history=(
            "An earlier version was wrong: it took the point of one search, a local minimum of 1.39e-3, for the best "
            "multiples, held 6.58e-4, 6.09e-4 and 1.09e-3 all against it, and called the printed losses refuted. The "
            "least loss is half of that, and the local minimum is the one that the authors' notebook for covariance I "
            "ends at. 1.09e-3 and 6.58e-4 are losses of the last batches alone; 6.09e-4 is the L-BFGS loss on the one "
            "batch that it was trained on, and is not judged here; nor is the mean log loss of tests, −7.12."
        ),
    ),
)
