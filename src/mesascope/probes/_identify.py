"""The identification of the learning algorithm of a model in context, by learners that are fitted to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mesascope.core import Progress, require_x64, shows_progress
from mesascope.objectives import Task
from mesascope.specs import show

from ._adapter import Interface, as_callable
from ._identification import Identification
from ._inquiry import Inquiry
from ._question import Question


@shows_progress
def identify(
    model: Any,
    process: Any,
    task: Task,
    *,
    tasks: int = 2000,
    seed: int = 0,
    tolerance: float = 1e-2,
    level: float = 0.95,
    learners: Sequence[str] | None = None,
    search: bool = True,
    parts: int = 1,
    interface: Interface | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Identification:
    r"""Identify the learning algorithm of a model in context, with its hyperparameters, if possible.

    The hyperparameters of every learner are fitted to the model's predictions $f$ on one half of the tasks; on the other
    half its predictions $g$ are at the relative distance $E\|f - g\|^2 / E\|f\|^2$ from them, with a bootstrap interval.
    Tasks whose $\|f\|^2$ is more than ten times the median count as ten medians, and no $\|f - g\|^2$ counts more than four
    times the largest $\|f\|^2$; otherwise rare tasks on which an algorithm diverges would dominate the fit and the distance.

    - A learner is distinguished from the nearest one if it is, with confidence, more than twice as far from the model.
    - Learners that are not distinguished are equivalent if, with the fitted hyperparameters, they predict the same in some
      forty settings of data: inputs of other scales and conditions, with noise, sequences with one-hot and full-one initial
      tokens, and inputs independent of the process; new tasks, where the process has a pool of them. Of symbols there are
      three or four: some or all are replaced at random, or new tasks. The result is the
      simplest of equivalent learners. A learner that memorizes a pool is not equivalent to one without it: if they agree, the
      pool is too large to tell.
    - A preconditioner is excluded in favour of one step of descent if it is a multiple of the identity to 1 %, or not
      distinguished from it, unless it alone lies within the tolerance; one with entries that the data do not determine is
      not equivalent to any other learner.
    - If more than one remains, the model is evaluated in the setting where they differ most, and all that remain are fitted
      again to all its predictions: an algorithm must explain all of them with one set of hyperparameters. If none does, the
      model uses no such algorithm there, and the result on the data of the process remains ambiguous.
    - The result is valid for the data of the process. The distance of the model from the nearest learner out of distribution,
      with new tasks of a pool, inputs of twice the size, badly conditioned inputs and twice as many examples, is given
      beside it.
    - Of numbers of steps that fit equally well, to two standard errors over tasks, the smallest is named.

    With `parts` 2 or 3 a model that no single learner explains is compared with convex mixtures $\sum_k \pi_k g_k$ of so many
    learners of different kinds: in predictions, or in probabilities of symbols. All pairs on a grid of hyperparameters are
    compared, the best of them also with a third learner. Of these the nearest and the three simplest that may be as near are
    fitted, hyperparameters and weights together. Weights have intervals over tasks, by the jackknife. They
    are the same after all numbers of examples if that suffices. The result is ambiguous if several of the fitted mixtures
    explain the model, or if tasks do not tell the weights. Preconditioners and constants take no part in mixtures.

    Args:
        model: a model of mesascope, or anything that `as_callable` takes: a function of contexts (batch, t, d) → (batch, d),
            of prompts (x (batch, n + 1, d), y (batch, n)) → (batch,), or of symbols (batch, t) → probabilities (batch, states).
        process: the process of sequences of tokens or symbols, or prompts. Symbols are one-hot vectors for learners.
        task: `NextToken` or `FewShot`: the weights of context lengths.
        tasks: number of tasks for each setting of data; at least 4/(1 − level) and 40.
        seed: seed of the tasks and of the bootstrap.
        tolerance: the largest distance at which a learner can be identified with the model.
        level: confidence level of the intervals, and of every comparison.
        learners: ids of the learners to compare with; by default all that read such data.
        search: whether the model may be evaluated on other data.
        parts: the largest number of learners in a mixture, 1 to 3; 1 tries none.
        interface: how the model is called, as for `as_callable`; by default by the names of its parameters.
        progress: called before every step.

    Returns:
        Headline, verdict, ranking, additional data, reasons; `print` shows a table.

    Raises:
        TypeError: a model that cannot be called, a task that does not fit the process.
        ValueError: predictions of another shape, not finite or not reproducible; too few tasks for the level; an unknown
            learner; a tolerance that is not in (0, 1); JAX in 32-bit mode.
    """
    require_x64("identify")
    if not isinstance(search, bool):
        raise TypeError(f"search: must be True or False, got {show(search)}")
    question = Question.checked(process, task, tasks, seed, tolerance, level, parts, learners)
    if interface is not None:
        model = as_callable(model, interface=interface)
    return Inquiry(model, question, progress or (lambda _: None)).run(search)
