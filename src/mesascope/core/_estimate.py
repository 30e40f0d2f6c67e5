"""A number with its standard error."""

from functools import partial
from html import escape
from statistics import NormalDist
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ._arrays import concrete, numbers


class Estimate(eqx.Module):
    r"""A computed value $\hat v$ and its standard error $s$.

    Exact engines report `standard_error = 0`; sampling engines report the standard deviation of $\hat v$ over
    repetitions of the sampling, so that $\hat v \pm k s$ means the same thing whichever engine was used.

    Attributes:
        value: the estimate; a scalar, or an array of any shape `(...)`.
        standard_error: entries ≥ 0, of the shape of `value` or one number for all entries.

    Raises:
        TypeError: for something that is not an array of numbers.
    """

    value: Float[Array, "..."] = eqx.field(converter=partial(numbers, "value"))
    standard_error: Float[Array, "..."] = eqx.field(converter=partial(numbers, "standard_error"), default=0.0)

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        if not concrete(self.value) or not concrete(self.standard_error):
            return str(eqx.tree_pformat(self))
        value, error = np.asarray(self.value), np.asarray(self.standard_error)
        if value.ndim or error.ndim:
            return f"Estimate({np.array2string(value)} ± {np.array2string(error, precision=3)})"
        return (
            f"Estimate({float(value):.10g}, exact)"
            if error == 0
            else f"Estimate({float(value):.6g} ± {float(error):.3g})"
        )

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"

    def interval(self, level: float = 0.95) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        r"""Return the two-sided normal confidence interval $\hat v \pm z\,s$, $z = \Phi^{-1}((1+p)/2)$.

        Args:
            level: the confidence level $p$, strictly between 0 and 1.

        Returns:
            The lower and the upper end, of the shape of `value`; both equal `value` for an exact result.

        Raises:
            ValueError: `level` is not strictly between 0 and 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie strictly between 0 and 1, got {level}; write e.g. level=0.95")
        half_width = NormalDist().inv_cdf((1 + level) / 2) * self.standard_error
        return self.value - half_width, self.value + half_width
