r"""Exact population loss of one linear attention layer on regression prompts with Gaussian inputs.

With $e_i = (x_i, y_i)$, $G = \sum_{i \le t} e_i e_i^\top$, the last row $u_h$ of $W^{PV}_h$ and the columns $M_h$ of
$W^{KQ}_h$ that multiply the query $(x_q, 0)$,

    ŷ = (1/ρ) (x_qᵀ z + s),    z = Σ_h M_hᵀ G u_h,    s = Σ_h (u_hᵀ e_q)(e_qᵀ M_h x_q),

where $s$ occurs only if the query attends to itself. Given the task (Σ, w, σ²), the $e_i$ are independent N(0, S) and $G$
is Wishart, $E\,G A G = t^2 S A S + t (S A^\top S + \mathrm{tr}(A S) S)$; the query is N(0, Σ), and the loss has degree ≤ 6
in it. Given Σ and σ², $M_h^\top S u_k$ and all else is affine in $v = (1, w, w^\top Σ w)$, so that the loss is a quadratic
form in $v$ and needs of the law of $w$ only $E\,v v^\top$: no sum over tasks. Where the weights of the query are other ones,
$q$ in place of $v$, terms with its label need $E\,v q^\top$. The loss has degree 3 in Σ and 2 in σ², which the
nodes of `_regression_tasks` integrate exactly.
"""

from __future__ import annotations

from collections.abc import Callable
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
    LowRankLinearSelfAttention,
    PromptModel,
    StackedPrompt,
    normalizer_inverses,
    refuse_stacked,
)
from mesascope.processes import FewShot, InWeightsRegression

from ._depth import check_steps, depth_loss, preconditioned_steps
from ._engine import Objective
from ._regression_tasks import Regression, Tasks, regression_tasks

_LAYERS = LinearSelfAttention | LowRankLinearSelfAttention | FactoredLinearSelfAttention


class RegressionObjective(Objective):
    """L = Σ_t w_t ½ E(ŷ_{t+1} − y_{t+1})² on stacked prompts, of one layer of linear attention or a few preconditioned steps.

    Attributes:
        tasks: nodes of Σ and σ², and moments of w.
        task: the weights of predictions; static.
        dim: dimension of the inputs.
    """

    tasks: Tasks
    task: FewShot = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __call__(self, model: eqx.Module) -> Estimate:
        """Return the loss, differentiable, with standard error 0.

        Raises:
            TypeError: for a model that is neither one layer of linear attention nor preconditioned steps on stacked prompts,
                or such steps on inputs with a random covariance.
            ValueError: for a model of another dimension, of more than three steps that are not all along multiples of Σ⁻¹, or
                of more than 48; or if 64-bit mode is off. Under a transformation of JAX another metric gives NaN.
        """
        require_x64("ExactMoments")
        if (steps := preconditioned_steps(model)) is not None:
            _check_dim(model, self.dim)
            return depth_loss(steps, self.tasks, self.task)
        layer, sign = checked_layer(model, self.dim)
        pairs = self.task.weights or ((self.task.examples, 1),)
        lengths, weights = (np.array([float(n) for n in column]) for column in zip(*pairs, strict=True))
        inverse = normalizer_inverses(layer.normalizer, lengths + 1)
        coefficients = [
            weights.sum(),
            weights @ (lengths * inverse) ** 2,
            weights @ (lengths * inverse**2),
            -2 * weights @ (lengths * inverse),
        ]
        if reads_query(layer):
            coefficients += [
                2 * weights @ (lengths * inverse**2),
                weights @ inverse**2,
                -2 * weights @ inverse,
            ]
        return _loss(np.array(coefficients), layer, sign, self.tasks)

    def check(self, model: eqx.Module) -> None:
        """Refuse more than three steps whose metric is no multiple of Σ⁻¹."""
        if (steps := preconditioned_steps(model)) is not None:
            _check_dim(model, self.dim)
            check_steps(steps, self.tasks)


def regression_objective(process: Regression, task: FewShot) -> RegressionObjective:
    """Return the exact objective of prompts with Gaussian inputs.

    Raises:
        TypeError: for pools of nonlinear regression, inputs of another law, or sparse weights that are not of a pool.
        ValueError: a random covariance of this dimension needs too many nodes; labels that are noise would be predicted.
    """
    if isinstance(process, InWeightsRegression) and task.support != (task.examples,):
        raise ValueError(
            f"task: weights predictions after fewer than {task.examples} examples, whose labels are noise in "
            f"{process.describe()}; leave out weights, or use MonteCarlo ('monte-carlo' in a SPEC)"
        )
    return RegressionObjective(regression_tasks(process), task, process.dim)


