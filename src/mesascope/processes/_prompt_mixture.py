"""Prompts that are of one process with a given probability, and of another one otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..core import integer_at_least, split_keys
from ..specs import OpenUnit, SpecError, kind, one_of, show_number
from ._process import PromptProcess, Prompts

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

_ProcessField = Annotated[PromptProcess, *one_of("process")]


@kind(
    "prompt-mixture",
    process={"kind": "linear-regression", "dim": 2},
    other={"kind": "task-pool", "process": {"kind": "linear-regression", "dim": 2}, "tasks": 1},
)
class PromptMixture(PromptProcess):
    r"""Prompts of `process` with probability $p$, and of `other` with probability $1 - p$, drawn anew for every prompt.

    With new tasks in one and a `TaskPool` in the other, in-context and in-weights learning compete: a share $p$ of prompts has
    new tasks, the others have known ones (zhang2025's `--icl`). Its loss is the mean of the two losses, exact where both are.

    Args:
        process: a process of prompts.
        other: another one, with inputs of the same dimension.
        share: the probability $p$ of `process`, between 0 and 1.
    """

    process: _ProcessField
    other: _ProcessField
    share: OpenUnit = 0.5

    def __post_init__(self) -> None:
        if self.process.dim != self.other.dim:
            what = f"has inputs of dimension {self.other.dim}, process those of {self.process.dim}; make them equal"
            raise SpecError(what, "other")

    @property
    def dim(self) -> int:
        """The dimension of the inputs."""
        return int(self.process.dim)

    @property
    def parts(self) -> tuple[tuple[float, PromptProcess], ...]:
        """The two processes with their probabilities."""
        return (float(self.share), self.process), (1 - float(self.share), self.other)

    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw independent prompts: for each both processes are sampled, and one sample is chosen."""
        import jax
        import jax.numpy as jnp

        count, many = integer_at_least("examples", examples, 1), integer_at_least("batch", batch, 1)
        choice_key, *keys = split_keys(key, 3)
        first = jax.random.bernoulli(choice_key, float(self.share), (many,))
        one, other = (
            process.sample(own, count, many)
            for own, process in zip(keys, (self.process, self.other), strict=True)
        )
        return Prompts(
            jnp.where(first[:, None, None], one.x, other.x), jnp.where(first[:, None], one.y, other.y)
        )

    def describe(self) -> str:
        """Return e.g. `PromptMixture(0.5 LinearRegression(…), else TaskPool(…))`."""
        return f"PromptMixture({show_number(self.share)} {self.process.describe()}, else {self.other.describe()})"
