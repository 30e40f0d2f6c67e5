"""Prompts whose labels are a linear function of the inputs that changes from example to example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import integer_at_least, split_keys
from ..specs import Dim, Nonnegative, kind, show_number
from ._linear_regression import LinearRegression
from ._process import PromptProcess, Prompts
from ._random_diagonal import CovarianceField, RandomDiagonal

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


@kind("drifting-regression", dim=5)
class DriftingRegression(PromptProcess):
    r"""Prompts with labels $y_i = w_i^\top x_i + \sigma \xi_i$, $\xi_i \sim N(0, 1)$, whose weights are a random walk.

    $$w_1 \sim N(0, I), \qquad w_{i+1} = w_i + \delta\, \zeta_i, \qquad \zeta_i \sim N(0, I), \qquad x_i \sim N(0, \Sigma).$$

    The query and its target, the last pair, are drawn like the examples: its weights are $w_{N+1}$. The best predictor is
    the Kalman filter; algorithms that give all examples the same weight do worse with every example.

    Args:
        dim: the dimension $d \ge 1$ of the inputs.
        drift: the standard deviation $\delta \ge 0$ of the steps; 0 is linear regression.
        covariance: covariance $\Sigma$ of the inputs: `None` for I, its rows, or a `RandomDiagonal` for every prompt.
        noise: the standard deviation $\sigma \ge 0$ of the noise of labels.
    """

    dim: Dim
    drift: Nonnegative = 0.1
    covariance: CovarianceField = None
    noise: Nonnegative = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariance", self._still.covariance)  # checked

    @property
    def _still(self) -> LinearRegression:
        """The process without drift and noise."""
        return LinearRegression(self.dim, covariance=self.covariance)

    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw independent prompts, each with weights of its own."""
        import jax.numpy as jnp

        from ._draws import einsum, standard_normal

        count, many = integer_at_least("examples", examples, 1), integer_at_least("batch", batch, 1)
        still_key, steps_key, noise_key = split_keys(key, 3)
        weights_key, prompts_key = split_keys(still_key)
        first = self._still.draw_tasks(weights_key, many)
        x = self._still.prompts_of(prompts_key, first, count).x
        steps = float(self.drift) * standard_normal(steps_key, (many, count, self.dim))
        weights = jnp.cumsum(jnp.concatenate([first[:, None], steps], 1), 1)
        noise = float(self.noise) * standard_normal(noise_key, (many, count + 1))
        return Prompts(x, einsum("bnj,bnj->bn", x, weights) + noise)

    def describe(self) -> str:
        """Return e.g. `DriftingRegression(dim=5, drift=0.1, noise=0.1)`."""
        covariance = ", Σ given" if isinstance(self.covariance, tuple) else ""
        if isinstance(self.covariance, RandomDiagonal):
            covariance = f", Σ = {self.covariance.describe()}"
        noise = f", noise={show_number(self.noise)}" if self.noise else ""
        return f"DriftingRegression(dim={self.dim}, drift={show_number(self.drift)}{covariance}{noise})"
