"""Sequences of real tokens whose planes turn at random angular speeds."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import integer_at_least, split_keys
from ._diagonal_unitary import circle_powers
from ._law import Law
from ._process import SequenceProcess, checked_law

_STARTS = ("plane", "axis")


class RotationAR(SequenceProcess):
    r"""Autoregressive sequences $x_{t+1} = W x_t$ with $W = \mathrm{blockdiag}(R(\theta_1), R(\theta_2), \dots)$.

    $R(\theta)$ is the rotation of the plane by $\theta$; the $\theta_j$ are independent and uniform on the
    circle, drawn afresh for every sequence, independently of $x_1$: `DiagonalUnitary` with real tokens. The
    commuting real rotations of sander2024, in the coordinates that make them block diagonal.

    Args:
        law: the law of what `start` says.
        dim: the token dimension $d$, even.
        start: `"plane"`: the law gives all $d$ coordinates of $x_1$. `"axis"`: it gives the first coordinate
            of each of the $d/2$ planes, the second is 0; a sample then holds the real and imaginary parts of
            `DiagonalUnitary(law, d/2)` with the same key, those of coordinate j in 2j and 2j + 1.

    Raises:
        TypeError: `law` is not a law, or `dim` is not an integer.
        ValueError: `dim` is below 2 or odd, $d$ or $d/2$ is not the dimension of the law, or `start` is
            neither `"plane"` nor `"axis"`.
    """

    law: Law = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    start: str = eqx.field(static=True)

    def __init__(self, law: Law, dim: int, start: str = "plane"):
        self.law = checked_law("RotationAR", law)
        self.dim = integer_at_least("dim", dim, 2)
        if self.dim % 2:
            raise ValueError(f"RotationAR turns planes, so dim must be even, got {self.dim}")
        if start not in _STARTS:
            raise ValueError(f"RotationAR start must be 'plane' or 'axis', got {start!r}")
        self.start = start
        law.check_dim(self.dim if start == "plane" else self.dim // 2)

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Float[Array, "batch horizon dim"]:
        r"""Draw independent sequences of real tokens, shape `(batch, horizon, dim)`.

        The powers $W^{t-1}$ are computed by angle and do not drift with $t$.
        """
        horizon = integer_at_least("horizon", horizon, 1)
        batch = integer_at_least("batch", batch, 1)
        token_key, transition_key = split_keys(key)
        planes = self.dim // 2
        if self.start == "axis":
            first = self.law.sample(token_key, planes, (batch,))
        else:
            coordinates = self.law.sample(token_key, self.dim, (batch,))
            first = jax.lax.complex(coordinates[:, 0::2], coordinates[:, 1::2])
        turned = first[:, None, :] * circle_powers(transition_key, horizon, batch, planes)
        return jnp.stack([turned.real, turned.imag], axis=-1).reshape(batch, horizon, self.dim)

    def describe(self) -> str:
        """Return e.g. `RotationAR(Gaussian(scale=1), dim=4)`."""
        start = "" if self.start == "plane" else f", start={self.start}"
        return f"RotationAR({self.law.describe()}, dim={self.dim}{start})"
