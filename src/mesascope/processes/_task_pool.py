"""Prompts whose tasks are those of a finite pool."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from ..specs import Count, Seed, SpecError, kind, one_of
from ._empirical import FileField, MaybeNumbers
from ._linear_regression import LinearRegression
from ._pool import Pool
from ._process import Prompts
from ._samples import Samples
from ._task_moments import pool_moments
from ._task_process import TaskProcess

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


@kind("task-pool", process={"kind": "linear-regression", "dim": 5}, tasks=16)
class TaskPool(Pool, TaskProcess):
    r"""Prompts of another process whose tasks are drawn from a pool of $K$ tasks, each with probability $1/K$.

    The pool is drawn once from the prior of the process, with a seed of its own, or is given. Inputs and noise are new in every
    prompt. Prompts with new tasks are those of `pool.process` (raventos2023, lu2024). `table` has the tasks, for linear
    regression of shape `(K, d)`.

    Args:
        process: a `TaskProcess`: `LinearRegression`, `NonlinearRegression`, `OrthonormalFeatures`, or one of your own.
        tasks: the number $K \ge 1$ of tasks, drawn with `seed`.
        seed: the seed of the pool, ≥ 0.
        vectors: instead of `tasks`, the weights $w_1 \dots w_K$ of linear regression, shape `(K, d)`.
        file: instead of `tasks`, a .npy or .csv file of them; in a specification a relative path starts at its folder.
    """

    given: ClassVar[str] = "vectors"

    process: Annotated[TaskProcess, *one_of("process")]
    tasks: Count | None = None
    seed: Seed = 0
    vectors: MaybeNumbers = None
    file: FileField = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._check_process(TaskProcess, "linear-regression")
        source = self._take_source()
        if self.vectors is not None:
            self._check_vectors(self.vectors, source)

    def _check_vectors(self, vectors: Samples, path: str) -> None:
        if not isinstance(self.process, LinearRegression):
            raise SpecError("are weights of linear regression; give tasks for another process", path)
        # one column of a file is read as a pool of numbers
        column = vectors.pooled and not (self.file and self.process.dim == 1)
        shape = vectors.table.shape[:1] if column else vectors.table.shape
        if shape != self._given_shape:
            what = f"must have shape (K, {self.process.dim}), a row for each task, got {shape}"
            raise SpecError(what, path)

    @property
    def dim(self) -> int:
        """The dimension of the inputs."""
        return int(self.process.dim)

    @property
    def _given_shape(self) -> tuple[int, ...]:
        return (self.size, self.dim)

    @property
    def weights_of_tasks(self) -> np.ndarray | None:
        r"""The weights $w_1 \dots w_K$ of linear regression with which `identify` compares models, shape (K, d).

        None for other tasks, and for more than `max_compared`.
        """
        linear = isinstance(self.process, LinearRegression)
        return np.asarray(self.table) if linear and self.size <= self.max_compared else None

    @property
    def task_covariance(self) -> np.ndarray | None:
        """The covariance of new tasks, as for `LinearRegression`; None for other processes."""
        return self.process.task_covariance if isinstance(self.process, LinearRegression) else None

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
