"""What the claims of this paper share: laws by name, diagonal flows, and measures of their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mesascope.dynamics import Flow, gradient_flow
from mesascope.models import LinearAttention
from mesascope.objectives import population_loss
from mesascope.processes import (
    Constant,
    DiagonalUnitary,
    Gaussian,
    Law,
    NextToken,
    Rademacher,
    Sparse,
    StudentT,
    Uniform,
)
from mesascope.theory import zheng2024 as theory

from .._claim import Settings
from .._runs import require_finished

PAPER = "zheng2024"
PROGRAM = "authors' program ML-GSAI/MesaOpt-AR-Transformer@1e0a19d"
STARTS = ((0.1, 0.1), (0.5, 1.5), (2.0, 2.0))
"""The paper's three diagonal starts (a0, b0)."""

LAWS: Mapping[str, Callable[[Any], Law]] = {
    "gaussian": Gaussian,
    "one-hot": Sparse,
    "rademacher": Rademacher,
    "uniform": Uniform,
    "full-one": Constant,
}
VARIED_LAWS: Mapping[str, Law] = {
    "gaussian": Gaussian(1.0),
    "uniform": Uniform(1.0),
    "rademacher": Rademacher(1.0),
    "student-t, df = 8": StudentT(8, 1.0),
    "student-t, df = 20": StudentT(20, 1.0),
    "one-hot": Sparse(1.0),
}
"""Laws of which some let the trained layer recover the data and some do not."""


class Sizes(Settings):
    """Sizes of sequences, by default the paper's."""

    dim: int = 5
    horizon: int = 100


class LawAndSizes(Sizes):
    """Sequences of a law in `LAWS`, of scale 1."""

    law: str = "gaussian"


def process_and_task(settings: LawAndSizes) -> tuple[DiagonalUnitary, NextToken]:
    """The process and the task."""
    return DiagonalUnitary(LAWS[settings.law](1.0), settings.dim), NextToken(settings.horizon)


def diagonal_run(
    process: DiagonalUnitary, task: NextToken, start: Any, **settings: Any
) -> Flow[LinearAttention]:
    """The gradient flow from a0 I, b0 I."""
    return require_finished(
        gradient_flow(LinearAttention.diagonal(process.dim, *start), process, task, **settings)
    )


def start_label(start: tuple[float, float]) -> str:
    """A diagonal start in the legend of a figure."""
    return f"$a_0={start[0]:g},\\ b_0={start[1]:g}$"


def product_error(model: LinearAttention, expected: float) -> float:
    """Largest relative error of the products a_j b_j."""
    return float(np.max(np.abs(np.asarray(model.products()) / expected - 1)))


def stacked_weights(models: Sequence[LinearAttention], name: str) -> dict[str, tuple[tuple[str, ...], Any]]:
    """The weights of several models as data, along a dimension of this name."""
    return {
        "w_kq": ((name, "row", "column"), np.stack([np.asarray(model.w_kq) for model in models])),
        "w_pv": ((name, "output", "column"), np.stack([np.asarray(model.w_pv) for model in models])),
    }


def trained_risk(process: DiagonalUnitary, horizon: int) -> float:
    """Exact mean squared error per coordinate at the longest context of a layer that was trained to this horizon."""
    product = float(theory.limit_product(process, NextToken(horizon)))
    model = LinearAttention.diagonal(process.dim, 1.0, product)
    return 2 * float(population_loss(model, process, NextToken.last(horizon))) / process.dim


def diagonals(model: LinearAttention) -> tuple[np.ndarray, np.ndarray]:
    """The entries a_j and b_j, shape (…, d), of one model or of a trajectory."""
    d = model.w_pv.shape[-2]
    w_kq, w_pv = np.asarray(model.w_kq), np.asarray(model.w_pv)
    return (
        np.diagonal(w_kq[..., d:, :d], axis1=-2, axis2=-1),
        np.diagonal(w_pv[..., :d], axis1=-2, axis2=-1),
    )


def off_diagonal_size(model: LinearAttention) -> float:
    """Largest |entry| off the two diagonals that make gradient descent, of one model or of a trajectory."""
    d = model.w_pv.shape[-2]
    w_kq, w_pv = np.array(model.w_kq), np.array(model.w_pv)
    index = np.arange(d)
    w_kq[..., d + index, index] = 0
    w_pv[..., index, index] = 0
    return float(max(np.abs(w_kq).max(), np.abs(w_pv).max()))
