r"""How a flow leaves a critical point: by the lowest order of the loss that falls.

With the displacement z along directions of negative curvature (order 2), or, where there are none, along those in which the
Hessian vanishes, the flow is to leading order z' = −∇V(z) with a homogeneous V of order p:

    p = 2:  V = ½ zᵀHz: every |z_i| grows as e^{r_i t}, the times are logarithms of the start;
    p = 3:  V = D³L[z,z,z]/6: heads of three factors near 0, |z|' = κ|z|², the times are inverses of the start;
    p = 4:  V = D⁴L[z,z,z,z]/24 − ½ gᵀH⁺g with g = D³L[z,z]/2: what the other directions, which follow at once, take away.

Nothing is linear in the last two: the Hessian at the point says nothing of how fast, only V and the start together do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its parts are imported where they are first used: half a second, which few programs need
from jax import Array

from mesascope.core import quick_jit

from ._landscape import Landscape
from ._newton import Spectrum

FLAT = 1e-6
"""Curvatures below this fraction of the largest one, or of that of the landscape, are 0: a saddle is known to about 1e-9."""
_TRIALS, _VANISHING = 4, 1e-6
_RTOL = 1e-6
_FAR = 1e3  # e-folds of growth, after which nothing is left to be predicted
_LONG = 1e4  # times in which a direction turns at the start
_SHRUNK = 30.0  # by e^{−30} of its start: a displacement that only shrinks


class Escape(eqx.Module):
    """The leading order of the flow around a critical point.

    Attributes:
        landscape: L.
        point: θ of the critical point, shape (n,).
        directions: the projector on those of z, shape (n, n).
        softness: H⁺ in the other directions, shape (n, n).
        rates: −λ of every negative curvature, largest first.
        leaving: their eigenvectors in columns, shape (n, index).
        order: p, 2 to 4; 0 where no order up to 4 falls.
    """

    landscape: Landscape
    point: Array
    directions: Array
    softness: Array
    rates: np.ndarray
    leaving: np.ndarray
    order: int = eqx.field(static=True)

    @property
    def index(self) -> int:
        """Number of negative curvatures."""
        return len(self.rates)


def escape_from(
    landscape: Landscape, vector: np.ndarray, hessian: Spectrum, unit: float, size: float
) -> Escape:
    """The leading order around a critical point.

    Args:
        landscape: L.
        vector: θ of the point.
        hessian: ∇²L there.
        unit: a loss, such as that of the prediction 0.
        size: the natural size of weights.
    """
    curvatures, basis = np.asarray(hessian.curvatures), np.asarray(hessian.basis)
    flat, index = _flat(curvatures, unit, size), index_of(hessian, unit, size)
    free, stiff = np.abs(curvatures) <= flat, curvatures > flat
    softness = (basis[:, stiff] / curvatures[stiff]) @ basis[:, stiff].T
    chosen = basis[:, :index] if index else np.asarray(landscape.allowed)[:, None] * basis[:, free]
    rates, leaving = -curvatures[:index], basis[:, :index]
    there = jnp.asarray(vector), jnp.asarray(chosen @ chosen.T), jnp.asarray(softness)
    trials = np.random.default_rng(0).normal(size=(_TRIALS, len(vector)))
    trials /= np.linalg.norm(trials, axis=1, keepdims=True)
    for order in () if index else (3, 4):
        escape = Escape(landscape, *there, rates, leaving, order)
        values = [abs(float(_field(escape, jnp.asarray(z))[0])) for z in trials @ (chosen @ chosen.T)]
        if max(values) > _VANISHING * unit / size**order:
            return escape
    return Escape(landscape, *there, rates, leaving, 2 if index else 0)


def index_of(hessian: Spectrum, unit: float, size: float) -> int:
    """The number of negative curvatures; arguments as for `escape_from`."""
    curvatures = np.asarray(hessian.curvatures)
    return int(np.sum(curvatures < -_flat(curvatures, unit, size)))


def _flat(curvatures: np.ndarray, unit: float, size: float) -> float:
    """Below which size an eigenvalue counts as 0."""
    return FLAT * max(float(np.abs(curvatures).max()), unit / size**2)


@partial(quick_jit, level=0)
def _field(escape: Escape, z: Array) -> tuple[Array, Array]:
    """V of order 3 or 4 at z, and its gradient along the directions of z."""

    def slope(s: Array, along: Array) -> Array:
        return escape.landscape.gradient(escape.point + s * along)

    def second_power(s: Array, along: Array) -> Array:
        """The coefficient of r² in ∇L(θ + (s + r) · along)."""
        first = _derivative(lambda r: slope(r, along))
        return _derivative(lambda r: first(r)[1])(s)[1] / 2

    zero = jnp.zeros(())
    if escape.order == 3:
        second = second_power(zero, z)
        return z @ second / 3, escape.directions @ second
    second, third = _derivative(lambda s: second_power(s, z))(zero)
    third, follows = third / 3, escape.softness @ second
    # the gradient of gᵀH⁺g/2 for g = D³L[z, z]/2 is D³L[z, H⁺g]
    ahead, behind = jax.lax.map(lambda one: second_power(zero, one), jnp.stack([z + follows, z - follows]))
    return z @ third / 4 - second @ follows / 2, escape.directions @ (third - (ahead - behind) / 2)


def _derivative(function: Callable[[Array], Array]) -> Callable[[Array], tuple[Array, Array]]:
    """The function of a number, and its derivative."""
    return lambda s: jax.jvp(function, (s,), (jnp.ones_like(s),))


def time_to_fall(escape: Escape, start: np.ndarray, fall: float) -> tuple[float, float]:
    """The time in which the leading order lowers the loss by `fall`, and its rate κ in |z|' = κ|z|^{p−1} at the end.

    Both are NaN where it never does. For order 2 the rate is the largest −λ, also where `fall` is NaN, which is not known.

    Args:
        escape: the leading order.
        start: the displacement θ − θ* from the critical point, shape (n,).
        fall: > 0.
    """
    z = np.asarray(escape.directions) @ start
    if escape.order == 2 and math.isnan(fall):
        return math.nan, float(escape.rates[0])
    if escape.order == 0 or math.isnan(fall) or not np.any(z):
        return math.nan, math.nan
    if escape.order == 2:
        return _time_of_exponentials(escape, z, fall), float(escape.rates[0])
    return _time_of_flow(escape, z, fall)


def _time_of_exponentials(escape: Escape, z: np.ndarray, fall: float) -> float:
    """The t with Σ_i r_i z_i² e^{2 r_i t}/2 = fall; 0 if it is larger from the start."""
    # in units of the fastest rate and of the displacement: squares of small numbers are none
    fastest, length = float(escape.rates[0]), float(np.abs(z).max())
    rates = escape.rates / fastest
    weights = rates * (escape.leaving.T @ (z / length)) ** 2 / 2
    wanted = np.log(fall) - np.log(fastest) - 2 * np.log(length)

    def left(time: float) -> float:
        return float(scipy.special.logsumexp(2 * rates * time, b=weights) - wanted)

    if left(0.0) >= 0:
        return 0.0
    return float(scipy.optimize.brentq(left, 0.0, _FAR)) / fastest if left(_FAR) > 0 else math.nan


def _time_of_flow(escape: Escape, z: np.ndarray, fall: float) -> tuple[float, float]:
    """As `time_to_fall`, for orders p above 2: the direction v = z/|z| and the logarithm of |z| are followed.

    With κ = −v·∇V(v) and dτ = |z|^{p−2} dt they are v' = −∇V(v) − κv and (log |z|)' = κ. Nothing grows without bound, however
    small the start is. τ is in units in which |∇V| is 1 at the start.
    """
    order, largest = escape.order, float(np.abs(z).max())
    scaled = z / largest
    begin = scaled / np.linalg.norm(scaled)
    size = np.log(largest) + np.log(np.linalg.norm(scaled))

    def field(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _field(escape, jnp.asarray(v))
        return float(value), np.asarray(slope)

    unit = float(np.linalg.norm(field(begin)[1]))
    if unit == 0:
        return math.nan, math.nan

    def velocity(_: float, state: np.ndarray) -> np.ndarray:
        v, grown = state[:-2], state[-2]
        slope = field(v)[1] / unit
        kappa = -float(v @ slope)
        return np.r_[-slope - kappa * v, kappa, np.exp((2 - order) * grown)]

    def level(_: float, state: np.ndarray) -> float:
        fallen = max(-field(state[:-2])[0], np.finfo(float).tiny)
        return float(np.log(fallen) + order * (size + state[-2]) - np.log(fall))

    def shrunk(_: float, state: np.ndarray) -> float:
        return float(state[-2] + _SHRUNK)

    start = np.r_[begin, 0.0, 0.0]
    if level(0.0, start) >= 0:
        return 0.0, -float(begin @ field(begin)[1])
    level.terminal = shrunk.terminal = True  # type: ignore[attr-defined]
    solved = scipy.integrate.solve_ivp(velocity, (0.0, _LONG), start, events=(level, shrunk), rtol=_RTOL)
    if not len(solved.t_events[0]):
        return math.nan, math.nan
    *_, passed = end = solved.y_events[0][0]
    with np.errstate(over="ignore"):
        time = float(np.exp(np.log(passed / unit) + (2 - order) * size))
    v = end[:-2] / np.linalg.norm(end[:-2])
    return time, -float(v @ field(v)[1])
