"""What differs from the paper's setting, claim by claim."""

from __future__ import annotations

from .._claim import Difference

_FITTED = ("extra-loops", "extra-loops-turn", "best-layer-named")

DIFFERENCES = (
    Difference(
        "model",
        "looped linear attention, A and u train, all other weights 0 (arXiv v1, section 3.3, second-hand)",
        "the same",
        claims=("loops-are-steps", "loops-in-closed-form", "one-loop"),
        departure="same",
    ),
    Difference(
        "optimizer",
        "layers that were trained (arXiv v1, section 5, second-hand)",
        "the best multiple of the identity, nothing trained",
        claims=("named",),
    ),
    Difference(
        "data",
        "experiments: Σ = I, d = 10 (arXiv v1, section 5, second-hand); n not stated where we could read",
        "drawn with eigenvalues of Σ from 0.4 to 2, on which Σ^{1/2}AΣ^{1/2} and losses do not depend; d = 5, n = 60",
        claims=("extra-loops", "extra-loops-turn"),
        departure="smaller",
    ),
    Difference(
        "data",
        "experiments: Σ = I, d = 10 (arXiv v1, section 5, second-hand); n not stated where we could read",
        "Σ = I, d = 5, n = 40",
        claims=("named", "best-layer-named"),
        departure="smaller",
    ),
    Difference(
        "optimizer",
        "experiments: not stated where we could read; theory: gradient flow of A (arXiv v1, Theorem 3.3, second-hand)",
        "BFGS on the exact loss at u = 0; best of 16 random starts",
        claims=_FITTED,
    ),
    Difference(
        "steps",
        "trained with 2 or 5 loops, tested with any number (arXiv v1, section 5, second-hand)",
        "fitted for 3 loops, tested with up to 18",
        claims=("extra-loops", "extra-loops-turn"),
    ),
    Difference(
        "batch",
        "not stated where we could read",
        "all prompts: the loss that is minimized is exact",
        claims=_FITTED,
    ),
    Difference("precision", "not stated where we could read", "double"),
    Difference("seeds", "not stated where we could read", "seed 0; 16 sets of prompts"),
)
