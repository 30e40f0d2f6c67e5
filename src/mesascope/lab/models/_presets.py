"""Trainings to begin with."""

from typing import Any

_ADAM = {"method": "adam", "learning_rate": 0.01}
_REGRESSION = {"process": {"kind": "linear-regression", "dim": 3}, "examples": 10}

PRESETS: dict[str, dict[str, Any]] = {
    "One linear layer on linear regression": {
        **_REGRESSION,
        "model": {"kind": "prompt-linear-transformer", "layers": 1},
        "optimizer": _ADAM,
        "steps": 1000,
    },
    "Two linear layers on linear regression": {
        **_REGRESSION,
        "model": {"kind": "prompt-linear-transformer", "layers": 2},
        "optimizer": _ADAM,
        "steps": 2000,
    },
    "Three steps of preconditioned gradient descent": {
        "process": {"kind": "linear-regression", "dim": 3, "covariance": [[2, 0, 0], [0, 1, 0], [0, 0, 0.5]]},
        "examples": 10,
        "model": {"kind": "preconditioned-linear-transformer", "layers": 3},
        "optimizer": _ADAM,
        "steps": 1000,
    },
    "Heads of rank one, for plateaus": {
        "process": {"kind": "linear-regression", "dim": 2, "covariance": [[0.7, 0], [0, 0.3]]},
        "examples": 9,
        "model": {"kind": "prompt-linear-transformer", "layers": 1, "heads": 2, "rank": 1, "scale": 0.01},
        "optimizer": _ADAM,
        "steps": 1000,
    },
    "Softmax attention on linear regression": {
        **_REGRESSION,
        "weights": "every",
        "model": {"kind": "prompt-transformer", "width": 32, "layers": 2, "heads": 2},
        "optimizer": {"method": "adam", "learning_rate": 0.003, "schedule": "cosine"},
        "steps": 3000,
    },
    "Two linear layers on sequences": {
        "process": {"kind": "orthogonal-ar", "law": {"kind": "rademacher"}, "dim": 3},
        "horizon": 20,
        "model": {"kind": "linear-transformer", "layers": 2},
        "optimizer": _ADAM,
        "steps": 1000,
    },
    "Mesa layer on noisy sequences": {
        "process": {"kind": "orthogonal-ar", "law": {"kind": "rademacher"}, "dim": 4, "noise": 0.1},
        "horizon": 20,
        "model": {"kind": "mesa-transformer", "layers": 1},
        "optimizer": _ADAM,
        "steps": 600,
    },
    "Softmax attention on a Markov chain": {
        "process": {"kind": "markov-tree", "parents": "chain", "states": 3, "alpha": 0.5},
        "horizon": 16,
        "model": {"kind": "token-transformer", "width": 32, "layers": 2, "heads": 2},
        "optimizer": {"method": "adam", "learning_rate": 0.003},
        "steps": 2000,
    },
}
"""Specifications of trainings by what they are."""
