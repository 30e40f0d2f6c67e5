"""Prompts from a finite training set."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from ..core import integer_at_least, named_key, split_keys
from ..specs import Count, Seed, SpecError, kind, one_of, show
from ._draw_once import draw_once
from ._process import PromptProcess, Prompts

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

_CACHED = 2  # sets, each of at most 2 GiB


@kind("training-set", process={"kind": "linear-regression", "dim": 5}, prompts=64)
class TrainingSet(PromptProcess):
    r"""A training set: $n$ prompts of another process, drawn once, each of which is drawn again with probability $1/n$.

    Training on it sees the same examples again and again, as with finite data; new prompts are those of `set.process`. The loss
    $\frac1n \sum_i L_i$ over the set is exact with the engine `Enumeration`, for every model.

    Args:
        process: what the prompts are drawn from: any process of prompts, such as `LinearRegression` or a `TaskPool` of it.
        prompts: the number $n \ge 1$ of prompts. A set is drawn for every number of examples that is asked for.
        seed: the seed of the set, ≥ 0.
    """

    process: Annotated[PromptProcess, *one_of("process")]
    prompts: Count
    seed: Seed = 0

    def __post_init__(self) -> None:
        given: object = self.process
        if not isinstance(given, PromptProcess) or isinstance(given, TrainingSet):
            what = f"must be a process of prompts, such as linear-regression, got {show(self.process)}"
            raise SpecError(what, "process")

    @property
    def dim(self) -> int:
        """The dimension of the inputs."""
        return int(self.process.dim)

    def table(self, examples: int) -> Prompts:
        """Return the set: x of shape (n, N + 1, d) and y of shape (n, N + 1), the same in single and double precision.

        Args:
            examples: examples before the query N ≥ 1.

        Raises:
            ValueError: `examples` is below 1; the set needs more than 2 GiB.
        """
        return _drawn(self, integer_at_least("examples", examples, 1))

    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw prompts of the set, independently and with equal probabilities."""
        import jax
        import jax.numpy as jnp

        (key,) = split_keys(key, 1)
        place = jax.random.randint(key, (integer_at_least("batch", batch, 1),), 0, self.prompts)
        return Prompts(*(jnp.asarray(array, jnp.zeros(()).dtype)[place] for array in self.table(examples)))

    def describe(self) -> str:
        """Return e.g. `TrainingSet(n=64, LinearRegression(dim=5, z ~ Gaussian(scale=1)))`."""
        return f"TrainingSet(n={self.prompts}, {self.process.describe()})"


@lru_cache(_CACHED)
def _drawn(given: TrainingSet, examples: int) -> Prompts:
    def draw() -> Prompts:
        return given.process.sample(named_key(given.seed, given.kind), examples, given.prompts)

    drawn: Prompts = draw_once(draw, f"{given.prompts} prompts", "prompts")
    return drawn
