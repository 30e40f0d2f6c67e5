"""What the expected loss at the authors' layers consists of: prompts that no training meets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .._claim import Claim, Finding, presets, within
from ._common import PAPER
from ._multiples import Search, best_multiples, left, multiples_loss
from ._printed_numbers import ROTATED
from ._spectra import Spectrum, density, expected_spectrum


def _rare(settings: _Rare) -> Finding:
    """The share of the loss from large eigenvalues of S, how likely these are, and where the expected loss is least."""
    a, b = (np.asarray(settings.printed[name], float) for name in "ab")
    b = np.append(b, 0.0)
    spectrum = Spectrum(*density(settings.examples, len(settings.eigenvalues)))
    parts_of_loss = spectrum.weights * left(spectrum.values, a, b) ** 2
    beyond = spectrum.values > settings.beyond
    loss = float(parts_of_loss.sum())
    share, probability = float(parts_of_loss[beyond].sum()) / loss, float(spectrum.weights[beyond].sum())
    best, search = best_multiples(expected_spectrum(settings), settings)
    distance = float(np.max(np.abs(best.a / a - 1)))
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
            "expected_loss_of_the_best": multiples_loss(spectrum, best.a, best.b),
            "searches": [search.reached, search.starts],
            "meaning": "losses are E(ŷ − y)²; probability: expected number of such eigenvalues in a prompt",
        },
    )


class _Rare(Search):
    printed: Mapping[str, Sequence[float]]
    beyond: float = 5.0
    largest_probability: float = 1e-8
    least_share: float = 0.9
    least_distance: float = 0.05


CLAIMS = (
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
        settings=presets(_Rare(printed={name: ROTATED[name] for name in "ab"})),
        check=_rare,
        criterion=(
            "The expected loss is integrated over the density of the eigenvalues of S = (1/n) Σ x_i x_iᵀ, in closed form. Rare "
            "are prompts with an eigenvalue above 5; the whole training draws 2·10⁷. Multiples are others where one a_i "
            "differs by more than 5 %, while those that are printed and the best on drawn prompts agree to 3 %. The "
            "least expected loss is searched from 100 random starts, of which three or more have to reach it."
        ),
    ),
)
