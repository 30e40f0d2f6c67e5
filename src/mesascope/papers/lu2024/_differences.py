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
        "data",
        "κ = 0.5, ρ = 0.01, pools on the sphere; d and α of the command line "
        "(`Linear/Fig1_Linear_Double_Descent/largetau.py:5-13`)",
        "the same with d = 20 and 40, α = 1",
        ("double-descent",),
    ),
    Difference(
        "evaluation",
        "τ = 0.2, 0.5, 0.85, ten pools, λ = 1e-8; the formula for d → ∞ (`largetau.py:12-17`, `smalltau.py:16-23`)",
        "the same λ, eight τ from 0.2 to 4, 20 and 80 pools; every task equally probable, not equally often",
        ("double-descent",),
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
