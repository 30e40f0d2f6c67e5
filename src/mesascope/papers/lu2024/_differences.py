"""What differs from the setting of lu2024."""

from __future__ import annotations

from .._claim import Difference
from ._data import PROGRAM

DIFFERENCES = (
    Difference(
        "model",
        "one layer of linear attention (abstract), reduced to Γ, d × (d + 1) (`common.py:20`)",
        "the same Γ",
    ),
    Difference(
        "data",
        f"pools drawn from N(0, I), new tasks on the sphere (`{PROGRAM}/kappa.py:32`, `common.py:58`)",
        "the same",
        ("stored-sweeps",),
    ),
    Difference(
        "data",
        "d → ∞ (abstract; Result 1 as `common.py:11` has it)",
        "d = 20, 24, 80 and 96, pools on the sphere",
        ("finite-dimension", "mean-of-the-pool", "map"),
    ),
    Difference(
        "evaluation",
        f"least squares on n = τd² sampled prompts, every task of the pool equally often, ten pools (`{PROGRAM}/kappa.py`)",
        "the exact minimum for n = ∞, and the first order in 1/n by sampled prompts; 20 pools",
        ("stored-sweeps",),
    ),
    Difference(
        "evaluation",
        "τ finite or infinite",
        "τ = ∞, exact for each pool",
        ("finite-dimension", "mean-of-the-pool", "map"),
    ),
    Difference("precision", "float64", "float64"),
)
