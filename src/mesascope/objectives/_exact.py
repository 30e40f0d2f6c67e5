"""The exact engine: population loss of linear attention from moments, for arbitrary weights.

L = Σ_t w_t ½ E‖ŷ_t − x_{t+1}‖² = ½ Q(W^PV, W^KQ) − Re C(W^PV, W^KQ) + ½ Σ_t w_t E‖x_1‖², where Q and C are
the moment plans of the quadratic and the cross term (see `_plan`). The cost per evaluation is O(d³) for any
horizon.
"""

from __future__ import annotations

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import Estimate, require_x64
from mesascope.models import Normalizer
from mesascope.processes import Law, NextToken

from ._contract import Weights, contract
from ._engine import Objective, check_model, require_moments
from ._partitions import Partition
from ._plan import Plan, moment_plan
from ._schedule import schedule_features


class ExactObjective(Objective):
    """The loss as a polynomial of degree (2, 2) in (W^PV, W^KQ), with the coefficients of the moment plan.

    Attributes:
        quadratic: plan of Σ_t w_t/ρ_t² E‖ρ_t ŷ_t‖².
        cross: plan of Σ_t w_t/ρ_t E x_{t+1}* (ρ_t ŷ_t).
        constant: ½ Σ_t w_t E‖x_1‖².
        normalizer: ρ_t, which is part of the coefficients.
        mixture: None if the law is exchangeable. Otherwise the law is a mixture of products of independent coordinates,
            and this is the probability (n,) of every product, and the weight vector (n, d) of every block type.
    """

    quadratic: Plan
    cross: Plan
    constant: Array
    mixture: tuple[Array, Weights] | None
    dim: int = eqx.field(static=True)
    normalizer: Normalizer = eqx.field(static=True)

    def __call__(self, model: eqx.Module) -> Estimate:
        """Return the loss, differentiable, with standard error 0.

        Raises:
            TypeError: for a model that is not linear attention.
            ValueError: for a model of another dimension or normalizer, or if 64-bit mode is off.
        """
        require_x64("ExactMoments")
        checked = check_model(model, self.dim, "ExactMoments")
        if checked.normalizer != self.normalizer:
            raise ValueError(
                f"the model has normalizer {checked.normalizer!r}, but the objective was prepared for "
                f"{self.normalizer!r}; pass objective(process, task, model.normalizer)"
            )
        value = self._loss(*checked.heads())
        return Estimate(value, jnp.zeros_like(value))

    @eqx.filter_jit
    def _loss(self, w_kq: Array, w_pv: Array) -> Array:
        if self.mixture is None:
            return self._over_heads(w_kq, w_pv, {}) + self.constant
        probabilities, weights = self.mixture
        parts = jax.lax.map(lambda part: self._over_heads(w_kq, w_pv, part), weights)
        return probabilities @ parts + self.constant

    def _over_heads(self, w_kq: Array, w_pv: Array, weights: Weights) -> Array:
        """Return ½ Q − Re C; the quadratic term has all pairs of heads."""
        kq = _blocks(w_kq, 2)
        pv = _blocks(w_pv, 1)

        def pair(left: tuple[Array, Array], right: tuple[Array, Array]) -> Array:
            gram = _blocks((right[1].conj().T @ left[1])[None], 2)[0]
            return jnp.real(contract(self.quadratic, gram, left[0], right[0].conj(), weights))

        def head(one: tuple[Array, Array]) -> Array:
            return jnp.real(contract(self.cross, one[1], one[0], None, weights))

        if len(w_kq) == 1:
            return 0.5 * pair((kq[0], w_pv[0]), (kq[0], w_pv[0])) - head((kq[0], pv[0]))
        both = jax.lax.map(lambda one: jax.lax.map(lambda two: pair(one, two), (kq, w_pv)), (kq, w_pv))
        return 0.5 * jnp.sum(both) - jnp.sum(jax.lax.map(head, (kq, pv)))


@lru_cache(maxsize=256)
def exact_objective(law: Law, dim: int, task: NextToken, normalizer: Normalizer) -> ExactObjective:
    # The first call may be inside a trace, but the cache must not contain tracers.
    with jax.ensure_compile_time_eval():
        try:
            return _prepare(law, dim, task, normalizer)
        except OverflowError:
            raise ValueError(
                f"{law.describe()}: moments exceed the range of floats; rescale the law"
            ) from None


def _prepare(law: Law, dim: int, task: NextToken, normalizer: Normalizer) -> ExactObjective:
    require_moments(law, dim)
    squared = schedule_features(task, normalizer, 2)
    single = schedule_features(task, normalizer, 1)
    total = float(task.total_weight)
    if law.exchangeable:

        def joint(partition: Partition) -> float:
            return float(law.joint_moment(tuple(len(block) for block in partition), dim))

        quadratic = moment_plan("quadratic", squared, joint, dim)
        cross = moment_plan("cross", single, joint, dim)
        constant = total / 2 * dim * float(law.joint_moment((2,), dim))
        return ExactObjective(quadratic, cross, jax.device_put(np.asarray(constant)), None, dim, normalizer)
    quadratic = moment_plan("quadratic", squared, None, dim)
    cross = moment_plan("cross", single, None, dim)
    terms = law.product_terms(dim)
    probabilities = np.array([float(term.probability) for term in terms])
    moments = np.array([[[float(m) for m in one] for one in term.moments] for term in terms])
    constant = total / 2 * float(probabilities @ moments[:, :, 2].sum(1))
    types = sorted({kind for plan in (quadratic, cross) for kind in _types_used(plan)})
    weights = {kind: jax.device_put(np.prod([moments[:, :, n] for n in kind], axis=0)) for kind in types}
    mixture = jax.device_put(np.asarray(probabilities)), weights
    return ExactObjective(quadratic, cross, jax.device_put(np.asarray(constant)), mixture, dim, normalizer)


def _types_used(plan: Plan) -> set[tuple[int, ...]]:
    features = {feature for form in plan for side in form.features for feature in side}
    return {kind for feature in features for kind in feature.weights if kind}


def _blocks(matrices: Array, rows: int) -> Array:
    """Return matrices (heads, rows·m, 2d) as blocks (heads, rows·2, m, d), numbered row by row."""
    heads, height, width = matrices.shape
    split = matrices.reshape(heads, rows, height // rows, 2, width // 2)
    return jnp.transpose(split, (0, 1, 3, 2, 4)).reshape(heads, 2 * rows, height // rows, width // 2)
