"""Layers of linear attention that are steps of preconditioned gradient descent: exact identities."""

from __future__ import annotations

from functools import partial

import numpy as np

from mesascope.core import named_key
from mesascope.processes import LinearRegression
from mesascope.theory import ahn2023 as theory

from .._claim import Claim, Finding, Settings, presets
from .._identity import identity, relative_error
from .._prompts import construction_model
from ._common import PAPER


def _compared(settings: _Cases, size: float) -> Finding:
    """Layers with B of a given size, or 0, against the iteration of w, or of residuals and inputs."""
    errors = {
        f"d = {d}, n = {n}, {layers} layers": _error(settings, d, n, layers, size)
        for d, n, layers in settings.cases
    }
    return identity(errors, settings.tolerance)


def _error(settings: _Cases, dim: int, examples: int, layers: int, size: float) -> float:
    """Layers of random A, and B of the given size, beside the iteration."""
    key = named_key(settings.seed, "identity", str(dim), str(examples))
    x, y = (np.asarray(a) for a in LinearRegression(dim, noise=0.5).sample(key, examples, settings.prompts))
    draws = np.random.default_rng([settings.seed, dim, layers]).normal(size=(2, layers, dim, dim))
    a = 0.3 * np.eye(dim) + 0.1 * draws[0] / dim**0.5
    b = size * (np.eye(dim) + 0.5 * draws[1] / dim**0.5)
    model = construction_model(theory.preconditioned_gradient_descent(a, b))
    return relative_error(model(x, y[:, :-1]), _iterated(x, y, a, b))


def _iterated(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Predictions for the queries, prompt by prompt."""
    answers = []
    for inputs, labels in zip(x, y, strict=True):
        rows, seen, answer = inputs, labels[:-1], 0.0
        for step, moved in zip(a, b, strict=True):
            examples, count = rows[:-1], len(seen)
            gradient = -examples.T @ seen / count
            answer -= float(rows[-1] @ (step @ gradient))
            seen = seen + examples @ (step @ gradient)
            rows = rows - rows @ (step @ (examples.T @ examples / count) @ moved.T)
        answers.append(answer)
    return np.array(answers)


class _Cases(Settings):
    cases: tuple[tuple[int, int, int], ...] = ((1, 1, 1), (5, 20, 3), (10, 40, 8), (20, 40, 3))
    prompts: int = 32
    seed: int = 0
    tolerance: float = 1e-12


CLAIMS = (
    Claim(
        id=f"{PAPER}/lemma-1",
        title="Layers are steps of preconditioned gradient descent",
        evidence="exact",
        origin="paper, second-hand",
        statement=(
            "Layers with P = diag(0, 1) and Q = −diag(Aᵀ, 0) answer every prompt as preconditioned gradient descent "
            "w ← w − A ∇R(w) does, A another in every layer."
        ),
        source=(
            "ahn2023, Lemma 1 (section 4; equation (9) second-hand; proof in section C.1); the transpose, for A that are not "
            "symmetric, is ours"
        ),
        settings=presets(_Cases()),
        check=partial(_compared, size=0.0),
        criterion=(
            "An identity, for random A that are not symmetric: only rounding of double precision, relative to the largest "
            "prediction."
        ),
    ),
    Claim(
        id=f"{PAPER}/input-updates",
        title="With B the layers also move the inputs",
        evidence="exact",
        origin="paper",
        statement=(
            "With P = diag(B, 1) the layers also move examples and query, x ← (I − B S Aᵀ) x, with the second moments S of the "
            "inputs before."
        ),
        source="ahn2023, section 5.1, remark 1, and section C.2, equation (57); the iteration of the residuals is derived here",
        settings=presets(_Cases()),
        check=partial(_compared, size=0.1),
        criterion=(
            "An identity, for random A and B that are not symmetric: only rounding of double precision, relative to the "
            "largest prediction."
        ),
    ),
)
