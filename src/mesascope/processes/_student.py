"""Independent Student-t coordinates, with heavy tails."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ..core import exact, random_key
from ..specs import Number, Positive, Scale, kind, show_number
from ._law import MAX_ORDER, IdenticalLaw, MomentError

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("studentt", df=9)
class StudentT(IdenticalLaw):
    r"""Independent coordinates $x_{1j} = s\,\tau$, $\tau$ Student-t with $\nu$ degrees of freedom.

    $E\,x_{1j}^{2k} = s^{2k} \nu^k \prod_{i=1}^k \frac{2i-1}{\nu-2i}$ for $2k < \nu$; moments of order $n \ge
    \nu$ do not exist, so laws with $\nu \le 6$ have no population loss (zheng2024, Assumption 4.1, asks for
    orders 2, 4 and 6). `StudentT(1)` is the Cauchy law.

    Args:
        df: degrees of freedom $\nu > 0$; the population loss needs $\nu > 6$.
        scale: factor $s > 0$ (not the standard deviation, which is $s \sqrt{\nu/(\nu-2)}$).
    """

    df: Positive
    scale: Scale = 1.0

    even = True  # the density is symmetric

    def line_moment(self, order: int) -> Number:
        r"""Return $s^n \nu^{n/2} \prod_{i=1}^{n/2} (2i-1)/(\nu-2i)$ for even $n$, 0 for odd.

        Raises:
            MomentError: `order` ≥ df > 0.
        """
        if order and order >= self.df:
            raise MomentError(
                f"E x^{order} does not exist for {self.describe()}: only moments of order below df = "
                f"{show_number(self.df)} do; take df > {max(order, MAX_ORDER)}"
            )
        if order % 2:
            return 0
        df, half = exact(self.df), order // 2
        ratios = prod((2 * i - 1) / (df - 2 * i) for i in range(1, half + 1))
        return exact(self.scale) ** order * df**half * ratios

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`."""
        import jax

        return float(self.scale) * jax.random.t(
            random_key(key), float(self.df), (*shape, self.check_dim(dim))
        )
