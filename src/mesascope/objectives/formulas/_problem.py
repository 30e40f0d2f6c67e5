"""Which processes and tasks have a formula."""

from __future__ import annotations

from mesascope.models import check_normalizer
from mesascope.processes import DiagonalUnitary, NextToken
from mesascope.specs import show

from .._engine import require_moments


def check_problem(process: DiagonalUnitary, task: NextToken, normalizer: str) -> None:
    """Refuse a process, task or normalizer for which the loss has no formula.

    Raises:
        TypeError: the process is not diagonal unitary, or the task is not the prediction of the next token.
        ValueError: a moment of order ≤ 6 does not exist, or the normalizer has no name.
    """
    if not isinstance(process, DiagonalUnitary):
        raise TypeError(f"process: must be a DiagonalUnitary, got {type(process).__name__}")
    if not isinstance(task, NextToken):
        raise TypeError(f"task: must be a task such as NextToken(horizon=100), got {show(task)}")
    check_normalizer(normalizer)
    require_moments(process.law, process.dim)
