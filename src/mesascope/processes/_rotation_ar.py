"""Sequences of real tokens with planes that rotate by random angles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..core import integer_at_least, split_keys
from ..specs import Dim, SpecError, kind
from ._diagonal_unitary import circle_powers
from ._law import LawField
from ._process import SequenceProcess, require_dim

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray


@kind("rotation-ar", law="gaussian", dim=4)
class RotationAR(SequenceProcess):
    r"""Autoregressive sequences $x_{t+1} = W x_t$ with $W = \mathrm{blockdiag}(R(\theta_1), R(\theta_2), \dots)$.

    $R(\theta)$ is the rotation of the plane by $\theta$; the $\theta_j$ are independent and uniform on the
    circle, drawn for every sequence, independently of $x_1$: `DiagonalUnitary` with real tokens. The
    commuting real rotations of sander2024, in coordinates in which they are block diagonal.

    Args:
        law: the law of the coordinates that `start` selects.
        dim: the token dimension $d$, even.
        start: `"plane"`: the law gives all $d$ coordinates of $x_1$. `"axis"`: it gives the first coordinate
            of each of the $d/2$ planes, the second is 0; coordinates 2j and 2j + 1 of a sample then are the real and
            imaginary part of coordinate j of `DiagonalUnitary(law, d/2)` with the same key.
    """

    law: LawField
    dim: Dim
    start: Literal["plane", "axis"] = "plane"

    def __post_init__(self) -> None:
        if self.dim % 2:
            raise SpecError(f"must be even, since planes rotate, got {self.dim}", "dim")
        require_dim(self.law, self.dim if self.start == "plane" else self.dim // 2, "dim")

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Float[Array, "batch horizon dim"]:
        r"""Draw independent sequences of real tokens, shape `(batch, horizon, dim)`.

        The powers $W^{t-1}$ are computed by angle and do not drift with $t$.
        """
        import jax
        import jax.numpy as jnp

        horizon = integer_at_least("horizon", horizon, 1)
        batch = integer_at_least("batch", batch, 1)
        token_key, transition_key = split_keys(key)
        planes = self.dim // 2
        if self.start == "axis":
            first = self.law.sample(token_key, planes, (batch,))
        else:
            coordinates = self.law.sample(token_key, self.dim, (batch,))
            first = jax.lax.complex(coordinates[:, 0::2], coordinates[:, 1::2])
        rotated = first[:, None, :] * circle_powers(transition_key, horizon, batch, planes)
        return jnp.stack([rotated.real, rotated.imag], axis=-1).reshape(batch, horizon, self.dim)

    def describe(self) -> str:
        """Return e.g. `RotationAR(Gaussian(scale=1), dim=4)`."""
        start = "" if self.start == "plane" else f", start={self.start}"
        return f"RotationAR({self.law.describe()}, dim={self.dim}{start})"
