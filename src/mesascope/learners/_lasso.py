"""The Lasso."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least

from ._arithmetic import einsum, inverse_above, real_in_precision_of
from ._checks import nonnegative_number
from ._fitting import Scalar, learner
from ._learner import Features, Learner
from ._moments import NormalEquations


@learner("lasso", Scalar("penalty", 1e-2, 10.0, power=1), tasks=48, flexibility=110, example={"penalty": 0.3})
class Lasso(Learner):
    r"""The minimum of $\frac1{2n} \sum_i |y_i - W x_i|^2 + \alpha \sum_{jk} |W_{jk}|$.

    Computed by cyclic coordinate descent on $\bar S$ and $\bar C$, from $W = 0$: column $j$ becomes

    $$W_{\cdot j} = \mathrm{soft}_\alpha\Big(\bar C_{\cdot j} - \sum_{k \ne j} W_{\cdot k} \bar S_{kj}\Big) / \bar S_{jj},
    \qquad \mathrm{soft}_\alpha(z) = z \max(0, 1 - \alpha/|z|).$$

    The number of sweeps is fixed; the necessary number depends on the data. For Gaussian inputs, $p = 5$ and
    $\alpha = 0.1$, the error after 100 sweeps (relative to the largest prediction, in 99 of 100 problems) is at most
    $10^{-15}$ for $n = 8p$, $10^{-10}$ for $n = 2p$ and $10^{-3}$ for $n = p$, where 1000 sweeps reach $10^{-15}$. With
    fewer examples than non-zero weights, convergence is even slower.

    Args:
        penalty: $\alpha \ge 0$, on the mean loss as in scikit-learn; 0 is least squares, with slow convergence.
        sweeps: number of sweeps ≥ 1.

    Raises:
        TypeError, ValueError: `penalty` is not a finite number ≥ 0, `sweeps` is not an integer ≥ 1.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    penalty: Array
    sweeps: int = eqx.field(static=True)

    def __init__(self, penalty: Any, sweeps: int = 100):
        self.penalty = nonnegative_number("penalty", penalty)
        self.sweeps = integer_at_least("sweeps", sweeps, 1)

    @property
    def rotation_invariant(self) -> bool:
        """No: the penalty is a sum over coordinates."""
        return False

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        # The axes of the problems are last, so that every entry of a product is one vector operation over the problems.
        gram, cross = (jnp.moveaxis(array, (-2, -1), (0, 1)) for array in (features.gram, features.cross))
        penalty, p = real_in_precision_of(cross, self.penalty), cross.shape[1]

        def update(step: Array, weights: Array) -> Array:
            j = step % p
            slope = jnp.take(cross, j, 1) - (weights * jnp.take(gram, j, 0).conj()).sum(1)
            size = jnp.take(gram, j, 0)[j].real
            new = _soft(slope + jnp.take(weights, j, 1) * size, penalty)
            return weights.at[:, j].set(new * inverse_above(jnp.zeros_like(size), size))

        weights = jax.lax.fori_loop(0, self.sweeps * p, update, jnp.zeros_like(cross))
        return einsum("mp...,...p->...m", weights, features.query)


def _soft(values: Array, threshold: Array) -> Array:
    """Return every entry with its absolute value reduced by the threshold, or 0 if it is smaller."""
    square = values.real**2 + values.imag**2
    longer = square > threshold**2
    length = jnp.sqrt(jnp.where(longer, square, 1))
    return jnp.where(longer, values * (1 - threshold / length), 0)
