"""The base class of rules, and what all of them are made of."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from pydantic import PlainSerializer, PlainValidator

from mesascope.core import finite_nonnegative, integer_at_least
from mesascope.specs import Built, Number, SpecError, in_file_form, kind_of_function, number, open_unit, show

from .._arrays import axes, finite_array, gaussian_array, real_array
from .._batched_matmul import batched_matmul
from .._heads import head_streams


def _decay(value: Any) -> Number:
    if number(value) >= 1:
        raise SpecError(
            f"must be less than 1, got {show(value)}: with 1 nothing is forgotten, with more the memory diverges"
        )
    return open_unit(value)


Decay: TypeAlias = Annotated[Number, PlainValidator(_decay), PlainSerializer(in_file_form)]
"""The part of a memory that a token keeps: greater than 0 and less than 1."""


class MemorySizes(NamedTuple):
    """The sizes of the memories of a layer.

    Attributes:
        width: entries of a token of the stream.
        heads: number of heads.
        key: entries of a key.
        value: entries of a value.
    """

    width: int
    heads: int
    key: int
    value: int


class MemoryToken(NamedTuple):
    """What a token writes, for every member b of the batch; heads are members of the batch.

    Attributes:
        key: k, shape (w, batch).
        value: v, shape (m, batch).
        gates: the gates of the rule at this token, real numbers, each (1, w or m, batch).
    """

    key: Array
    value: Array
    gates: tuple[Array, ...] = ()


class MemoryRule(eqx.Module):
    r"""How the memory $M$ of a layer is written by tokens $(k_t, v_t)$, and read by queries $q_t$.

    A memory is a matrix $M_t \in F^{m \times w}$, or several, with the batch as the last axis. `write` and `read` are the
    equations of the rule for one token. The tokens of a stream are written one after the other.

    Attributes:
        real: whether the rule takes real numbers only.
    """

    real: ClassVar[bool] = False

    def check(self, sizes: MemorySizes) -> None:
        """Refuse gates of another number of heads, another width or another number of values than those of the layer.

        Raises:
            ValueError: says which gate does not fit.
        """
        allowed = self.gate_sizes(sizes)
        for name, part in vars(self).items():
            if isinstance(part, Gate):
                size = part.weights.shape[1]
                require_shape(self, name, part.weights.shape, (sizes.heads, size, sizes.width))
                if size not in allowed:
                    known = " or ".join(map(str, allowed))
                    raise ValueError(
                        f"{type(self).__name__}: {name} has {size} numbers for every head, but the layer needs {known}"
                    )

    def gate_sizes(self, sizes: MemorySizes) -> tuple[int, ...]:
        """Return how many numbers a gate may have for every head: one, by default."""
        return (1,)

    def gates(self, stream: Array) -> tuple[Array, ...]:
        """Return the gates of all tokens of a stream (n, width, batch), each (n, size, heads · batch); none, by default."""
        return ()

    def empty(self, value: Array, key: Array) -> Any:
        """Return the memory before the first token, from values (m, batch) and keys (w, batch) of its type."""
        return jnp.zeros((len(value), *key.shape), value.dtype)

    @abc.abstractmethod
    def write(self, memory: Any, token: MemoryToken) -> Any:
        """Return the memory after one more token."""

    def read(self, memory: Any, query: Array) -> Array:
        """Return what the memory answers to a query: (w, batch) → (m, batch); M q, by default."""
        return applied(memory, query)


class RuleKind(Built, family="rule"):
    """The rule of a memory layer.

    Attributes:
        real: whether the rule takes real streams only.
    """

    real: ClassVar[bool]

    def build(self, sizes: MemorySizes, scale: float, key: Array) -> MemoryRule:
        """Return the rule, with independent N(0, scale²) weights of its gates; for scale 0 gates are constant."""
        made: MemoryRule = self.call(sizes=sizes, scale=scale, key=key)
        return made


_R = TypeVar("_R", bound=MemoryRule)


def rule(
    name: str,
    /,
    *,
    make: str = "gaussian",
    refuse: Callable[[Any], None] = Built.refuse,
    **example: Any,
) -> Callable[[type[_R]], type[_R]]:
    """Declare a class of rules as a kind whose fields are the parameters of one of its class methods.

    The method is called with those of `sizes`, `scale` and `key` that it has.

    Args:
        name: the name in specifications.
        make: name of the class method.
        refuse: raises `SpecError(…)` for fields that do not fit together.
        **example: the fields of an example that have no default.
    """

    def declare(cls: type[_R]) -> type[_R]:
        given = ("sizes", "scale", "key")
        made = kind_of_function(name, getattr(cls, make), RuleKind, given, {}, cls, **example)
        made.real, made.refuse = cls.real, refuse
        return cls

    return declare


class Gate(eqx.Module):
    r"""A number in (0, 1), or several, for every token and head: $g_t = \sigma(\mathrm{Re}(W z_t) + b)$.

    Attributes:
        weights: W of every head, shape (heads, size, width); real or complex.
        bias: b of every head, shape (heads, size); real.

    Raises:
        TypeError, ValueError: for arrays of other shapes, entries that are not finite, or complex biases.
    """

    weights: Array = eqx.field(metadata=axes(3))
    bias: Array = eqx.field(metadata=axes(2))

    def __init__(self, weights: Any, bias: Any):
        weights, bias = finite_array("weights", weights, 3), real_array("bias", bias, 2)
        if weights.shape[:2] != bias.shape:
            raise ValueError(
                f"a gate needs weights (heads, size, width) and bias (heads, size), got {weights.shape} and {bias.shape}"
            )
        self.weights, self.bias = weights, bias

    @classmethod
    def gaussian(cls, sizes: MemorySizes, value: Number, scale: float, *, key: Array, size: int = 1) -> Self:
        """Return a gate that is `value` where the stream is 0, with independent N(0, scale²) weights, and `size` numbers.

        Raises:
            ValueError: `value` is not in (0, 1).
        """
        shape = (sizes.heads, integer_at_least("size", size, 1), sizes.width)
        return cls(gaussian_array(key, shape, finite_nonnegative("scale", scale)), _bias(value, shape[:2]))

    @classmethod
    def constant(cls, sizes: MemorySizes, value: Number, size: int = 1) -> Self:
        """Return a gate that is `value` for every token.

        Raises:
            ValueError: `value` is not in (0, 1).
        """
        return cls(jnp.zeros((sizes.heads, size, sizes.width)), _bias(value, (sizes.heads, size)))

    def __call__(self, stream: Array) -> Array:
        """Return the gate at every token: (n, width, batch) → (n, size, heads · batch)."""
        kind = jnp.result_type(self.weights, stream)
        seen = head_streams(self.weights.astype(kind), stream.astype(kind)).real
        return jax.nn.sigmoid(seen + over_batch(self.bias, seen.shape[-1]).astype(seen.dtype))


def require_shape(rule: MemoryRule, name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuse an array of a rule whose shape does not fit the layer."""
    if shape != expected:
        raise ValueError(f"{type(rule).__name__}: {name} has shape {shape}, but the layer needs {expected}")


def _bias(value: Number, shape: tuple[int, ...]) -> Array:
    if not 0 < value < 1:
        raise ValueError(
            f"the value of a gate must be in (0, 1), got {value}; without a gate use another rule"
        )
    return jnp.full(shape, math.log(value) - math.log1p(-value))


def over_batch(per_head: Array, batch: int) -> Array:
    """Return numbers of every head (heads, …) for every member of a batch of heads: (…, batch)."""
    return jnp.repeat(jnp.moveaxis(per_head, 0, -1), batch // len(per_head), axis=-1)


def applied(matrices: Array, vectors: Array) -> Array:
    """Return M x for every member of the batch: (m, w, batch) and (w, batch) → (m, batch)."""
    return batched_matmul(matrices, vectors[:, None])[:, 0]


def outer(values: Array, keys: Array) -> Array:
    """Return v k* for every member of the batch: (m, batch) and (w, batch) → (m, w, batch)."""
    return batched_matmul(values[:, None], keys.conj()[None])
