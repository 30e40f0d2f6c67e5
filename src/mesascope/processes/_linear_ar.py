"""Linear dynamical systems with a given spectrum, fully or partially observed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import PlainSerializer, PlainValidator, StrictBool

from ..core import integer_at_least, split_keys
from ..specs import Dim, Nonnegative, Number, SpecError, kind, show_number
from ._law import Law, LawField
from ._process import SequenceProcess, require_dim
from ._spectrum import (
    Spectrum,
    checked_spectrum,
    given_spectrum,
    imaginary_parts,
    largest_size,
    partners,
    real_bounds,
    written_spectrum,
)

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

_ROUNDING = 4 * float(np.finfo(float).eps)  # |λ| of a number on the unit circle may exceed 1 by this much


@kind("linear-ar", law="gaussian", state_dim=3, spectrum={"low": 0.5, "high": 0.9})
class LinearAR(SequenceProcess):
    r"""Sequences of hidden states $h_{t+1} = W h_t + \sigma \xi_t$, observed as tokens $x_t = C h_t$.

    $W = Q B Q^\top$ with a Haar matrix $Q \in O(n)$ and $\xi_t \sim N(0, I)$. $B$ holds the real eigenvalues on
    its diagonal and for every conjugate pair $a \pm ib$ the block $\bigl(\begin{smallmatrix} a & -b \\ b & a
    \end{smallmatrix}\bigr)$, which rotates a plane and scales it by $|\lambda|$: $W$ is normal ($W W^\top = W^\top
    W$), and symmetric if all eigenvalues are real. With noise and all $|\lambda_j| < 1$ the covariance of the states
    tends to $\sigma^2 (I - W W^\top)^{-1}$, whose eigenvalues are $\sigma^2 / (1 - |\lambda_j|^2)$. $Q$ and the
    random $\lambda_j$ are drawn for every sequence, independently of $h_1$. Tokens are the states,
    $C = I$, or random mixtures of them: $C \in \mathbb R^{k \times n}$ with independent entries from
    $N(0, 1/n)$ for every sequence. Contracting and partially observed systems as in vonoswald2024.

    Args:
        law: the law of the initial state $h_1$.
        state_dim: the dimension $n \ge 1$ of the states.
        spectrum: $n$ entries, each a real eigenvalue $\lambda_j$; a pair (low, high): $\lambda_j$ uniform on
            [low, high]; or a complex eigenvalue, in specifications a table with re and im, whose conjugate is another
            entry. Or a table with low and high for all of them.
        noise: the standard deviation $\sigma \ge 0$.
        observed: `None` if tokens are the states, or the token dimension $k \ge 1$.
        unstable: must be true if some $|\lambda_j|$ may exceed 1, so that states grow without bound.

    Attributes:
        dim: the token dimension, $n$ or $k$.
        spectrum: $n$ entries: pairs (low, high), equal for a given real eigenvalue, and complex numbers.
    """

    law: LawField
    state_dim: Dim
    spectrum: Annotated[Spectrum, PlainValidator(given_spectrum), PlainSerializer(written_spectrum)]
    noise: Nonnegative = 0.0
    observed: Dim | None = None
    unstable: StrictBool = False

    def __post_init__(self) -> None:
        require_dim(self.law, self.state_dim, "state_dim")
        object.__setattr__(self, "spectrum", checked_spectrum(self.spectrum, self.state_dim))
        if self.spectral_radius > 1 + _ROUNDING and not self.unstable:
            raise SpecError(
                f"reaches |λ| = {show_number(self.spectral_radius)} > 1, so states grow without bound; shrink it to |λ| ≤ 1 or "
                "set unstable to true",
                "spectrum",
            )

    @property
    def dim(self) -> int:
        """The token dimension, n or k."""
        return self.observed or self.state_dim

    @classmethod
    def contracting(
        cls,
        law: Law,
        state_dim: int,
        low: Number | str,
        high: Number | str,
        noise: Number | str = 0.0,
        observed: int | None = None,
    ) -> Self:
        """Return the process with independent eigenvalues, uniform on [low, high] ⊂ [−1, 1]."""
        return cls(law, state_dim, ((low, high),) * integer_at_least("dim", state_dim, 1), noise, observed)

    @property
    def spectral_radius(self) -> float:
        """The largest possible |λ_j|."""
        return largest_size(self.spectrum)

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Float[Array, "batch horizon dim"]:
        """Draw independent sequences of real tokens, shape `(batch, horizon, dim)`."""
        import jax
        import jax.numpy as jnp

        from ._draws import einsum, haar_orthogonal, standard_normal, unroll

        horizon = integer_at_least("horizon", horizon, 1)
        batch = integer_at_least("batch", batch, 1)
        keys = split_keys(key, 5)
        first = self.law.sample(keys[0], self.state_dim, (batch,))
        frame = haar_orthogonal(keys[1], self.state_dim, batch)
        bounds = jnp.asarray(real_bounds(self.spectrum))
        shares = jax.random.uniform(keys[2], (batch, self.state_dim))
        eigenvalues = bounds[:, 0] + shares * (bounds[:, 1] - bounds[:, 0])
        # In the basis Q the noise is isotropic too, and W is B.
        modes = unroll(
            partial(self._advance, eigenvalues),
            einsum("bij,bi->bj", frame, first),
            horizon,
            float(self.noise),
            keys[3],
        )
        if self.observed is not None:
            mixture = standard_normal(keys[4], (batch, self.observed, self.state_dim))
            frame = einsum("bki,bij->bkj", mixture, frame) / self.state_dim**0.5
        return einsum("bkj,btj->btk", frame, modes)

    def _advance(
        self, eigenvalues: Float[Array, "batch n"], modes: Float[Array, "batch n"]
    ) -> Float[Array, "batch n"]:
        """Return B z, given the real parts of the eigenvalues."""
        import jax.numpy as jnp

        scaled = eigenvalues * modes
        imaginary = imaginary_parts(self.spectrum)
        if not imaginary.any():
            return scaled
        return scaled - jnp.asarray(imaginary) * modes[:, np.array(partners(self.spectrum))]

    def describe(self) -> str:
        """Return e.g. `LinearAR(Gaussian(scale=1), state_dim=5, |λ| ≤ 0.9, noise=0.1)`."""
        noise = f", noise={show_number(self.noise)}" if self.noise else ""
        observed = "" if self.observed is None else f", observed={self.observed}"
        size = f"state_dim={self.state_dim}, |λ| ≤ {show_number(self.spectral_radius)}"
        return f"LinearAR({self.law.describe()}, {size}{noise}{observed})"
