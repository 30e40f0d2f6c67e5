"""Training as the authors' program does it: one batch for many steps, and the gradient of every matrix clipped separately.

Labels without noise are linear in the inputs, so that a prompt enters by S = (1/n) Σ_i x_i x_iᵀ, by w and by the query only:
x_ℓ = M_ℓ x and y_ℓ = e_ℓ·x with

    e ← e − Mᵀ A M S e,    M ← M − B M S Mᵀ Aᵀ M,    from e = w and M = I.

The losses are those of the layers, for a fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from mesascope.core import Clock, named_key
from mesascope.dynamics import TrainingSettings, load_model, save_model
from mesascope.records import CheckpointError, folder_lock

from .._claim import UnsettledError
from .._progress import current_work, warn_damaged
from .._runs import Seeds, seeds_of
from .._shared import shared
from ._common import Inputs, covariance, symmetric_power

_AT_ONCE = 500  # prompts whose intermediate results stay in the processor's cache
_CLIP = 0.01  # the largest norm of a matrix's gradient
_DECAYS = (0.99, 0.9)  # of Adam
_CHECKPOINTS = 20  # an interrupted training loses at most a twentieth,
_SECONDS = 60 * TrainingSettings().checkpoint_minutes  # and no more than this
_FILE = "state.checkpoint"


class Layers(NamedTuple):
    """A_ℓ and B_ℓ of all layers, shape (L, d, d)."""

    a: Any
    b: Any


class Trained(NamedTuple):
    """The layers half way and at the end of one training, and the covariance of its inputs."""

    middle: Layers
    end: Layers
    sigma: np.ndarray


class Training(Inputs, Seeds):
    """One training: the scale of the Gaussian start, how often the rate is halved, and for how many steps a batch is used."""

    layers: int = 3
    scale: float = 1e-4
    rate: float
    halvings: int
    batch: int = 2000
    renewed_every: int = 20
    steps: int
    seeds: int = 3


@shared(Training)
def trained(settings: Training, moves: bool) -> list[Trained]:
    """One training per seed, with another rotation of the covariance in each."""
    return [_trained(settings, moves, seed) for seed in seeds_of(settings)]


class _State(eqx.Module):
    """A training under way: steps done, the layers, Adam's moments, and the layers half way (the start, before)."""

    done: Array
    layers: Layers
    moments: Any
    middle: Layers


