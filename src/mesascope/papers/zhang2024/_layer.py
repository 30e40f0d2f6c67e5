"""The paper's layer, its data and its start, as parts of this library."""

from __future__ import annotations

from typing import Any

import numpy as np
from diffrax import AbstractSolver, Kvaerno5

from mesascope.dynamics import Flow, gradient_flow
from mesascope.models import PromptModel
from mesascope.objectives import ExactMoments, population_loss
from mesascope.processes import FewShot, LinearRegression
from mesascope.theory import Construction
from mesascope.theory import zhang2024 as theory

from .._claim import Settings
from .._prompts import construction_stack, prompt_model
from .._rotations import rotated
from .._runs import require_finished
from .._shared import shared

PAPER = "zhang2024"


def covariance(eigenvalues: Any, seed: int) -> np.ndarray:
    """A covariance with these eigenvalues, in random axes."""
    return rotated(np.asarray(eigenvalues, float), np.random.default_rng(seed))


def model_of(construction: Construction) -> PromptModel:
    """One layer over all tokens, the query included, with ρ = N; ŷ is plus the last entry of the query token."""
    return prompt_model(construction_stack(construction, context="all"), sign=1)


def small_start(dim: int, scale: float, seed: int) -> PromptModel:
    """The paper's start: U = σΘΘᵀ with ‖ΘΘᵀ‖_F = 1 and u = σ, all other entries 0."""
    theta = np.random.default_rng(seed).normal(size=(dim, dim))
    product = theta @ theta.T
    return model_of(theory.layer(scale * product / np.linalg.norm(product), scale))


def flow_of(
    start: PromptModel, process: Any, examples: int, solver: AbstractSolver | None = None
) -> Flow[PromptModel]:
    """The gradient flow of the exact population loss."""
    rest: dict[str, Any] = {"solver": solver, "rtol": 1e-9, "tolerance": 1e-9, "saves": 256}
    return require_finished(gradient_flow(start, process, FewShot(examples), **rest))


class Inputs(Settings):
    """The eigenvalues of the covariance, the size of the start, and the seed of both."""

    eigenvalues: tuple[float, ...] = (1.0, 0.3)
    scale: float = 0.3
    seed: int = 0


class Trained(Inputs):
    """The number of examples of the flow."""

    examples: int


@shared(Trained)
def trained(settings: Trained) -> PromptModel:
    """The layer at which the flow from the paper's start ends."""
    lam = covariance(settings.eigenvalues, settings.seed)
    start = small_start(len(lam), settings.scale, settings.seed)
    # the slowest rates fall with the cube of the smallest eigenvalue: explicit steps would be too many
    stiff = max(settings.eigenvalues) > 10 * min(settings.eigenvalues)
    process = LinearRegression(len(lam), None, lam)
    return flow_of(start, process, settings.examples, Kvaerno5() if stiff else None).model


def weights_of(model: PromptModel) -> tuple[np.ndarray, np.ndarray]:
    """W^KQ and W^PV, shape (…, d + 1, d + 1), of one model or of a trajectory."""
    layer: Any = model.network.layers[0]  # type: ignore[attr-defined]  # a LinearAttentionStack
    return np.asarray(layer.w_kq)[..., 0, :, :], np.asarray(layer.w_pv)[..., 0, :, :]


def distance(model: PromptModel, construction: Construction) -> float:
    """Largest difference of an entry of the weights from those of a construction."""
    gaps = (found - wanted[0] for found, wanted in zip(weights_of(model), construction, strict=True))
    return float(np.max([np.abs(gap).max() for gap in gaps]))


def preconditioner_of(model: PromptModel) -> np.ndarray:
    """A = u Uᵀ of ŷ = x_qᵀ A (1/N) Σ x_i y_i."""
    w_kq, w_pv = weights_of(model)
    return w_pv[-1, -1] * w_kq[:-1, :-1].T


def exact_risk(model: PromptModel, process: Any, examples: int) -> float:
    """E(ŷ − y)² on prompts of this length."""
    return 2 * float(population_loss(model, process, FewShot(examples), ExactMoments()).value)


def factors(layer: PromptModel, process: Any, examples: int) -> tuple[float, float]:
    """The best multiple of y for ŷ, E ŷy/E y², and the squared correlation of the two, from three exact losses.

    The loss of α ŷ is a parabola in α.
    """
    w_kq, w_pv = weights_of(layer)
    dim = len(w_kq) - 1
    at = [
        exact_risk(model_of(theory.layer(w_kq[:dim, :dim], alpha * w_pv[dim, dim])), process, examples)
        for alpha in (0.0, 1.0, -1.0)
    ]
    square, cross = (at[1] + at[2]) / 2 - at[0], (at[2] - at[1]) / 4
    return cross / at[0], cross**2 / (square * at[0])
