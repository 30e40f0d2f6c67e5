"""What the authors' notebooks print for three layers that move the inputs, beside the minima of the loss of multiples.

Read in chengxiang/LinearTransformer, commit b6ddc35; d = 5, n = 20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.models import PromptModel
from mesascope.processes import FewShot, LinearRegression
from mesascope.records import Decision

from .._claim import Claim, Finding, all_of, presets, verdict_if, within
from .._identity import relative_error
from .._prompts import fresh_losses
from .._spectral_steps import residual
from ._common import PAPER, covariance, symmetric_power
from ._multiples import (
    Multiples,
    Search,
    Spectra,
    Spectrum,
    best_multiples,
    density,
    drawn_spectrum,
    expected_spectrum,
    minimum_near,
)

_ROTATED, _IDENTITY = "rotated covariance", "covariance I"

# `rotation demonstration-Adam.ipynb`: cell 7, means of the diagonals of Σ^{1/2} A_i Σ^{1/2} (sign of Q turned) and of B_i;
# cell 2, the last 100 prints of each of two runs, and the last of the second
_PRINTED_ROTATED: dict[str, Any] = {
    "a": [0.38, 2.398, 9.558],
    "b": [0.904, 0.566],
    "mean of the last 200 losses": 6.873e-4,
    "last loss": 6.578e-4,
}
# `simple demonstration.ipynb`: cell 5, and cell 2, the last ten prints of each of three runs
_PRINTED_IDENTITY: dict[str, Any] = {
    "a": [0.715, 2.65, 7.145],
    "b": [0.345, 0.34],
    "mean of the last 30 losses": 1.350e-3,
}


def _printed(settings: _Printed) -> Finding:
    """Matrices and losses, printed and at the two minima, and whether the covariance matters."""
    dim, printed, spectrum = len(settings.eigenvalues), settings.printed, drawn_spectrum(settings)
    best, search = best_multiples(spectrum, settings)
    other = minimum_near(spectrum, printed[_IDENTITY]["a"], printed[_IDENTITY]["b"])
    minima = {_ROTATED: best, _IDENTITY: other}
    models = {name: one.model(np.eye(dim)) for name, one in minima.items()}
    process, task = LinearRegression(dim), FewShot(settings.examples)
    drawn = fresh_losses(models, process, task, settings.prompts, settings.seed)
    losses = {name: 2 * one for name, one in drawn.items()}  # E(ŷ − y)², without the half
    rng = np.random.default_rng([settings.seed, 1])
    ranges = {
        name: {what: _range(losses[name], prompts, settings.replicas, rng) for what, prompts in found.items()}
        for name, found in settings.batches.items()
    }
    off = {
        name: _farthest([*printed[name]["a"], *printed[name]["b"]], [*minimum.a, *minimum.b[:-1]])
        for name, minimum in minima.items()
    }
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


def _farthest(found: Any, of: Any) -> float:
    """The largest relative distance of an entry."""
    return float(np.max(np.abs(np.divide(found, of) - 1)))


def _by_eigenvalue(spectrum: Spectrum, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The parts of E(ŷ − y)² that come from the eigenvalues of a spectrum."""
    return spectrum.weights * residual(spectrum.values, a, a * b) ** 2


def _from_rotated(best: Multiples, model: PromptModel, settings: _Printed) -> float:
    """The difference between answers on inputs Σ^{1/2} x, with multiples of Σ⁻¹, and on x with multiples of I."""
    sigma = covariance(settings.eigenvalues, settings.seed)
    key = named_key(settings.seed, "rotated")
    x, y = LinearRegression(len(sigma)).sample(key, settings.examples, settings.tasks)
    rotated = best.model(sigma)(x @ symmetric_power(sigma, 0.5), y[:, :-1])
    return relative_error(rotated, model(x, y[:, :-1]))


def _range(losses: np.ndarray, prompts: int, replicas: int, rng: np.random.Generator) -> list[float]:
    """Where 99 % of the means over so many prompts lie, by batches drawn again from the losses.

    Where more prompts are asked for than there are losses, batches are as large as these.
    """
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


