"""One trained layer of linear attention beside one gradient step."""

from __future__ import annotations

import numpy as np

from .._claim import Claim, Finding, presets
from .._intervals import mean_interval
from .._still_falling import fall, loss_between
from ._blocks import Layer, beside, fits
from ._common import PAPER
from ._layer import AUTHORS_TRAINING


def _as_constructed(settings: _OneLayer) -> Finding:
    """The loss of one trained layer beside that of the best gradient step."""
    middle, end = beside(settings)["step"]
    center, interval = mean_interval(end)
    tolerance, falling = settings.tolerance, fall(1 + np.array(middle), 1 + np.array(end))
    lower = interval[1] < 0
    return Finding(
        {"loss_above_the_step": center},
        {"loss_above_the_step": 0.0},
        tolerance,
        loss_between(interval, -tolerance, tolerance, falling),
        {
            "interval_95": interval,
            "each_seed": end,
            "fall_of_the_loss_in_the_second_half": falling,
            "step_size": float(fits(settings)["step"][0]),
            "a_start_of_any_size_takes_off": mean_interval(fits(settings)["started_gains"])[0],
            "meaning": "mean squared errors relative to the step's on the same sequences, minus 1",
        },
        difference=(
            f"The trained loss lies {-100 * center:.1f} % below that of the best step: the layer has a second block, too."
            if lower
            else ""
        ),
    )


class _OneLayer(Layer):
    tolerance: float = 0.02


CLAIMS = (
    Claim(
        id=f"{PAPER}/one-layer",
        title="One trained linear layer has the loss of one gradient step",
        evidence="measured, reduced",
        full_evidence="measured at the paper's setting",
        origin="paper",
        statement="""One trained layer of linear attention has the loss of the construction: one step of gradient descent with
            the best step size.""",
        source="""vonoswald2024, Figure 4A and C, section on linear attention; authors' `run_construction_experiments.ipynb`,
            cells 18, 19 and 26 at commit c8c1e37""",
        settings=presets(_OneLayer(), **AUTHORS_TRAINING),
        check=_as_constructed,
        criterion="""The 95 % interval over five seeds of the difference, on the same sequences, lies within 2 % of the step's
            loss: less than what shows in the paper's figure, and twice what the second block is worth there. As in the authors'
            program the step begins at Φ₀ = 0; its size is a closed form on other sequences.""",
        history="""Before the authors' program was read the layer here divided by t − 1, at d = 4 and T = 20, with three seeds;
            its loss was 3.8 % below the step's for Gaussian first tokens and 11 % for entries ±1, and the claim was called
            refuted. The paper does not train that layer.""",
        cost="about 15 min",
    ),
)
