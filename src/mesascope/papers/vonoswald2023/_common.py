"""What the claims of vonoswald2023 share: the data, how one step of gradient descent does on them, sensitivities."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.models import PromptModel
from mesascope.processes import FewShot, LinearRegression, Uniform
from mesascope.theory import vonoswald2023 as theory

from .._claim import Settings
from .._prompts import construction_model

if TYPE_CHECKING:
    import optax

PAPER = "vonoswald2023"
TRUNCATED = 0.87962566  # standard deviation of N(0, 1) cut off at ±2


class Data(Settings):
    """Inputs of this dimension with coordinates uniform on [−h, h], and how many examples there are."""

    dim: int = 10
    examples: int = 10
    half_width: float = 0.5


def data(settings: Data) -> tuple[LinearRegression, FewShot]:
    """Inputs with coordinates uniform on [−h, h], w ~ N(0, I), no noise."""
    return LinearRegression(settings.dim, Uniform(settings.half_width)), FewShot(settings.examples)


def _law(settings: Data) -> dict[str, Fraction]:
    """Variance and kurtosis of a coordinate."""
    return {"variance": Fraction(settings.half_width) ** 2 / 3, "kurtosis": Fraction(9, 5)}


def best_step_size(settings: Data) -> float:
    """The step with which one step of gradient descent predicts best, in closed form."""
    return float(theory.best_step_size(settings.dim, settings.examples, **_law(settings)))


def best_loss(settings: Data) -> float:
    """Its loss ½E(ŷ − y)², in closed form."""
    return float(theory.best_one_step_loss(settings.dim, settings.examples, **_law(settings)))


def best_step(settings: Data) -> PromptModel:
    """The layer that is one step of gradient descent, with the best step size."""
    return construction_model(theory.gradient_descent(settings.dim, [best_step_size(settings)]))


@eqx.filter_jit
def query_sensitivities(model: PromptModel, x: Array, y: Array) -> Array:
    """∂ŷ/∂x_q of prompts (x, y), shape (prompts, d)."""

    def answer(query: Array, inputs: Array, labels: Array) -> Array:
        return model(jnp.concatenate([inputs, query[None]])[None], labels[None])[0]

    return jax.vmap(jax.grad(answer))(x[:, -1], x[:, :-1], y[:, :-1])


@cache  # equal optimizers share their compiled code
def authors_adam(rate: float, cosine_over: int, clip: float) -> optax.GradientTransformation:
    """Adam with the authors' second decay and a clip of the gradient's norm; its rate is constant or falls to 0."""
    import optax

    schedule = optax.cosine_decay_schedule(rate, cosine_over) if cosine_over else rate
    return optax.chain(optax.clip_by_global_norm(clip), optax.adam(schedule, b2=0.98))
