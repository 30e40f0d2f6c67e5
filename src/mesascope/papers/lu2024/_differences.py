"""What differs from the setting of lu2024."""

from __future__ import annotations

from .._claim import Difference
from ._data import PROGRAM

DIFFERENCES = (
    Difference(
        "model",
        "one layer of linear attention (abstract), reduced to Γ, d × (d + 1) (`common.py:20`)",
        "the same Γ",
        ("finite-dimension", "double-descent", "stored-sweeps", "mean-of-the-pool", "map"),
        departure="same",
    ),
    Difference(
        "model",
        "one layer of linear attention (abstract), of which Γ is what they keep",
        "the whole layer, and Γ",
        ("full-layer",),
        departure="same",
    ),
    Difference(
        "data",
        f"pools drawn from N(0, I), new tasks on the sphere (`{PROGRAM}/kappa.py:32`, `common.py:58`)",
        "the same",
        ("stored-sweeps",),
        departure="same",
    ),
    Difference(
        "data",
        "d → ∞ (abstract; Result 1 as `common.py:11` has it)",
        "d = 6, 20, 24, 80 and 96, pools on the sphere",
        ("finite-dimension", "mean-of-the-pool", "map", "full-layer"),
        departure="smaller",
    ),
    Difference(
        "data",
        "κ = 0.5, ρ = 0.01, pools on the sphere; d and α of the command line "
        "(`Linear/Fig1_Linear_Double_Descent/largetau.py:5-12` at commit 40ef19c7)",
        "the same with d = 20 and 40, α = 1",
        ("double-descent",),
        departure="smaller",
    ),
    Difference(
        "evaluation",
        "τ = 0.2, 0.5, 0.85 (`largetau.py:15` at commit 40ef19c7, `smalltau.py:21`; to 2 in the newest `largetau.py:13`); the "
        "formula for d → ∞ (`common.py:10-25`)",
        "eight τ from 0.2 to 4; every task equally probable, not equally often",
        ("double-descent",),
    ),
    Difference(
        "evaluation",
        f"least squares on n = τd² sampled prompts, every task of the pool equally often (`{PROGRAM}/kappa.py:28-38`)",
        "the exact minimum for n = ∞, and the first order in 1/n by sampled prompts",
        ("stored-sweeps",),
    ),
    Difference(
        "evaluation",
        "τ finite, or its limit (Result 1 as `common.py:10-25` has it)",
        "τ = ∞, exact for each pool",
        ("finite-dimension", "mean-of-the-pool", "map", "full-layer"),
    ),
    Difference(
        "optimizer",
        "none: a linear system with λ = 1e-8 (`common.py:166`; `largetau.py:11` at commit 40ef19c7, `smalltau.py:14`; λ = 0.1 "
        "in the newest `largetau.py:9`)",
        "the same with λ = 1e-8",
        ("double-descent",),
        departure="same",
    ),
    Difference(
        "optimizer",
        f"none: a linear system with λ = 1e-15 (`common.py:166`, `{PROGRAM}/kappa.py:22`)",
        "the same with λ = 0 in the exact minimum; `map`: exact gradient flow from 0",
        ("finite-dimension", "stored-sweeps", "mean-of-the-pool", "map"),
    ),
    Difference(
        "optimizer",
        "none: a linear system (`common.py:166`)",
        "quasi-Newton descent on the exact loss, from Gaussian starts",
        ("full-layer",),
    ),
    Difference(
        "steps",
        "none: a linear system (`common.py:166`)",
        "none; `map`: the flow at its end and at the best time; `full-layer`: at most 5000 of a search",
    ),
    Difference(
        "batch",
        f"all n = τd² prompts at once (`{PROGRAM}/kappa.py:29-30`)",
        "the same (`double-descent`); n = ∞ in the others, in `stored-sweeps` with the first order in 1/n",
    ),
    Difference("precision", "float64, numpy's default (`common.py:158-166`)", "float64", departure="same"),
    Difference(
        "seeds",
        f"ten pools, no seed set (`smalltau.py:19`, `largetau.py:12`, `{PROGRAM}/kappa.py:24`)",
        "`finite-dimension` 200 pools, `double-descent` 20 and 80, `stored-sweeps` 20, `full-layer` 10 and 5, the others 40",
    ),
)
