"""Initial weights of one head of linear attention."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Annotated, TypeAlias

from mesascope.specs import Component, Matrix, Positive, Real, Seed, kind, one_of, require_shape

if TYPE_CHECKING:
    from mesascope.models import LinearAttention


class Init(Component, family="init"):
    """Initial weights of one head of linear attention."""

    def check(self, dim: int) -> None:
        """Refuse weights of another dimension, in a validator; by default accept all."""

    @abc.abstractmethod
    def build(self, dim: int, rho: str, seed: int = 0) -> LinearAttention:
        """Return the model; `seed` is used if weights are drawn and the specification gives no seed."""


@kind("diagonal", a=0.1, b=0.1)
class DiagonalInit(Init):
    r"""$a I$ in the $(x_{i-1}, x_t)$ block of $W^{KQ}$, $b I$ in the $x_i$ block of $W^{PV}$, all else 0.

    Source: zheng2024, Assumption 3.1.

    Args:
        a: the diagonal of W^KQ.
        b: the diagonal of W^PV.
    """

    a: Real
    b: Real

    def build(self, dim: int, rho: str, seed: int = 0) -> LinearAttention:
        """Return the model."""
        from mesascope.models import LinearAttention

        return LinearAttention.diagonal(dim, float(self.a), float(self.b), rho)


@kind("gaussian", scale=0.1)
class GaussianInit(Init):
    """Independent N(0, scale²) entries.

    Args:
        scale: standard deviation > 0 of the entries.
        seed: seed of the draw; by default that of the run, 0 for flows.
    """

    scale: Positive
    seed: Seed | None = None

    def build(self, dim: int, rho: str, seed: int = 0) -> LinearAttention:
        """Return the model, drawn with `named_key(seed, "init")`; `seed` is used if the specification gives none."""
        from mesascope.core import named_key
        from mesascope.models import LinearAttention

        key = named_key(seed if self.seed is None else self.seed, "init")
        return LinearAttention.gaussian(dim, float(self.scale), key=key, normalizer=rho)


@kind("explicit", w_kq=((0, 0), (0.1, 0)), w_pv=((0.1, 0),))
class ExplicitInit(Init):
    """Given weights.

    Args:
        w_kq: W^KQ, shape (2d, 2d).
        w_pv: W^PV, shape (d, 2d).
    """

    w_kq: Matrix
    w_pv: Matrix

    def check(self, dim: int) -> None:
        """Refuse weights of another dimension."""
        check_shapes(self.w_kq, self.w_pv, dim, "init")

    def build(self, dim: int, rho: str, seed: int = 0) -> LinearAttention:
        """Return the model."""
        return explicit_model(self.w_kq, self.w_pv, rho)


InitField: TypeAlias = Annotated[Init, *one_of("init")]
"""The type of a field that holds initial weights."""


def check_shapes(w_kq: Matrix, w_pv: Matrix, dim: int, *path: str) -> None:
    """Refuse weights that are not (2d, 2d) and (d, 2d)."""
    require_shape(w_kq, (2 * dim, 2 * dim), f"(2·dim, 2·dim) for dim = {dim}", *path, "w_kq")
    require_shape(w_pv, (dim, 2 * dim), f"(dim, 2·dim) for dim = {dim}", *path, "w_pv")


def explicit_model(w_kq: Matrix, w_pv: Matrix, rho: str) -> LinearAttention:
    """Return linear attention with given weights."""
    import jax.numpy as jnp

    from mesascope.models import LinearAttention

    return LinearAttention(jnp.asarray(w_kq, float), jnp.asarray(w_pv, float), rho)
