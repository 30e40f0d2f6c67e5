"""The looped layer as a model, and the best layer on drawn prompts."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import named_key
from mesascope.models import Looped, PromptModel
from mesascope.processes import LinearRegression
from mesascope.theory import gatmiry2024 as theory

from .._claim import Settings
from .._minimized import Minimum, best_of, minimized
from .._prompts import construction_stack, prompt_model
from .._rotations import rotated

PAPER = "gatmiry2024"


def looped_model(preconditioner: Any, direction: Any, loops: int) -> PromptModel:
    """The layer with A and u, `loops` times."""
    stack = construction_stack(theory.looped_layer(preconditioner, direction))
    return prompt_model(Looped(stack, loops))


class Inputs(Settings):
    """The dimension of inputs, and the seed of the axes of Σ."""

    dim: int = 5
    seed: int = 0


def root_of_covariance(settings: Inputs) -> np.ndarray:
    """Σ^{1/2} of a rotated Σ with eigenvalues from 0.4 to 2."""
    dim = settings.dim
    return rotated(np.geomspace(0.4, 2.0, dim) ** 0.5, np.random.default_rng([settings.seed, dim]))


def regression(settings: Inputs) -> LinearRegression:
    """Inputs x ~ N(0, Σ), w ~ N(0, Σ⁻¹), no noise."""
    root = root_of_covariance(settings)
    sigma = root @ root
    return LinearRegression(settings.dim, covariance=(sigma + sigma.T) / 2, prior="inverse")


def drawn_moments(settings: Inputs, examples: int, prompts: int, name: str) -> np.ndarray:
    """Ŝ = Σ^{-1/2} S Σ^{-1/2} of drawn prompts, shape (prompts, d, d)."""
    key = named_key(settings.seed, "moments", name, str(examples))
    x = np.asarray(regression(settings).sample(key, examples, prompts).x, float)[:, :-1]
    white = x @ np.linalg.inv(root_of_covariance(settings))
    return np.asarray(np.einsum("bni,bnj->bij", white, white) / examples)


class Fit(NamedTuple):
    """The best weights on drawn prompts.

    Attributes:
        matrix: M = Σ^{1/2}AΣ^{1/2}, shape (d, d).
        direction: v = Σ^{1/2}u, shape (d,).
        reached: searches that ended at this loss.
    """

    matrix: np.ndarray
    direction: np.ndarray
    reached: int


def minimizer(moments: np.ndarray, starts: int, loops: int, seed: int, symmetric: bool = False) -> Fit:
    """The weights of the least loss on drawn prompts, from random starts.

    On drawn prompts a valley of equally good minimizers, which are rotations of each other, falls into several whose losses
    differ a little. Those within 1 % count as the same, our choice: a free minimizer has to gain 5 %.

    Args:
        moments: Ŝ of the prompts, shape (prompts, d, d).
        starts: number of searches.
        loops: L.
        seed: of the starts.
        symmetric: whether the search is among symmetric M.

    Raises:
        UnsettledError: fewer than three searches reach the least loss.
    """
    dim, flat = moments.shape[1], jnp.asarray(np.moveaxis(moments, 0, -1))
    best = best_of(
        lambda number: search(flat, loops, [seed, loops, dim, number], symmetric), range(starts), 0.01
    )
    m = _part(best.point[: dim * dim].reshape(dim, dim), symmetric)
    return Fit(m, best.point[dim * dim :], best.reached)


def search(moments: Array, loops: int, seed: list[int], symmetric: bool) -> Minimum:
    """One descent by BFGS from a random start, for Ŝ of shape (d, d, prompts): M and v in one vector, and the loss.

    The mean over x_q and w is exact; the logarithm of the loss makes the stopping rule one of relative change.

    Raises:
        UnsettledError: BFGS stops where the gradient is not small.
    """
    dim, rng = len(moments), np.random.default_rng(seed)
    start = np.concatenate([0.1 * rng.normal(size=dim * dim), 0.3 * rng.normal(size=dim)])

    def value(flat: np.ndarray) -> tuple[Any, np.ndarray]:
        m = _part(flat[: dim * dim].reshape(dim, dim), symmetric)
        loss, in_m, in_v = _log_loss(m, flat[dim * dim :], moments, loops)
        return loss, np.concatenate([_part(np.asarray(in_m), symmetric).ravel(), in_v])

    found = minimized(value, start, 1e-4, gtol=1e-6, maxiter=1000)
    return Minimum(found.point, float(np.exp(found.value)))


def _part(m: np.ndarray, symmetric: bool) -> np.ndarray:
    return (m + m.T) / 2 if symmetric else m


@partial(jax.jit, static_argnums=3)
def _log_loss(m: Array, v: Array, moments: Array, loops: int) -> tuple[Array, Array, Array]:
    """The logarithm of E(‖R^L‖² + ‖(R^L − I)v‖²), R = I − MŜ, its slopes in M and v; twice as fast as by autodiff."""
    dim, prompts = len(m), moments.shape[-1]
    identity = jnp.broadcast_to(jnp.eye(dim)[..., None], moments.shape)
    rest = identity - jnp.tensordot(m, moments, 1)
    powers = [identity]
    for _ in range(loops):
        powers.append(_product(powers[-1], rest))
    left = powers[loops]
    moved = jnp.tensordot(v, left - identity, ((0,), (1,)))  # (d, prompts)
    loss = (jnp.sum(left**2) + jnp.sum(moved**2)) / prompts
    slope = 2 * (left + moved[:, None] * v[None, :, None]) / prompts  # in R^L
    total = jnp.zeros_like(moments)
    for count in reversed(range(loops)):
        total += _product(slope, jnp.swapaxes(powers[count], 0, 1))
        slope = _product(jnp.swapaxes(rest, 0, 1), slope)
    in_m = -jnp.einsum("ijp,kjp->ik", total, moments)
    in_v = 2 * jnp.einsum("ip,ijp->j", moved, left - identity) / prompts
    return jnp.log(loss), in_m / loss, in_v / loss


def _product(a: Array, b: Array) -> Array:
    """Matrix products prompt by prompt, (d, d, prompts), as sums over whole rows."""
    return sum((a[:, j, None] * b[None, j] for j in range(len(a))), jnp.zeros_like(b))
