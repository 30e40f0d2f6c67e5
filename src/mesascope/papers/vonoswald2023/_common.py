"""What the claims of vonoswald2023 share: the data, and how one step of gradient descent does on them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mesascope.processes import FewShot, LinearRegression, Uniform
from mesascope.theory import vonoswald2023 as theory

from .._claim import Settings

PAPER = "vonoswald2023"


def data(settings: Settings) -> tuple[LinearRegression, FewShot]:
    """Inputs with coordinates uniform on [−h, h], w ~ N(0, I), no noise."""
    return LinearRegression(settings["dim"], Uniform(settings["half_width"])), FewShot(settings["examples"])


def _law(settings: Settings) -> dict[str, Fraction]:
    """Variance and kurtosis of a coordinate."""
    return {"variance": Fraction(settings["half_width"]) ** 2 / 3, "kurtosis": Fraction(9, 5)}


def best_step_size(settings: Settings) -> float:
    """The step with which one step of gradient descent predicts best, in closed form."""
    return float(theory.best_step_size(settings["dim"], settings["examples"], **_law(settings)))


def best_loss(settings: Settings) -> float:
    """Its loss ½E(ŷ − y)², in closed form."""
    return float(theory.best_one_step_loss(settings["dim"], settings["examples"], **_law(settings)))


def relative_error(measured: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference in units of the largest entry."""
    return float(np.max(np.abs(measured - expected)) / np.max(np.abs(expected)))
