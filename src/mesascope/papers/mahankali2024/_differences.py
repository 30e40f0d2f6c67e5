"""What differs from the setting of the paper, which is a theorem: it has no training."""

from .._claim import Difference

_REVIEW = "reviews on OpenReview, second-hand"

DIFFERENCES = (
    Difference(
        "model",
        f"one head with W_K, W_Q, W_V and a vector h ({_REVIEW})",
        "the same functions: merged W^KQ and W^PV, sums over the examples",
        departure="same",
    ),
    Difference(
        "data",
        "x ~ N(0, I) with w ~ N(0, I), or x ~ N(0, Σ) with w ~ N(0, Σ⁻¹), noise of any σ, any d and n "
        f"(abstract; sections 3 and 4 by {_REVIEW})",
        "d = 2, n = 6 and 12, σ = 0.5 and 2 (full: d = 5, n = 10 and 50, σ = 0 to 3)",
        ("noisy-step", "preconditioned-step"),
        departure="smaller",
    ),
    Difference(
        "data",
        f"a family of nonlinear targets under Assumption 1 (abstract; section 5 by {_REVIEW}), any d and n",
        "two-layer ReLU networks drawn for every prompt; d = 3, n = 10, width 20, σ = 0.5 (full: d = 5, n = 40, width 100)",
        ("nonlinear-targets", "nonlinear-targets-named"),
        departure="smaller",
    ),
    Difference(
        "optimizer",
        "none: the minimizer of the population loss (abstract)",
        "Adam, rate 0.005, warm-up of 20 steps, cosine schedule, from N(0, 0.1²) in all entries",
    ),
    Difference("steps", "none", "1500 (full: 5000)"),
    Difference("batch", "none: the population loss (abstract)", "512"),
    Difference("precision", "none", "float32 for training, float64 for judging"),
    Difference("seeds", "none", "8 (full: 12)"),
    Difference("evaluation", "none", "50 000 prompts"),
)
