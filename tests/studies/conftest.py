"""Valid specifications, for tests that make one field wrong."""

import copy

import pytest

LOSS = {
    "law": {"kind": "gaussian", "scale": 1.0},
    "dim": 2,
    "horizon": 5,
    "w_kq": [[0, 0, 0, 0], [0, 0, 0, 0], [0.3, 0, 0, 0], [0, 0.3, 0, 0]],
    "w_pv": [[0.7, 0, 0, 0], [0, 0.7, 0, 0]],
}
FLOW = {
    "law": {"kind": "gaussian", "scale": 1.0},
    "dim": 2,
    "horizon": 5,
    "init": {"kind": "diagonal", "a": 0.1, "b": 0.1},
}


@pytest.fixture
def loss_with():
    return lambda **changes: {**copy.deepcopy(LOSS), **changes}


@pytest.fixture
def flow_with():
    return lambda **changes: {**copy.deepcopy(FLOW), **changes}


TRAIN = {
    "law": {"kind": "gaussian", "scale": 1.0},
    "dim": 2,
    "horizon": 5,
    "model": {"kind": "linear-attention", "init": {"kind": "diagonal", "a": 0.1, "b": 0.2}, "rho": "t"},
    "steps": 3,
    "batch": 2,
    "held_out": 4,
}
PROMPTS = {
    "process": {"kind": "linear-regression", "dim": 2},
    "examples": 3,
    "model": {"kind": "prompt-linear-transformer", "layers": 1},
    "steps": 3,
    "batch": 2,
    "held_out": 4,
}


@pytest.fixture
def train_with():
    return lambda **changes: {**copy.deepcopy(TRAIN), **changes}


@pytest.fixture
def prompts_with():
    return lambda **changes: {**copy.deepcopy(PROMPTS), **changes}
