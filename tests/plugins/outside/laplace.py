"""The Laplace law."""

from math import factorial

import mesascope as ms
from mesascope.processes import IdenticalLaw
from mesascope.specs import Scale


@ms.kind("laplace")
class Laplace(IdenticalLaw):
    r"""Independent coordinates with density $e^{-|x|/b}/(2b)$: $E x^n = n! b^n$ for even $n$.

    Args:
        scale: $b > 0$.
    """

    scale: Scale = 1.0

    def line_moment(self, order):
        return factorial(order) * self.scale**order if order % 2 == 0 else 0

    def sample(self, key, dim, shape=()):
        import jax

        return float(self.scale) * jax.random.laplace(key, (*shape, dim))
