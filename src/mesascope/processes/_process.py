"""What a process is: a distribution of sequences of tokens, or of prompts with examples and a query."""

import abc
from inspect import signature
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float, Inexact, Int, PRNGKeyArray

from ._law import Law, Static


class Prompts(NamedTuple):
    """A batch of regression prompts: N examples and a query each.

    Attributes:
        x: inputs, shape (batch, N + 1, dim); `x[:, N]` is the query.
        y: labels, shape (batch, N + 1); `y[:, N]` is the target, the label of the query.
    """

    x: Float[Array, "batch N+1 dim"]
    y: Float[Array, "batch N+1"]


class SequenceProcess(Static):
    """A distribution of sequences of tokens, each with its own hidden transition.

    Parameters are static Python values: processes are hashable, compare by value and may be static under
    `jax.jit`. Processes of discrete tokens have an attribute `vocabulary`, the number of symbols.

    Attributes:
        dim: the token dimension, for discrete tokens that of their one-hot vectors.
    """

    dim: eqx.AbstractVar[int]

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
            Real or complex tokens, shape `(batch, horizon, dim)`, or discrete ones as int32 in 0 …
            vocabulary − 1, shape `(batch, horizon)`.

        Raises:
            TypeError: `horizon` or `batch` is not an integer.
            ValueError: `horizon` or `batch` is below 1.
        """

    @abc.abstractmethod
    def describe(self) -> str:
        """Return the process in a few words for titles and messages."""


class PromptProcess(Static):
    """A distribution of regression prompts, each with its own hidden function from inputs to labels.

    Parameters are static Python values: processes are hashable, compare by value and may be static under
    `jax.jit`.

    Attributes:
        dim: the dimension of the inputs.
    """

    dim: eqx.AbstractVar[int]

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

    @abc.abstractmethod
    def describe(self) -> str:
        """Return the process in a few words for titles and messages."""


def checked_law(owner: str, law: object) -> Law:
    """Return `law` if it is one; the message begins with the name of the `owner` of the parameter.

    Raises:
        TypeError: `law` is not a law.
    """
    if not isinstance(law, Law):
        raise TypeError(f"{owner} law must be a law such as Gaussian(1.0), got {law!r}")
    return law


def with_law(process: Any, law: Law) -> Any:
    """The process with another law of its initial tokens (of prompts, their inputs), all else equal.

    Raises:
        ValueError: the process has no law, or the law is of another dimension.
    """
    if not isinstance(getattr(process, "law", None), Law):
        raise ValueError(f"{type(process).__name__} has no law that could be another")
    arguments = {name: getattr(process, name) for name in signature(type(process)).parameters}
    return type(process)(**arguments | {"law": law})
