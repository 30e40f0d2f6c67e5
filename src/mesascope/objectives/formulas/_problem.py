"""Which processes and tasks have a formula."""

from __future__ import annotations

from mesascope.processes import DiagonalUnitary, NextToken

from .._engine import require_moments


def checked_problem(process: DiagonalUnitary, task: NextToken) -> None:
    """Refuse a process or task for which the loss has no formula.

    Raises:
        TypeError: the process is not diagonal unitary, or the task is not the prediction of the next token.
        ValueError: a moment of order ≤ 6 does not exist.
    """
    if not isinstance(process, DiagonalUnitary):
        raise TypeError(f"process: must be a DiagonalUnitary, got {type(process).__name__}")
    if not isinstance(task, NextToken):
        raise TypeError(f"task: must be a task such as NextToken(horizon=100), got {task!r}")
    require_moments(process.law, process.dim)
