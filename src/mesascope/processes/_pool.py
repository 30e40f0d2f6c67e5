"""What all pools of tasks are: a finite number of tasks of another process, drawn once or given, with equal probabilities."""

from __future__ import annotations

import abc
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ..core import named_key
from ..specs import SpecError, error_path, show
from ._draw_once import MAX_NUMBERS, draw_once
from ._samples import Samples
from ._samples_file import read_samples

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


class Pool(abc.ABC):
    """The part of a process that keeps its tasks; it stands before the base class of the process.

    A pool is drawn once from the prior of its process, with a seed of its own, or given as an array or a file. Whatever it
    draws later has one of its tasks.

    Attributes:
        given: the name of the field of a given array, whose first axis is that of the tasks.
        file_axes: the largest number of axes of an array in a file.
        max_compared: the most tasks with which `identify` compares models: it holds an answer of every task for every prompt.
    """

    kind: ClassVar[str]
    given: ClassVar[str]
    file_axes: ClassVar[int] = 2
    max_compared: ClassVar[int] = 4096

    process: Any
    tasks: int | None
    seed: int
    file: Path | None

    def _check_process(self, base: type[Any], examples: str) -> None:
        """Refuse a process without tasks, and another pool."""
        if not isinstance(self.process, base) or isinstance(self.process, Pool):
            what = f"must be a {base.__name__} and no pool, such as {examples}, got {show(self.process)}"
            raise SpecError(what, "process")

    def _take_source(self) -> str:
        """Read the file, if there is one, and return the name of the field that gives the tasks."""
        names = ("tasks", self.given, "file")
        sources = [name for name in names if getattr(self, name) is not None]
        if len(sources) != 1:
            what = f"needs one of {', '.join(names[:2])} and file, got {' and '.join(sources) or 'none'}"
            raise SpecError(what)
        if self.file is not None:
            with error_path("file"):
                object.__setattr__(
                    self, self.given, Samples(read_samples(self.file, self.file_axes, MAX_NUMBERS))
                )
        return sources[0]

    @property
    def size(self) -> int:
        """The number K of tasks."""
        given = getattr(self, self.given)
        return len(given.table) if given is not None else cast(int, self.tasks)

    @cached_property
    def table(self) -> Any:
        """The tasks as arrays with the first axis K, the same in single and double precision.

        Raises:
            ValueError: they need more than 2 GiB.
        """
        given = getattr(self, self.given)
        if given is not None:
            return given.table.reshape(self._given_shape)

        def draw() -> Any:
            return self.process.draw_tasks(named_key(self.seed, self.kind), self.size)

        return draw_once(draw, f"{self.size} tasks", "tasks")

    @property
    @abc.abstractmethod
    def _given_shape(self) -> tuple[int, ...]:
        """The shape of given tasks, with the first axis K."""

    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Any:
        """Draw tasks of the pool, independently and with equal probabilities."""
        import jax
        import jax.numpy as jnp

        place = jax.random.randint(key, (count,), 0, self.size)
        return jax.tree.map(lambda array: jnp.asarray(array, jnp.zeros(()).dtype)[place], self.table)

    def specification(self) -> dict[str, Any]:
        """Return the table that specifies the pool; tasks that came from a file are given by `file`."""
        fields: dict[str, Any] = super().specification()  # type: ignore[misc]
        return {name: value for name, value in fields.items() if name != self.given or self.file is None}

    def describe(self) -> str:
        """Return e.g. `TaskPool(K=16, LinearRegression(dim=5, z ~ Gaussian(scale=1)))`."""
        return f"{type(self).__name__}(K={self.size}, {self.process.describe()})"
