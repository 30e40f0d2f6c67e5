"""What differs from the setting of yang2024."""

from __future__ import annotations

from .._claim import Difference

_LAYERS = ("repeated-keys", "chunkwise-form")

DIFFERENCES = (
    Difference(
        "model",
        "heads with keys of unit length after convolution and SiLU, in networks of up to 1.3 billion weights (abstract; "
        "`fla/layers/delta_net.py` at bc3b101)",
        "one head with given keys, values and queries, without convolution and normalization of outputs",
        departure="smaller",
    ),
    Difference(
        "model",
        "queries are divided by the root of the number of their entries (`fla/ops/delta_rule/naive.py:19`)",
        "queries as they are: a factor of all answers",
        _LAYERS,
        departure="same",
    ),
    Difference(
        "data",
        "language, and recall by trained models (abstract)",
        "orthonormal keys that repeat; independent Gaussian tokens; keys that are uniform on the unit sphere",
    ),
    Difference("precision", "single in the reference program (`naive.py:15`)", "double"),
)
"""The abstract, the beginning of the text (arXiv v2 and v5) and the authors' program were read; nothing is trained."""
