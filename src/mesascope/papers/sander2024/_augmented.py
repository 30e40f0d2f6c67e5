"""Augmented tokens (0; x_t; x_{t−1}): one layer is one step of gradient descent."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.dynamics import Flow, gradient_flow
from mesascope.models import LinearAttention
from mesascope.processes import Constant, DiagonalUnitary, NextToken
from mesascope.records import Figure, Line, Points
from mesascope.theory import sander2024 as theory

from .._claim import Claim, Finding, Settings, presets, within
from .._figures import one_panel
from .._runs import require_finished
from .._shared import shared
from ._authors import PROGRAM
from ._ends import PAPER


def _step(settings: _Augmented) -> Finding:
    """The construction, and the end of the flow of its diagonals, against the step of the best size."""
    dim = settings.dim
    built, losses, ends, steps = [], [], [], {}
    for context, flow in _flows(settings).items():
        tokens, best = _tokens(settings, context), float(theory.augmented_step(dim, context))
        step = _gradient_step(tokens, best)
        built.append(float(jnp.abs(LinearAttention.diagonal(dim, best, 1.0, "1")(tokens) - step).max()))
        losses.append(abs(float(flow.loss[-1]) / float(theory.augmented_loss(dim, context)) - 1))
        ends.append(float(jnp.abs(flow.model(tokens) - step).max()))
        steps[context] = [float(v) for v in np.real(flow.model.products())]
    measured = {"construction": max(built), "flow_loss": max(losses), "flow_predictions": max(ends)}
    parts = {
        "the construction is a step": within(measured["construction"], settings.exactness),
        "the flow ends at the loss of the best step": within(measured["flow_loss"], settings.tolerance),
        "the flow ends at the best step": within(measured["flow_predictions"], settings.tolerance),
    }
    return Finding.of_parts(
        measured,
        dict.fromkeys(measured, 0.0),
        settings.tolerance,
        parts,
        {
            "best_steps": {c: theory.augmented_step(dim, c) for c in steps},
            "products_of_the_flow": steps,
            "meaning": "largest differences of predictions from those of the step; relative error of the loss",
        },
        {"augmented-steps": _steps_figure(dim, steps)},
    )


def _tokens(settings: _Augmented, context: int) -> Array:
    process = DiagonalUnitary(Constant(1.0), settings.dim)
    return process.sample(named_key(settings.seed, "tokens"), context, settings.sequences)


class _Flows(Settings):
    dim: int = 4
    contexts: tuple[int, ...] = (5, 20)
    start: float = 0.1
    seed: int = 0


@shared(_Flows)
def _flows(settings: _Flows) -> dict[int, Flow[LinearAttention]]:
    """Of the diagonal blocks of the construction, by context length."""
    process = DiagonalUnitary(Constant(1.0), settings.dim)
    dim, size = settings.dim, settings.start
    # every coordinate starts elsewhere: equal ones would stay equal
    sizes = np.random.default_rng(settings.seed).uniform(size / 2, 3 * size / 2, (2, dim))
    w_kq, w_pv = np.zeros((2 * dim, 2 * dim)), np.zeros((dim, 2 * dim))
    w_kq[dim:, :dim], w_pv[:, :dim] = np.diag(sizes[0]), np.diag(sizes[1])
    start = LinearAttention(w_kq, w_pv, "1")
    rest: dict[str, Any] = {"mask": "off-diagonal", "rtol": 1e-8, "tolerance": 1e-8}
    return {
        context: require_finished(gradient_flow(start, process, NextToken.last(context + 1), **rest))
        for context in settings.contexts
    }


def _gradient_step(tokens: Array, step: float) -> Array:
    """W = 0 − η ∇½Σ‖x_{t+1} − W x_t‖², applied to the last token."""
    gradient = -jnp.einsum("bti,btj->bij", tokens[:, 1:], tokens[:, :-1].conj())
    return jnp.einsum("bij,bj->bi", -step * gradient, tokens[:, -1])


def _steps_figure(dim: int, steps: dict[int, list[float]]) -> Figure:
    contexts = np.array(sorted(steps))
    grid = np.arange(2, contexts.max() + 2)
    best = [float(theory.augmented_step(dim, int(context))) for context in grid]
    return one_panel(
        "One step of gradient descent on augmented tokens",
        f"independent eigenvalues, d = {dim}",
        Line(x=grid, y=best, label="$1/(T + d - 2)$", series="theory"),
        Points(
            x=np.repeat(contexts, dim),
            y=np.concatenate([steps[int(c)] for c in contexts]),
            label="end of the flow",
            series=0,
        ),
        xlabel="context length $T$",
        ylabel="step size $\\eta$",
        caption="One point per coordinate: entries of the two blocks that make the step, multiplied.",
    )


class _Augmented(_Flows):
    sequences: int = 64
    tolerance: float = 1e-5
    exactness: float = 1e-12


CLAIMS = (
    Claim(
        id=f"{PAPER}/augmented-step",
        title="Augmented tokens: diagonal weights learn the best gradient step",
        evidence="exact",
        origin="paper",
        statement="""With augmented tokens, commuting W and off-diagonal gradients masked, gradient flow ends at one step of
            gradient descent from 0 on ½Σ‖x_{t+1} − W x_t‖², with step size 1/(T + d − 2).""",
        source=f"""sander2024, abstract (one step of gradient descent); tokens (0; s_t; s_{{t−1}}): authors' program {PROGRAM},
            augmented.py:246-253; that the masked flow ends there, and the step size, are derived here""",
        settings=presets(_Augmented(), contexts=(5, 20, 50)),
        check=_step,
        criterion="""Gradient flow of the exact loss from diagonal blocks with entries between 0.05 and 0.15: loss and
            predictions are those of the best step within 1e-5, since flows stop where the gradient is 1e-8 of its scale. The
            construction itself: 1e-12, rounding of a few hundred products. The tokens start at (1, …, 1): without the mask
            training leaves the diagonal, to the weights of `zheng2024/full-one-limit`.""",
        history="""Two claims before: that the flow ends at some step, and that this is the best one. Neither said that
            off-diagonal gradients were masked.""",
        cost="about 1 min",
    ),
)
