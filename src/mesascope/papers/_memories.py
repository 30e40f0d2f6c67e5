"""Memory layers on tokens (k_t, v_t, q_t), and their gates as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from mesascope.core import named_key
from mesascope.models import Gate, MemoryLayer, MemorySizes
from mesascope.specs import of_family


class Pairs(NamedTuple):
    """Keys (…, n, w), values (…, n, m) and queries (…, n, w) of tokens."""

    keys: np.ndarray
    values: np.ndarray
    queries: np.ndarray

    @property
    def stream(self) -> np.ndarray:
        """The tokens (k_t, v_t, q_t), shape (…, n, 2w + m)."""
        return np.concatenate([self.keys, self.values, self.queries], -1)


def gaussian_pairs(seed: int, shape: tuple[int, ...], key: int, value: int) -> Pairs:
    """Tokens with independent N(0, 1/w) keys and queries, and N(0, 1) values.

    Args:
        seed: of the draw.
        shape: of the tokens, (…, n).
        key: entries w of a key.
        value: entries m of a value.
    """
    rng = np.random.default_rng([seed, *shape, key, value])
    keys, values, queries = (rng.normal(size=(*shape, size)) for size in (key, value, key))
    return Pairs(keys / key**0.5, values, queries / key**0.5)


def memory_layer(rule: Mapping[str, Any], key: int, value: int, scale: float, seed: int) -> MemoryLayer:
    """A layer of one head that reads tokens (k_t, v_t, q_t), with gates of their own at every token.

    Args:
        rule: a kind of rule with its fields.
        key: entries of a key.
        value: entries of a value.
        scale: standard deviation of the weights of gates; 0: gates are constant.
        seed: of these weights.
    """
    one = np.eye(2 * key + value)
    keys, values, queries = one[:key], one[key : key + value], one[key + value :]
    sizes = MemorySizes(len(one), heads=1, key=key, value=value)
    made = of_family("rule", rule).build(sizes, scale, named_key(seed, "gates"))
    return MemoryLayer(
        w_k=keys[None],
        w_q=queries[None],
        w_v=values[None],
        w_p=np.eye(value)[None],
        rule=made,
        keys="free",
    )


def answers(layer: Any, pairs: Pairs) -> np.ndarray:
    """What a layer answers to every query after its own token, shape (…, n, m)."""
    return np.asarray(_answers(layer, pairs.stream))


_answers = eqx.filter_jit(lambda layer, stream: layer(stream))


def gates_of(layer: MemoryLayer, stream: np.ndarray) -> dict[str, np.ndarray]:
    """The gates of a layer of one head at every token, σ(W z + b): name → shape (…, n, size)."""
    gates = {name: part for name, part in vars(layer.rule).items() if isinstance(part, Gate)}
    return {name: _gate(gate, stream) for name, gate in gates.items()}


def _gate(gate: Gate, stream: np.ndarray) -> np.ndarray:
    weights, bias = np.asarray(gate.weights[0]), np.asarray(gate.bias[0])
    return np.asarray(1 / (1 + np.exp(-(stream @ weights.T + bias))))
