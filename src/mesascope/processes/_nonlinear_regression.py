"""Prompts whose labels are a random nonlinear function of the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ..core import integer_at_least, split_keys
from ..specs import Dim, kind
from ._gaussian import Gaussian
from ._law import LawField
from ._noise import NoiseField, add_noise, show_noise
from ._process import PromptProcess, Prompts, require_dim
from ._target import TargetField

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


@kind("nonlinear-regression", dim=5, target={"kind": "two-layer-relu", "hidden": 20})
class NonlinearRegression(PromptProcess):
    r"""Prompts with labels $y_i = f(x_i) + \sigma \xi_i$, $\xi_i \sim N(0, 1)$, and $f$ drawn for every prompt.

    The query and its target, the last pair, are drawn like the examples.

    Args:
        dim: the dimension $d \ge 1$ of the inputs.
        target: the distribution of $f$: `TwoLayerReLU(hidden)` or `RandomFeatures(features)`.
        law: the law of the inputs $x_i$, by default `Gaussian(1.0)`.
        noise: the standard deviation $\sigma \ge 0$, or `NoiseRange(largest)` to draw it for every prompt.
    """

    array_fields: ClassVar[tuple[str, ...]] = ("target",)

    dim: Dim
    target: TargetField
    law: LawField = Gaussian()
    noise: NoiseField = 0.0

    def __post_init__(self) -> None:
        require_dim(self.law, self.dim, "dim")

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
