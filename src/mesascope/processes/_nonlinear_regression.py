"""Prompts whose labels are a random nonlinear function of the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..core import split_keys
from ..specs import Dim, kind
from ._gaussian import Gaussian
from ._law import LawField
from ._noise import NoiseField, add_noise, show_noise
from ._process import Prompts, require_dim
from ._target import TargetField
from ._task_process import TaskProcess

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


@kind("nonlinear-regression", dim=5, target={"kind": "two-layer-relu", "hidden": 20})
class NonlinearRegression(TaskProcess):
    r"""Prompts with labels $y_i = f(x_i) + \sigma \xi_i$, $\xi_i \sim N(0, 1)$, and $f$ drawn for every prompt.

    The query and its target, the last pair, are drawn like the examples.

    Args:
        dim: the dimension $d \ge 1$ of the inputs.
        target: the distribution of $f$: `TwoLayerReLU(hidden)`, `RandomFeatures(features)` or `SineWaves()`.
        law: the law of the inputs $x_i$, by default `Gaussian(1.0)`.
        noise: the standard deviation $\sigma \ge 0$, or `NoiseRange(largest)` or `NoiseChoice(levels)` to draw it
            for every prompt.
    """

    array_fields: ClassVar[tuple[str, ...]] = ("target",)

    dim: Dim
    target: TargetField
    law: LawField = Gaussian()
    noise: NoiseField = 0.0

    def __post_init__(self) -> None:
        require_dim(self.law, self.dim, "dim")

    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Any:
        """Draw independent functions, as the target draws them."""
        return self.target.draw(key, self.dim, count)

    def prompts_of(self, key: PRNGKeyArray, tasks: Any, examples: int) -> Prompts:
        """Draw one prompt for each function."""
        import jax

        input_key, _, noise_key = split_keys(key, 3)
        count = len(jax.tree.leaves(tasks)[0])
        x = self.law.sample(input_key, self.dim, (count, examples + 1))
        return Prompts(x, add_noise(noise_key, self.target.values(tasks, x), self.noise))

    def describe(self) -> str:
        """Return e.g. `NonlinearRegression(dim=5, TwoLayerReLU(hidden=100), x ~ Gaussian(scale=1))`."""
        noise = f", {show_noise(self.noise)}" if self.noise else ""
        return (
            f"NonlinearRegression(dim={self.dim}, {self.target.describe()}, x ~ {self.law.describe()}{noise})"
        )
