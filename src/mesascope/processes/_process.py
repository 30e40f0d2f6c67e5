"""The base classes of processes: distributions of sequences of tokens, or of prompts with examples and a query, functions."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import isfunction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from ..specs import Component, Data, error_path
from ._drawn import Numbers, check_drawn, check_key
from ._law import Law

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Inexact, Int, PRNGKeyArray


class Prompts(NamedTuple):
    """A batch of regression prompts, each with N examples and a query.

    Attributes:
        x: inputs, shape (batch, N + 1, dim); `x[:, N]` is the query.
        y: labels, shape (batch, N + 1); `y[:, N]` is the target, the label of the query.
    """

    x: Float[Array, "batch N+1 dim"]
    y: Float[Array, "batch N+1"]


class SequenceProcess(Component, family="process"):
    """A distribution of sequences of tokens with a hidden transition, drawn for every sequence.

    Processes are hashable, compare by value and may be static under `jax.jit`. Processes of discrete tokens have an attribute
    `vocabulary`, the number of symbols.

    Attributes:
        dim: the token dimension; for discrete tokens, the dimension of their one-hot vectors.
        data: the kind of data.
    """

    data: ClassVar[Data] = "real tokens"
    dim: Any

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if isfunction(vars(cls).get("sample")):
            cls.sample = _checked_sequences(cls.sample)  # type: ignore[method-assign]

    @abc.abstractmethod
    def sample(
        self, key: PRNGKeyArray, horizon: int, batch: int
    ) -> Inexact[Array, "batch horizon dim"] | Int[Array, "batch horizon"]:
        """Draw independent sequences of tokens.

        Args:
            key: a JAX random key.
            horizon: tokens per sequence T ≥ 1 (static under `jit`).
            batch: number of sequences ≥ 1 (static under `jit`).

        Returns:
            Real or complex tokens, shape `(batch, horizon, dim)`, or discrete tokens 0 … vocabulary − 1 as int32,
            shape `(batch, horizon)`.

        Raises:
            TypeError: `horizon` or `batch` is not an integer.
            ValueError: `horizon` or `batch` is below 1.
        """

    def of_horizon(self, horizon: int) -> Self:
        """Return the process of sequences of `horizon` tokens: itself, unless its parameters depend on the horizon."""
        return self


class PromptProcess(Component, family="process"):
    """A distribution of regression prompts with a hidden function from inputs to labels, drawn for every prompt.

    Processes are hashable, compare by value and may be static under `jax.jit`.

    Attributes:
        dim: the dimension of the inputs.
        data: the kind of data.
    """

    data: ClassVar[Data] = "prompts"
    dim: Any

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if isfunction(vars(cls).get("sample")):
            cls.sample = _checked_prompts(cls.sample)  # type: ignore[method-assign]

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray, examples: int, batch: int) -> Prompts:
        """Draw independent prompts.

        Args:
            key: a JAX random key.
            examples: examples before the query N ≥ 1 (static under `jit`).
            batch: number of prompts ≥ 1 (static under `jit`).

        Raises:
            TypeError: `examples` or `batch` is not an integer.
            ValueError: `examples` or `batch` is below 1.
        """


_DRAWS = 8  # sequences or prompts that show whether a sample depends on its key
_NUMBERS: dict[Data, Numbers] = {
    "real tokens": "real numbers",
    "complex tokens": "complex numbers",
    "symbols": "integers",
}


def _checked_sequences(sample: Callable[..., Any]) -> Any:
    """Return the method `sample`, which refuses what is no batch of sequences."""

    @wraps(sample)
    def checked(self: SequenceProcess, key: Any, horizon: int, batch: int) -> Any:
        drawn = sample(self, key, horizon, batch)
        shape = (batch, horizon) if self.data == "symbols" else (batch, horizon, self.dim)
        check_drawn(self, sample, drawn, shape, _NUMBERS[self.data])
        if batch > 1:
            check_key(self, sample, horizon, min(batch, _DRAWS))
        return drawn

    return checked


def _checked_prompts(sample: Callable[..., Any]) -> Any:
    """Return the method `sample`, which refuses what is no batch of prompts."""

    @wraps(sample)
    def checked(self: PromptProcess, key: Any, examples: int, batch: int) -> Any:
        drawn = sample(self, key, examples, batch)
        x, y = drawn if isinstance(drawn, tuple) and len(drawn) == 2 else (drawn, None)
        check_drawn(self, sample, x, (batch, examples + 1, self.dim), "real numbers")
        check_drawn(self, sample, y, (batch, examples + 1), "real numbers")
        if batch > 1:
            check_key(self, sample, examples, min(batch, _DRAWS))
        return drawn

    return checked


class Target(Component, family="target"):
    """A distribution of functions f from R^d to R, the labels of prompts."""

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, dim: int, count: int) -> Any:
        """Draw independent functions of `dim` inputs: arrays, or a tuple of arrays, with the first axis `count`."""

    @abc.abstractmethod
    def values(self, functions: Any, x: Float[Array, "batch n dim"]) -> Float[Array, "batch n"]:
        """Return f(x) with one function for every row of inputs, shape `(batch, n)`."""


def require_dim(law: Law, dim: int, *path: str) -> None:
    """Refuse a dimension in which a law has no tokens; `path` is the field of the dimension."""
    with error_path(*path):
        law.check_dim(dim)


def with_law(process: Any, law: Law) -> Any:
    """Return the same process with another law of the initial tokens, or of the inputs of prompts.

    Raises:
        ValueError: the process has no law, or the law has another dimension.
    """
    if not isinstance(getattr(process, "law", None), Law):
        raise ValueError(f"{type(process).__name__} has no law to replace")
    return replace(process, law=law)
