"""The base class of learners: algorithms that predict the output of a query from examples in the context."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import equinox as eqx
from jax import Array

from ._fitting import Fitting


class Memory(eqx.Module):
    """What a learner stores of the examples seen so far; independent of hyperparameters, with any leading axes.

    Attributes:
        n: the number of examples seen, integers of shape (…).
    """

    n: eqx.AbstractVar[Array]

    @classmethod
    @abc.abstractmethod
    def empty(cls, lead: tuple[int, ...], inputs: int, outputs: int, examples: int, dtype: Any) -> Self:
        """Return a memory without examples, with room for `examples` examples of `inputs` and `outputs` numbers."""

    @abc.abstractmethod
    def with_example(self, x: Array, y: Array) -> Self:
        """Return the memory with one more example: x of shape (…, p), y of shape (…, m)."""

    @classmethod
    @abc.abstractmethod
    def after_each(cls, x: Array, y: Array) -> Self:
        """Return the memories after 0 … N examples x (…, N, p), y (…, N, m), with 0 … N as the last leading axis."""


class Features(eqx.Module):
    """What learners of one family compute from a memory and a query; independent of hyperparameters.

    Its leading axes broadcast against each other; the last of them is that of the numbers of examples, or 1. Learners with
    equal `reads` share their features.

    Attributes:
        memory: the class of memories from which it is computed.
    """

    memory: ClassVar[type[Memory]]

    @classmethod
    @abc.abstractmethod
    def of(cls, memory: Any, query: Array) -> Self:
        """Return the features of a query of shape (…, p)."""


class Learner(eqx.Module):
    r"""An algorithm that learns in context: from examples $(x_i, y_i)$, $i \le n$, to a prediction for a query $q$.

    $x_i, q \in F^p$ and $y_i \in F^m$ with $F$ the real or complex numbers; a linear learner predicts $\hat y = W q$
    with $W$ small in $\sum_i |y_i - W x_i|^2$. Tokens $x_1 \dots x_t$ are the examples $(x_i, x_{i+1})$, $i < t$, with
    the query $x_t$ (`sequence_examples`); a prompt is its pairs and its query (`prompt_examples`).

    The fields of a learner are its hyperparameters: they may be traced, and arrays may be differentiated. Python ints are
    constants of compiled programs. Only `respond` depends on them: features that are computed once are used for every
    learner with the same `reads`, with any hyperparameters.

    Conventions of all learners: they start at $W = 0$ and, unless stated otherwise, predict 0 before the first
    example; step sizes are those for the mean loss $\frac1{2n} \sum_i |y_i - W x_i|^2$, whose gradient is
    $-\frac1n (C - W S)$ with $S = \sum_i x_i x_i^*$ and $C = \sum_i y_i x_i^*$; if several $W$ are minima, the
    one of minimum norm is taken; complex gradients are directions of steepest ascent. The precision is that of the
    data.

    Attributes:
        name: the id, e.g. `gradient-descent`, set by the decorator `learner`.
        fitting: how it is fitted to a model.
        example_fields: hyperparameters of an example.
        reads: the features that `respond` takes.
    """

    name: ClassVar[str]
    fitting: ClassVar[Fitting]
    example_fields: ClassVar[Mapping[str, Any]]
    reads: ClassVar[type[Features]]

    @classmethod
    def example(cls) -> Self:
        """Return the learner of this kind that tests and pages show."""
        return cls(**cls.example_fields)

    @classmethod
    def init(cls, lead: tuple[int, ...], inputs: int, outputs: int, examples: int, dtype: Any) -> Memory:
        """Return an empty memory with leading axes `lead` and room for `examples` examples of p inputs, m outputs."""
        return cls.reads.memory.empty(tuple(lead), inputs, outputs, examples, dtype)

    @classmethod
    def update(cls, state: Memory, x: Array, y: Array) -> Memory:
        """Return the memory after one more example, x (…, p) and y (…, m)."""
        return state.with_example(x, y)

    @classmethod
    def features(cls, state: Memory, query: Array) -> Any:
        """Return the features of the examples and a query (…, p) that `respond` takes."""
        return cls.reads.of(state, query)

    @abc.abstractmethod
    def respond(self, features: Any) -> Array:
        """Return the prediction, shape (…, m)."""

    def predict(self, state: Memory, query: Array) -> Array:
        """Return the prediction for a query (…, p) after the examples in the memory, shape (…, m)."""
        return self.respond(self.features(state, query))

    @property
    def rotation_invariant(self) -> bool:
        """Whether unitary changes of the coordinates of all inputs leave its predictions unchanged; yes, by default."""
        return True

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """The hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
