"""What differs from the setting of wang2025."""

from __future__ import annotations

from .._claim import Difference

DIFFERENCES = (
    Difference(
        "model",
        "layers of the literature as special cases of test-time regression (abstract; the text was not read)",
        "one head with given keys, values and queries; gates of random weights, or constant ones",
        ("layers-are-solvers", "softmax-is-kernel-regression", "orthonormal-keys"),
        departure="smaller",
    ),
    Difference(
        "model",
        "layers inside of trained networks (abstract)",
        "linear attention and the delta rule by their second moments, with best step sizes, gains and decays",
        ("correlated-keys", "forgetting"),
    ),
    Difference(
        "data",
        "keys and values of sequence models (abstract)",
        "independent Gaussian tokens, and regression with Gaussian inputs, weights and noise",
    ),
    Difference("precision", "not known", "double precision"),
)
"""Only the abstract was read; nothing here is trained or measured."""
