"""Trained layers of linear attention beside Newton's iterations and gradient steps: what a layer more is worth."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mesascope.core import named_key
from mesascope.models import (
    DiagonalSelfAttention,
    LastEntry,
    LinearAttentionStack,
    PromptModel,
    StackedPrompt,
)
from mesascope.processes import LinearRegression
from mesascope.records import Figure, Panel, Rule

from .._claim import Claim, Finding, Settings, all_of, both
from .._figures import curve
from .._intervals import between, mean_interval
from .._minimized import minimized
from .._prompts import GD_PLUS_PLUS
from .._runs import seeds_of
from .._shared import shared
from ._newton import PAPER


def _model(dim: int, couplings: Any) -> PromptModel:
    layers = [DiagonalSelfAttention(one, (dim, 1), GD_PLUS_PLUS, context="examples") for one in couplings]
    return PromptModel(StackedPrompt(dim), LinearAttentionStack(layers), LastEntry(-1))


@partial(jax.jit, static_argnames="dim")
def _loss(flat: Any, x: Any, y: Any, dim: int) -> Any:
    """½E(ŷ − y)² over prompts, and its gradient in the couplings of all layers."""

    def loss(couplings: Any) -> Any:
        answer = _model(dim, list(couplings.reshape(-1, len(GD_PLUS_PLUS))))(x, y[:, :-1])
        return jnp.mean((answer - y[:, -1]) ** 2) / 2

    return jax.value_and_grad(loss)(flat)


def regression(settings: Settings) -> LinearRegression:
    """Noiseless prompts, w ~ N(0, I/d): labels of variance 1."""
    return LinearRegression(settings["dim"], prior=np.eye(settings["dim"]) / settings["dim"])


@shared(
    *("dim", "examples", "layers", "training_prompts", "iterations", "largest_slope", "scale"),
    *("seed", "seeds"),
)
def trained(settings: Settings) -> list[list[PromptModel]]:
    """Networks of 1, 2, … layers, for every seed."""
    return [
        [_model(settings["dim"], couplings) for couplings in _couplings(settings, seed)]
        for seed in seeds_of(settings)
    ]


def _couplings(settings: Settings, seed: int) -> list[np.ndarray]:
    """Couplings (L, 2) of 1, 2, … layers, each from those before it and a small new layer."""
    dim, examples = settings["dim"], settings["examples"]
    process = regression(settings)
    x, y = process.sample(named_key(seed, "training prompts"), examples, settings["training_prompts"])

    def value_and_slope(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _loss(flat, x, y, dim)
        return float(value), np.asarray(slope, float)

    flat, found = np.zeros(0), []
    for number in range(settings["layers"]):
        new = np.random.default_rng([seed, number]).normal(size=len(GD_PLUS_PLUS)) * settings["scale"]
        end = minimized(
            value_and_slope,
            np.concatenate([flat, new]),
            settings["largest_slope"],
            maxiter=settings["iterations"],
        )
        flat = end.point
        found.append(flat.reshape(-1, len(GD_PLUS_PLUS)))
    return found


def _depth(settings: Settings) -> Finding:
    """The median error of every depth, in iterations and in steps that leave the same."""
    prompts = _Prompts(settings)
    rows = []
    for models in trained(settings):
        errors = [prompts.of_model(model) for model in models]
        rows.append([(*prompts.equivalents(error), *prompts.similarities(error)) for error in errors])
    newton, descent, alike, alike_descent = np.moveaxis(np.array(rows), -1, 0)  # (seeds, layers) each
    more, times = np.diff(newton, axis=1), np.diff(np.log(descent), axis=1)
    gains, factors = ([mean_interval(column) for column in table.T] for table in (more, times))
    evenness = {
        "iterations": mean_interval(more[:, -1] / more[:, 0]),
        "logarithm_of_gradient_steps": mean_interval(times[:, -1] / times[:, 0]),
    }
    least, most = settings["evenness"]
    return Finding(
        {
            "last_gain_over_the_first": {name: mean for name, (mean, _) in evenness.items()},
            "newton_iterations": newton.mean(0).tolist(),
            "gradient_steps": np.exp(np.log(descent).mean(0)).tolist(),
        },
        {"last_gain_over_the_first": f"between {least:g} and {most:g}"},
        None,
        all_of(*(between(interval, least, most) for _, interval in evenness.values())),
        {
            "intervals_95": {name: interval for name, (_, interval) in evenness.items()},
            "more_iterations": [{"mean": mean, "interval_95": ends} for mean, ends in gains],
            "times_as_many_steps": [
                {"mean": float(np.exp(mean)), "interval_95": np.exp(ends).tolist()} for mean, ends in factors
            ],
            "each_seed": {"newton_iterations": newton.tolist(), "gradient_steps": descent.tolist()},
            "similarity_of_errors": {
                "newton": alike.mean(0).tolist(),
                "gradient_descent": alike_descent.mean(0).tolist(),
                "meaning": "of the best-matching count: mean cosine of the vectors ŵ − w, by the number of layers",
            },
        },
        {"depth": _figure(settings, newton, descent)},
    )


class _Prompts:
    """Test prompts, the errors ŵ − w of whoever predicts on them, in the eigenvectors of S: shape (prompts, d)."""

    def __init__(self, settings: Settings):
        examples, count = settings["examples"], settings["prompts"]
        key = named_key(settings["seed"], "test prompts")
        x, y = (np.asarray(a) for a in regression(settings).sample(key, examples, count))
        self.inputs, self.labels = x[:, :-1], y[:, :-1]
        gram = np.swapaxes(self.inputs, 1, 2) @ self.inputs / examples
        self.values, self.vectors = np.linalg.eigh(gram)
        right = np.einsum("bdk,bnd,bn->bk", self.vectors, self.inputs, self.labels, optimize=True)
        self.right = right / examples / self.values  # w, since labels are noiseless and N ≥ d
        self.counts = np.arange(settings["most_iterations"] + 1)
        self.steps = np.unique(np.round(np.geomspace(1, settings["most_steps"], 60)).astype(int))
        ratios = (self.values / self.values[:, -1:]) ** 2
        self.newton = [-self.right * (1 - ratios) ** 2.0**count for count in self.counts]
        self.descent = [
            -self.right * (1 - settings["step_size"] * self.values) ** count for count in self.steps
        ]

    def of_model(self, model: PromptModel) -> np.ndarray:
        """Queries e_1 … e_d read all of ŵ, in which a model of linear attention is linear."""
        count, dim = len(self.inputs), self.inputs.shape[-1]
        queries = np.broadcast_to(np.eye(dim)[:, None], (count, dim, 1, dim))
        x = np.concatenate(
            [np.broadcast_to(self.inputs[:, None], (count, dim, *self.inputs.shape[1:])), queries], 2
        )
        y = np.broadcast_to(self.labels[:, None], (count, dim, self.labels.shape[1]))
        found = np.asarray(eqx.filter_jit(model)(x, y), float)
        return np.einsum("bdk,bd->bk", self.vectors, found) - self.right

    def equivalents(self, error: np.ndarray) -> tuple[float, float]:
        """Iterations and gradient steps of the same median squared error, between whole numbers by its logarithm."""
        left, iterations, steps = (_medians(one) for one in ([error], self.newton, self.descent))
        newton = float(np.interp(-left[0], -iterations, self.counts))
        return newton, float(np.exp(np.interp(-left[0], -steps, np.log(self.steps))))

    def similarities(self, error: np.ndarray) -> tuple[float, float]:
        """The largest mean cosine with the errors of any number of iterations, and of steps."""
        newton, descent = (max(_cosine(error, one) for one in group) for group in (self.newton, self.descent))
        return newton, descent


def _medians(errors: list[np.ndarray]) -> np.ndarray:
    """Logarithms of the medians over prompts of |ŵ − w|²."""
    return np.log([max(float(np.median((one**2).sum(1))), 1e-300) for one in errors])


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float((_directions(one) * _directions(other)).sum(1).mean())


def _directions(errors: np.ndarray) -> np.ndarray:
    """Unit vectors; 0 where nothing is left but what underflows."""
    sizes = np.linalg.norm(errors, axis=1, keepdims=True)
    return np.where(sizes > 1e-150, errors / np.maximum(sizes, 1e-150), 0.0)


def _figure(settings: Settings, newton: np.ndarray, descent: np.ndarray) -> Figure:
    layers = np.arange(1, newton.shape[1] + 1)
    setting = f"d = {settings['dim']}, N = {settings['examples']}"
    return Figure(
        title="What a trained layer more is worth",
        panels=(
            Panel(
                title=f"In Newton iterations, {setting}",
                xlabel="layers",
                ylabel="iterations of the same error",
                traces=curve(layers, newton, "trained layers", 0, "all seeds"),
            ),
            Panel(
                title=f"In gradient steps, {setting}",
                xlabel="layers",
                ylabel="steps of the same error",
                yscale="log",
                traces=(
                    *curve(layers, descent, "trained layers", 1, "all seeds"),
                    Rule(value=1.0, label="one step"),
                ),
            ),
        ),
        caption="Iterations and steps whose median error over prompts is that of the trained layers.",
    )


SETTINGS: dict[str, Any] = {
    "dim": 8,
    "examples": 16,
    "layers": 4,
    "training_prompts": 1000,
    "iterations": 400,
    "largest_slope": 1e-4,
    "scale": 0.02,
    "seed": 0,
    "seeds": 3,
}
PAPER_SIZES: dict[str, Any] = {"dim": 20, "examples": 40, "training_prompts": 20_000, "seeds": 5}

CLAIMS = (
    Claim(
        id=f"{PAPER}/depth",
        statement=(
            "In Newton's iterations trained layers advance about evenly, in gradient steps exponentially, measured by the "
            "median error on noiseless prompts: what the last of four layers of linear attention adds to the iterations, "
            "and to the logarithm of the number of gradient steps, is between half and twice what the second adds (no "
            "softmax: GD++ layers trained by BFGS; quick: d = 8, N = 16, 1000 prompts, three seeds; paper: d = 20, N = "
            "40, 20 000 prompts, five seeds)."
        ),
        source=(
            "fu2024, section 4: linear in Newton's iterations, exponential in steps of gradient descent (said there of the "
            "layers of one softmax transformer)"
        ),
        origin="ours",
        settings=both(
            {
                **SETTINGS,
                "prompts": 400,
                "most_iterations": 30,
                "most_steps": 200_000,
                "step_size": 0.3,
                "evenness": [0.5, 2.0],
            },
            **PAPER_SIZES,
            prompts=2000,
        ),
        check=_depth,
        tolerance_reason=(
            "no distance: the 95 % intervals over seeds of the ratios must lie within the bounds; gains that doubled with "
            "every layer would have a ratio of 4"
        ),
    ),
)
