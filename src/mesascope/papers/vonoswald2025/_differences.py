"""What differs from the setting of vonoswald2025."""

from __future__ import annotations

from .._claim import Difference

_SAMPLED = ("linear-regression", "linear-systems")
_EXACT = ("layer-is-optimal", "conjugate-gradients")

DIFFERENCES = (
    Difference(
        "model",
        "networks of many layers up to a billion weights (abstract), 16 heads with 128 key entries, gates read from tokens "
        "(`fla/layers/mesa_net.py:57-73`, `:169-172`)",
        "one layer with given keys, values and queries and constant gates; others have several heads and are given gains, "
        "without normalized linear attention, diagonal Longhorn and TTT with its norm",
        _SAMPLED,
    ),
    Difference(
        "data",
        "language (abstract)",
        "linear regression with Gaussian inputs and weights; sequences with an orthogonal transition and noise, d = 4",
        _SAMPLED,
    ),
    Difference(
        "optimizer",
        "trained (abstract)",
        "gates from a grid, heads chosen one after the other, gains by least squares",
        _SAMPLED,
    ),
    Difference(
        "model",
        "keys and queries of unit length (`fla/layers/mesa_net.py:188`), penalties of at least 0.25 (`:171`)",
        "keys and queries as they are, one penalty for all entries",
        _EXACT,
        departure="smaller",
    ),
    Difference(
        "implementation",
        "10⁻⁵ is added to denominators (`fla/ops/mesa_net/naive.py:33`, `:37`); decoding starts at q/(diag H + Λ) (`:26`)",
        "nothing is added; conjugate gradients start at 0",
        ("conjugate-gradients",),
    ),
    Difference("precision", "single (`naive.py:13-18`)", "double"),
)
"""The abstract and the authors' program were read, the text was not."""
