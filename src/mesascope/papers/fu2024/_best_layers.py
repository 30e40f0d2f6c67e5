"""The best layers of linear attention for fixed prompts, for every depth: searched from many random starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mesascope.core import named_key
from mesascope.models import DiagonalSelfAttention, LinearAttentionStack, PromptModel
from mesascope.processes import LinearRegression

from .._minimized import Best, Minimum, best_of, minimized
from .._prompts import GD_PLUS_PLUS, prompt_model
from .._runs import Seeds, seeds_of
from .._shared import shared


class Spectra(NamedTuple):
    """All that the loss of GD++ layers depends on in prompts without noise.

    Attributes:
        values: eigenvalues s of XᵀX/N, shape (prompts, d).
        parts: x_q and w along the eigenvectors, multiplied: shape (prompts, d). The query's label is their sum.
    """

    values: np.ndarray
    parts: np.ndarray


def layers_of(dim: int, couplings: Any) -> PromptModel:
    """GD++ layers with couplings (L, 2): what inputs write into inputs, and into labels."""
    layers = [DiagonalSelfAttention(one, (dim, 1), GD_PLUS_PLUS, context="examples") for one in couplings]
    return prompt_model(LinearAttentionStack(layers))


def regression(dim: int) -> LinearRegression:
    """Noiseless prompts, w ~ N(0, I/d): labels of variance 1."""
    return LinearRegression(dim, prior=np.eye(dim) / dim)


def spectra(x: Any, y: Any) -> Spectra:
    """Those of prompts (x (B, N + 1, d), y (B, N + 1)) without noise; N ≥ d."""
    inputs, labels = np.asarray(x)[:, :-1], np.asarray(y)[:, :-1]
    count = inputs.shape[1]
    values, vectors = np.linalg.eigh(np.swapaxes(inputs, 1, 2) @ inputs / count)
    cross = np.einsum("bdk,bnd,bn->bk", vectors, inputs, labels, optimize=True) / count
    query = np.einsum("bd,bdk->bk", np.asarray(x)[:, -1], vectors)
    return Spectra(values, query * cross / values)


@jax.jit
def log_loss(flat: Any, values: Any, parts: Any) -> Any:
    """Log ½E(ŷ − y)², and its gradient in the couplings of all layers.

    Layers multiply the inputs along an eigenvector by p and leave r of the label: with what inputs write into inputs, a, and
    into labels, b, r becomes r (1 + b s p²) and p becomes p (1 + a s p²).
    """

    def loss(couplings: Any) -> Any:
        size, left = jnp.ones_like(values), jnp.ones_like(values)
        for a, b in couplings.reshape(-1, 2):
            seen = values * size**2
            left, size = left * (1 + b * seen), size * (1 + a * seen)
        return jnp.log(jnp.mean((parts * left).sum(1) ** 2) / 2)

    return jax.value_and_grad(loss)(flat)


class BestLayers(Seeds):
    """The training prompts, the depths, and the searches for each of them."""

    dim: int = 8
    examples: int = 16
    layers: tuple[int, ...] = (1, 2, 3, 4)
    training_prompts: int = 1000
    starts: int = 160
    iterations: int = 1000
    largest_slope: float = 1e-5
    nearness: float = 1e-6


@shared(BestLayers)
def best_layers(settings: BestLayers) -> list[list[Best]]:
    """The best couplings of 1, 2, … layers, for the training prompts of every seed; values are ½E(ŷ − y)².

    Raises:
        UnsettledError: fewer than three starts reach the best of a depth.
    """
    found = []
    for seed in seeds_of(settings):
        key = named_key(seed, "training prompts")
        prompts = regression(settings.dim).sample(key, settings.examples, settings.training_prompts)
        seen = spectra(*prompts)
        found.append([_best(seen, depth, seed, settings) for depth in settings.layers])
    return found


def _best(seen: Spectra, depth: int, seed: int, settings: BestLayers) -> Best:
    def value_and_slope(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = log_loss(flat, *seen)
        return float(value), np.asarray(slope, float)

    def search(start: np.ndarray) -> Minimum:
        with np.errstate(all="ignore"):  # steps that leave all bounds are taken back
            end = minimized(
                value_and_slope,
                start,
                settings.largest_slope,
                gtol=settings.largest_slope / 10,
                maxiter=settings.iterations,
            )
        return Minimum(end.point, float(np.exp(end.value)))

    starts = _starts(seen, depth, seed, settings.starts)
    return best_of(search, starts, settings.nearness)


def _starts(seen: Spectra, depth: int, seed: int, count: int) -> Iterator[np.ndarray]:
    """Random couplings: where a layer sees eigenvalues up to m, between −1.5/m and 0.

    At −1/m the largest is answered, or taken out of the inputs, at once. Inputs shrink from layer to layer and couplings grow.
    """
    for number in range(count):
        rng = np.random.default_rng([seed, depth, number])
        size, couplings = np.ones_like(seen.values), np.zeros((depth, 2))
        for layer in range(depth):
            values = seen.values * size**2
            couplings[layer] = -rng.uniform(0, 1.5, 2) / values.max()
            size = size * (1 + couplings[layer, 0] * values)
        couplings[-1, 0] = 0.0  # nobody sees what the last layer does to the inputs
        yield couplings.reshape(-1)