def checked_layer(model: Any, dim: int) -> tuple[Any, float]:
    """Return the only layer of the model, and the sign of its read-out."""
    network = model.network if isinstance(model, PromptModel) else None
    # a residual connection adds the label of the query, which is 0
    layers = network.layers if isinstance(network, LinearAttentionStack) else (network,)
    fits = isinstance(model, PromptModel) and (
        isinstance(model.embedding, StackedPrompt)
        and len(layers) == 1
        and isinstance(layers[0], _LAYERS)
        and isinstance(model.readout, LastEntry)
    )
    if not fits:
        raise TypeError(
            f"model: ExactMoments supports regression prompts for prompt_linear_transformer with one layer, and for steps of "
            f"preconditioned_linear_transformer and step_size_transformer, not for this {type(model).__name__}; use MonteCarlo "
            "('monte-carlo' in a SPEC)"
        )
    _check_dim(model, dim)
    layer: Any = layers[0]
    refuse_stacked(layer)
    if any(jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(layer)):
        raise TypeError(
            "model: regression prompts are real, but the weights are complex; take their real parts"
        )
    return layer, model.readout.sign


def _check_dim(model: Any, dim: int) -> None:
    if model.embedding.dim != dim:
        raise ValueError(f"model has dim {model.embedding.dim}, the process has dim {dim}; make them equal")


def prompt_heads(model: Any) -> tuple[Array, Array]:
    """Return the parts of W^KQ and W^PV that the prediction of one layer depends on.

    Returns:
        The columns of W^KQ that multiply the query, shape (heads, d + 1, d), and the last row of W^PV with the sign of the
        read-out, shape (heads, 1, d + 1).

    Raises:
        TypeError: the model is not one layer of linear attention on stacked prompts.
    """
    m, u = _merge(*checked_layer(model, model.embedding.dim))
    return m, u[:, None]


def _merge(layer: Any, sign: float) -> tuple[Array, Array]:
    """Return M, shape (heads, d + 1, d), and u with the sign of the read-out, shape (heads, d + 1)."""
    if isinstance(layer, LowRankLinearSelfAttention):
        layer = layer.merged()
    if isinstance(layer, LinearSelfAttention):
        return layer.w_kq[:, :, :-1], sign * layer.w_pv[:, -1]
    keys = jnp.einsum("hki,hkj->hij", layer.w_k, layer.w_q)
    return keys[:, :, :-1], sign * jnp.einsum("hk,hkj->hj", layer.w_p[:, -1], layer.w_v)


@eqx.filter_jit  # one program: many small ones take longer to compile
def _loss(coefficients: np.ndarray, layer: Any, sign: float, tasks: Tasks) -> Estimate:
    """Return half the sum of the factors of `_moments` times these coefficients."""
    m, u = _merge(layer, sign)
    factors = _with_query if reads_query(layer) else _of_examples
    value = jnp.dot(coefficients, _moments(lambda *task: jnp.stack(factors(m, u, *task)), tasks)) / 2
    return Estimate(value, jnp.zeros_like(value))


def reads_query(layer: Any) -> bool:
    """Whether the query attends to itself."""
    return bool(layer.context != "examples")


def _moments(factors: Callable[..., Array], tasks: Tasks) -> Array:
    """Return the factor of 1, and the others averaged over the tasks."""
    given = jax.vmap(factors, (None, None, None, 0))
    each = jax.vmap(given, (0, 0, 0, None))(tasks.covariances, tasks.moments, tasks.query, tasks.noises)
    return jnp.concatenate([tasks.power[None], jnp.einsum("nm,nmk->k", tasks.weights, each)])


def _with_query(m: Array, u: Array, sigma: Array, law: Array, query: Array, noise: Array) -> list[Array]:
    """Return the factors of `_of_examples`, and of 2t/ρ², 1/ρ² and −2/ρ, which s brings, given Σ and σ²."""
    bias, own = _self_term(m[:, :-1], u[:, :-1], sigma)
    # the same expression as in `_of_examples`: compiled once
    through = _mean(_crossed(m, u, sigma, noise)) @ law
    terms = [bias @ through[:, 0], own, bias @ query[0, 1:-1]]  # the last is 0 where the mean of w is
    return _of_examples(m, u, sigma, law, query, noise) + terms


