"""Loops are steps, and one loop: exact loss, exact flow."""

from __future__ import annotations

from typing import Any

import numpy as np

from mesascope.core import named_key
from mesascope.dynamics import gradient_flow
from mesascope.models import LastEntry, LinearAttentionStack, LinearSelfAttention, PromptModel, StackedPrompt
from mesascope.objectives import ExactMoments, population_loss
from mesascope.processes import FewShot, LinearRegression
from mesascope.theory import gatmiry2024 as theory

from .._claim import Claim, Finding, Settings, both, decide
from .._identity import identity, relative_error
from .._runs import settled
from ._common import PAPER, layer_stack, looped_model, regression, root_of_covariance


def _loops(settings: Settings) -> Finding:
    """Answers of the looped layer: at u = 0 against steps, at u ≠ 0 against what is left after them."""
    errors: dict[str, float] = {}
    for dim, examples, loops in settings["cases"]:
        rng = np.random.default_rng([settings["seed"], dim, loops])
        a = 0.3 * np.eye(dim) + 0.1 * rng.normal(size=(dim, dim)) / dim**0.5
        u = rng.normal(size=dim)
        key = named_key(settings["seed"], "identity", str(dim), str(examples))
        x, y = (
            np.asarray(values) for values in LinearRegression(dim).sample(key, examples, settings["prompts"])
        )
        moments = np.einsum("bni,bnj->bij", x[:, :-1], x[:, :-1]) / examples
        left = theory.error_after_loops(a, moments, _weights(x, y), loops, u)
        pairs = {
            "u = 0": (looped_model(a, None, loops), _descended(x, y, a, loops)),
            "u ≠ 0": (looped_model(a, u, loops), y[:, -1] - np.einsum("bi,bi->b", x[:, -1], left)),
        }
        for name, (model, expected) in pairs.items():
            gap = relative_error(model(x, y[:, :-1]), expected)
            errors[f"{name}, d = {dim}, n = {examples}, {loops} loops"] = gap
    return identity(errors, settings)


def _weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The weights w of prompts without noise, which have at least d pairs."""
    return np.stack([np.linalg.lstsq(one, labels)[0] for one, labels in zip(x, y, strict=True)])


def _descended(x: np.ndarray, y: np.ndarray, a: np.ndarray, steps: int) -> np.ndarray:
    """x_q·w after steps w ← w − A∇R(w) from 0, prompt by prompt."""
    answers = []
    for inputs, labels in zip(x[:, :-1], y[:, :-1], strict=True):
        w = np.zeros(len(a))
        for _ in range(steps):
            w = w - a @ inputs.T @ (inputs @ w - labels) / len(labels)
        answers.append(w)
    return np.einsum("bi,bi->b", x[:, -1], np.array(answers))


def _one_loop(settings: Settings) -> Finding:
    """The exact loss at random weights, and where exact flows of A and u end."""
    process, root, dim = regression(settings), root_of_covariance(settings), settings["dim"]
    gaps, flows = [], {}
    for examples in settings["examples"]:
        multiple, least = (float(value) for value in theory.one_loop_minimum(dim, examples))
        for number in range(settings["starts"]):
            rng = np.random.default_rng([settings["seed"], examples, number])
            a = settings["scale"] * rng.normal(size=(dim, dim))
            u = np.asarray(rng.normal(size=dim))
            start, task = _model(a, u), FewShot(examples)
            exact = 2 * float(population_loss(start, process, task, ExactMoments()).value)
            gaps.append(abs(exact / theory.one_loop_loss(a, root @ root, examples, u) - 1))
            run = settled(
                gradient_flow(start, process, task, mask=_trained(dim), rtol=1e-8, tolerance=1e-9, saves=8)
            )
            layer: Any = run.model.network.layers[0]  # type: ignore[attr-defined]  # a LinearAttentionStack
            found = root @ -np.asarray(layer.w_kq[0, :dim, :dim]).T @ root
            flows[f"n = {examples}, start {number}"] = {
                "A": float(np.abs(found / multiple - np.eye(dim)).max()),
                "u": float(np.abs(layer.w_pv[0, -1, :dim]).max()),
                "loss": abs(2 * float(run.loss[-1]) / least - 1),
            }
    measured = {
        "exact_loss_against_the_closed_form": max(gaps),
        **{name: max(flow[name] for flow in flows.values()) for name in ("A", "u", "loss")},
    }
    ends = max(measured[name] for name in ("A", "u", "loss"))
    return Finding(
        measured,
        {"exact_loss_against_the_closed_form": 0.0, "A": 0.0, "u": 0.0, "loss": 0.0},
        settings["tolerance"],
        decide(max(gaps) <= 1e-12 and ends <= settings["tolerance"]),
        {
            "flows": flows,
            "meaning": "largest entries of Σ^{1/2}AΣ^{1/2}/a − I and of u; the loss relative to the least one",
        },
    )


def _model(a: np.ndarray, u: np.ndarray) -> PromptModel:
    return PromptModel(StackedPrompt(len(a)), layer_stack(a, u), LastEntry(-1))


def _trained(dim: int) -> PromptModel:
    """1 at the entries of A and u."""
    w_kq, w_pv = theory.looped_layer(-np.ones((dim, dim)), np.ones(dim))
    w_pv[..., -1, -1] = 0.0
    mask = LinearAttentionStack([LinearSelfAttention(w_kq, w_pv, "t-1", "examples")])
    return PromptModel(StackedPrompt(dim), mask, LastEntry(-1))


CLAIMS = (
    Claim(
        id=f"{PAPER}/loops-are-steps",
        statement=(
            "A layer with weights (A, u) applied L times answers at u = 0 as L steps of gradient descent with preconditioner A "
            "do, and for every u as the target minus x_q·((I − AS)^L (w + u) − u) (A without symmetry, d ≤ 20, n ≤ 40, L ≤ "
            "16; both presets)."
        ),
        source="gatmiry2024, section 2; the form for u ≠ 0 is derived here",
        settings=both(
            {
                "cases": [[1, 2, 1], [5, 20, 4], [20, 40, 16]],
                "prompts": 32,
                "seed": 0,
                "tolerance": 1e-12,
            }
        ),
        check=_loops,
        tolerance_reason="an identity: only rounding of double precision, relative to the largest answer",
    ),
    Claim(
        id=f"{PAPER}/one-loop",
        statement=(
            "One loop, x ~ N(0, Σ), w ~ N(0, Σ⁻¹): the exact loss is the closed form for all A and u, and exact gradient "
            "flows from random A and u end at u = 0, A = n/(n + d + 1) Σ⁻¹ (quick: d = 3, n = 10, three starts; "
            "paper: d = 5, n = 10, 40 and 160, five starts)."
        ),
        source="gatmiry2024, the minimiser of the loss (reported: u = 0 and A close to Σ⁻¹); the closed form is derived here",
        settings=both(
            {"dim": 3, "examples": [10], "starts": 3, "scale": 0.3, "seed": 0, "tolerance": 1e-6},
            dim=5,
            examples=[10, 40, 160],
            starts=5,
        ),
        check=_one_loop,
        tolerance_reason="flows stop where the gradient is 1e-9 of its scale; 1e-12 for two exact losses",
    ),
)
