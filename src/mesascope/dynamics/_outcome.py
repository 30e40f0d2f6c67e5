"""How a computation ended, and what to do about it."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    """The end of a flow, descent or training run; `message` says what it means and names the remedy."""

    CONVERGED = "converged"
    FINISHED = "finished"
    DIVERGED = "diverged"
    NOT_FINITE = "not finite"
    STEP_LIMIT = "step limit"
    INTERRUPTED = "interrupted"

    @property
    def message(self) -> str:
        """One sentence, with the remedy where one is needed."""
        return _MESSAGES[self]


_MESSAGES = {
    Outcome.CONVERGED: "the gradient fell below the tolerance",
    Outcome.FINISHED: "the time or number of steps asked for was reached",
    Outcome.DIVERGED: (
        "the weights or the loss stopped being finite, or the step size vanished; "
        "start from smaller weights, lower the learning rate or clip the gradient, or, in a flow, tighten rtol and atol"
    ),
    Outcome.NOT_FINITE: (
        "the loss is infinite or not a number at the start, before any step; no learning rate fixes that: start from smaller "
        "weights, take smaller tokens (the scale of the law, the noise), or precision = 'float64'"
    ),
    Outcome.STEP_LIMIT: (
        "the step limit was reached first; raise max_steps, loosen tolerance, or, where the landscape is flat and the "
        "approach slow, take an implicit solver (solver=diffrax.Kvaerno5(), in a file solver = 'kvaerno5')"
    ),
    Outcome.INTERRUPTED: "stopped on request; what was computed until then is kept",
}
