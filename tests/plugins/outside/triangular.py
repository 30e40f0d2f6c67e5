"""The triangular law."""

from fractions import Fraction

import mesascope as ms
from mesascope.processes import IdenticalLaw
from mesascope.specs import Scale


@ms.kind("triangular")
class Triangular(IdenticalLaw):
    r"""Independent coordinates with density $(1 - |x|/h)/h$ on $[-h, h]$: $E x^n = 2 h^n/((n+1)(n+2))$ for even $n$.

    Args:
        scale: $h > 0$.
    """

    scale: Scale = 1.0

    def line_moment(self, order):
        share = Fraction(2, (order + 1) * (order + 2))
        return share * self.scale**order if order % 2 == 0 else 0

    def sample(self, key, dim, shape=()):
        import jax

        first, second = jax.random.uniform(key, (2, *shape, dim))
        return float(self.scale) * (first - second)
