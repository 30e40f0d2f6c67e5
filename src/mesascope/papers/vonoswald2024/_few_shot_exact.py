"""Few-shot tasks written as sequences: what the pairs between examples cost one gradient step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import numpy as np

from mesascope.processes import Law
from mesascope.records import Figure, Line, Panel, Rule
from mesascope.theory import vonoswald2024 as theory

from .._claim import Claim, Finding, Settings, presets, verdict_if, within
from .._identity import relative_error
from .._prompts import construction_stack
from ._common import LAWS, PAPER, few_shot_sequence, run_layers

_ENDS = {"no end tokens": None, "end tokens 0": 0.0, "other end tokens": 0.5}
"""‖e‖² of the end token."""


def _nodes(law: Law, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights and points of the law's quadrature in d dimensions, shapes (n,) and (n, d)."""
    weights, points = [], []
    for term in law.quadrature(dim):
        for choice in product(*(zip(rule.weights, rule.nodes, strict=True) for rule in term.rules)):
            weights.append(term.probability * np.prod([weight for weight, _ in choice]))
            points.append([node for _, node in choice])
    return np.array(weights), np.array(points)


def _maps(dim: int) -> np.ndarray:
    """All signed permutations; their entries have the means and second moments of Haar's measure."""
    orders = [np.eye(dim)[list(order)] for order in permutations(range(dim))]
    return np.array([np.diag(signs) @ order for order in orders for signs in product((1, -1), repeat=dim)])


def _mean_error(
    law: Law, dim: int, examples: int, step: float, noise: float, end: np.ndarray | None
) -> float:
    """E‖ŷ − y‖²/d of the constructed layer, as a sum over all inputs, maps and signs of the noise."""
    weights, points = _nodes(law, dim)
    maps, signs = _maps(dim), np.array(list(product((1, -1), repeat=examples * dim if noise else 0)))
    sizes = [len(points)] * (examples + 1) + [len(maps), len(signs)]
    *which, of_map, of_signs = np.unravel_index(np.arange(np.prod(sizes)), sizes)
    chance = np.prod([weights[one] for one in which], 0) / (len(maps) * len(signs))
    x, w = np.stack([points[one] for one in which], 1), maps[of_map]
    labels = np.einsum("bij,bnj->bni", w, x)
    flips = signs[of_signs].reshape(len(x), -1, dim) if noise else 0.0
    tokens = few_shot_sequence(x, labels[:, :-1] + noise * flips, end)
    zero = np.zeros((dim, dim))
    layer = construction_stack(theory.gradient_step(zero, step), "1", "causal")
    answers = np.asarray(run_layers(layer, theory.gradient_step_tokens(tokens, zero)))[:, -1, :dim]
    return float(chance @ ((answers - labels[:, -1]) ** 2).mean(-1)) + noise**2


def _end_token(size: float | None, dim: int) -> np.ndarray | None:
    """A token with ‖e‖² = size and unequal entries."""
    if size is None:
        return None
    entries = np.arange(1.0, dim + 1)
    return entries * np.sqrt(size / np.sum(entries**2))


def _check(settings: _Exact) -> Finding:
    """The closed form against sums over everything that is random; which end token adds least."""
    errors, added = {}, dict.fromkeys(_ENDS, np.inf)
    for law, dim, examples, noise in settings.cases:
        for name, size in _ENDS.items():
            given = (LAWS[law], dim, examples, settings.step_size)
            formula = theory.few_shot_error(*given, noise=noise, end_token_square=size)
            summed = _mean_error(*given, noise, _end_token(size, dim))
            errors[f"{law}, d = {dim}, {examples} examples, {name}"] = relative_error(
                summed, float(formula.total)
            )
            added[name] = min(added[name], float(formula.other_pairs))
    worst = max(errors.values())
    parts = {
        "the closed form": within(worst, settings.tolerance),
        "end tokens 0 remove the other pairs": within(added["end tokens 0"], 0.0),
        "other end tokens do not": verdict_if(added["other end tokens"] > 0),
    }
    return Finding.of_parts(
        {"largest_relative_error": worst, "least_that_other_pairs_add": added},
        {"largest_relative_error": 0.0, "least_that_other_pairs_add": "0 for end tokens 0 only"},
        settings.tolerance,
        parts,
        {"errors": errors, "meaning": "E‖ŷ − y‖²/d of the layer of Proposition 1 after the examples"},
        {"few-shot-exact": _figure(settings)},
    )


def _figure(settings: _Exact) -> Figure:
    dim, law = settings.shown_dim, LAWS[settings.shown_law]
    variance = float(law.moment(2, dim))
    shown = {"no end tokens": None, "end tokens 0": 0.0, "end tokens as large as inputs": variance * dim}
    counts = np.arange(settings.shown_examples + 1)

    def errors(size: float | None, step: Callable[[int], float]) -> list[float]:
        pairs = counts * (2 if size is None else 3)
        found = (
            theory.few_shot_error(law, dim, m, step(t), end_token_square=size)
            for m, t in zip(counts.tolist(), pairs.tolist(), strict=True)
        )
        return [float(one.total) / variance for one in found]

    def panel(title: str, step: Callable[[int], float]) -> Panel:
        lines = (
            Line(x=counts, y=errors(size, step), label=name, series=number)
            for number, (name, size) in enumerate(shown.items())
        )
        return Panel(
            title=title,
            xlabel="examples before the query",
            ylabel="error / error of the answer 0",
            traces=(*lines, Rule(value=1.0, label="the answer 0")),
        )

    return Figure(
        title="One gradient step on few-shot tasks that are written as sequences",
        panels=(
            panel("Attention sums", lambda pairs: settings.shown_step),
            panel("Attention takes the mean", lambda pairs: 1 / (variance * max(pairs, 1))),
        ),
        caption=f"Left: the step of the authors' stored layer, {settings.shown_step:g}. Right: the step that is right for long "
        f"sequences, {1 / variance:.3g}. d = {dim}, entries uniform on (−1, 1), no noise.",
    )


class _Exact(Settings):
    cases: tuple[tuple[str, int, int, float], ...] = (
        ("rademacher", 2, 1, 0.3),
        ("rademacher", 2, 2, 0.3),
        ("gaussian", 1, 3, 0.0),
        ("uniform", 2, 2, 0.0),
        ("gaussian", 2, 2, 0.0),
    )
    step_size: float = 0.2
    tolerance: float = 1e-12
    shown_law: str = "uniform"
    shown_dim: int = 10
    shown_examples: int = 40
    shown_step: float = 0.0334


CLAIMS = (
    Claim(
        id=f"{PAPER}/few-shot-exact",
        title="Pairs between examples cost a few-shot task; end tokens 0 remove them",
        evidence="exact",
        origin="ours",
        statement="""A gradient step on all neighbours of a sequence errs more on few-shot tasks by a term of the pairs (label,
            next input). End tokens 0 remove it; others add one.""",
        source="""derived here (`theory.vonoswald2024.few_shot_error`); vonoswald2024 fine-tunes end tokens for few-shot tasks,
            authors' `run_icl.ipynb`, cells 8 and 9""",
        settings=presets(_Exact()),
        check=_check,
        criterion="""The closed form of the mean error equals, within 10⁻¹² of it, a sum over all inputs of a quadrature, all
            signed permutations (whose second moments are those of random rotations) and all signs of the noise. What other
            pairs add is 0 for end tokens 0, by the formula, and above 0 for others.""",
    ),
)
