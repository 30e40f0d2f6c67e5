"""Logistic regression by Newton's method in the forward pass: exact identities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import numpy as np
import scipy

from mesascope.records import Figure, Line, Points

from .._claim import Claim, Finding, Settings, UnsettledError, presets
from .._figures import one_panel
from .._identity import identities, relative_error
from . import _logistic_layers as layers

PAPER = "giannou2024"


def _prompts(settings: _Logistic, dim: int, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian inputs (prompts, n + 1, d), and labels 0 or 1 of the examples with the odds exp(w·x), w ~ N(0, I)."""
    rng = np.random.default_rng([settings.seed, dim, examples])
    x = rng.normal(size=(settings.prompts, examples + 1, dim))
    odds = np.einsum("bni,bi->bn", x[:, :-1], rng.normal(size=(settings.prompts, dim)))
    return x, (rng.uniform(size=odds.shape) < scipy.special.expit(odds)).astype(float)


def _gradient(w: np.ndarray, x: np.ndarray, labels: np.ndarray, regularization: float) -> np.ndarray:
    """That of (1/n) Σ log(1 + exp(−(2 label_i − 1) w·x_i)) + μ|w|²/2, for one prompt."""
    return x.T @ (scipy.special.expit(x @ w) - labels) / len(x) + regularization * w


def _newton(x: np.ndarray, labels: np.ndarray, regularization: float, steps: int) -> np.ndarray:
    """Newton's iterates from 0 on one prompt, each by solving with the Hessian, shape (steps, d)."""
    w, found = np.zeros(x.shape[1]), []
    for _ in range(steps):
        slopes = scipy.special.expit(x @ w)
        hessian = (x.T * (slopes * (1 - slopes))) @ x / len(x) + regularization * np.eye(len(w))
        w = w - np.linalg.solve(hessian, _gradient(w, x, labels, regularization))
        found.append(w)
    return np.array(found)


def _minimizer(x: np.ndarray, labels: np.ndarray, regularization: float) -> np.ndarray:
    """Where the gradient of one prompt is 0, by Powell's hybrid method."""
    found = scipy.optimize.root(
        _gradient, np.zeros(x.shape[1]), (x, labels, regularization), options={"xtol": 1e-14}
    )
    left = float(np.abs(_gradient(found.x, x, labels, regularization)).max())
    if not left <= 1e-13:
        raise UnsettledError(f"the minimizer of the logistic loss was found to a gradient of {left:.1e} only")
    return np.asarray(found.x)


def _in_layers(settings: _Logistic, x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights after every step, (steps, prompts, d), and the scores of the queries at the end, (prompts,)."""
    _, pairs, dim = x.shape
    # H is at most μ + tr Σ x xᵀ/(4n): Newton's iteration converges from the inverse of that
    bound = settings.regularization + float(np.max(np.sum(x[:, :-1] ** 2, (1, 2)))) / (4 * (pairs - 1))
    step = layers.newton_step(dim, pairs - 1, settings.regularization, 1 / bound, settings.inner)
    stream: Any = layers.logistic_tokens(x, labels)
    found = []
    compiled = eqx.filter_jit(step)
    for _ in range(settings.newton_steps):
        stream = compiled(stream)
        found.append(layers.weights_of(stream, dim))
    answers = np.asarray(layers.scores(dim)(stream))[:, -1, layers.Places.of(dim).score]
    return np.array(found), answers


def _logistic(settings: _Logistic) -> Finding:
    """Layers against Newton's method after every step, and against the minimizer at the end."""
    errors: dict[str, dict[str, float]] = {"Newton's steps": {}, "the minimizer": {}}
    left: dict[str, np.ndarray] = {}
    for dim, examples in settings.cases:
        x, labels = _prompts(settings, dim, examples)
        found, answers = _in_layers(settings, x, labels)
        given = list(zip(x[:, :-1], labels, strict=True))
        steps = [_newton(*one, settings.regularization, settings.newton_steps) for one in given]
        best = np.array([_minimizer(*one, settings.regularization) for one in given])
        case = f"d = {dim}, n = {examples}"
        errors["Newton's steps"][case] = relative_error(found, np.stack(steps, 1))
        errors["the minimizer"][case] = relative_error(answers, np.einsum("bi,bi->b", x[:, -1], best))
        start = np.zeros_like(found[:1])
        left[case] = np.linalg.norm(np.concatenate([start, found]) - best, axis=-1).max(1)
    descents = [_descended(settings, *case) for case in settings.cases]
    far = {case: distances.tolist() for case, distances in left.items()}
    finding = identities(errors, settings.tolerance, distance_from_the_minimizer=far)
    return replace(finding, figures={"logistic-newton": _figure(left, descents, settings)})


def _descended(settings: _Logistic, dim: int, examples: int) -> np.ndarray:
    """The largest distance from the minimizer after 0 … steps of descent with 1/(the largest curvature possible)."""
    x, labels = _prompts(settings, dim, examples)
    far = []
    for inputs, wanted in zip(x[:, :-1], labels, strict=True):
        curvature = np.linalg.eigvalsh(inputs.T @ inputs)[-1] / (4 * examples) + settings.regularization
        best, w, one = _minimizer(inputs, wanted, settings.regularization), np.zeros(dim), []
        for _ in range(settings.descent + 1):
            one.append(np.linalg.norm(w - best))
            w = w - _gradient(w, inputs, wanted, settings.regularization) / curvature
        far.append(one)
    return np.max(far, 0)


def _figure(left: dict[str, np.ndarray], descents: list[np.ndarray], settings: _Logistic) -> Figure:
    traces: list[Any] = []
    for series, ((case, far), descent) in enumerate(zip(left.items(), descents, strict=True)):
        shown = far >= settings.floor
        traces += [
            Points(
                x=np.arange(len(far))[shown], y=far[shown], label=f"Newton in layers, {case}", series=series
            ),
            Line(x=np.arange(len(descent)), y=descent, label=f"gradient descent, {case}", series=series),
        ]
    return one_panel(
        "Logistic regression in context by Newton's method",
        f"Regularization {settings.regularization:g}, {settings.prompts} prompts",
        *traces,
        xlabel="steps",
        ylabel="distance from the minimizer",
        yscale="log",
        caption="The largest among the prompts. Gradient descent: with one over the largest possible curvature as its step.",
    )


class _Logistic(Settings):
    cases: tuple[tuple[int, int], ...] = ((2, 20), (5, 40), (10, 80))
    prompts: int = 16
    seed: int = 0
    regularization: float = 0.1
    newton_steps: int = 8
    inner: int = 20
    descent: int = 40
    floor: float = 1e-13
    tolerance: float = 1e-12


CLAIMS = (
    Claim(
        id=f"{PAPER}/logistic-newton",
        title="Layers solve logistic regression in context by Newton's method",
        evidence="exact",
        origin="ours",
        statement="""Linear attention with gated linear units carries out Newton's steps of regularized logistic regression on
            the examples of a prompt, and after eight of them scores the query as the minimizer does.""",
        source="""giannou2024, abstract: linear attention with ReLU layers approximates second-order methods for logistic
            regression; the exact layers, with gates, and their weights are our own""",
        settings=presets(_Logistic()),
        check=_logistic,
        criterion="""Weights after every step are those of Newton's method, computed by solving with the Hessian, relative to
            the largest; scores at the end are those of the point where the gradient is 0, found by another method. The
            tolerance is rounding in double precision: the conditions of these Hessians are below a hundred.""",
    ),
)
