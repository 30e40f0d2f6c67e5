"""Linear dynamical systems with a given spectrum, observed fully or in part."""

from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..core import Number, finite_nonnegative, finite_number, integer_at_least, show_number
from ._einsum import einsum
from ._law import Law
from ._normal import standard_normal
from ._orthogonal import haar_orthogonal
from ._process import SequenceProcess, checked_law
from ._recursion import unroll

Interval: TypeAlias = tuple[Number, Number]


class LinearAR(SequenceProcess):
    r"""Sequences of hidden states $h_{t+1} = W h_t + \sigma \xi_t$, seen as tokens $x_t = C h_t$.

    $W = Q\,\mathrm{diag}(\lambda_1, \dots, \lambda_n)\,Q^\top$ with a Haar matrix $Q \in O(n)$ and
    $\xi_t \sim N(0, I)$; $Q$ and those $\lambda_j$ that are random are drawn afresh for every sequence,
    independently of $h_1$. Tokens are the states themselves, $C = I$, or random mixtures of them: $C \in
    \mathbb R^{k \times n}$ with independent entries from $N(0, 1/n)$ for every sequence. Contracting and
    partially observed systems as in vonoswald2024.

    Args:
        law: the law of the initial state $h_1$.
        state_dim: the dimension $n \ge 1$ of the states.
        spectrum: $n$ entries, each an eigenvalue $\lambda_j$ or a pair (low, high): $\lambda_j$ uniform on
            [low, high].
        noise: the standard deviation $\sigma \ge 0$.
        observed: `None` for tokens that are the states, or the token dimension $k \ge 1$.
        unstable: must be true if some $|\lambda_j|$ may exceed 1, so that states grow without bound.

    Attributes:
        dim: the token dimension, $n$ or $k$.
        spectrum: the $n$ pairs (low, high), equal for a given eigenvalue.

    Raises:
        TypeError: a parameter of the wrong type.
        ValueError: `state_dim` is below 1 or not the dimension of the law, a number of eigenvalues other than
            `state_dim`, a pair with low > high, an eigenvalue beyond ±1 without `unstable`, a negative
            `noise`, or `observed` below 1.
    """

    law: Law = eqx.field(static=True)
    state_dim: int = eqx.field(static=True)
    spectrum: tuple[Interval, ...] = eqx.field(static=True)
    noise: Number = eqx.field(static=True)
    observed: int | None = eqx.field(static=True)
    unstable: bool = eqx.field(static=True)
    dim: int = eqx.field(static=True, repr=False)  # follows from the others

    def __init__(
        self,
        law: Law,
        state_dim: int,
        spectrum: Sequence[Number | str | Sequence[Number | str]],
        noise: Number | str = 0.0,
        observed: int | None = None,
        unstable: bool = False,
    ):
        self.law = checked_law("LinearAR", law)
        self.state_dim = law.check_dim(state_dim)
        self.spectrum = _checked_spectrum(spectrum, self.state_dim)
        self.noise = finite_nonnegative("LinearAR noise", noise)
        self.observed = None if observed is None else integer_at_least("LinearAR observed", observed, 1)
        self.unstable = bool(unstable)
        self.dim = self.state_dim if self.observed is None else self.observed
        if self.spectral_radius > 1 and not self.unstable:
            raise ValueError(
                f"LinearAR spectrum reaches |λ| = {show_number(self.spectral_radius)} > 1, so states grow without bound; "
                "shrink it to [−1, 1] or pass unstable=True"
            )

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
        """Return the process whose eigenvalues all are independent and uniform on [low, high] ⊂ [−1, 1]."""
        return cls(law, state_dim, ((low, high),) * integer_at_least("dim", state_dim, 1), noise, observed)

    @property
    def spectral_radius(self) -> float:
        """The largest |λ_j| that may occur."""
        return max(abs(float(bound)) for interval in self.spectrum for bound in interval)

    def sample(self, key: PRNGKeyArray, horizon: int, batch: int) -> Float[Array, "batch horizon dim"]:
        """Draw independent sequences of real tokens, shape `(batch, horizon, dim)`."""
        horizon = integer_at_least("horizon", horizon, 1)
        batch = integer_at_least("batch", batch, 1)
        keys = jax.random.split(key, 5)
        first = self.law.sample(keys[0], self.state_dim, (batch,))
        frame = haar_orthogonal(keys[1], self.state_dim, batch)
        bounds = jnp.asarray([[float(bound) for bound in interval] for interval in self.spectrum])
        shares = jax.random.uniform(keys[2], (batch, self.state_dim))
        eigenvalues = bounds[:, 0] + shares * (bounds[:, 1] - bounds[:, 0])
        # In the eigenbasis W is diagonal, and isotropic noise is isotropic noise there too.
        modes = unroll(
            lambda z: eigenvalues * z,
            einsum("bij,bi->bj", frame, first),
            horizon,
            float(self.noise),
            keys[3],
        )
        if self.observed is not None:
            mixture = standard_normal(keys[4], (batch, self.observed, self.state_dim))
            frame = einsum("bki,bij->bkj", mixture, frame) / self.state_dim**0.5
        return einsum("bkj,btj->btk", frame, modes)

    def describe(self) -> str:
        """Return e.g. `LinearAR(Gaussian(scale=1), state_dim=5, |λ| ≤ 0.9, noise=0.1)`."""
        noise = f", noise={show_number(self.noise)}" if self.noise else ""
        observed = "" if self.observed is None else f", observed={self.observed}"
        size = f"state_dim={self.state_dim}, |λ| ≤ {show_number(self.spectral_radius)}"
        return f"LinearAR({self.law.describe()}, {size}{noise}{observed})"


def _checked_spectrum(spectrum: Any, state_dim: int) -> tuple[Interval, ...]:
    if isinstance(spectrum, str) or not isinstance(spectrum, Iterable):
        raise TypeError(f"LinearAR spectrum must list eigenvalues, got {spectrum!r}")
    entries = tuple(spectrum)
    if len(entries) != state_dim:
        raise ValueError(
            f"LinearAR spectrum must list one eigenvalue for each of the {state_dim} state dimensions, "
            f"got {len(entries)}; LinearAR.contracting draws them all from one interval"
        )
    return tuple(_interval(f"LinearAR spectrum[{j}]", entry) for j, entry in enumerate(entries))


def _interval(name: str, entry: object) -> Interval:
    if not isinstance(entry, tuple | list):
        value = finite_number(name, entry)
        return (value, value)
    if len(entry) != 2:
        raise ValueError(f"{name} must be a number or a pair (low, high), got {len(entry)} numbers")
    low, high = (finite_number(name, bound) for bound in entry)
    if low > high:
        raise ValueError(f"{name} has low = {low} above high = {high}: swap them")
    return (low, high)
