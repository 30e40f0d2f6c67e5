"""How a computation ended, and what to do about it."""

from __future__ import annotations

from enum import Enum
from typing import Self


class Ending(Enum):
    """How a computation ended; `message` is one sentence, with the remedy where one is needed."""

    message: str

    def __new__(cls, word: str, message: str) -> Self:
        """Make a member whose value is the word."""
        member = object.__new__(cls)
        member._value_, member.message = word, message
        return member


class Outcome(Ending):
    """The end of a flow, descent or training run; `message` says what it means and names the remedy."""

    CONVERGED = "converged", "the gradient fell below the tolerance"
    FINISHED = "finished", "the time or number of steps asked for was reached"
    DIVERGED = (
        "diverged",
        "the weights or the loss stopped being finite, or the step size vanished; "
        "start from smaller weights, lower the learning rate or clip the gradient, or, in a flow, tighten rtol and atol",
    )
    NOT_FINITE = (
        "not finite",
        "the loss is infinite or not a number at the start, before any step; no learning rate fixes that: start from smaller "
        "weights, take smaller tokens (the scale of the law, the noise), a smaller rate of a memory, or precision = 'float64'",
    )
    STEP_LIMIT = (
        "step limit",
        "the step limit was reached first; raise max_steps, loosen tolerance, or, where the landscape is flat and the "
        "approach slow, take an implicit solver (solver=diffrax.Kvaerno5(), in a file solver = 'kvaerno5')",
    )
    INTERRUPTED = "interrupted", "stopped on request; what was computed until then is kept"
