"""The best single layer: the least loss that searches from many starts find is the closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.models import PromptModel, prompt_linear_transformer
from mesascope.processes import FewShot, LinearRegression, NoiseRange
from mesascope.theory import vladymyrov2024 as theory

from .._claim import Claim, Finding, Settings, presets, within
from .._exact_search import best_layer
from ._exact import PAPER


def _searched(settings: _Search) -> Finding:
    """The least loss of one layer for several σ_max, above the oracle's, beside the closed form."""
    dim, examples, task = settings.dim, settings.examples, FewShot(settings.examples)
    found, expected, reached, ends = {}, {}, {}, {}
    for largest in settings.largest_noises:
        name = f"{largest:g}"
        unit = (dim + largest**2 / 3) ** 0.5  # labels of variance 1
        noise: Any = NoiseRange(largest / unit) if largest else 0.0
        process = LinearRegression(dim, prior=np.eye(dim) / unit**2, noise=noise)
        best = best_layer(_starts(settings), process, task, settings.tolerance, settings.rest).best
        # the query's label has noise too, which nobody predicts
        common = largest**2 / 6 + theory.oracle_loss(dim, examples, largest)
        found[name] = best.value * unit**2 - common
        ends[name] = [value * unit**2 - common for value in best.values]
        reached[name] = f"{best.reached} of {best.starts}"
        expected[name] = theory.one_layer_excess(dim, examples, largest)
    errors = {name: abs(found[name] / expected[name] - 1) for name in found}
    return Finding(
        found,
        expected,
        settings.tolerance,
        within(max(errors.values()), settings.tolerance),
        {
            "relative_errors": errors,
            "starts_that_reach_the_best": reached,
            "all_ends": ends,
            "meaning": "by σ_max: loss minus that of ridge regression that knows σ",
        },
    )


def _starts(settings: _Search) -> list[PromptModel]:
    """One head with random weights in all entries, the same for every σ_max."""
    keys = [named_key(settings.seed, "one layer", str(number)) for number in range(settings.starts)]
    return [prompt_linear_transformer(settings.dim, 1, 1, settings.scale, key=key) for key in keys]


class _Search(Settings):
    dim: int = 3
    examples: int = 6
    largest_noises: tuple[float, ...] = (0.0, 5.0)
    starts: int = 12
    scale: float = 0.3
    rest: float = 1e-6
    seed: int = 0
    tolerance: float = 1e-6


CLAIMS = (
    Claim(
        id=f"{PAPER}/one-layer-optimum",
        title="The best single layer is one step with one step size",
        statement="""Under mixed noise the least loss that searches over all weights of one layer find is that of one step of
            gradient descent with the same step size at all noise levels.""",
        source=f"{PAPER}, Table 1 (one layer: GD++, DIAG and FULL agree within 0.001); searches and closed form are ours",
        origin="ours",
        evidence="exact",
        settings=presets(
            _Search(), dim=10, examples=20, largest_noises=tuple(float(one) for one in range(8)), scale=0.1
        ),
        check=_searched,
        criterion="""For every σ_max the best of twelve quasi-Newton searches on the exact loss, which at least three of them
            have to reach, lies within 1e-6 of the closed form. Searches stop where no entry of the gradient is above 1e-6, and
            the loss is quadratic there. Some starts end in a higher local minimum, as the list of all ends shows.""",
        history="Gradient flows from three starts were used before; two of them ended at the same loss.",
    ),
)
