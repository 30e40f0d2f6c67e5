"""In-weights and in-context learning, where a share of the prompts has new tasks and all others have one and the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mesascope.dynamics import gradient_flow
from mesascope.models import LastEntry, LinearSelfAttention, PromptModel, StackedPrompt
from mesascope.objectives import ExactMoments, losses
from mesascope.processes import FewShot, InWeightsRegression, LinearRegression, PromptMixture, TaskPool
from mesascope.records import Figure, Line, Panel, Rule

from .._claim import Claim, Finding, presets, verdict_if
from .._runs import require_finished, seeds_of
from ._model import PAPER, Heads, process_of, start_of


class _Shares(Heads):
    heads: int = 2
    rank: int = 0
    scale: float = 0.01
    seeds: int = 2
    shares: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class _Course:
    """The errors on either test along a flow, over those of the answer 0."""

    times: np.ndarray
    in_weights: np.ndarray
    in_context: np.ndarray


def _known_prompts(settings: _Shares) -> InWeightsRegression:
    """The test of in-weights learning: noise of variance 1 as labels of examples, queries of the known task, ‖w‖ = √D."""
    w = np.random.default_rng([settings.seed, 1]).normal(size=len(settings.eigenvalues))
    return InWeightsRegression(w * len(w) ** 0.5 / np.linalg.norm(w), np.diag(settings.eigenvalues))


def _training_data(settings: _Shares, share: float) -> LinearRegression | InWeightsRegression | PromptMixture:
    """New tasks in a share of the prompts; without any, the prompts of the test of in-weights learning."""
    new, known = process_of(settings), _known_prompts(settings)
    if share in (0, 1):
        return new if share else known
    return PromptMixture(new, TaskPool(new, vectors=known.vector[None]), share)


def _start(settings: _Shares) -> PromptModel:
    """The heads of the authors' program, in which the query attends to itself, too."""
    layer: Any = start_of(settings).network
    heads = LinearSelfAttention(layer.w_kq, layer.w_pv, "t", "all")
    return PromptModel(StackedPrompt(layer.width - 1), heads, LastEntry(1))


def _course(settings: _Shares, share: float) -> _Course:
    task, new, known = FewShot(settings.examples), process_of(settings), _known_prompts(settings)
    flow = require_finished(
        gradient_flow(_start(settings), _training_data(settings, share), task, tolerance=1e-6)
    )
    in_weights, in_context = (
        2 * losses(ExactMoments().objective(process, task, "t"), flow.trajectory) for process in (known, new)
    )
    power = known.vector**2 @ settings.eigenvalues
    return _Course(np.asarray(flow.times), in_weights / power, in_context / sum(settings.eigenvalues))


def _in_weights(settings: _Shares) -> Finding:
    """Where in-weights learning is at its best, and what is left of it at the end, for every share of new tasks."""
    found = [
        [_course(replace(settings, seed=seed), share) for share in settings.shares]
        for seed in seeds_of(settings)
    ]
    least = np.array([[one.in_weights.min() for one in row] for row in found])
    last = np.array([[one.in_weights[-1] for one in row] for row in found])
    context = np.array([[one.in_context[-1] for one in row] for row in found])
    known = settings.shares.index(0)
    mixed = [k for k, share in enumerate(settings.shares) if 0 < share < 1]
    held = {
        "in-weights learning comes and goes": (least[:, mixed] < 1) & (last[:, mixed] > 1),
        "without new tasks it stays": (last[:, known] < 1) & (context[:, known] > 1),
        "with more new tasks less is known by the weights": np.diff(least, axis=1) > 0,
        "with more new tasks more is learned in context": np.diff(context, axis=1) < 0,
    }
    parts = {what: verdict_if(bool(each.all())) for what, each in held.items()}
    names = [f"p = {share:g}" for share in settings.shares]
    means = {
        "least in-weights error": least.mean(0),
        "last in-weights error": last.mean(0),
        "last in-context error": context.mean(0),
    }
    return Finding.of_parts(
        {what: dict(zip(names, one.tolist(), strict=True)) for what, one in means.items()},
        "in-weights errors below 1, then above; monotone in p",
        None,
        parts,
        {
            "each_seed": {"least": least.tolist(), "last": last.tolist(), "in_context": context.tolist()},
            "meaning": "errors over that of the answer 0; means over seeds",
        },
        {"in-weights": _figure(settings, found[0])},
    )


def _figure(settings: _Shares, found: list[_Course]) -> Figure:
    def panel(title: str, which: str) -> Panel:
        lines = []
        for k, (share, one) in enumerate(zip(settings.shares, found, strict=True)):
            late = one.times > 0
            lines.append(
                Line(
                    x=one.times[late],
                    y=getattr(one, which)[late],
                    label=f"p = {share:g}",
                    series=k,
                    style="solid",
                )
            )
        return Panel(
            title=title,
            xlabel="flow time",
            ylabel="error over that of the answer 0",
            xscale="log",
            traces=(*lines, Rule(value=1.0, label="answer 0")),
        )

    return Figure(
        title="What is known by the weights is forgotten where tasks can be learned in context",
        panels=(
            panel("The known task, examples without meaning", "in_weights"),
            panel("New tasks", "in_context"),
        ),
        caption=f"Seed {settings.seed}; p is the share of training prompts with new tasks, the others have one known task.",
    )


CLAIMS = (
    Claim(
        id=f"{PAPER}/in-weights",
        title="In-weights learning is transient unless all tasks are known",
        evidence="exact",
        origin="ours",
        statement="""Where a share p of prompts has new tasks and the others one known task, merged heads first answer
            the known task by their weights, then lose this as they learn in context.""",
        source="ours, on the data of zhang2025 (the authors' program, --icl, data.py:31-45)",
        settings=presets(_Shares(), heads=8),
        check=_in_weights,
        criterion="""For every seed and share the in-weights error, measured where labels of examples are noise, falls below
            that of the answer 0 and ends above it; without new tasks it ends below. Its least value grows, and the last
            in-context error falls, with every step of p.""",
        cost="about 40 min",
    ),
)
