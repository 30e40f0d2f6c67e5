"""Rules, gates and layers that do not fit are refused in one line."""

import jax
import numpy as np
import pytest

from mesascope.models import (
    Additive,
    DeltaNet,
    GatedLinearAttention,
    MemoryLayer,
    MesaNet,
    Retention,
    TTTLinear,
)
from mesascope.models.rules._rule import Gate
from mesascope.models.rules._test_time_training import InnerNorm
from mesascope.specs import known_kinds

from .layers import SIZES, layer_with, of_kind

REFUSED = {
    "in (0, 1), got 1.5": lambda: Gate.constant(SIZES, 1.5),
    "weights (heads, size, width) and bias (heads, size)": lambda: Gate(
        np.zeros((2, 1, 3)), np.zeros((2, 3))
    ),
    "a memory with more diverges": lambda: Retention([0.9, 1.1]),
    "must be less than 1, got 1.1: with 1 nothing is forgotten, with more the memory diverges": lambda: (
        known_kinds("rule")["gated-delta-net"](decay=1.1)
    ),
    "must be greater than 0 and less than 1, got 0": lambda: known_kinds("rule")["mesa-net"](decay=0),
    "weights: every entry must be finite": lambda: Gate(np.full((2, 1, 3), np.nan), np.zeros((2, 1))),
    "DeltaNet: rate has 3 numbers for every head, but the layer needs 1": lambda: layer_of(
        DeltaNet(Gate.constant(SIZES, 0.5, 3))
    ),
    "MesaNet: decay has 3 numbers for every head, but the layer needs 1": lambda: layer_of(
        MesaNet(Gate.constant(SIZES, 0.5), Gate.constant(SIZES, 0.5, 3), np.zeros((2, 3)))
    ),
    "GatedLinearAttention: decay has 2 numbers for every head, but the layer needs 1 or 3": lambda: layer_of(
        GatedLinearAttention(Gate.constant(SIZES, 0.5, 2))
    ),
    "TTTLinear: norm.gain has shape (4, 3), but the layer needs (2, 3)": lambda: layer_of(
        TTTLinear(
            Gate.constant(SIZES, 0.5), np.zeros((2, 3, 3)), np.zeros((2, 3)), InnerNorm(*np.ones((2, 4, 3)))
        )
    ),
    "feature map 'relu' needs real streams and weights": lambda: MemoryLayer(
        **{n: np.zeros((1, 3, 3)) * 1j for n in ("w_k", "w_q", "w_p", "w_v")},
        rule=Additive(),
        feature_map="relu",
    )(np.ones((2, 3))),
    "steps must be at least 1, got 0": lambda: MesaNet(*[Gate.constant(SIZES, 0.5)] * 2, np.zeros((2, 3)), 0),
    "mini_batch must be at least 1, got 0": lambda: TTTLinear(
        Gate.constant(SIZES, 0.5), np.zeros((2, 3, 3)), np.zeros((2, 3)), None, 0
    ),
    "do not fit": lambda: TTTLinear(Gate.constant(SIZES, 0.5), np.zeros((2, 3, 3)), np.zeros((2, 4))),
    "make key_size and value_size equal": lambda: MemoryLayer.gaussian(
        3, known_kinds("rule")["ttt-linear"](), key=jax.random.key(0), key_size=2
    ),
    "str is not a rule": lambda: MemoryLayer(
        **{n: np.zeros((1, 2, 2)) for n in ("w_k", "w_q", "w_p", "w_v")}, rule="longhorn"
    ),
    "keys: 'long' is unknown; use one of unit, free": lambda: of_kind("delta-net", keys="long"),
    "feature_map: 'exp' is unknown": lambda: of_kind("delta-net", feature_map="exp"),
    "DeltaNet: rate has shape (2, 1, 3), but the layer needs (1, 1, 3)": lambda: MemoryLayer(
        **{n: np.zeros((1, 3, 3)) for n in ("w_k", "w_q", "w_p", "w_v")},
        rule=DeltaNet(Gate.constant(SIZES, 0.5)),
    ),
    "feature map 'elu' needs real streams": lambda: of_kind("delta-net", feature_map="elu")(
        np.ones((2, 3)) * 1j
    ),
    "TTTLinear needs real streams": lambda: of_kind("ttt-linear")(np.ones((2, 3)) * 1j),
}


def layer_of(rule):
    return layer_with(np.random.default_rng(0), rule)


@pytest.mark.parametrize("message", REFUSED)
def test_bad_input(message):
    with pytest.raises((ValueError, TypeError)) as caught:
        REFUSED[message]()
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kind": "delta-net", "rate": 1}, "rule.rate must be greater than 0 and less than 1, got 1"),
        ({"kind": "titans", "momentum": -0.1}, "rule.momentum must be greater than 0 and less than 1"),
        ({"kind": "mesa-net", "steps": 0}, "rule.steps"),
        ({"kind": "mesa-net", "penalty": 0}, "rule.penalty must be greater than 0"),
        ("deltanet", "did you mean 'delta-net'"),
        ({"kind": "linear-attention", "decay": 0.5}, "unknown field 'decay'; linear-attention has no fields"),
        ({"kind": "ttt-linear", "norm": "no"}, "rule.norm must be true or false, got 'no'"),
    ],
)
def test_bad_specifications(table, message):
    kind = known_kinds("layer")["memory"]
    with pytest.raises((ValueError, TypeError)) as caught:
        kind(rule=table)
    assert message in str(caught.value)
