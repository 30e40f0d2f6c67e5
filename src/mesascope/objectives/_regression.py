r"""Exact population loss of one linear attention layer on regression prompts with Gaussian inputs.

With $e_i = (x_i, y_i)$, $G = \sum_{i \le t} e_i e_i^\top$, the last row $u_h$ of $W^{PV}_h$ and the columns $M_h$ of
$W^{KQ}_h$ that multiply the query $(x_q, 0)$,

    ŷ = (1/ρ) (x_qᵀ z + s),    z = Σ_h M_hᵀ G u_h,    s = Σ_h (u_hᵀ e_q)(e_qᵀ M_h x_q),

where $s$ occurs only if the query attends to itself. Given the task (Σ, w, σ²), the $e_i$ are independent N(0, S) and $G$
is Wishart, $E\,G A G = t^2 S A S + t (S A^\top S + \mathrm{tr}(A S) S)$; the query is N(0, Σ), and the loss has degree ≤ 6
in it. The conditional loss is a polynomial of degree 4 in $w$, 3 in Σ and 2 in σ²; the nodes of `_regression_tasks`
integrate it exactly.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate, require_x64
from mesascope.models import (
    FactoredLinearSelfAttention,
    LastEntry,
    LinearAttentionStack,
    LinearSelfAttention,
    PromptModel,
    StackedPrompt,
    normalizer_inverses,
)
from mesascope.processes import FewShot, LinearRegression

from ._engine import Objective
from ._regression_tasks import Tasks, regression_tasks


class RegressionObjective(Objective):
    """L = Σ_t w_t ½ E(ŷ_{t+1} − y_{t+1})² of one layer of linear attention on stacked prompts.

    Attributes:
        tasks: quadrature nodes of the distribution of the tasks.
        task: the weights of predictions; static.
        dim: dimension of the inputs.
    """

    tasks: Tasks
    task: FewShot = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __call__(self, model: eqx.Module) -> Estimate:
        """Return the loss, differentiable, with standard error 0.

        Raises:
            TypeError: for a model that is not one layer of linear attention on stacked prompts.
            ValueError: for a model of another dimension, or if 64-bit mode is off.
        """
        require_x64("ExactMoments")
        layer, sign = _checked_layer(model, self.dim)
        pairs = self.task.weights or ((self.task.examples, 1),)
        lengths, weights = (np.array([float(n) for n in column]) for column in zip(*pairs, strict=True))
        inverse = normalizer_inverses(layer.normalizer, lengths + 1)
        seen = layer.context != "examples"  # whether the query attends to itself
        moments = _moments(*_merge(layer, sign), self.tasks)
        coefficients = np.array(
            [
                weights @ (lengths * inverse) ** 2,
                weights @ (lengths * inverse**2),
                -2 * weights @ (lengths * inverse),
                weights.sum(),
                2 * seen * weights @ (lengths * inverse**2),
                seen * weights @ inverse**2,
            ]
        )
        value = jnp.asarray(coefficients) @ moments / 2
        return Estimate(value, jnp.zeros_like(value))


def regression_objective(process: LinearRegression, task: FewShot) -> RegressionObjective:
    """Return the exact objective of prompts with Gaussian inputs.

    Raises:
        TypeError: for inputs of another law, or sparse weights.
        ValueError: a random covariance of this dimension needs too many nodes.
    """
    with jax.ensure_compile_time_eval():  # the first call may be inside a trace
        return RegressionObjective(regression_tasks(process), task, process.dim)


def _checked_layer(model: Any, dim: int) -> tuple[Any, float]:
    """Return the only layer of the model, and the sign of its read-out."""
    fits = isinstance(model, PromptModel) and (
        isinstance(model.embedding, StackedPrompt)
        and isinstance(model.network, LinearAttentionStack)
        and len(model.network.layers) == 1
        and isinstance(model.network.layers[0], LinearSelfAttention | FactoredLinearSelfAttention)
        and isinstance(model.readout, LastEntry)
    )
    if not fits:
        raise TypeError(
            f"model: ExactMoments supports regression prompts for prompt_linear_transformer with one layer, not for this "
            f"{type(model).__name__}; use MonteCarlo"
        )
    if model.embedding.dim != dim:
        raise ValueError(f"model has dim {model.embedding.dim}, the process has dim {dim}; make them equal")
    layer = model.network.layers[0]
    if any(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(layer)):
        raise TypeError(
            "model: regression prompts are real, but the weights are complex; take their real parts"
        )
    return layer, model.readout.sign


def _merge(layer: Any, sign: float) -> tuple[Array, Array]:
    """Return M, shape (heads, d + 1, d), and u with the sign of the read-out, shape (heads, d + 1)."""
    if isinstance(layer, LinearSelfAttention):
        return layer.w_kq[:, :, :-1], sign * layer.w_pv[:, -1]
    keys = jnp.einsum("hki,hkj->hij", layer.w_k, layer.w_q)
    return keys[:, :, :-1], sign * jnp.einsum("hk,hkj->hj", layer.w_p[:, -1], layer.w_v)


@eqx.filter_jit
def _moments(m: Array, u: Array, tasks: Tasks) -> Array:
    """Return the coefficients of t²/ρ², t/ρ², −2t/ρ, 1, 2t/ρ² and 1/ρ², in this order, averaged over the tasks."""
    each = jax.vmap(lambda *task: _given_task(m, u, *task))
    return tasks.weights @ each(tasks.covariances, tasks.vectors, tasks.noises)


def _given_task(m: Array, u: Array, sigma: Array, w: Array, noise: Array) -> Array:
    along = sigma @ w
    power = w @ along + noise
    second = jnp.block([[sigma, along[:, None]], [along[None], power[None, None]]])
    read = u @ second
    crossed = jnp.einsum("hji,kj->hki", m, read)  # M_hᵀ S u_k
    mean = jnp.einsum("hhi->i", crossed)
    swapped = jnp.einsum("khi,ij,hkj->", crossed, sigma, crossed)
    inner = jnp.einsum("kia,ij,hjb,ab->hk", m, second, m, sigma)  # tr(S M_h Σ M_kᵀ)
    spread = swapped + jnp.sum(inner * (u @ read.T))
    bias, own = _self_term(m[:, :-1], u[:, :-1], sigma)
    return jnp.stack([mean @ sigma @ mean, spread, mean @ along, power, bias @ mean, own])


def _self_term(m: Array, u: Array, sigma: Array) -> tuple[Array, Array]:
    """Return E s x_q and E s² for s = Σ_h (u_hᵀx_q)(x_qᵀ M_h x_q), by all pairings of four and of six Gaussian factors."""
    forms = (m + jnp.swapaxes(m, 1, 2)) / 2
    reads = u @ sigma
    traces = jnp.einsum("hij,ij->h", forms, sigma)
    products = jnp.einsum("hij,kj->hki", forms, reads)  # B_h Σ u_k
    own = jnp.einsum("hhi->hi", products)
    bias = traces @ reads + 2 * own.sum(0) @ sigma
    pairs = jnp.einsum("hij,jk,gkl,li->hg", forms, sigma, forms, sigma)
    separate = jnp.sum((u @ reads.T) * (jnp.outer(traces, traces) + 2 * pairs))
    once = jnp.sum((traces @ reads) * own.sum(0))
    crossed = jnp.einsum("hki,ij,khj->", products, sigma, products) + own.sum(0) @ sigma @ own.sum(0)
    return bias, separate + 4 * (once + crossed)
