"""The base class of prompts with tasks that can be kept."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

from ..core import integer_at_least, split_keys
from ._process import PromptProcess, Prompts

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


class TaskProcess(PromptProcess):
    """Prompts whose hidden function, the *task*, is a row of arrays: it can be drawn apart from them, and kept in a pool."""

    @abc.abstractmethod
    def draw_tasks(self, key: PRNGKeyArray, count: int) -> Any:
        """Draw independent tasks: arrays, or a tuple of arrays, with the first axis `count`."""

    @abc.abstractmethod
    def prompts_of(self, key: PRNGKeyArray, tasks: Any, examples: int) -> Prompts:
        """Draw one prompt for each task, from other random numbers than those of `draw_tasks` in `sample`."""

    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw independent prompts: x of shape `(batch, examples + 1, dim)`, y of `(batch, examples + 1)`."""
        examples = integer_at_least("examples", examples, 1)
        batch = integer_at_least("batch", batch, 1)
        _, task_key, _ = split_keys(key, 3)  # the others are those of `prompts_of`
        return self.prompts_of(key, self.draw_tasks(task_key, batch), examples)
