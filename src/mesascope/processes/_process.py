"""The base classes of processes: distributions of sequences of tokens, or of prompts with examples and a query, functions."""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from ..specs import Component, Data, error_path
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


class Target(Component, family="target"):
    """A distribution of functions f from R^d to R, the labels of prompts."""

    @abc.abstractmethod
    def values(self, key: PRNGKeyArray, x: Float[Array, "batch n dim"]) -> Float[Array, "batch n"]:
        """Draw one function for every row of inputs and return f(x), shape `(batch, n)`."""


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
