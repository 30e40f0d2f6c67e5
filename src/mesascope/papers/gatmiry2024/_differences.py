"""What differs from the paper's setting, claim by claim."""

from __future__ import annotations

from .._claim import Difference

_FITTED = ("minimizer", "minimizer-is-not-symmetric", "extra-loops", "extra-loops-turn", "best-layer-named")

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
        "drawn with eigenvalues of Σ from 0.4 to 2, then whitened: as with Σ = I, on which Σ^{1/2}AΣ^{1/2} and losses do not "
        "depend; d = 5, n = 40 to 640",
        claims=("minimizer", "minimizer-is-not-symmetric", "extra-loops", "extra-loops-turn"),
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
        "data",
        "gradient dominance at every A where the loss is not tiny (arXiv v1, Theorem 3.4, second-hand)",
        "n = 40; small: d = 5, 60 random matrices for each number of loops; full: d = 10, 500 matrices",
        claims=("dominance-above-the-least-loss",),
        departure="smaller",
    ),
    Difference(
        "optimizer",
        "experiments: not stated where we could read; theory: gradient flow of A (arXiv v1, Theorem 3.3, second-hand)",
        "BFGS on drawn moments, the mean over w and the query exact; best of eight random starts",
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
        "small: sets of 500 to 2000 prompts; full: 20 000",
        claims=_FITTED,
    ),
    Difference("precision", "not stated where we could read", "double"),
    Difference("seeds", "not stated where we could read", "seed 0; 5 to 16 sets of prompts, full 10 to 16"),
    Difference(
        "evaluation",
        "an upper bound of A by c, which exceeds 1 at these n (arXiv v1, Theorem 3.2, second-hand)",
        "‖Σ^{1/2}AΣ^{1/2} − I‖ by n, and below 0.15 at the largest",
        claims=("minimizer",),
    ),
)
