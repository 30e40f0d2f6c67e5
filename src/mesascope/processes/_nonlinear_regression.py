"""Prompts whose labels are a random nonlinear function of the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import equinox as eqx

from ..core import integer_at_least, split_keys
from ..specs import Number
from ._gaussian import Gaussian
from ._law import Law
from ._noise import NoiseRange, add_noise, checked_noise, show_noise
from ._process import PromptProcess, Prompts, checked_law
from ._target import Target

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


class NonlinearRegression(PromptProcess):
    r"""Prompts with labels $y_i = f(x_i) + \sigma \xi_i$, $\xi_i \sim N(0, 1)$, and $f$ drawn for every prompt.

    The query and its target, the last pair, are drawn like the examples.

    Args:
        dim: the dimension $d \ge 1$ of the inputs.
        target: what $f$ is: `TwoLayerReLU(hidden)` or `RandomFeatures(features)`.
        law: the law of the inputs $x_i$, `Gaussian(1.0)` if left out.
        noise: the standard deviation $\sigma \ge 0$, or `NoiseRange(largest)` to draw it for every prompt.

    Raises:
        TypeError: a parameter of the wrong type.
        ValueError: `dim` is below 1 or not the dimension of the law, or `noise` is negative.
    """

    dim: int = eqx.field(static=True)
    target: Target
    law: Law = eqx.field(static=True)
    noise: Number | NoiseRange = eqx.field(static=True)

    def __init__(
        self, dim: int, target: Target, law: Law | None = None, noise: Number | str | NoiseRange = 0.0
    ):
        if not isinstance(target, Target):
            raise TypeError(
                f"NonlinearRegression target must be a target such as TwoLayerReLU(100), got {target!r}"
            )
        self.target = target
        self.law = Gaussian(1.0) if law is None else checked_law("NonlinearRegression", law)
        self.dim = self.law.check_dim(dim)
        self.noise = checked_noise("NonlinearRegression", noise)

    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw independent prompts: x of shape `(batch, examples + 1, dim)`, y of `(batch, examples + 1)`."""
        examples = integer_at_least("examples", examples, 1)
        batch = integer_at_least("batch", batch, 1)
        input_key, target_key, noise_key = split_keys(key, 3)
        x = self.law.sample(input_key, self.dim, (batch, examples + 1))
        return Prompts(x, add_noise(noise_key, self.target.values(target_key, x), self.noise))

    def describe(self) -> str:
        """Return e.g. `NonlinearRegression(dim=5, TwoLayerReLU(hidden=100), x ~ Gaussian(scale=1))`."""
        noise = f", {show_noise(self.noise)}" if self.noise else ""
        return (
            f"NonlinearRegression(dim={self.dim}, {self.target.describe()}, x ~ {self.law.describe()}{noise})"
        )
