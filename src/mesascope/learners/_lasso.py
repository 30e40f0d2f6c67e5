"""The Lasso."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ._arithmetic import einsum, inverse_above, real_in_precision_of
from ._checks import nonnegative_number
from ._fitting import Scalar, learner
from ._learner import Features, Learner
from ._moments import NormalEquations

_SWEEPS = 5  # in a round
_HALVINGS = 40  # of the penalty, at most, before it has its value
_MAX_ROUNDS = 300
_AT_ONCE = 32  # problems: larger groups wait for more of the slow ones
_ROUNDING = 32  # a violation of the conditions by as many spacings of numbers is rounding


@learner(
    "lasso",
    Scalar("penalty", 1e-2, 10.0, power=1),
    tasks=48,
    extends=("zero", (("penalty", 1e6),)),  # above every entry of C̄, up to which no weight moves
    family="least-squares",
    flexibility=110,
    example={"penalty": 0.3},
)
class Lasso(Learner):
    r"""The minimum of $\frac1{2n} \sum_i |y_i - W x_i|^2 + \alpha \sum_{jk} |W_{jk}|$.

    A row $w$ of $W$ is the minimum if and only if, with the row $c$ of $\bar C$ and $r = c - w \bar S$,

    $$r_j = \alpha w_j / |w_j| \text{ for } w_j \ne 0, \qquad |r_j| \le \alpha \text{ for } w_j = 0.$$

    Computed by cyclic coordinate descent from $w = 0$, where $w_j$ becomes
    $\mathrm{soft}_\alpha(r_j + w_j \bar S_{jj}) / \bar S_{jj}$ with $\mathrm{soft}_\alpha(z) = z \max(0, 1 - \alpha/|z|)$;
    the penalty begins at $\max_j |c_j|$, for which $w = 0$, and is halved after every five sweeps until it is $\alpha$ (at most
    40 times): with fewer examples than inputs, descent from 0 at a small penalty takes thousands of rounds. Then every five
    sweeps are followed by a Newton step for the equations of the entries that are not 0, and by a step in the direction of
    the whole round, where these decrease the objective, until the conditions hold to rounding, for at most 300 rounds. These
    are not enough for some problems with fewer examples than inputs and $\alpha$ far below $\max_j |c_j|$: the conditions
    are then violated by up to some $10^{-4}$ of their terms.
    Derivatives are those of these equations.

    Args:
        penalty: $\alpha \ge 0$, on the mean loss as in scikit-learn; 0 is least squares.

    Raises:
        TypeError, ValueError: `penalty` is not a finite number ≥ 0.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    penalty: Array

    def __init__(self, penalty: Any):
        self.penalty = nonnegative_number("penalty", penalty)

    @property
    def rotation_invariant(self) -> bool:
        """No: the penalty is a sum over coordinates."""
        return False

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        penalty = real_in_precision_of(features.cross, self.penalty)
        weights = _minimum(features.gram, features.cross, penalty)
        return einsum("...mp,...p->...m", weights, features.query)


@jax.custom_jvp
def _minimum(gram: Array, cross: Array, penalty: Array) -> Array:
    """Return W, shape (…, m, p), from S̄ (…, p, p) and C̄ (…, m, p).

    Problems are solved in groups: each ends with its slowest problem, and fits into the processor's cache.
    """
    grams, crosses = (array.reshape(-1, *array.shape[-2:]) for array in (gram, cross))
    if not len(grams):
        return jnp.zeros_like(cross)
    size = min(_AT_ONCE, len(grams))

    def grouped(array: Array) -> Array:
        padded = jnp.pad(array, ((0, -len(array) % size), (0, 0), (0, 0)))
        return padded.reshape(-1, size, *array.shape[1:])

    groups = grouped(grams), grouped(crosses)
    found = jax.lax.map(lambda group: _minimum_of_group(group[0], group[1], penalty), groups)
    return found.reshape(-1, *crosses.shape[1:])[: len(crosses)].reshape(cross.shape)


