"""The Bayesian prediction under a Gaussian prior."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from mesascope.core import concrete, finite_array

from ._arithmetic import einsum, in_precision_of
from ._checks import nonnegative_number
from ._fitting import Scalar, learner
from ._learner import Features, Learner
from ._moments import NormalEquations
from ._ridge import Ridge
from ._spectrum import Spectrum


@learner(
    "posterior-mean",
    Scalar("noise_variance", 1e-3, 1e3, power=1),
    fixed=(("prior", 1.0),),
    of_process_if_any=(("prior", "task_covariance"),),
    family="least-squares",
    flexibility=130,
    example={"prior": 1.0, "noise_variance": 0.3},
)
class PosteriorMean(Learner):
    r"""The posterior mean of $W q$ for outputs $y_i = W x_i + \xi_i$.

    The rows of $W$ are independent $N(0, \Sigma)$ and the entries of $\xi_i$ are independent $N(0, \sigma^2)$:

    $$\hat y = C (\Sigma S + \sigma^2 I)^{-1} \Sigma q.$$

    With $\Sigma = L L^*$ this is ridge regression with $r = \sigma^2$ on the inputs $L^* x$, which is how it is computed;
    $\Sigma = \tau^2 I$ is ridge regression with $r = \sigma^2/\tau^2$. Without noise, $W$ interpolates the examples with
    minimum $\mathrm{tr} W \Sigma^{-1} W^*$. It is the prediction with the smallest mean squared error. `identify`
    takes $\Sigma$ from the process if its weights are $N(0, \Sigma)$, and else the identity.

    Args:
        prior: $\Sigma$, a positive definite matrix (p, p) or a number > 0 that multiplies the identity.
        noise_variance: $\sigma^2 \ge 0$.

    Raises:
        TypeError, ValueError: `prior` is neither, or does not fit the data; `noise_variance` is not a finite number ≥ 0.
    """

    reads: ClassVar[type[Features]] = NormalEquations

    prior: Array
    noise_variance: Array

    def __init__(self, prior: Any, noise_variance: Any):
        self.prior = checked_prior(prior)
        self.noise_variance = nonnegative_number("noise_variance", noise_variance)

    @property
    def rotation_invariant(self) -> bool:
        """Only if the prior is a multiple of the identity."""
        return self.prior.ndim == 0

    def respond(self, features: NormalEquations) -> Array:
        """Return the prediction, shape (…, m)."""
        return Ridge(self.noise_variance).respond(Spectrum.of_equations(in_prior_units(features, self.prior)))


def in_prior_units(features: NormalEquations, prior: Array) -> NormalEquations:
    r"""Return the normal equations and the query for inputs $L^* x$, $\Sigma = L L^*$, in which the prior is $N(0, I)$.

    Raises:
        ValueError: the prior does not fit the inputs.
    """
    p = features.query.shape[-1]
    if prior.ndim and prior.shape[-1] != p:
        raise ValueError(f"prior of shape {prior.shape} does not fit inputs of {p} entries")
    prior = in_precision_of(features.query, prior)
    root = jnp.linalg.cholesky(prior) if prior.ndim else jnp.sqrt(prior) * jnp.eye(p, dtype=prior.dtype)
    return NormalEquations(
        features.n,
        einsum("ji,...jk,kl->...il", root.conj(), features.gram, root),
        einsum("...mi,ij->...mj", features.cross, root),
        einsum("ji,...j->...i", root.conj(), features.query),
    )


def checked_prior(value: Any) -> Array:
    """Return a positive definite matrix, or a number > 0, as an array."""
    prior = finite_array("prior", value)
    if prior.ndim not in (0, 2) or (prior.ndim == 2 and prior.shape[0] != prior.shape[1]):
        raise ValueError(f"prior must be a number or a square matrix, got shape {prior.shape}")
    if concrete(prior):
        matrix = np.atleast_2d(np.asarray(prior))
        if not np.allclose(matrix, matrix.conj().T, rtol=1e-9, atol=0):
            raise ValueError("prior must be symmetric (Hermitian); write (A + A.conj().T)/2")
        if np.linalg.eigvalsh(matrix)[0] <= 0:
            raise ValueError("prior must be positive definite; add a small multiple of the identity")
    return prior
