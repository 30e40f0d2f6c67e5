"""Certificates need parameters that are given exactly."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any

from mesascope.processes import DiagonalUnitary, FewShot, LinearRegression, Moments, NextToken

_MEANT = 12  # digits of a number that was typed
_WHOLE = 2**53  # floats below it that are integers are exactly what was written


def require_exact(process: Any, task: Any, *, prompts: bool = False) -> None:
    """Refuse parameters that are floats: 0.1 is not one tenth, but a number with 53 bits near it.

    Args:
        process: of sequences, or of prompts.
        task: its task.
        prompts: which of them the model reads.

    Raises:
        TypeError: another process or task.
        ValueError: names the parameter, and how to give it.
    """
    data, question = (LinearRegression, FewShot) if prompts else (DiagonalUnitary, NextToken)
    if not isinstance(process, data):
        raise TypeError(
            f"process: must be a {data.__name__}, got {type(process).__name__}"
            + (
                "; its loss is exact in floating point with ExactMoments, or sampled with MonteCarlo"
                if prompts
                else ""
            )
        )
    if not isinstance(task, question):
        raise TypeError(f"task: must be a {question.__name__}, got {type(task).__name__}")
    for name in ("law", "covariance", "prior", "noise"):
        _refuse_floats(name, getattr(process, name, None))
    for length, weight in task.weights or ():
        _refuse_floats(f"weights: {length}", weight)


def _refuse_rounded_moments(path: str, law: Moments) -> None:
    """Floats among moments let a law pass that misses existence by rounding; without one the law itself decided exactly."""
    for order, moment in enumerate(law.moments):
        if isinstance(moment, float):
            raise ValueError(f"{path}.moments[{order}]: {moment!r} is a float; {_fix(moment)}")


def _fix(value: float) -> str:
    """How to give what was probably meant: the shortest decimal, unless it has so many digits that it stands for a root."""
    meant = Fraction(repr(value))
    if len(str(meant.numerator).rstrip("0")) <= _MEANT:
        return (
            f'give it exactly, as a fraction or a string such as "{meant}", and irrational parameters by the moments of the '
            "law, if these are rational"
        )
    return (
        "give the moments of the law instead, if these are rational as those of scale √2 are: law.kind = moments; or the exact "
        "parameter, as a fraction or a string"
    )


def _refuse_floats(path: str, value: Any) -> None:
    if isinstance(value, float) and not (value.is_integer() and abs(value) < _WHOLE):
        raise ValueError(
            f"{path}: {value!r} is a float, which stands for a number with 53 bits; {_fix(value)}"
        )
    if isinstance(value, Moments):
        _refuse_rounded_moments(path, value)
    if isinstance(value, tuple | list):
        for place, one in enumerate(value):
            _refuse_floats(f"{path}[{place}]", one)
    elif hasattr(value, "table"):
        raise ValueError(f"{path}: samples are floats; give the moments of the law as rational numbers")
    elif hasattr(value, "__dataclass_fields__"):
        for field in fields(value):
            _refuse_floats(f"{path}.{field.name}", getattr(value, field.name))