def _trained(settings: Training, moves: bool, seed: int) -> Trained:
    steps, every = settings.steps, settings.renewed_every
    sigma = covariance(settings.eigenvalues, seed)
    shape = (settings.layers, *sigma.shape)
    keys = jax.random.split(named_key(seed, "layers"))
    start = Layers(*(settings.scale * jax.random.normal(key, shape, jnp.float32) for key in keys))
    if not moves:
        start = start._replace(b=jnp.zeros(shape, jnp.float32))
    work, folder = current_work(), None
    if work.folder is not None:
        folder = work.training(lambda key: start, moves, sorted(settings.as_table().items()), seeds=[seed])
    with folder_lock(folder, "training") if folder is not None else nullcontext():
        fresh = _State(jnp.asarray(0), start, _rule(moves).init(start), start)
        found = _resumed(folder, fresh, lambda line: work.tell(f"seed {seed}: {line}"))
        done, state, middle = int(found.done), (found.layers, found.moments), found.middle
        block, clock = _block(settings, moves, sigma), Clock()
        saved = monotonic()
        while done < steps:
            rate = settings.rate * 0.5 ** (done * settings.halvings // steps)
            state, loss = block(state, named_key(seed, "batch", str(done)), np.float32(rate))
            done += every
            if not np.isfinite(float(loss)):
                raise UnsettledError(f"the training of seed {seed} diverged at step {done}")
            middle = state[0] if done == steps // 2 else middle
            work.report(seed, clock.read(done, steps, values={"loss": float(loss)}))
            part = done * _CHECKPOINTS // steps != (done - every) * _CHECKPOINTS // steps
            if folder is not None and (part or monotonic() - saved >= _SECONDS):
                saved = monotonic()
                save_model(folder / _FILE, _State(jnp.asarray(done), state[0], state[1], middle))
    return Trained(_double(middle), _double(state[0]), sigma)


def _rule(moves: bool) -> optax.GradientTransformation:
    """Adam after every matrix is clipped; a B that is held at 0 is not moved."""

    def clipped(updates: Any, _: Any) -> Any:
        def one(g: Array) -> Array:
            norms = jnp.sqrt(jnp.sum(g**2, (-2, -1), keepdims=True))
            return g * jnp.minimum(1.0, _CLIP / jnp.maximum(norms, 1e-30))

        found = Layers(*map(one, updates))
        return found if moves else found._replace(b=jnp.zeros_like(found.b))

    return optax.chain(optax.stateless(clipped), optax.scale_by_adam(*_DECAYS, eps=1e-8))


def _block(settings: Training, moves: bool, sigma: np.ndarray) -> Any:
    """A function for the steps on one batch: state, key and rate → state, and the loss on the batch before these steps."""
    dim, examples, batch = len(sigma), settings.examples, settings.batch
    parts = max(1, batch // _AT_ONCE)
    if batch % parts:
        raise ValueError(f"batch must be at most {_AT_ONCE}, or a multiple of it, got {batch}")
    root, inverse_root = (jnp.asarray(symmetric_power(sigma, power), jnp.float32) for power in (0.5, -0.5))
    rule = _rule(moves)

    def prompts(key: Array) -> tuple[Array, Array, Array]:
        """S, w and queries: parts, then entries, then prompts."""
        keys = jax.random.split(key, 3)
        x = jax.random.normal(keys[0], (batch, examples, dim), jnp.float32) @ root
        w = jax.random.normal(keys[1], (batch, dim), jnp.float32) @ inverse_root
        query = jax.random.normal(keys[2], (batch, dim), jnp.float32) @ root
        second = jnp.einsum("bni,bnj->bij", x, x) / examples
        cut = (a.reshape(parts, batch // parts, *a.shape[1:]) for a in (second, w, query))
        s, w, query = (jnp.moveaxis(a, 1, -1) for a in cut)
        return s, w, query

    def gradient(layers: Layers, drawn: tuple[Array, Array, Array]) -> tuple[Array, Layers]:
        def part(sums: Any, one: tuple[Array, Array, Array]) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, sums, jax.value_and_grad(_loss)(layers, *one, moves)), None

        start = (jnp.zeros((), jnp.float32), jax.tree.map(jnp.zeros_like, layers))
        found, _ = jax.lax.scan(part, start, drawn)
        loss, slope = jax.tree.map(lambda a: a / parts, found)
        return loss, slope

    @jax.jit
    def block(state: Any, key: Array, rate: Array) -> tuple[Any, Array]:
        drawn = prompts(key)

        def step(state: Any, _: None) -> tuple[Any, Array]:
            layers, memory = state
            loss, slope = gradient(layers, drawn)
            updates, memory = rule.update(slope, memory)
            return (jax.tree.map(lambda p, u: p - rate * u, layers, updates), memory), loss

        state, losses = jax.lax.scan(step, state, None, length=settings.renewed_every)
        return state, losses[0]

    return block


def _loss(layers: Layers, second: Array, w: Array, query: Array, moves: bool) -> Array:
    """Mean of (ŷ − y)²; prompts are the last axis. M is applied to vectors layer by layer, and never formed."""
    a, b = layers

    def moved(layer: int, v: Array) -> Array:  # M v
        if layer == 0 or not moves:
            return v
        v = moved(layer - 1, v)
        return v - b[layer - 1] @ inner(layer - 1, a[layer - 1].T @ v)

    def moved_transposed(layer: int, v: Array) -> Array:  # Mᵀ v
        if layer == 0 or not moves:
            return v
        return moved_transposed(layer - 1, v - a[layer - 1] @ inner(layer - 1, b[layer - 1].T @ v))

    def inner(layer: int, v: Array) -> Array:  # M S Mᵀ v
        return moved(layer, _applied(second, moved_transposed(layer, v)))

    left = w
    for layer in range(len(a)):
        left = left - moved_transposed(layer, a[layer] @ moved(layer, _applied(second, left)))
    return jnp.mean(jnp.sum(left * query, 0) ** 2)


@jax.custom_vjp
def _applied(s: Array, v: Array) -> Any:
    """S v with symmetric S, as a sum of columns: one loop over prompts, and so is its derivative."""
    return sum(s[:, k] * v[k] for k in range(len(s)))


_applied.defvjp(
    lambda s, v: (_applied(s, v), (s, v)), lambda sv, g: (g[:, None] * sv[1][None], _applied(sv[0], g))
)


def _double(layers: Layers) -> Layers:
    return Layers(*(np.asarray(one, float) for one in layers))


def _resumed(folder: Path | None, start: _State, tell: Callable[[str], None]) -> _State:
    """The state of the last checkpoint, else the start; a damaged checkpoint is reported and not used."""
    if folder is None or not (folder / _FILE).exists():
        return start
    try:
        state = load_model(folder / _FILE, start)
    except CheckpointError as error:
        warn_damaged(error, "this training starts again")
        return start
    tell(f"goes on from step {int(state.done)}")
    return state
