"""Memory layers whose keys, values and queries are the inputs, outputs and queries of the context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from mesascope.specs import PROMPTS, Data, Positive, error_path, of_family, one_of

from .._specified import FeatureMap, Keys
from ._model import model

if TYPE_CHECKING:
    from jax import Array

    from mesascope.models import Context, MemoryLayer, PromptModel, SequenceModel

_REAL: tuple[Data, ...] = ("real tokens",)


@model("prompt-memory-solver", reads=PROMPTS, rule={"kind": "delta-net", "rate": 0.1})
def prompt_memory_solver(
    dim: int,
    rule: Annotated[Any, *one_of("rule")],
    keys: Keys = "free",
    feature_map: FeatureMap = "identity",
    gain: Positive = 1.0,
    *,
    key: Array,
) -> PromptModel:
    """A memory layer that solves the regression of its prompt: it writes keys x_i and values y_i, and reads by x_q.

    Gates do not depend on the stream: the model computes what its rule does in context, with constant gates. With free keys
    from N(0, I_d) the weights of the delta rule stay bounded in the mean square for rates below 2/(d + 2); beyond, and with
    other rules whose steps are too large, predictions grow with the number of examples.

    Args:
        dim: dimension of the inputs.
        rule: how the memory is written and read: a kind such as "delta-net", or a table with its fields.
        keys: "unit": keys and queries are divided by their length; or "free".
        feature_map: what keys and queries go through first: "identity", "elu" (elu(x) + 1), "relu" or "silu".
        gain: factor > 0 of the prediction, e.g. 1/N for `linear-attention`.
        key: random key, unused: all weights are given.
    """
    from mesascope.models import LastEntry, PromptModel, StackedPrompt

    one = np.eye(dim + 1)
    inputs, label = one[:dim], one[dim:]
    layer = _solver(inputs, inputs, label, float(gain) * label.T, rule, keys, feature_map, "examples", key)
    return PromptModel(StackedPrompt(dim), layer, LastEntry(1))


@model("memory-solver", reads=_REAL, rule={"kind": "delta-net", "rate": 0.1})
def memory_solver(
    dim: int,
    rule: Annotated[Any, *one_of("rule")],
    keys: Keys = "free",
    feature_map: FeatureMap = "identity",
    gain: Positive = 1.0,
    *,
    key: Array,
) -> SequenceModel:
    """A memory layer that solves the regression of tokens on their predecessors: it writes x_{t−1} → x_t, and reads by x_t.

    Gates do not depend on the stream: the model computes what its rule does in context, with constant gates. The first token
    writes nothing, and the prediction after it is 0.

    Args:
        dim: token dimension d.
        rule: how the memory is written and read: a kind such as "delta-net", or a table with its fields.
        keys: "unit": keys and queries are divided by their length; or "free".
        feature_map: what keys and queries go through first: "identity", "elu" (elu(x) + 1), "relu" or "silu".
        gain: factor > 0 of the prediction.
        key: random key, unused: all weights are given.
    """
    from mesascope.models import FirstBlock, PairedTokens, SequenceModel

    from .._around_layer import AfterFirst

    now, before = np.eye(3 * dim).reshape(3, dim, 3 * dim)[1:]
    layer = _solver(before, now, now, float(gain) * np.eye(dim), rule, keys, feature_map, "causal", key)
    return SequenceModel(PairedTokens(dim), AfterFirst(layer), FirstBlock(dim))


def _solver(
    w_k: np.ndarray,
    w_q: np.ndarray,
    w_v: np.ndarray,
    w_p: np.ndarray,
    rule: Any,
    keys: Keys,
    feature_map: FeatureMap,
    context: Context,
    key: Array,
) -> MemoryLayer:
    """Return a layer of one head with these weights."""
    from mesascope.models import MemoryLayer, MemorySizes

    sizes = MemorySizes(w_k.shape[1], heads=1, key=len(w_k), value=len(w_v))
    with error_path("rule"):
        made = of_family("rule", rule).build(sizes, 0.0, key)
    return MemoryLayer(
        w_k=w_k[None],
        w_q=w_q[None],
        w_v=w_v[None],
        w_p=w_p[None],
        rule=made,
        keys=keys,
        feature_map=feature_map,
        context=context,
    )
