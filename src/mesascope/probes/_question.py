"""What an identification asks: the data, the learners, and how strictly they are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mesascope.core import finite_number, integer_at_least, named_key
from mesascope.objectives import Task, check_task, refuse_large_batches
from mesascope.records import MAX_PARTS
from mesascope.specs import error_path, show, unknown

from ._fitters import fitters, known_learners, learners_for, why_unreadable
from ._identification import Asked
from ._intervals import check_level
from ._mixture import takes_part
from ._problems import Problems, draw_problems
from ._separation import problems_of_settings


@dataclass(frozen=True)
class Question:
    """The settings of an identification, for models of any kind.

    Attributes:
        process, task, tasks, seed, tolerance, level, parts: as for `identify`.
        learners: the ids of the learners to compare with, the simplest first.
    """

    process: Any
    task: Task
    tasks: int
    seed: int
    tolerance: float
    level: float
    parts: int
    learners: tuple[str, ...]

    @classmethod
    def checked(
        cls,
        process: Any,
        task: Task,
        tasks: int,
        seed: int,
        tolerance: float,
        level: float,
        parts: int,
        learners: Sequence[str] | None,
    ) -> Question:
        """Return the settings.

        Raises:
            TypeError: the task does not fit the process.
            ValueError: too few tasks for the level, or more than 4 GiB of them; an unknown learner, a tolerance that is
                not in (0, 1).
        """
        check_task(process, task)
        level, tolerance = float(finite_number("level", level)), _checked_tolerance(tolerance)
        tasks, seed = _checked_tasks(tasks, level), integer_at_least("seed", seed, 0)
        with error_path("tasks"):
            refuse_large_batches(process, task, tasks)
        names = _checked_names(learners, process)
        return cls(
            process, task, tasks, seed, tolerance, level, _checked_parts(parts, names, process), tuple(names)
        )

    def problems(self) -> Problems:
        """Draw the tasks."""
        return draw_problems(self.process, self.task, self.tasks, self.key("tasks"))

    @cached_property
    def everywhere(self) -> Problems:
        """Equally many problems of every setting that may distinguish learners."""
        return problems_of_settings(self.process, self.task, self.key("differences"))

    def key(self, *names: str) -> Any:
        """Return the random key of these names."""
        return named_key(self.seed, "identify", *names)

    def asked(self) -> Asked:
        """Return the settings that are recorded."""
        data = self.process.describe(), self.task.describe()
        return Asked(*data, self.tasks, self.seed, self.tolerance, self.level)


def _checked_tolerance(tolerance: float) -> float:
    found = float(finite_number("tolerance", tolerance))
    if not 0 < found < 1:
        raise ValueError(
            f"tolerance must lie strictly between 0 and 1, got {show(tolerance)}; write e.g. tolerance=0.01"
        )
    return found


def _checked_tasks(tasks: int, level: float) -> int:
    tasks = integer_at_least("tasks", tasks, 2)
    try:
        check_level(level, tasks // 2)
    except ValueError as error:
        raise ValueError(f"{error} (one half of the {tasks} tasks is fitted to)") from None
    return tasks


def _checked_parts(parts: int, names: Sequence[str], process: Any) -> int:
    if integer_at_least("parts", parts, 1) > MAX_PARTS:
        raise ValueError(f"parts must be at most {MAX_PARTS}, got {parts}")
    known = fitters(process)
    able = [name for name in names if takes_part(known[name])]
    if parts > 1 and len(able) < 2:
        given = ", ".join(able) or "none"
        raise ValueError(
            f"learners: a mixture needs at least two that take part in mixtures, got {given}; add one, or leave out parts"
        )
    return parts


_STRATEGIES = {
    "generalizing": "ridge or posterior-mean for prompts, unigram-posterior or dirichlet-posterior for symbols"
}
"""Words of papers for what several learners do."""


def _checked_names(learners: Sequence[str] | None, process: Any) -> list[str]:
    if learners is None:
        return list(learners_for(process))
    given: object = learners
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise ValueError(f"learners: must be a list of ids such as ['ridge'], got {show(learners)}")
    known = {kind.name: kind for kind in known_learners()}
    for name in learners:
        if not isinstance(name, str):
            raise ValueError(
                f"learners: must list ids such as 'ridge', got {type(name).__name__}; its id finds it"
            )
        if name in _STRATEGIES:
            raise ValueError(f"learners: {show(name)} is what several learners do; name {_STRATEGIES[name]}")
        if name not in known:
            raise ValueError(f"learners: {unknown('learner', name, list(known))}")
        if why := why_unreadable(known[name], process):
            raise ValueError(f"learners: {show(name)} {why}; remove it")
    return [name for name in known if name in learners]
