"""Fixed points: every set of eigenvectors is proved to be one, and searches find no others."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax import Array

from mesascope.dynamics.certificates import NotProvedError, PromptQuestion, prove_exactly
from mesascope.models import LowRankLinearSelfAttention
from mesascope.objectives import ExactMoments, PromptLayer
from mesascope.processes import FewShot
from mesascope.theory import zhang2025 as theory

from .._claim import Claim, Finding, UnsettledError, presets, verdict_if, within
from .._shared import shared
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


class _Shape(Data):
    """The data, and the heads: their number and rank."""

    heads: int = 4
    rank: int = 1


def _no_others(settings: _Searched) -> Finding:
    """How far the critical points that searches find predict from the nearest of those of the formula."""
    best = np.array(theory.slopes(settings.eigenvalues, settings.examples), float)
    kinds: dict[str, int] = {}
    worst, lost = 0.0, 0
    for start in range(settings.starts):
        slope, gradient = _searched(settings, start)
        if not gradient <= settings.largest_gradient:
            lost += 1
            continue
        learned = np.diag(slope) > best / 2
        worst = max(worst, float(abs(slope - np.diag(learned * best)).max() / best.max()))
        name = "".join("1" if one else "0" for one in learned)
        kinds[name] = kinds.get(name, 0) + 1
    if lost > settings.starts // 2:
        raise UnsettledError(f"{lost} of {settings.starts} searches did not end at a critical point")
    return Finding.of_error(
        worst,
        settings.tolerance,
        {
            "searches_by_the_eigenvectors_learned": dict(sorted(kinds.items())),
            "searches_without_an_end": lost,
        },
    )


def _searched(settings: _Searched, start: int) -> tuple[np.ndarray, float]:
    """Return A and the largest entry of the gradient where a search for gradient 0 ends, from weights of a random size."""
    rng = np.random.default_rng([settings.seed, start])
    size = settings.heads * (1 + 2 * settings.rank * len(settings.eigenvalues))
    slope, gradient, curvature = _programs(_Shape.of(settings))
    begin = 10 ** rng.uniform(-0.5, 0.5) * rng.normal(size=size)
    found = scipy.optimize.least_squares(
        gradient, begin, curvature, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=20_000
    )
    return np.asarray(slope(found.x)), float(abs(found.fun).max())


@shared(_Shape)
def _programs(settings: _Shape) -> tuple[Any, Any, Any]:
    """Return A of a vector of weights, and the gradient and the Hessian of half the error in them."""
    heads, rank, dim = settings.heads, settings.rank, len(settings.eigenvalues)
    lam = jnp.array(settings.eigenvalues)
    c = lam / jnp.array(theory.slopes(settings.eigenvalues, settings.examples))
    sizes = (heads, heads + heads * rank * dim)

    def slope(theta: Array) -> Array:
        v, k, q = jnp.split(theta, sizes)
        k, q = (one.reshape(heads, rank, dim) for one in (k, q))
        return jnp.einsum("h,hri,hrj->ij", v, q, k)

    def loss(theta: Array) -> Array:
        a = slope(theta)
        return (lam.sum() - 2 * jnp.diag(a) @ lam**2 + jnp.sum(lam[:, None] * a**2 * c)) / 2

    return slope, jax.jit(jax.grad(loss)), jax.jit(jax.hessian(loss))


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


class _Searched(_Shape):
    seed: int = 0
    starts: int = 100
    largest_gradient: float = 1e-13
    tolerance: float = 1e-9


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
    Claim(
        id=f"{PAPER}/no-other-fixed-points",
        title="Heads have no fixed points but those of sets of eigenvectors",
        evidence="exact",
        origin="ours",
        statement="""Where labels are values and inputs are keys and queries, and eigenvalues differ, every fixed point of heads
            of any rank predicts as that of a set of eigenvectors does.""",
        source="proved here (`theory.zhang2025`); zhang2025, abstract: exponentially many fixed points",
        settings=presets(_Searched(), starts=1000, heads=6, rank=2),
        check=_no_others,
        criterion="""The statement has a proof; the check looks for what would contradict it. Searches for gradient 0 from
            random weights end, where they do, with the linear map A of such a point, to 1e-9 of its largest entry:
            weights of 1e-6 without curvature, which a gradient of 1e-13 allows, have products below that.""",
        cost="about 5 min",
    ),
)