def _of_examples(m: Array, u: Array, sigma: Array, law: Array, query: Array, noise: Array) -> list[Array]:
    """Return the factors of t²/ρ², t/ρ² and −2t/ρ, given Σ and σ².

    With M_h = (B_h; r_hᵀ), u_h = (a_h, c_h) and S = (I; wᵀ) Σ (I, w) + σ² e eᵀ, e the last unit vector,

        M_hᵀ S u_k = (B_hᵀ + r_h wᵀ) Σ (a_k + c_k w) + σ² c_k r_h,
        u_hᵀ S u_k = (a_h + c_h w)ᵀ Σ (a_k + c_k w) + σ² c_h c_k,
        tr(S M_h Σ M_kᵀ) = tr(Σ (B_h + w r_hᵀ) Σ (B_k + w r_kᵀ)ᵀ) + σ² r_hᵀ Σ r_k.
    """
    (b, r), (a, c) = (m[:, :-1], m[:, -1]), (u[:, :-1], u[:, -1])
    crossed, read = _crossed(m, u, sigma, noise), a @ sigma  # M_hᵀ S u_k, Σ a_h
    moved = jnp.einsum("hij,kj->hki", sigma @ b @ sigma, r)  # Σ B_h Σ r_k
    paired = r @ sigma @ r.T
    inner = _affine(
        jnp.einsum("hij,kij->hk", sigma @ b @ sigma, b) + noise * paired,
        moved + jnp.swapaxes(moved, 0, 1),
        paired,
    )
    along = jnp.einsum("h,kj->hkj", c, read)
    power = _affine(read @ a.T + noise * jnp.outer(c, c), along + jnp.swapaxes(along, 0, 1), jnp.outer(c, c))
    mean = _mean(crossed)
    swapped = jnp.sum((crossed @ law) * jnp.swapaxes(sigma @ crossed, 0, 1))
    spread = swapped + jnp.sum((inner @ law) * power)
    return [jnp.sum((mean @ law) * (sigma @ mean)), spread, jnp.sum((mean @ query)[:, 1:-1] * sigma)]


def _crossed(m: Array, u: Array, sigma: Array, noise: Array) -> Array:
    """Return M_hᵀ S u_k as coefficients of v, shape (heads, heads, d, d + 2)."""
    (b, r), (a, c) = (m[:, :-1], m[:, -1]), (u[:, :-1], u[:, -1])
    mapped, read = jnp.einsum("hji,jk->hik", b, sigma), a @ sigma  # B_hᵀ Σ, Σ a_h
    last = jnp.einsum("k,hi->hki", c, r)  # c_k r_h
    return _affine(
        jnp.einsum("hij,kj->hki", mapped, a) + noise * last,
        jnp.einsum("k,hij->hkij", c, mapped) + jnp.einsum("hi,kj->hkij", r, read),
        last,
    )


def _mean(crossed: Array) -> Array:
    """Return Σ_h M_hᵀ S u_h, which is E z/t, as coefficients of v, shape (d, d + 2)."""
    return jnp.einsum("hhiv->iv", crossed)


def _affine(constant: Array, linear: Array, square: Array) -> Array:
    """Return an array whose last axis holds coefficients of v = (1, w, wᵀΣw)."""
    return jnp.concatenate([constant[..., None], linear, square[..., None]], -1)


def _self_term(m: Array, u: Array, sigma: Array) -> tuple[Array, Array]:
    """Return E s x_q and E s² for s = Σ_h (a_hᵀx)(xᵀB_h x), x ~ N(0, Σ), by all pairings of four and of six factors x.

    With symmetric B_h, t_h = tr B_hΣ and p_hk = B_hΣa_k,

        E s x = Σ_h (t_h Σa_h + 2 Σp_hh),
        E s² = Σ_hk [a_hᵀΣa_k (t_h t_k + 2 tr B_hΣB_kΣ) + 4 t_k a_kᵀΣp_hh + 4 p_hkᵀΣp_kh + 4 p_hhᵀΣp_kk].
    """
    forms = (m + jnp.swapaxes(m, 1, 2)) / 2
    reads = u @ sigma
    traces = jnp.sum(forms * sigma, (1, 2))
    products = jnp.einsum("hij,kj->hki", forms, reads)  # B_h Σ u_k
    own = jnp.einsum("hhi->hi", products)
    bias = traces @ reads + 2 * own.sum(0) @ sigma
    scaled = forms @ sigma
    pairs = jnp.einsum("hij,gji->hg", scaled, scaled)
    separate = jnp.sum((u @ reads.T) * (jnp.outer(traces, traces) + 2 * pairs))
    once = jnp.sum((traces @ reads) * own.sum(0))
    crossed = jnp.sum((products @ sigma) * jnp.swapaxes(products, 0, 1)) + own.sum(0) @ sigma @ own.sum(0)
    return bias, separate + 4 * (once + crossed)
