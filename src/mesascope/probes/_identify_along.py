"""Which algorithm a model runs at every checkpoint of its training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from os import PathLike
from typing import Any

import equinox as eqx
import jax
import numpy as np

from mesascope.core import Progress, integer_at_least, require_x64, shows_progress
from mesascope.learners import Learner
from mesascope.objectives import Task
from mesascope.specs import show

from ._adapter import Interface, as_callable, is_torch_module
from ._along import AlongTraining, Followed
from ._answers import answers
from ._candidates import answers_of
from ._changes import changes
from ._evidence import Evidence
from ._fitters import why_unreadable
from ._identification import Identification, plain_hyperparameters
from ._inquiry import Inquiry
from ._problems import Problems
from ._question import Question
from ._strategies import MAX_STRATEGIES, Strategy, chosen_strategies, labels
from ._weights import weigh

Models = Mapping[int, Any] | Sequence[Any] | Callable[[int], Any]


@shows_progress
def identify_along(
    models: Models,
    process: Any,
    task: Task,
    *,
    steps: Sequence[int] | None = None,
    strategies: Sequence[Learner] | None = None,
    tasks: int = 500,
    seed: int = 0,
    tolerance: float = 1e-2,
    level: float = 0.95,
    learners: Sequence[str] | None = None,
    parts: int = 1,
    interface: Interface | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> AlongTraining:
    r"""Identify the learning algorithm of a model at every checkpoint of its training, on the same tasks.

    At every checkpoint learners are fitted and judged as by `identify` without `search`: on the data of the process only.

    All checkpoints are compared with the same few *strategies* too, learners with fixed hyperparameters: their distances, and
    the convex mixture $\sum_k \pi_k g_k$ of all of them that is nearest to the model, with intervals over tasks. The weights
    say how much of each a model is like as far as the mixture explains it: what it leaves unexplained is given beside them.
    They are not determined where some change of them leaves the predictions the same to the tolerance, such as one between
    strategies that predict the same, or where an interval holds both 0.05 and 0.95. The distances of strategies have no limit
    for tasks on which one diverges, unlike those of `identify`.

    Args:
        models: the checkpoints: a mapping from numbers of training steps to models, such as `ms.Checkpoints(run)`; a list; or
            a function of the number of steps. Models are as for `identify`.
        process: the process of sequences or prompts.
        task: `NextToken` or `FewShot`.
        steps: the numbers of steps, increasing: for a list 0, 1, 2 … by default; for a mapping all of it.
        strategies: up to four learners with hyperparameters. By default up to three, as fitted at the checkpoint to which each
            is nearest: of the simplest learners that are not farther than the nearest at some checkpoint those that at least
            halve, at some checkpoint, what the nearest mixture leaves unexplained.
        tasks: number of tasks; learners are fitted to one half and compared on the other.
        seed: of the tasks and of the bootstrap.
        tolerance: as for `identify`.
        level: as for `identify`.
        learners: as for `identify`.
        parts: as for `identify`.
        interface: as for `identify`.
        progress: called before every checkpoint.

    Returns:
        Verdicts, strategies, weights and distances at every checkpoint, and the steps at which the nearest strategy changes;
        `print` shows a table, `ms.plot` a figure, `to_xarray` gives labelled arrays.

    Raises:
        TypeError: no checkpoints, or models that cannot be called.
        ValueError: fewer than two checkpoints, checkpoints of different models, and all that `identify` refuses.
    """
    require_x64("identify_along")
    taken, of_step = _checkpoints(models, steps)
    question = Question.checked(process, task, tasks, seed, tolerance, level, parts, learners)
    problems = question.problems()
    judging = problems.part(problems.tasks // 2, problems.tasks)
    given = _given(strategies, process)
    tried = answers_of([one.learner for one in given], judging)
    found, seen = dict[int, Identification](), list[Evidence]()
    report = progress or (lambda _: None)
    for done, (step, model) in enumerate(_alike(taken, of_step)):
        report(Progress(done, len(taken) + 1, stage=f"step {step}"))
        if interface is not None:
            model = as_callable(model, interface=interface)
        evidence = Evidence(problems, _answers(model, problems, step))
        inquiry = Inquiry(model, question, lambda _: None)
        found[step] = inquiry.explain(evidence, search=False).without_model()
        seen.append(Evidence(judging, evidence.answers[-judging.tasks :].copy()))
    report(Progress(len(taken), len(taken) + 1, stage="weigh strategies"))
    compared = given or chosen_strategies(found, seen, tolerance)
    predicted = tried or answers_of([one.learner for one in compared], judging)
    weighed = [weigh(predicted, one, tolerance, level, question.seed) for one in seen]
    moved = changes(labels(compared), list(found), [one.judgement for one in weighed], level)
    return AlongTraining(found, tuple(compared), Followed.of(weighed, level), tuple(moved), question.asked())


def _answers(model: Any, problems: Problems, step: int) -> np.ndarray:
    """Return the predictions of a checkpoint; errors name it."""
    try:
        return answers(model, problems)
    except (TypeError, ValueError) as error:
        kind = (
            TypeError if isinstance(error, TypeError) else ValueError
        )  # subclasses may take other arguments
        raise kind(f"after {step} steps: {error}") from error


def _checkpoints(models: Models, steps: Sequence[int] | None) -> tuple[list[int], Callable[[int], Any]]:
    """Return the numbers of steps, increasing, and what gives the model of each.

    Raises:
        TypeError, ValueError: there are none, or fewer than two.
    """
    if steps is not None and not isinstance(steps, Iterable):
        raise TypeError(f"steps: must be a list of numbers of steps, got {show(steps)}")
    numbers = None if steps is None else [integer_at_least("steps", step, 0) for step in steps]
    if isinstance(models, str | bytes | PathLike):
        raise TypeError(
            f"models: {show(str(models))} is a path; read the checkpoints of a run by ms.Checkpoints({show(str(models))})"
        )
    if isinstance(models, Mapping):
        keys = [integer_at_least("models: the number of steps", step, 0) for step in models]
        taken, of_step = sorted(keys) if numbers is None else numbers, models.__getitem__
        missing = [step for step in taken if step not in models]
        if missing:
            raise ValueError(f"steps: there is no checkpoint after {missing[0]} steps")
    elif isinstance(models, Sequence):
        taken = list(range(len(models))) if numbers is None else numbers
        if len(taken) != len(models):
            raise ValueError(f"steps: give one number for each of {len(models)} models, got {len(taken)}")
        of_step = dict(zip(taken, models, strict=True)).__getitem__
    elif callable(models):
        if numbers is None:
            raise ValueError("steps: give the numbers of steps for which the function returns models")
        taken, of_step = numbers, models
    else:
        raise TypeError(
            f"models: must be a mapping from steps to models, a list, or a function of steps, got {type(models).__name__}"
        )
    if sorted(set(taken)) != taken:
        raise ValueError(f"steps: must increase, got {taken}")
    if len(taken) < 2:
        raise ValueError(
            f"models: needs at least two checkpoints, got {len(taken)}; train with checkpoints_per_decade, or checkpoint_every"
        )
    return taken, of_step


def _alike(steps: Sequence[int], of_step: Callable[[int], Any]) -> Iterator[tuple[int, Any]]:
    """Yield the models; refuse those of another architecture than the first."""
    first: Any = None
    for step in steps:
        model = of_step(step)
        shape = _shape(model)
        first = shape if first is None else first
        if shape != first:
            raise ValueError(
                f"models: the checkpoint after {step} steps is of another model than that after {steps[0]}; give those of one "
                "run"
            )
        yield step, model


def _shape(model: Any) -> Any:
    """Return the architecture of a model of mesascope, the shapes of a module of PyTorch; nothing is known of others."""
    if is_torch_module(model):
        return [(name, tuple(array.shape)) for name, array in model.state_dict().items()]
    if not isinstance(model, eqx.Module):
        return ()
    arrays, rest = eqx.partition(model, eqx.is_array)
    return jax.tree.structure(rest), [leaf.shape for leaf in jax.tree.leaves(arrays)]


def _given(strategies: Sequence[Learner] | None, process: Any) -> list[Strategy]:
    if strategies is None:
        return []
    given: object = strategies
    others = (
        [one for one in given if not isinstance(one, Learner)] if isinstance(given, list | tuple) else [given]
    )
    if others:
        raise TypeError(
            f"strategies: must be a list of learners such as [Ridge(0.1)], got {show(others[0])}; ids of learners to be "
            "fitted go to learners"
        )
    if not 1 <= len(strategies) <= MAX_STRATEGIES:
        raise ValueError(f"strategies: give 1 to {MAX_STRATEGIES} learners, got {len(strategies)}")
    for one, other in combinations(strategies, 2):
        if type(one) is type(other) and plain_hyperparameters(one) == plain_hyperparameters(other):
            raise ValueError(
                f"strategies: {show(one.name)} is there twice with the same hyperparameters; remove one of them"
            )
    for one in strategies:
        if why := why_unreadable(type(one), process):
            raise ValueError(f"strategies: {type(one).name!r} {why}; remove it")
    return [Strategy(one, None) for one in strategies]
