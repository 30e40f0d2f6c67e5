"""A specification that is right, for tests that put one thing wrong."""

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
