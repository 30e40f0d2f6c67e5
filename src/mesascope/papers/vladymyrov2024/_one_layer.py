"""The best single layer: where gradient flow ends is the closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.dynamics import gradient_flow
from mesascope.models import prompt_linear_transformer
from mesascope.processes import FewShot, LinearRegression, NoiseRange
from mesascope.theory import vladymyrov2024 as theory

from .._claim import Claim, Finding, Settings, both, within
from .._runs import settled
from ._exact import PAPER


def _flow(settings: Settings) -> Finding:
    """Flows of all weights of one layer, from several starts for several σ_max: where the lowest end."""
    dim, examples = settings["dim"], settings["examples"]
    ends = {
        f"{largest:g}": [_end(largest, number, settings) for number in range(settings["starts"])]
        for largest in settings["largest_noises"]
    }
    expected = {name: theory.one_layer_excess(dim, examples, float(name)) for name in ends}
    found = {name: min(values) for name, values in ends.items()}
    errors = {name: abs(found[name] / expected[name] - 1) for name in found}
    worst = max(errors.values())
    return Finding(
        found,
        expected,
        settings["tolerance"],
        within(worst, settings["tolerance"]),
        {
            "relative_errors": errors,
            "all_ends": ends,
            "meaning": "by σ_max: loss minus that of ridge regression that knows σ; some starts come to rest higher up",
        },
    )


def _end(largest: float, number: int, settings: Settings) -> float:
    """The loss above the oracle's where the flow of one start ends."""
    dim, examples = settings["dim"], settings["examples"]
    unit = (dim + largest**2 / 3) ** 0.5  # labels of variance 1: the flow is not stiff
    process = LinearRegression(dim, prior=np.eye(dim) / unit**2, noise=NoiseRange(largest / unit))
    key = named_key(settings["seed"], "one layer", str(number))
    start = prompt_linear_transformer(dim, 1, 1, settings["scale"], key=key)
    task: Any = FewShot(examples)
    flow = settled(gradient_flow(start, process, task, tolerance=settings["rest"]))
    noise = largest**2 / 6  # the query's label has noise too, which nobody predicts
    return float(flow.loss[-1]) * unit**2 - noise - theory.oracle_loss(dim, examples, largest)


CLAIMS = (
    Claim(
        id=f"{PAPER}/one-layer-optimum",
        statement=(
            "Of gradient flows of all weights of one layer, on the exact loss under mixed noise, the lowest end at the "
            "closed form of one step of gradient descent with one step size for all noise levels (quick: d = 3, N = 6, "
            "σ_max = 5, three starts of entries N(0, 0.3²); paper: d = 10, N = 20, six σ_max); none ends lower, a few "
            "come to rest higher up."
        ),
        source="vladymyrov2024, table of adjusted evaluation losses (one layer: all parametrizations agree); derived here",
        settings=both(
            {
                "dim": 3,
                "examples": 6,
                "largest_noises": [5.0],
                "starts": 3,
                "scale": 0.3,
                "rest": 1e-6,
                "seed": 0,
                "tolerance": 1e-6,
            },
            dim=10,
            examples=20,
            largest_noises=[0.5, 1.0, 2.0, 3.0, 5.0, 7.0],
        ),
        check=_flow,
        tolerance_reason="the flow stops where the gradient is 1e-6 of its scale, and the loss is quadratic there",
    ),
)
