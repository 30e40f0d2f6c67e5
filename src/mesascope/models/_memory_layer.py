"""Layers with a memory that tokens write one after the other: linear attention, DeltaNet, Titans, MesaNet and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self, TypeAlias, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mesascope.core import split_keys
from mesascope.specs import Positive, Size, of_family, one_of, show

from ._arrays import axes, positive_number
from ._batch_last_layer import BatchLastLayer
from ._context import check_context, visible
from ._heads import checked_factors, factor_shapes, gaussian_factors, head_streams, projected_heads
from ._specified import Context, FeatureMap, Keys, layer
from .rules._rule import MemoryRule, MemorySizes, MemoryToken, RuleKind

RuleField: TypeAlias = Annotated[RuleKind | str | Mapping[str, Any], *one_of("rule")]

_FEATURES: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "elu": lambda x: jax.nn.elu(x) + 1,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
}
_BLOCK = 32
"""Tokens whose memories are computed again for the gradient: only the memory at the start of a block is stored."""
_SHORTEST = 1e-12
"""Keys whose squared length is less than this are divided by its root."""


def _needs_real(spec: Any) -> bool:
    return bool(spec.rule.real) or spec.feature_map != "identity"


@layer("memory", real=_needs_real, rule="delta-net")
class MemoryLayer(BatchLastLayer):
    r"""A layer whose heads write keys and values into a memory, and read it by queries.

    $$k_t = \phi(W_K z_t), \quad q_t = \phi(W_Q z_t), \quad v_t = W_V z_t, \qquad
    M_t = \mathrm{write}(M_{t-1}, k_t, v_t), \qquad z_t \mapsto \sum_h W_P\, \mathrm{read}(M_t, q_t),$$

    where φ is a feature map, followed by division by the length for keys of unit length. The rule says how a memory is
    written and read. There is no residual connection: `LinearAttentionStack` and `Residual` add it. Time and memory are
    linear in the number of tokens. Memories have at least single precision, for streams of half precision, too.

    Attributes:
        w_k, w_q: shape (heads, key size, width); real or complex.
        w_p: shape (heads, output width, value size).
        w_v: shape (heads, value size, width).
        rule: how a memory is written and read, e.g. `GatedLinearAttention`, `DeltaNet`, `Titans` or `MesaNet`.
        keys: "unit": keys and queries are divided by their length; or "free".
        feature_map: φ: "identity", "elu" (elu(x) + 1), "relu" or "silu"; all but the first for real streams only.
        context: "causal": token t reads M_t; "all": all tokens read the memory of all, "examples": that of all but the last, as
            prompts need it, whose last token is the query.

    Raises:
        ValueError, TypeError: for shapes that do not fit, non-finite weights, unknown names, something that is not a rule;
            when called, for complex streams or weights where the feature map or the rule takes real ones.

    Source: wang2025: rules as solvers of regression.
    """

    w_k: Array = eqx.field(metadata=axes(3))
    w_q: Array = eqx.field(metadata=axes(3))
    w_p: Array = eqx.field(metadata=axes(3))
    w_v: Array = eqx.field(metadata=axes(3))
    rule: MemoryRule
    keys: Keys = eqx.field(static=True)
    feature_map: FeatureMap = eqx.field(static=True)
    context: Context = eqx.field(static=True)

    def __init__(
        self,
        *,
        w_k: Any,
        w_q: Any,
        w_p: Any,
        w_v: Any,
        rule: MemoryRule,
        keys: Keys = "unit",
        feature_map: FeatureMap = "identity",
        context: Context = "causal",
    ):
        self.w_k, self.w_q, self.w_p, self.w_v = checked_factors(w_k, w_q, w_p, w_v)
        if not isinstance(rule, MemoryRule):
            raise TypeError(f"MemoryLayer: {type(rule).__name__} is not a rule; use e.g. DeltaNet or MesaNet")
        rule.check(MemorySizes(self.width, len(self.w_k), self.w_k.shape[1], self.w_v.shape[1]))
        self.rule = rule
        self.keys = _checked("keys", keys, get_args(Keys))
        self.feature_map = _checked("feature_map", feature_map, get_args(FeatureMap))
        self.context = check_context(context)

    @classmethod
    def gaussian(
        cls,
        width: int,
        rule: RuleField,
        heads: Size = 1,
        scale: Positive = 0.1,
        *,
        key: Array,
        key_size: Size | None = None,
        value_size: Size | None = None,
        output_width: int | None = None,
        keys: Keys = "unit",
        feature_map: FeatureMap = "identity",
        context: Context = "causal",
    ) -> Self:
        """Return a layer with independent N(0, scale²) entries.

        Args:
            width: entries of an input token.
            rule: how the memory is written and read: a kind such as "delta-net", or a table with its fields.
            heads: number of heads.
            scale: standard deviation > 0 of the weights, also of those of gates.
            key: random key.
            key_size: entries of the keys of every head; by default the width.
            value_size: entries of the values of every head; by default the width.
            output_width: entries of an output token; by default the width.
            keys: "unit": keys and queries are divided by their length; or "free".
            feature_map: what keys and queries go through first: "identity", "elu" (elu(x) + 1), "relu" or "silu".
            context: the tokens that have written the memory that a query reads.
        """
        shapes = factor_shapes(width, heads, key_size, value_size, output_width)
        scale = positive_number("scale", scale)
        key_factors, key_rule = split_keys(key)
        factors = gaussian_factors(key_factors, shapes, [scale] * 4)
        sizes = MemorySizes(width, heads, key=shapes[0][1], value=shapes[3][1])
        made = of_family("rule", rule).build(sizes, float(scale), key_rule)
        return cls(**factors._asdict(), rule=made, keys=keys, feature_map=feature_map, context=context)

    @property
    def width(self) -> int:
        """Entries of an input token."""
        return int(self.w_k.shape[-1])

    @property
    def output_width(self) -> int:
        """Entries of an output token."""
        return int(self.w_p.shape[-2])

    @property
    def causal(self) -> bool:
        """Whether `context` is "causal"."""
        return self.context == "causal"

    def on_batch_last(self, stream: Array) -> Array:
        """Return the new stream: (n, width, batch) → (n, output width, batch)."""
        tokens, queries = self.tokens(stream)
        empty = self.rule.empty(tokens.value[0], tokens.key[0])
        if self.context == "causal":
            answers = _every_answer(self.rule, empty, tokens, queries)
        else:
            answers = self._answers(_after_all(self.rule, empty, self._visible(tokens)), queries)
        return self._projected(answers, stream)

    def last_on_batch_last(self, stream: Array) -> Array:
        """Return the last token only: the memory is read once."""
        tokens, queries = self.tokens(stream)
        empty = self.rule.empty(tokens.value[0], tokens.key[0])
        memory = _after_all(self.rule, empty, self._visible(tokens))
        return self._projected(self._answers(memory, queries[-1:]), stream)

    def tokens(self, stream: Array) -> tuple[MemoryToken, Array]:
        """Return what the tokens of a stream (n, width, batch) write, and their queries, all with n as the first axis."""
        stream = stream.astype(jnp.promote_types(self._type(stream), jnp.float32))
        if jnp.iscomplexobj(stream) and (self.rule.real or self.feature_map != "identity"):
            reason = type(self.rule).__name__ if self.rule.real else f"feature map '{self.feature_map}'"
            raise TypeError(
                f"MemoryLayer: {reason} needs real streams and weights, got products of {stream.dtype}; embed complex "
                "tokens with RealForm"
            )
        values, keys, queries = (
            head_streams(w.astype(stream.dtype), stream) for w in (self.w_v, self.w_k, self.w_q)
        )
        return MemoryToken(self._features(keys), values, self.rule.gates(stream)), self._features(queries)

    def _type(self, stream: Array) -> Any:
        """The type of products of a stream with the weights."""
        return jnp.result_type(stream, self.w_k, self.w_q, self.w_p, self.w_v)

    def _projected(self, answers: Array, stream: Array) -> Array:
        """Σ_h W_P u_h in the type of products of the stream with the weights."""
        return projected_heads(self.w_p.astype(answers.dtype), answers).astype(self._type(stream))

    def _features(self, streams: Array) -> Array:
        features = _FEATURES[self.feature_map](streams)
        if self.keys == "free":
            return features
        square = jnp.sum(jnp.abs(features) ** 2, 1, keepdims=True)
        return features * jax.lax.rsqrt(jnp.maximum(square, _SHORTEST))

    def _visible(self, tokens: MemoryToken) -> MemoryToken:
        visible_tokens: MemoryToken = jax.tree.map(lambda x: visible(x, self.context), tokens)
        return visible_tokens

    def _answers(self, memory: Any, queries: Array) -> Array:
        return jax.lax.map(lambda query: self.rule.read(memory, query), queries)


def _checked(name: str, value: Any, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise ValueError(f"{name}: {show(value)} is unknown; use one of {', '.join(known)}")
    return value


def _every_answer(rule: MemoryRule, empty: Any, tokens: MemoryToken, queries: Array) -> Array:
    """Return what every query reads from the memory after its own token, shape (n, m, batch)."""

    def step(memory: Any, now: tuple[MemoryToken, Array]) -> tuple[Any, Array]:
        memory = rule.write(memory, now[0])
        return memory, rule.read(memory, now[1])

    answers: Array = _scan_in_blocks(step, empty, (tokens, queries))[1]
    return answers


def _after_all(rule: MemoryRule, empty: Any, tokens: MemoryToken) -> Any:
    """Return the memory after all tokens."""
    return _scan_in_blocks(lambda memory, token: (rule.write(memory, token), None), empty, tokens)[0]


def _scan_in_blocks(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, xs: Any) -> tuple[Any, Any]:
    """Return `jax.lax.scan(step, start, xs)`, which stores few memories for the gradient: those at the beginnings of blocks.

    Those inside a block are computed again, and stored while its gradient is; what else a step computes is not stored.
    """
    step = jax.checkpoint(step, prevent_cse=False)  # one step of a scan shares nothing with another
    length = len(jax.tree.leaves(xs)[0])
    blocks = length // _BLOCK
    if blocks < 2:
        return jax.lax.scan(step, start, xs)
    whole = blocks * _BLOCK
    cut = jax.tree.map(lambda x: x[:whole].reshape(blocks, _BLOCK, *x.shape[1:]), xs)
    after, outputs = jax.lax.scan(
        jax.checkpoint(lambda carry, block: jax.lax.scan(step, carry, block)), start, cut
    )
    outputs = jax.tree.map(lambda y: y.reshape(whole, *y.shape[2:]), outputs)
    if whole == length:
        return after, outputs
    after, rest = jax.lax.scan(step, after, jax.tree.map(lambda x: x[whole:], xs))
    return after, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), outputs, rest)
