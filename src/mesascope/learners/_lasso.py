"""The Lasso."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import integer_at_least

from ._arithmetic import einsum, inverse_above, real_like
from ._checks import nonnegative_number
from ._fitting import Scalar, learner
from ._learner import Features, Learner
from ._moments import NormalEquations


@learner("lasso", Scalar("penalty", 1e-2, 10.0, power=1), tasks=48, flexibility=110, example={"penalty": 0.3})
class Lasso(Learner):
    r"""The minimum of $\frac1{2n} \sum_i |y_i - W x_i|^2 + \alpha \sum_{jk} |W_{jk}|$.

    By cyclic coordinate descent on $\bar S$ and $\bar C$, from $W = 0$: column $j$ becomes

    $$W_{\cdot j} = \mathrm{soft}_\alpha\Big(\bar C_{\cdot j} - \sum_{k \ne j} W_{\cdot k} \bar S_{kj}\Big) / \bar S_{jj},
    \qquad \mathrm{soft}_\alpha(z) = z \max(0, 1 - \alpha/|z|).$$

    The number of sweeps is fixed; how many are needed depends on the data. For Gaussian inputs, $p = 5$ and $\alpha = 0.1$,
    100 sweeps end within $10^{-15}$ (in 99 of 100 problems, relative to the largest prediction) of the minimum for
    $n = 8p$, within $10^{-10}$ for $n = 2p$ and within $10^{-3}$ for $n = p$, where 1000 sweeps end within $10^{-15}$. With
    fewer examples than weights that are not 0, it is slower still.

    Args:
        penalty: $\alpha \ge 0$, on the mean loss as in scikit-learn; at 0 it is least squares, approached slowly.
        sweeps: ≥ 1.

    Raises:
        TypeError, ValueError: `penalty` is no finite number ≥ 0, `sweeps` no integer ≥ 1.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    penalty: Array
    sweeps: int = eqx.field(static=True)

    def __init__(self, penalty: Any, sweeps: int = 100):
        self.penalty = nonnegative_number("penalty", penalty)
        self.sweeps = integer_at_least("sweeps", sweeps, 1)

    def respond(self, features: NormalEquations) -> Array:
        """The prediction, shape (…, m)."""
        # Axes of the problems last: every entry of a product is then one vector operation over the problems.
        gram, cross = (jnp.moveaxis(array, (-2, -1), (0, 1)) for array in (features.gram, features.cross))
        penalty, p = real_like(cross, self.penalty), cross.shape[1]

        def update(step: Array, weights: Array) -> Array:
            j = step % p
            slope = jnp.take(cross, j, 1) - (weights * jnp.take(gram, j, 0).conj()).sum(1)
            size = jnp.take(gram, j, 0)[j].real
            new = _soft(slope + jnp.take(weights, j, 1) * size, penalty)
            return weights.at[:, j].set(new * inverse_above(jnp.zeros_like(size), size))

        weights = jax.lax.fori_loop(0, self.sweeps * p, update, jnp.zeros_like(cross))
        return einsum("mp...,...p->...m", weights, features.query)


def _soft(values: Array, threshold: Array) -> Array:
    """Shorten every entry by the threshold, to 0 at most."""
    square = values.real**2 + values.imag**2
    longer = square > threshold**2
    length = jnp.sqrt(jnp.where(longer, square, 1))
    return jnp.where(longer, values * (1 - threshold / length), 0)