def _rare(settings: _Rare) -> Finding:
    """The share of the loss from large eigenvalues of S, their probability, and the multiples of the least expected loss."""
    a, b = np.array(settings.printed["a"]), np.append(settings.printed["b"], 0.0)
    spectrum = Spectrum(*density(settings.examples, len(settings.eigenvalues)))
    parts_of_loss = _by_eigenvalue(spectrum, a, b)
    beyond = spectrum.values > settings.beyond
    loss = float(parts_of_loss.sum())
    share, probability = float(parts_of_loss[beyond].sum()) / loss, float(spectrum.weights[beyond].sum())
    best, search = best_multiples(expected_spectrum(settings), settings)
    distance = _farthest(best.a, a)
    parts = {
        "these prompts are rare": within(probability, settings.largest_probability),
        "most of the loss is theirs": within(-share, -settings.least_share),
        "the least expected loss is elsewhere": within(-distance, -settings.least_distance),
    }
    return Finding.of_parts(
        {"share": share, "probability": probability, "distance_of_the_best": distance},
        {
            "share": f"at least {settings.least_share}",
            "probability": f"at most {settings.largest_probability}",
            "distance_of_the_best": f"at least {settings.least_distance}",
        },
        None,
        parts,
        {
            "expected_loss": loss,
            "expected_loss_without_them": loss * (1 - share),
            "best_multiples": best.facts(),
            "expected_loss_of_the_best": float(_by_eigenvalue(spectrum, best.a, best.b).sum()),
            "searches": [search.reached, search.starts],
            "meaning": "losses are E(ŷ − y)²; probability: expected number of such eigenvalues in a prompt",
        },
    )


class _Printed(Search, Spectra):
    prompts: int = 400_000
    tasks: int = 100
    replicas: int = 2000
    printed: Mapping[str, Mapping[str, Any]]
    batches: Mapping[str, Mapping[str, int]]
    tolerance: float = 0.05
    least_ratio: float = 1.5
    rounding: float = 1e-9


class _Rare(Search):
    printed: Mapping[str, Sequence[float]]
    beyond: float = 5.0
    largest_probability: float = 1e-8
    least_share: float = 0.9
    least_distance: float = 0.05


CLAIMS = (
    Claim(
        id=f"{PAPER}/printed-losses",
        title="The authors' printed losses are two minima of one loss",
        evidence="measured at the paper's setting",
        origin="ours",
        statement=(
            "The losses that the authors print for three layers, near 6.6e-4 for a rotated covariance and near 1.35e-3 for "
            "covariance I, belong to two minima of one loss, which no covariance changes."
        ),
        source=(
            "ahn2023, program: `simple demonstration.ipynb`, cells 2 and 5; `rotation demonstration-Adam.ipynb`, cells "
            "2, 6 and 7 (two of three runs are printed); that the losses belong to two minima of one loss is found here"
        ),
        settings=presets(
            _Printed(
                printed={_ROTATED: _PRINTED_ROTATED, _IDENTITY: _PRINTED_IDENTITY},
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
    Claim(
        id=f"{PAPER}/rare-prompts",
        title="Nearly all expected loss comes from prompts too rare to occur",
        evidence="exact",
        origin="ours",
        statement=(
            "At the multiples that the authors print, over nine tenths of the expected loss comes from prompts rarer than one "
            "in a hundred million, and the least expected loss lies at other multiples."
        ),
        source=(
            "found here, for ahn2023, section 5.1; printed matrices: program `rotation demonstration-Adam.ipynb`, cell 7, and "
            "figures 4 and 5"
        ),
        settings=presets(_Rare(printed={name: _PRINTED_ROTATED[name] for name in "ab"})),
        check=_rare,
        criterion=(
            "The expected loss is integrated over the density of the eigenvalues of S = (1/n) Σ x_i x_iᵀ, in closed form. Rare "
            "are prompts with an eigenvalue above 5; the whole training draws 2·10⁷. Multiples are others where one a_i "
            "differs by more than 5 %, while those that are printed and the best on drawn prompts agree to 3 %. The "
            "least expected loss is searched from 100 random starts, of which three or more have to reach it."
        ),
    ),
)
