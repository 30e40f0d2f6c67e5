"""What a learner is: an algorithm that predicts the output of a query from examples in its context."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import equinox as eqx
from jax import Array

from ._fitting import Fitting


class Memory(eqx.Module):
    """What is kept of the examples seen so far; free of hyperparameters, with any leading axes.

    Attributes:
        n: how many examples were seen, integers of shape (…).
    """

    n: eqx.AbstractVar[Array]

    @classmethod
    @abc.abstractmethod
    def empty(cls, lead: tuple[int, ...], inputs: int, outputs: int, examples: int, dtype: Any) -> Self:
        """Nothing seen yet, with room for `examples` examples of `inputs` and `outputs` numbers."""

    @abc.abstractmethod
    def with_example(self, x: Array, y: Array) -> Self:
        """One more example: x of shape (…, p), y of shape (…, m)."""

    @classmethod
    @abc.abstractmethod
    def after_each(cls, x: Array, y: Array) -> Self:
        """The memories after 0 … N examples as one more leading axis, the last: x (…, N, p), y (…, N, m)."""


class Features(eqx.Module):
    """What learners of one family read off a memory and a query; free of hyperparameters.

    Its leading axes broadcast against each other. Learners with equal `reads` share their features.

    Attributes:
        memory: the memory it is read from.
    """

    memory: ClassVar[type[Memory]]

    @classmethod
    @abc.abstractmethod
    def of(cls, memory: Any, query: Array) -> Self:
        """The features of a query of shape (…, p)."""


class Learner(eqx.Module):
    r"""An algorithm that learns in context: from examples $(x_i, y_i)$, $i \le n$, to a prediction for a query $q$.

    $x_i, q \in F^p$ and $y_i \in F^m$ with $F$ the real or complex numbers; a linear learner predicts $\hat y = W q$
    with $W$ small in $\sum_i |y_i - W x_i|^2$. Tokens $x_1 \dots x_t$ are the examples $(x_i, x_{i+1})$, $i < t$, with
    the query $x_t$ (`sequence_examples`); a prompt is its pairs and its query (`prompt_examples`).

    The fields of a learner are its hyperparameters: they may be traced, and arrays differentiated. Python ints are known
    to compiled programs.
    They enter `respond` alone. Memories and features belong to the kind, so that features computed once serve every
    learner with the same `reads`, at all hyperparameters.

    Conventions of all learners: they start at $W = 0$ and, unless they say otherwise, predict 0 before the first
    example; step sizes refer to the mean loss $\frac1{2n} \sum_i |y_i - W x_i|^2$, whose gradient is
    $-\frac1n (C - W S)$ with $S = \sum_i x_i x_i^*$ and $C = \sum_i y_i x_i^*$; where several $W$ are equally good,
    the one of least norm is meant; complex gradients are directions of steepest ascent. The precision is that of the
    data.

    Attributes:
        name: the id, e.g. `gradient-descent`; the decorator `learner` sets it.
        fitting: what is fitted of it when a model is held against it.
        example_fields: hyperparameters of an example.
        reads: the features that `respond` takes.
    """

    name: ClassVar[str]
    fitting: ClassVar[Fitting]
    example_fields: ClassVar[Mapping[str, Any]]
    reads: ClassVar[type[Features]]

    @classmethod
    def example(cls) -> Self:
        """Return a learner of this kind, as tests and pages show it."""
        return cls(**cls.example_fields)

    @classmethod
    def init(cls, lead: tuple[int, ...], inputs: int, outputs: int, examples: int, dtype: Any) -> Memory:
        """An empty memory with the leading axes `lead` and room for `examples` examples of p inputs, m outputs."""
        return cls.reads.memory.empty(tuple(lead), inputs, outputs, examples, dtype)

    @classmethod
    def update(cls, state: Memory, x: Array, y: Array) -> Memory:
        """The memory after one more example, x (…, p) and y (…, m)."""
        return state.with_example(x, y)

    @classmethod
    def features(cls, state: Memory, query: Array) -> Any:
        """What `respond` needs to know about the examples and a query (…, p)."""
        return cls.reads.of(state, query)

    @abc.abstractmethod
    def respond(self, features: Any) -> Array:
        """The prediction, shape (…, m)."""

    def predict(self, state: Memory, query: Array) -> Array:
        """The prediction for a query (…, p) after the examples in the memory, shape (…, m)."""
        return self.respond(self.features(state, query))

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """The hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
