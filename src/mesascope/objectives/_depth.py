"""Exact population loss of layers of preconditioned linear attention, looped or not.

Of up to three steps `_wishart_words` derives the polynomial in traces of words; it is evaluated here, in a time that does not
depend on N. Of more steps `_step_sizes` has the loss of multiples of Σ⁻¹.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate
from mesascope.models import (
    LastEntry,
    LinearAttentionStack,
    Looped,
    PreconditionedStep,
    PromptModel,
    StackedPrompt,
)
from mesascope.processes import FewShot

from ._regression_tasks import Tasks
from ._step_sizes import check_step_sizes, steps_loss
from ._wishart_words import MAX_DEPTH, Plan, Polynomial, plan

Steps: TypeAlias = tuple[Sequence[PreconditionedStep], tuple[int, ...]]


def preconditioned_steps(model: Any) -> Steps | None:
    """Return the layers and the order in which they are the steps, or None for a model of another kind."""
    if not isinstance(model, PromptModel):
        return None
    looped = model.network if isinstance(model.network, Looped) else None
    network, loops = (looped.layer, looped.loops) if looped else (model.network, 1)
    if not (
        isinstance(model.embedding, StackedPrompt)
        and isinstance(network, LinearAttentionStack)
        and isinstance(model.readout, LastEntry)
        and model.readout.sign == -1
    ):
        return None
    layers = [one for one in network.layers if isinstance(one, PreconditionedStep)]
    if len(layers) != len(network.layers):
        return None
    return layers, tuple(range(len(layers))) * loops


def check_steps(steps: Steps, tasks: Tasks) -> None:
    """Refuse steps whose expected loss is not known. Under a transformation of JAX numbers are not checked.

    Raises:
        TypeError: the covariance of the inputs is random.
        ValueError: more than three steps that are not all of `StepSizeAttention` along multiples of Σ⁻¹, or more than 48.
    """
    if len(tasks.covariances) > 1:
        raise TypeError(
            "model: ExactMoments supports preconditioned steps for inputs with a fixed covariance, not a random one; use "
            "MonteCarlo ('monte-carlo' in a SPEC)"
        )
    layers, order = steps
    if len(order) > MAX_DEPTH:
        check_step_sizes(layers, order, tasks)


def depth_loss(steps: Steps, tasks: Tasks, task: FewShot) -> Estimate:
    """Return Σ_t w_t ½ E(ŷ_{t+1} − y_{t+1})², differentiable in the weights, with standard error 0.

    Raises:
        TypeError, ValueError: as `check_steps`.
    """
    check_steps(steps, tasks)
    layers, order = steps
    if len(order) > MAX_DEPTH:
        return steps_loss(layers, order, tasks, task)
    pairs = task.weights or ((task.examples, 1),)
    weights = {count: float(weight) for count, weight in pairs}
    # without examples no step changes the answer 0, and only the constant is left
    lengths = np.array([count for count in weights if count], float)
    shares = np.array([weight for count, weight in weights.items() if count])
    powers = lengths ** -np.arange(2 * len(order) + 1.0)[:, None] @ shares
    return _loss(
        jnp.stack([layer.matrix() for layer in layers]),
        tasks,
        powers,
        np.asarray(sum(weights.values())),
        order,
    )


@eqx.filter_jit
def _loss(
    matrices: Array, tasks: Tasks, powers: np.ndarray, total: np.ndarray, order: tuple[int, ...]
) -> Estimate:
    """Half of total · E y² and of the two polynomials, at whitened matrices M = Cᵀ A C, Σ = C Cᵀ."""
    root = jnp.linalg.cholesky(tasks.covariances[0])
    steps = root.T @ matrices @ root
    prior = root.T @ tasks.moments[0, 1:-1, 1:-1] @ root
    noise = jnp.dot(tasks.weights[0], tasks.noises)
    planned = plan(order)
    traces = _traces(steps, prior, planned)
    task, noisy = (_value(one, traces, powers) for one in (planned.task, planned.noise))
    value = jnp.asarray(total * tasks.power + task + noise * noisy) / 2
    return Estimate(value, jnp.zeros_like(value))


def _traces(steps: Array, prior: Array, planned: Plan) -> Array:
    """Return the traces of all words, and 1 at the end."""
    turned = jnp.stack([steps, jnp.swapaxes(steps, 1, 2)], 1).reshape(-1, *prior.shape)
    letters = jnp.concatenate([turned, prior[None]])
    place = {word: i for i, word in enumerate(planned.halves)}
    products = jnp.eye(len(prior))[None]  # the empty word goes to the end, where −1 finds it
    for _, words in groupby(planned.halves, len):
        group = list(words)
        before = products[np.array([place.get(word[:-1], -1) for word in group])]
        longer = before @ letters[np.array([word[-1] for word in group])]
        products = jnp.concatenate([products[:-1], longer, products[-1:]])
    left, right = (products[column] for column in planned.pairs.T)
    return jnp.append(jnp.einsum("wij,wji->w", left, right), 1.0)


def _value(polynomial: Polynomial, traces: Array, powers: np.ndarray) -> Array:
    """Return the polynomial with N^{−p} replaced by the sum over all numbers of examples."""
    weights = polynomial.coefficients @ powers[: polynomial.coefficients.shape[1]]
    return jnp.dot(weights, reduce(jnp.multiply, (traces[column] for column in polynomial.factors.T)))
