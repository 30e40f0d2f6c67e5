"""Independent coordinates with a distribution of scipy.stats."""

from __future__ import annotations

import math
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..core import random_key
from ..specs import Location, Number, Numbers, Scale, SpecError, kind, show_number, unknown
from ._law import MAX_ORDER, IdenticalLaw, MomentError

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

_ROUNDING = 1e-9  # an odd moment below this share of its scale is one of a symmetric distribution
_INSIDE = 2.0**-53  # the least distance of a uniform number from 0 and 1, where quantiles are infinite


@kind("scipy", distribution="laplace_asymmetric", shapes=[2])
class ScipyLaw(IdenticalLaw):
    r"""Independent coordinates with a distribution of `scipy.stats`; `ms.from_scipy` makes it from a frozen one.

    Moments are those that SciPy computes, by formulas or by integration to about ten digits; quadrature is the Gauss rule
    with these moments; samples are quantiles of uniform numbers.

    Args:
        distribution: its name in `scipy.stats`, such as `gamma` or `laplace_asymmetric`.
        shapes: its shape parameters, in SciPy's order; left out if it has none.
        loc: the location.
        scale: the scale $> 0$.
    """

    distribution: str
    shapes: Numbers | None = None
    loc: Location = 0
    scale: Scale = 1.0

    def __post_init__(self) -> None:
        if math.isnan(float(self._frozen.cdf(0.0))):
            raise SpecError(
                f"are outside the range of {self.distribution}; its parameters are "
                f"{self._frozen.dist.shapes or 'loc and scale only'}",
                "shapes",
            )

    @cached_property
    def _frozen(self) -> Any:
        from scipy import stats

        known = [
            name
            for name, one in vars(stats).items()
            if isinstance(one, stats.rv_continuous | stats.rv_discrete)
        ]
        if self.distribution not in known:
            raise SpecError(unknown("distribution of scipy.stats", self.distribution, known), "distribution")
        family = getattr(stats, self.distribution)
        count = family.numargs
        if len(self._shapes) != count:
            raise SpecError(
                f"must be the {count} parameters {family.shapes or ''} of {self.distribution}, got {len(self._shapes)}",
                "shapes",
            )
        parameters = {"loc": float(self.loc)}
        if isinstance(family, stats.rv_continuous):
            parameters["scale"] = float(self.scale)
        elif float(self.scale) != 1:
            raise SpecError(f"must be 1 for {self.distribution}, whose values are integers", "scale")
        return family(*map(float, self._shapes), **parameters)

    @property
    def _shapes(self) -> tuple[Number, ...]:
        return self.shapes or ()

    def line_moment(self, order: int) -> Number:
        """Return what SciPy computes; 0 for an odd moment that is rounding.

        Raises:
            MomentError: the moment does not exist.
        """
        if order == 0:
            return 1
        moment = self._moment(order)
        if not math.isfinite(moment):
            raise MomentError(
                f"E x^{order} does not exist for {self.describe()}; the population loss needs moments to order {MAX_ORDER}"
            )
        if order % 2 == 0:
            return moment
        higher = self._moment(order + 1)
        if math.isfinite(higher) and abs(moment) <= _ROUNDING * higher ** (order / (order + 1)):
            return 0
        return moment

    def _moment(self, order: int) -> float:
        """What SciPy computes; NaN where its integral does not converge."""
        from scipy.integrate import IntegrationWarning

        with warnings.catch_warnings():
            warnings.simplefilter("error", IntegrationWarning)
            try:
                return float(self._frozen.moment(order))
            except IntegrationWarning:
                return math.nan

    @property
    def line_zero_probability(self) -> Number:
        """P(x = 0): not 0 for distributions of integers only."""
        return float(self._frozen.pmf(0)) if hasattr(self._frozen.dist, "pmf") else 0

    def sample(self, key: PRNGKeyArray, dim: int, shape: tuple[int, ...] = ()) -> Float[Array, "*shape dim"]:
        """Draw tokens of shape `shape + (dim,)`; quantiles are computed by SciPy, on the host."""
        import jax
        import jax.numpy as jnp
        import numpy as np

        uniform = jax.random.uniform(random_key(key), (*shape, self.check_dim(dim)), minval=_INSIDE)
        wanted = jax.ShapeDtypeStruct(uniform.shape, jnp.result_type(float))

        def quantiles(levels: Any) -> Any:
            levels = np.clip(np.asarray(levels, np.float64), _INSIDE, 1 - _INSIDE)
            return np.asarray(self._frozen.ppf(levels), wanted.dtype)

        return jax.pure_callback(quantiles, wanted, uniform, vmap_method="expand_dims")

    def describe(self) -> str:
        """Return e.g. `ScipyLaw(laplace_asymmetric(2), loc=0, scale=1)`."""
        shapes = ", ".join(show_number(shape) for shape in self._shapes)
        return f"ScipyLaw({self.distribution}({shapes}), loc={show_number(self.loc)}, scale={show_number(self.scale)})"


def from_scipy(frozen: Any) -> ScipyLaw:
    """Return the law of independent coordinates with a frozen distribution, such as `scipy.stats.gamma(3, scale=0.5)`.

    Args:
        frozen: a distribution of `scipy.stats` with all its parameters.

    Raises:
        TypeError: it is not a frozen univariate distribution of `scipy.stats`, or its parameters are not numbers.
        SpecError: SciPy does not know it by its name.
    """
    family: Any = getattr(frozen, "dist", None)
    given = getattr(frozen, "args", None)
    if not hasattr(family, "numargs") or given is None:
        raise TypeError(
            f"must be a frozen distribution such as scipy.stats.gamma(3), got {type(frozen).__name__}"
        )
    names = [*(family.shapes.split(", ") if family.shapes else ()), "loc", "scale"]
    values = dict(zip(names, given, strict=False)) | frozen.kwds
    shapes = tuple(values.pop(name) for name in names[:-2])
    return ScipyLaw(family.name, shapes or None, **values)
