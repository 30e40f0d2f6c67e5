"""The paper's heads, its data and its starts, as parts of this library."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mesascope.dynamics import Flow, Plateaus, Rodas4, gradient_flow, plateaus
from mesascope.models import (
    LastEntry,
    LinearSelfAttention,
    LowRankLinearSelfAttention,
    PromptModel,
    StackedPrompt,
)
from mesascope.processes import FewShot, LinearRegression

from .._claim import Settings, UnsettledError
from .._runs import Seeds, require_finished
from .._shared import shared

PAPER = "zhang2025"


class Data(Settings):
    """The eigenvalues of Λ and the number of examples: the paper's."""

    eigenvalues: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    examples: int = 31


class Heads(Data, Seeds):
    """The number of heads, their rank (0: merged), and the size of their start."""

    heads: int = 5
    rank: int = 1
    scale: float = 0.001


class _One(Heads):
    """A single flow: that of `seed`."""


def exact_eigenvalues(settings: Data) -> list[Fraction]:
    """The eigenvalues as the decimals that they are written as."""
    return [Fraction(str(one)) for one in settings.eigenvalues]


def process_of(settings: Data) -> LinearRegression:
    """Prompts with inputs N(0, Λ), in the axes of Λ."""
    return LinearRegression(len(settings.eigenvalues), None, np.diag(settings.eigenvalues))


def exact_process_of(settings: Data) -> LinearRegression:
    """The same prompts, with the eigenvalues as fractions, which proofs need."""
    eigenvalues = exact_eigenvalues(settings)
    return LinearRegression(len(eigenvalues), None, np.diag(eigenvalues))


def start_of(settings: Heads) -> PromptModel:
    """Weights N(0, scale²) but for values of inputs and keys of labels, which are 0, as in the authors' program."""
    rng = np.random.default_rng([settings.seed, settings.heads, settings.rank])
    heads, width = settings.heads, len(settings.eigenvalues) + 1
    value = settings.scale * rng.normal(size=(heads, 1, width))
    value[..., :-1] = 0
    if settings.rank:
        keys, queries = settings.scale * rng.normal(size=(2, heads, settings.rank, width))
        keys[..., -1] = 0
        return model_of(LowRankLinearSelfAttention(w_k=keys, w_q=queries, w_pv=value, context="examples"))
    merged = settings.scale * rng.normal(size=(heads, width, width))
    merged[:, -1] = 0
    return model_of(LinearSelfAttention(merged, value, context="examples"))


def model_of(layer: Any) -> PromptModel:
    """One layer that reads examples and writes the label of the query."""
    return PromptModel(StackedPrompt(layer.width - 1), layer, LastEntry(1))


@shared(_One)
def _found(settings: _One) -> Plateaus[PromptModel]:
    flow: Flow[PromptModel] = gradient_flow(
        start_of(settings),
        process_of(settings),
        FewShot(settings.examples),
        solver=Rodas4(),
        rtol=1e-6,
        saves=2048,
    )
    return plateaus(require_finished(flow))


def plateaus_of(settings: Heads, count: int | None = None) -> list[Plateaus[PromptModel]]:
    """Those of the flows of all seeds.

    Raises:
        UnsettledError: a flow visits another number of critical points than `count`.
    """
    every = range(settings.seed, settings.seed + settings.seeds)
    found = [_found(_One.of(settings, seed=seed, seeds=1)) for seed in every]
    if count is not None and any(len(one) != count for one in found):
        numbers = [len(one) for one in found]
        raise UnsettledError(f"flows visit {numbers} critical points, where {count} each are compared")
    return found
