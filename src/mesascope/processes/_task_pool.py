"""Prompts whose tasks are those of a finite pool."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from ..core import named_key
from ..specs import Count, Seed, SpecError, error_path, kind, one_of, show
from ._empirical import FileField, MaybeSamples
from ._linear_regression import LinearRegression
from ._process import Prompts
from ._samples import Samples
from ._samples_file import read_samples
from ._task_moments import pool_moments
from ._task_process import TaskProcess

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray

_MAX_BYTES = 2**31


@kind("task-pool", process={"kind": "linear-regression", "dim": 5}, tasks=16)
class TaskPool(TaskProcess):
    r"""Prompts of another process whose tasks are drawn from a pool of $K$ tasks, each with probability $1/K$.

    The pool is drawn once from the prior of the process, with a seed of its own, or is given. Inputs and noise are new in every
    prompt. Prompts with new tasks are those of `pool.process` (raventos2023, lu2024).

    Args:
        process: a `TaskProcess`: `LinearRegression`, `NonlinearRegression`, or one of your own.
        tasks: the number $K \ge 1$ of tasks, drawn with `seed`.
        seed: the seed of the pool, ≥ 0.
        vectors: instead of `tasks`, the weights $w_1 \dots w_K$ of linear regression, shape `(K, d)`.
        file: instead of `tasks`, a .npy or .csv file of them; in a specification a relative path starts at its folder.
    """

    process: Annotated[TaskProcess, *one_of("process")]
    tasks: Count | None = None
    seed: Seed = 0
    vectors: MaybeSamples = None
    file: FileField = field(default=None, compare=False, repr=False)
    max_compared: ClassVar[int] = 4096  # tasks: `identify` holds an answer of every task for every prompt

    def __post_init__(self) -> None:
        given: object = self.process
        if not isinstance(given, TaskProcess) or isinstance(given, TaskPool):
            what = f"must be a TaskProcess, such as linear-regression, got {show(self.process)}"
            raise SpecError(what, "process")
        sources = [name for name in ("tasks", "vectors", "file") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise SpecError(f"needs one of tasks, vectors and file, got {' and '.join(sources) or 'none'}")
        if self.file is not None:
            with error_path("file"):
                object.__setattr__(self, "vectors", Samples(read_samples(self.file)))
        if self.vectors is not None:
            self._check_vectors(self.vectors, "file" if self.file else "vectors")

    def _check_vectors(self, vectors: Samples, path: str) -> None:
        if not isinstance(self.process, LinearRegression):
            raise SpecError("are weights of linear regression; give tasks for another process", path)
        # one column of a file is read as a pool of numbers
        column = vectors.pooled and not (self.file and self.process.dim == 1)
        shape = vectors.table.shape[:1] if column else vectors.table.shape
        if shape != (len(vectors.table), self.process.dim):
            what = f"must have shape (K, {self.process.dim}), a row for each task, got {shape}"
            raise SpecError(what, path)

    @property
    def dim(self) -> int:
        """The dimension of the inputs."""
        return int(self.process.dim)

    @property
    def size(self) -> int:
        """The number K of tasks."""
        return len(self.vectors.table) if self.vectors is not None else self.tasks or 0

    @cached_property
    def table(self) -> Any:
        """The tasks as arrays with the first axis K, the same in single and double precision; for linear regression (K, d).

        Raises:
            ValueError: they need more than 2 GiB.
        """
        import jax

        if self.vectors is not None:
            return self.vectors.table

        def draw() -> Any:
            return self.process.draw_tasks(named_key(self.seed, "task-pool"), self.size)

        with jax.enable_x64(True):
            arrays = jax.tree.leaves(jax.eval_shape(draw))
            needed = sum(prod(one.shape) * one.dtype.itemsize for one in arrays)
            if needed > _MAX_BYTES:
                size = f"a pool of {self.size} tasks needs {needed / 2**30:.1f} GiB"
                raise SpecError(f"{size}, at most 2 are kept; give fewer", "tasks")
            with jax.ensure_compile_time_eval():  # the first use may be inside a trace
                return jax.tree.map(np.asarray, draw())

    @property
    def weights_of_tasks(self) -> np.ndarray | None:
        r"""The weights $w_1 \dots w_K$ of linear regression with which `identify` compares models, shape (K, d).

        None for other tasks, and for more than `max_compared`.
        """
        linear = isinstance(self.process, LinearRegression)
        return np.asarray(self.table) if linear and self.size <= self.max_compared else None

    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Any:
        """Draw tasks of the pool, independently and with equal probabilities."""
        import jax
        import jax.numpy as jnp

        place = jax.random.randint(key, (count,), 0, self.size)
        return jax.tree.map(lambda array: jnp.asarray(array, jnp.zeros(()).dtype)[place], self.table)

    def prompts_of(self, key: PRNGKeyArray, tasks: Any, examples: int) -> Prompts:
        """Draw one prompt for each task, as the process does."""
        return self.process.prompts_of(key, tasks, examples)

    def weight_moments(self, covariance: np.ndarray) -> np.ndarray:
        r"""Return the mean over the pool of $v v^\top$, $v = (1, w, w^\top \Sigma w)$, shape `(d + 2, d + 2)`.

        Raises:
            TypeError: the tasks are not those of linear regression.
        """
        if not isinstance(self.process, LinearRegression):
            raise TypeError(f"{type(self.process).__name__} has no weights w")
        return pool_moments(np.asarray(self.table), covariance)

    def specification(self) -> dict[str, Any]:
        """Return the table that specifies the pool; vectors that came from a file are given by `file`."""
        fields = super().specification()
        return {name: value for name, value in fields.items() if name != "vectors" or self.file is None}

    def describe(self) -> str:
        """Return e.g. `TaskPool(K=16, LinearRegression(dim=5, z ~ Gaussian(scale=1)))`."""
        return f"TaskPool(K={self.size}, {self.process.describe()})"
