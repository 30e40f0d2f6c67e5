"""Certificates speak about numbers that were given exactly."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any

from mesascope.processes import DiagonalUnitary, NextToken


def require_exact(process: Any, task: Any) -> None:
    """Refuse parameters that are floats: 0.1 is not one tenth, and nobody means the number that it is.

    Raises:
        TypeError: another process or task.
        ValueError: names the parameter, and how to give it.
    """
    if not isinstance(process, DiagonalUnitary):
        raise TypeError(f"process: must be a DiagonalUnitary, got {type(process).__name__}")
    if not isinstance(task, NextToken):
        raise TypeError(f"task: must be a NextToken, got {type(task).__name__}")
    _refuse_floats("law", process.law)
    for length, weight in task.weights or ():
        _refuse_floats(f"weights: {length}", weight)


def _refuse_floats(path: str, value: Any) -> None:
    if isinstance(value, float) and not value.is_integer():
        near = Fraction(value).limit_denominator(1000)
        raise ValueError(
            f"{path}: {value!r} is a float, which stands for a number with 53 bits; give it exactly, as a fraction or a string "
            f'such as "{near}", and irrational parameters by the moments of the law, if these are rational'
        )
    if isinstance(value, tuple | list):
        for place, one in enumerate(value):
            _refuse_floats(f"{path}[{place}]", one)
    elif hasattr(value, "table"):
        raise ValueError(f"{path}: samples are floats; give the moments of the law as rational numbers")
    elif hasattr(value, "__dataclass_fields__"):
        for field in fields(value):
            _refuse_floats(f"{path}.{field.name}", getattr(value, field.name))