def _minimum_of_group(gram: Array, cross: Array, penalty: Array) -> Array:
    largest = jnp.abs(cross).max(-1, keepdims=True)

    def is_above(state: tuple[Array, Array]) -> Array:
        return (state[0] < _HALVINGS) & (jnp.ldexp(largest, -state[0]) > penalty).any()

    def followed(state: tuple[Array, Array]) -> tuple[Array, Array]:
        now = jnp.maximum(penalty, jnp.ldexp(largest, -state[0]))
        return state[0] + 1, _sweeps(gram, cross, now, state[1])

    def goes_on(state: tuple[Array, Array, Array]) -> Array:
        round_, _, violation = state
        return (round_ < _MAX_ROUNDS) & (violation > _ROUNDING * jnp.finfo(gram.dtype).eps).any()

    def improved(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        round_, weights, _ = state
        swept = _sweeps(gram, cross, jnp.broadcast_to(penalty, largest.shape), weights)
        stepped = _newton_step(gram, cross, penalty, swept)
        weights = _farther(gram, cross, penalty, stepped, stepped - weights)
        return round_ + 1, weights, _violation(gram, cross, penalty, weights)

    zero = jnp.zeros((), int)
    _, near = jax.lax.while_loop(is_above, followed, (zero, jnp.zeros_like(cross)))
    start = zero, near, jnp.ones(cross.shape[:-1], largest.dtype)
    return jax.lax.while_loop(goes_on, improved, start)[1]


@_minimum.defjvp
def _minimum_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """Return the derivative of the equations r_j = α w_j/|w_j|, with the same entries 0."""
    (gram, cross, penalty), (gram_dot, cross_dot, penalty_dot) = primals, tangents
    weights = _minimum(gram, cross, penalty)
    active = _Active.of(gram, weights, penalty)
    right = cross_dot - einsum("...mk,...kj->...mj", weights, gram_dot) - penalty_dot * active.direction
    return weights, active.solve(right)


def _sweeps(gram: Array, cross: Array, penalty: Array, weights: Array) -> Array:
    """Return the weights after sweeps of coordinate descent, for one penalty of every row, shape (…, m, 1)."""
    # The axes of the problems are last, so that every entry of a product is one vector operation over the problems.
    penalty = jnp.moveaxis(penalty[..., 0], -1, 0)
    gram, cross, weights = (jnp.moveaxis(array, (-2, -1), (0, 1)) for array in (gram, cross, weights))
    p = cross.shape[1]

    def update(step: Array, weights: Array) -> Array:
        j = step % p
        size = jnp.take(gram, j, 0)[j].real
        slope = jnp.take(cross, j, 1) - einsum("mk...,k...->m...", weights, jnp.take(gram, j, 1))
        new = _soft(slope + jnp.take(weights, j, 1) * size, penalty)
        return weights.at[:, j].set(new * inverse_above(jnp.zeros_like(size), size))

    return jnp.moveaxis(jax.lax.fori_loop(0, _SWEEPS * p, update, weights), (0, 1), (-2, -1))


def _newton_step(gram: Array, cross: Array, penalty: Array, weights: Array) -> Array:
    """Return the weights after the part of a Newton step, all, half or up to a zero, that decreases the objective most."""
    active = _Active.of(gram, weights, penalty)
    residual = cross - einsum("...mk,...kj->...mj", weights, gram) - penalty * active.direction
    change = active.solve(residual)
    best, least = weights, _objective(gram, cross, penalty, weights)
    for new in (weights + change, weights + change / 2, _up_to_zero(weights, change)):
        objective = _objective(gram, cross, penalty, new)
        lower = objective < least
        best, least = jnp.where(lower[..., None], new, best), jnp.where(lower, objective, least)
    return best


def _farther(gram: Array, cross: Array, penalty: Array, weights: Array, change: Array) -> Array:
    """Return the weights farther in the direction of the last round, if that is lower: a valley that it follows slowly."""
    _, direction = _polar(weights)
    slope = einsum("...mk,...kj->...mj", weights, gram) - cross + penalty * direction
    falling = -(slope * change.conj()).real.sum(-1, keepdims=True)
    curvature = (einsum("...mk,...kj->...mj", change, gram) * change.conj()).real.sum(-1, keepdims=True)
    most = jnp.maximum(falling, 0) * inverse_above(jnp.zeros_like(curvature), curvature)
    new = _up_to_zero(weights, change, most)
    lower = _objective(gram, cross, penalty, new) < _objective(gram, cross, penalty, weights)
    return jnp.where(lower[..., None], new, weights)


def _up_to_zero(weights: Array, change: Array, most: Array | float = jnp.inf) -> Array:
    """Return the weights where the first entry on the way vanishes, since with its sign the equations change.

    Or after `most` times the change, shape (…, m, 1), if that is earlier.
    """
    along = -(change * weights.conj()).real  # positive: it becomes smaller
    share = (jnp.abs(weights) ** 2) * inverse_above(jnp.zeros_like(along), along)
    share = jnp.where(along > 0, share, jnp.inf)
    first = share.min(-1, keepdims=True)
    far = jnp.minimum(first, most)
    there = weights + jnp.where(jnp.isfinite(far), far, 0) * change
    return jnp.where((share == first) & (first <= most), 0, there)


def _objective(gram: Array, cross: Array, penalty: Array, weights: Array) -> Array:
    """Return ½ w S̄ w* − Re c w* + α |w|₁ of every row, shape (…, m)."""
    slope = 0.5 * einsum("...mk,...kj->...mj", weights, gram) - cross
    return ((slope * weights.conj()).real + penalty * jnp.abs(weights)).sum(-1)


def _violation(gram: Array, cross: Array, penalty: Array, weights: Array) -> Array:
    """Return by how much a row violates the conditions of the minimum, relative to the terms of r, shape (…, m)."""
    size, direction = _polar(weights)
    residual = cross - einsum("...mk,...kj->...mj", weights, gram)
    at_zero = jnp.maximum(jnp.abs(residual) - penalty, 0)
    off = jnp.where(size > 0, jnp.abs(residual - penalty * direction), at_zero)
    terms = jnp.abs(cross) + einsum("...mk,...kj->...mj", size, jnp.abs(gram))
    return off.max(-1) / jnp.maximum(terms.max(-1), jnp.finfo(gram.dtype).tiny)


class _Active(NamedTuple):
    """The equations of the entries that are not 0, linear in changes of w; complex numbers as pairs of real ones.

    Attributes:
        matrix: the real matrix, shape (…, m, p, p) or (…, m, 2p, 2p); the identity for entries that are 0.
        nonzero: which entries are not 0, shape (…, m, p).
        direction: w_j/|w_j|, or 0, shape (…, m, p).
    """

    matrix: Array
    nonzero: Array
    direction: Array

    @classmethod
    def of(cls, gram: Array, weights: Array, penalty: Array) -> _Active:
        size, direction = _polar(weights)
        nonzero = size > 0
        both = nonzero[..., :, None] & nonzero[..., None, :]
        operator = jnp.where(both, gram.mT[..., None, :, :], 0)
        # an infinitesimal multiple of the identity, so that a singular matrix gives finite numbers
        least = jnp.finfo(gram.dtype).eps * jnp.abs(operator).max((-2, -1), keepdims=True)
        rest = jnp.eye(gram.shape[-1], dtype=least.dtype) * (~nonzero[..., None] + least)
        if not jnp.iscomplexobj(gram):
            return cls(operator + rest, nonzero, direction)
        matrix = jnp.block([[operator.real + rest, -operator.imag], [operator.imag, operator.real + rest]])
        return cls(matrix + _turning(size, direction, penalty), nonzero, direction)

    def solve(self, right: Array) -> Array:
        """Return the change of w for these right-hand sides, shape (…, m, p); 0 for entries that are 0."""
        right = jnp.where(self.nonzero, right, 0)
        if not jnp.iscomplexobj(right):
            return jnp.linalg.solve(self.matrix, right[..., None])[..., 0]
        pairs = jnp.concatenate([right.real, right.imag], -1)
        real, imaginary = jnp.split(jnp.linalg.solve(self.matrix, pairs[..., None])[..., 0], 2, -1)
        return real + 1j * imaginary


def _turning(size: Array, direction: Array, penalty: Array) -> Array:
    """Return the derivative of α w_j/|w_j|: α (1 − u uᵀ)/|w_j| in the plane of w_j, shape (…, m, 2p, 2p)."""
    scale = penalty * inverse_above(jnp.zeros_like(size), size)

    def diagonal(entries: Array) -> Array:
        return entries[..., None] * jnp.eye(entries.shape[-1], dtype=entries.dtype)

    a, b = direction.real, direction.imag
    return jnp.block(
        [
            [diagonal(scale * (1 - a * a)), diagonal(-scale * a * b)],
            [diagonal(-scale * a * b), diagonal(scale * (1 - b * b))],
        ]
    )


def _polar(weights: Array) -> tuple[Array, Array]:
    """Return |w| and w/|w|, both 0 where w is 0."""
    size = jnp.abs(weights)
    return size, weights * inverse_above(jnp.zeros_like(size), size)


def _soft(values: Array, threshold: Array) -> Array:
    """Return every entry with its absolute value reduced by the threshold, or 0 if it is smaller."""
    size, direction = _polar(values)
    return direction * jnp.maximum(size - threshold, 0)
