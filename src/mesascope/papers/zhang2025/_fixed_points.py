"""Fixed points of heads of rank one: every set of eigenvectors, proved as a critical point."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import equinox as eqx
import jax
import numpy as np

from mesascope.dynamics.certificates import NotProvedError, PromptQuestion, prove_exactly
from mesascope.models import LowRankLinearSelfAttention
from mesascope.objectives import ExactMoments, PromptLayer
from mesascope.processes import FewShot
from mesascope.theory import zhang2025 as theory

from .._claim import Claim, Finding, presets, verdict_if, within
from ._model import PAPER, Data, exact_eigenvalues, exact_process_of, model_of, process_of


def _fixed_points(settings: _Points) -> Finding:
    """The gradient and the error at one point of every kind, in fractions and by the engine of this library."""
    lam, n = exact_eigenvalues(settings), settings.examples
    objective = ExactMoments().objective(process_of(settings), FewShot(n))
    slope = eqx.filter_jit(eqx.filter_value_and_grad(lambda model: objective(model).value))
    critical, as_stated, errors, gradients = [], [], [], []
    for learned in _subsets(len(lam)):
        weights = theory.fixed_point(lam, n, learned, len(lam))
        layer = _layer(*weights)
        error = _proved_error(settings, layer, weights)
        critical.append(error is not None)
        as_stated.append(error == theory.fixed_point_error(lam, n, learned))
        loss, by_engine = slope(layer)
        errors.append(abs(2 * float(loss) / float(theory.fixed_point_error(lam, n, learned)) - 1))
        gradients.append(max(float(abs(leaf).max()) for leaf in jax.tree.leaves(by_engine)))
    parts = {
        "the gradient is 0 in fractions": verdict_if(all(critical)),
        "the error is the paper's": verdict_if(all(as_stated)),
        "so says the engine": within(max(*errors, *gradients), settings.tolerance),
    }
    return Finding.of_parts(
        {
            "kinds": len(critical),
            "critical": sum(critical),
            "largest error of the engine": max(errors),
            "largest gradient of the engine": max(gradients),
        },
        {"kinds": 2 ** len(lam), "critical": 2 ** len(lam), "largest error of the engine": 0.0},
        settings.tolerance,
        parts,
        {"errors_at_the_plateaus": [str(one) for one in theory.plateau_errors(lam, n)]},
    )


def _proved_error(settings: _Points, layer: Any, weights: Any) -> Fraction | None:
    """Twice the loss of these weights if they are proved to be critical among all weights of the layer, else None."""
    question = PromptQuestion(
        exact_process_of(settings),
        FewShot(settings.examples),
        PromptLayer.of(layer, len(settings.eigenvalues)),
    )
    theta = [Fraction(0)] * question.layer.size
    places, inputs = question.layer.places(), len(settings.eigenvalues)
    read = {
        "w_pv": places["w_pv"][:, 0, inputs],
        "w_k": places["w_k"][..., :inputs],
        "w_q": places["w_q"][..., :inputs],
    }
    for array, entries in zip(read.values(), weights, strict=True):
        for place, entry in zip(array.ravel(), entries.ravel(), strict=True):
            theta[place] = Fraction(entry)
    try:
        return 2 * prove_exactly(question, theta).loss[0]
    except NotProvedError:
        return None


def _subsets(count: int) -> list[tuple[int, ...]]:
    return [chosen for size in range(count + 1) for chosen in combinations(range(count), size)]


def _layer(values: Any, keys: Any, queries: Any) -> Any:
    """The heads as a layer whose tokens also hold a label."""
    label = ((0, 0), (0, 0), (0, 1))
    return model_of(
        LowRankLinearSelfAttention(
            w_k=np.pad(keys.astype(float), label),
            w_q=np.pad(queries.astype(float), label),
            w_pv=np.pad(values.astype(float)[:, None, None], ((0, 0), (0, 0), (keys.shape[-1], 0))),
            context="examples",
        )
    )


class _Points(Data):
    tolerance: float = 1e-13


CLAIMS = (
    Claim(
        id=f"{PAPER}/fixed-points",
        title="Every set of eigenvectors is learned at a fixed point",
        evidence="exact",
        origin="paper, second-hand",
        statement="""Heads of rank one have a fixed point for every set of eigenvectors of Λ, whose error is tr Λ less the
            sum of λ/(1 + (1 + tr Λ/λ)/N) over the set.""",
        source="zhang2025, abstract (exponentially many fixed points); the errors: second-hand, the project's notes",
        settings=presets(_Points()),
        check=_fixed_points,
        criterion="""At all 16 points, weights 1, e_k and a_k e_k, the gradient is 0 and the error as stated in rational
            arithmetic. The engine of this library, which shares no code with it, agrees to 1e-13, rounding of sums
            of order one, in all weights, also those of labels as keys and of inputs as values.""",
    ),
)
