"""Loops are steps, and one loop: exact loss, exact flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.dynamics import gradient_flow
from mesascope.objectives import ExactMoments, population_loss
from mesascope.processes import FewShot, LinearRegression
from mesascope.theory import Construction
from mesascope.theory import gatmiry2024 as theory

from .._claim import Claim, Finding, Settings, presets, within
from .._identity import identity, relative_error
from .._prompts import construction_model
from .._runs import require_finished
from ._common import PAPER, Inputs, looped_model, regression, root_of_covariance


def _steps(settings: _Cases) -> Finding:
    """Answers of the looped layer at u = 0 against steps that are written out."""
    errors: dict[str, float] = {}
    for name, a, _, loops, x, y in _layers(settings):
        answers = looped_model(a, None, loops)(x, y[:, :-1])
        errors[name] = relative_error(answers, _descended(x, y, a, loops))
    return identity(errors, settings.tolerance)


def _closed_form(settings: _Cases) -> Finding:
    """Answers of the looped layer with u ≠ 0 against the closed form."""
    errors: dict[str, float] = {}
    for name, a, u, loops, x, y in _layers(settings):
        moments = np.einsum("bni,bnj->bij", x[:, :-1], x[:, :-1]) / (x.shape[1] - 1)
        weights = np.stack([np.linalg.lstsq(*prompt)[0] for prompt in zip(x, y, strict=True)])  # no noise
        left = theory.error_after_loops(a, moments, weights, loops, u)
        expected = y[:, -1] - np.einsum("bi,bi->b", x[:, -1], left)
        errors[name] = relative_error(looped_model(a, u, loops)(x, y[:, :-1]), expected)
    return identity(errors, settings.tolerance)


def _layers(settings: _Cases) -> Iterator[tuple[str, np.ndarray, np.ndarray, int, np.ndarray, np.ndarray]]:
    """Name, A without symmetry, u, the number of loops, and prompts x, y, case by case."""
    for dim, examples, loops in settings.cases:
        rng = np.random.default_rng([settings.seed, dim, loops])
        a = 0.3 * np.eye(dim) + 0.1 * rng.normal(size=(dim, dim)) / dim**0.5
        u = rng.normal(size=dim)
        key = named_key(settings.seed, "identity", str(dim), str(examples))
        x, y = map(np.asarray, LinearRegression(dim).sample(key, examples, settings.prompts))
        yield f"d = {dim}, n = {examples}, {loops} loops", a, u, loops, x, y


def _descended(x: np.ndarray, y: np.ndarray, a: np.ndarray, steps: int) -> np.ndarray:
    """x_q·w after steps w ← w − A∇R(w) from 0."""
    inputs, w = x[:, :-1], np.zeros((len(x), len(a)))
    for _ in range(steps):
        missed = np.einsum("bni,bi->bn", inputs, w) - y[:, :-1]
        w = w - np.einsum("ij,bnj,bn->bi", a, inputs, missed) / inputs.shape[1]
    return np.einsum("bi,bi->b", x[:, -1], w)


def _one_loop(settings: _OneLoop) -> Finding:
    """The exact loss at random weights, and where exact flows of A and u end."""
    process, root, dim = regression(settings), root_of_covariance(settings), settings.dim
    gaps, flows = [], {}
    w_kq, w_pv = theory.looped_layer(-np.ones((dim, dim)), np.ones(dim))
    w_pv[..., -1, -1] = 0.0
    mask = construction_model(Construction(w_kq, w_pv))  # 1 at the entries of A and u, which are trained
    for examples in settings.examples:
        multiple, least = (float(value) for value in theory.one_loop_minimum(dim, examples))
        for number in range(settings.starts):
            rng = np.random.default_rng([settings.seed, examples, number])
            a = settings.scale * rng.normal(size=(dim, dim))
            u = np.asarray(rng.normal(size=dim))
            start, task = construction_model(theory.looped_layer(a, u)), FewShot(examples)
            exact = 2 * float(population_loss(start, process, task, ExactMoments()).value)
            gaps.append(abs(exact / theory.one_loop_loss(a, root @ root, examples, u) - 1))
            flow = gradient_flow(start, process, task, mask=mask, rtol=1e-8, tolerance=1e-9, saves=8)
            run = require_finished(flow)
            layer: Any = run.model.network.layers[0]  # type: ignore[attr-defined]  # a LinearAttentionStack
            found = root @ -np.asarray(layer.w_kq[0, :dim, :dim]).T @ root
            flows[f"n = {examples}, start {number}"] = {
                "A": float(np.abs(found / multiple - np.eye(dim)).max()),
                "u": float(np.abs(layer.w_pv[0, -1, :dim]).max()),
                "loss": abs(2 * float(run.loss[-1]) / least - 1),
            }
    worst = {name: max(flow[name] for flow in flows.values()) for name in ("A", "u", "loss")}
    measured = {"exact_loss_against_the_closed_form": max(gaps), **worst}
    ends = {"A": "end of A", "u": "end of u", "loss": "least loss"}
    parts = {"closed form of the loss": within(max(gaps), _ROUNDING)}
    parts |= {part: within(worst[name], settings.tolerance) for name, part in ends.items()}
    return Finding.of_parts(
        measured,
        dict.fromkeys(measured, 0.0),
        settings.tolerance,
        parts,
        {
            "flows": flows,
            "meaning": "largest entries of Σ^{1/2}AΣ^{1/2}/a − I and of u; the loss relative to the least one",
        },
    )


_ROUNDING = 1e-12  # of two exact losses, which sum some hundred terms


class _Cases(Settings):
    cases: tuple[tuple[int, int, int], ...] = ((1, 2, 1), (5, 20, 4), (20, 40, 16))
    prompts: int = 32
    seed: int = 0
    tolerance: float = 1e-12


_IDENTITY = (
    "Both sides are computed on drawn prompts and must agree to the rounding of double precision, 1e-12 of the largest "
    "answer."
)


class _OneLoop(Inputs):
    dim: int = 3
    examples: tuple[int, ...] = (10,)
    starts: int = 3
    scale: float = 0.3
    tolerance: float = 1e-6


CLAIMS = (
    Claim(
        id=f"{PAPER}/loops-are-steps",
        title="Loops of one layer are steps of preconditioned gradient descent",
        statement=(
            "At u = 0 a layer of linear attention with weights A that is applied L times answers as L steps of gradient "
            "descent with preconditioner A."
        ),
        source="gatmiry2024, Proposition 3.1 (arXiv v1, section 3.4, second-hand)",
        origin="paper, second-hand",
        evidence="exact",
        settings=presets(_Cases()),
        check=_steps,
        criterion=_IDENTITY,
    ),
    Claim(
        id=f"{PAPER}/loops-in-closed-form",
        title="The looped layer in closed form for every u",
        statement=(
            "For every A and u the layer, applied L times, misses the target of a query by x_q·((I − AS)^L (w + u) − u)."
        ),
        source="derived here, for the layer of gatmiry2024, section 3.3 (arXiv v1, second-hand)",
        origin="ours",
        evidence="exact",
        settings=presets(_Cases()),
        check=_closed_form,
        criterion=_IDENTITY,
    ),
    Claim(
        id=f"{PAPER}/one-loop",
        title="One loop: where gradient flow of A and u ends",
        statement=(
            "For one loop, gradient flow from random A and u ends at u = 0 and A = n/(n + d + 1) Σ⁻¹, the least value of a "
            "loss that has a closed form."
        ),
        source=(
            "gatmiry2024, Theorem 3.2 for L = 1 (arXiv v1, second-hand): u = 0 and A close to Σ⁻¹; the closed form is derived "
            "here"
        ),
        origin="ours",
        evidence="exact",
        settings=presets(_OneLoop(), dim=5, examples=(10, 40, 160), starts=5),
        check=_one_loop,
        criterion=(
            "Two exact losses at random weights must agree to 1e-12, their rounding. Ends of flows may be 1e-6 from the "
            "formula: flows stop where the gradient is 1e-9 of its scale, and the flattest direction is some hundred times "
            "flatter."
        ),
        cost="about 5 min",
    ),
)
